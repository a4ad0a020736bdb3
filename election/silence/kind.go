// Package silence says when a leader is late. Its failure detectors watch the heartbeats of one
// leader; its [Grace] is how much lateness the group allows, and has learned to allow. It is
// asked, and decides nothing.
package silence

import (
	"fmt"
	"slices"
	"time"
)

// DetectorKind names a failure detector.
type DetectorKind uint8

// The failure detectors. DetectorDefault is the one that suits the algorithm.
const (
	DetectorDefault DetectorKind = iota
	DetectorAsk
	DetectorFixed
	DetectorNFDE
	detectorCount
)

var detectorNames = [detectorCount]string{
	DetectorDefault: "auto", DetectorAsk: "ask", DetectorFixed: "fixed", DetectorNFDE: "nfd-e",
}

func (k DetectorKind) String() string {
	if k.Valid() {
		return detectorNames[k]
	}
	return fmt.Sprintf("detector %d", uint8(k))
}

// Valid reports whether there is such a detector.
func (k DetectorKind) Valid() bool { return k < detectorCount }

// Detectors returns the names of the failure detectors.
func Detectors() []string { return detectorNames[DetectorAsk:] }

// DetectorNamed returns the failure detector of that name.
func DetectorNamed(s string) (DetectorKind, bool) {
	i := slices.Index(detectorNames[:], s)
	return DetectorKind(max(i, 0)), i >= 0
}

// Or returns the failure detector that an algorithm gets: the one that suits it, unless
// another one was chosen.
func (k DetectorKind) Or(suits DetectorKind) DetectorKind {
	if k == DetectorDefault {
		return suits
	}
	return k
}

// New returns such a detector, for leaders with that interval at first. They have the grace of the group.
func (k DetectorKind) New(interval time.Duration, group *Grace) Detector {
	o := observed{interval: interval, group: group}
	switch k {
	case DetectorFixed:
		return &fixedDetector{o}
	case DetectorNFDE:
		return &nfdeDetector{observed: o, expected: interval}
	default:
		return &askDetector{observed: o}
	}
}
