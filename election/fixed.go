package election

import (
	"time"
	"topdog/wire"
)

// fixedDetector is the time-out that the papers of the bully family assume
// without much ado: a leader that was silent for a fixed time is suspect, and a
// suspect that does not answer one question within another fixed time T is
// dead. It learns nothing that changes when it suspects, so it shows
// what learning is worth.
type fixedDetector struct{ observed }

// newFixedDetector returns the detector "fixed".
func newFixedDetector(interval time.Duration) detector {
	return &fixedDetector{observed{interval: interval}}
}

// fixedIntervals without a heartbeat make a leader suspect. Three are what VRRP
// waits (RFC 5798, section 6.1: Master_Down_Interval).
const fixedIntervals = 3

// suspectAfter is how long a leader may be silent. Just three intervals after a
// heartbeat, the third of its successors is due; VRRP's Skew_Time lets it arrive,
// and lets those of higher priority go first. The latter is the succession's
// business here, and the grace is enough for the former.
//
// So two lost heartbeats in a row are harmless. A loss p makes about p³
// suspicions per interval: at 1 % and 100 ms, one in 28 hours. The price is
// detection, 2 to 3 intervals after the crash, and one more for the question.
func (d *fixedDetector) suspectAfter() time.Duration {
	return fixedIntervals*d.interval + d.Grace()
}

func (d *fixedDetector) Heard(now Instant, heartbeat wire.Heartbeat) {
	d.count(now, heartbeat, now >= d.Freshness())
}

func (d *fixedDetector) Freshness() Instant { return d.last + d.suspectAfter() }

// Questions is one, and an interval is the limit T for its answer: a time that
// the group considers long enough for a heartbeat is so for a question.
func (d *fixedDetector) Questions() Questions {
	limit := max(d.interval, roundTripMin)
	return Questions{Count: 1, Spacing: limit, Within: limit}
}

func (d *fixedDetector) Quality() Quality {
	return d.quality(d.suspectAfter()-d.interval, d.Questions())
}
