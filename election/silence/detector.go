// Package silence says when a leader is late. Its failure detectors watch the heartbeats of one
// leader; its [Grace] is how much lateness the group allows, and has learned to allow. It is
// asked, and decides nothing.
package silence

import (
	"fmt"
	"slices"
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// Detector is a failure detector: it watches one leader and says when its
// silence becomes suspicious. It keeps no clock.
type Detector interface {
	// Follow begins to watch another leader. What was learned of the network stays.
	Follow(now clock.Instant, interval time.Duration)
	// Heard receives a heartbeat of the watched leader.
	Heard(now clock.Instant, heartbeat wire.Heartbeat)
	// Evidence says that somebody else heard a heartbeat at that time.
	Evidence(at clock.Instant)
	// StoodStill learns that this board itself was not running until now, and was so late for what was due.
	StoodStill(now clock.Instant, late time.Duration)
	// Forgive gives the leader a fresh interval, because this board was not running itself.
	Forgive(now clock.Instant)
	// Answered receives an answer of the leader, and how long ago the last and the first
	// of the questions were sent of which it may answer any.
	Answered(sinceLast, sinceFirst time.Duration)
	// Woke learns by how much this board was late for something that was due.
	Woke(late time.Duration)
	// Freshness is when the leader becomes suspect unless it is heard before:
	// the freshness point of Chen, Toueg and Aguilera.
	Freshness() clock.Instant
	// Earliest is when the grace of the next heartbeat ends, see DefaultGrace.
	Earliest() clock.Instant
	// Grace is how late the next heartbeat may be. It is never less than the default of the leader's interval.
	Grace() time.Duration
	// Age is the time since the newest heartbeat that is known of.
	Age(now clock.Instant) time.Duration
	// Questions says how often, and how far apart, a suspect must be asked in
	// vain before it is taken for dead.
	Questions() Questions
	// RoundTripBound is what few answers of the leader exceed.
	RoundTripBound() time.Duration
	// Quality is for people.
	Quality() Quality
}

// Questions is how a suspect is asked: Count times, Spacing apart, and the last
// question has the time Within to be answered.
type Questions struct {
	Count   int
	Spacing time.Duration
	Within  time.Duration
}

// Duration is how long asking takes when nobody answers.
func (q Questions) Duration() time.Duration {
	return time.Duration(q.Count-1)*q.Spacing + q.Within
}

// Quality is what a detector has learned of the network.
type Quality struct {
	Loss      float64       // of heartbeats, 0…1, as observed
	Margin    time.Duration // how late a heartbeat may be
	RoundTrip time.Duration // smoothed; 0 if never measured
	Questions Questions
}

// DefaultGrace is the grace of a group that has learned nothing (see [Grace]). The grace is
// the least time between the moment at which a heartbeat was due and the earliest takeover by
// anybody. Two promises depend on it:
//
//   - A follower: Freshness, which is never before last + H + margin, and all of
//     Questions.Duration go by before anybody claims, and margin + duration ≥ G, where G is
//     what the leader has announced. last is when a heartbeat arrived, so last + H is not
//     before it was due to be sent. Where these change in between, heir waits for Earliest.
//   - The leader: late by more than G for its heartbeat, it doubts that it
//     still leads (see suspended), and its lease has ended before (see LeaseEnd). If it is
//     less late, nobody has taken over. That makes it safe to hold the address between
//     two heartbeats.
//
// So a leader whose lateness has caused a takeover always doubts before it goes on. To make
// takeovers faster, leaders must doubt earlier, and their leases must end earlier. Then a
// leader on a busy board loses the lead more often although it works.
//
// A tenth of the interval costs a tenth of the shortest possible outage; a tick is what
// a busy Linux kernel without real-time priorities needs to run a process that
// became ready.
func DefaultGrace(interval time.Duration) time.Duration { return max(Tick, interval/10) }

// Tick is that of a kernel with CONFIG_HZ=250.
const Tick = 4 * time.Millisecond

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
