package silence

import "time"

const testInterval = 100 * time.Millisecond

// newDetector returns a detector of leaders that are allowed the default grace of their interval.
func newDetector(kind DetectorKind, interval time.Duration) Detector {
	return kind.New(interval, &Grace{})
}
