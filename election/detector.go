package election

import (
	"time"

	"topdog/wire"
)

// Detector is a failure detector: it watches one leader and says when its
// silence becomes suspicious. It keeps no clock.
type Detector interface {
	// Follow begins to watch another leader. What was learned of the network stays.
	Follow(now Instant, interval time.Duration)
	// Heard takes in a heartbeat of the watched leader.
	Heard(now Instant, beat wire.Heartbeat)
	// Evidence says that somebody else heard a heartbeat at that time.
	Evidence(at Instant)
	// Forgive gives the leader a fresh interval, because this board was asleep itself.
	Forgive(now Instant)
	// Answered takes in the time between a question to the leader and its answer.
	Answered(roundTrip time.Duration)
	// Freshness is when the leader becomes suspect unless it is heard before:
	// the freshness point of Chen, Toueg and Aguilera.
	Freshness() Instant
	// Age is the time since the newest heartbeat that is known of.
	Age(now Instant) time.Duration
	// Questions says how often, and how far apart, a suspect must be asked in
	// vain before its reign ends.
	Questions() Questions
	// Quality is for people.
	Quality() Quality
}

// Questions is how a suspect is asked.
type Questions struct {
	Count int
	Every time.Duration
}

// Patience is how long asking takes when nobody answers.
func (q Questions) Patience() time.Duration { return time.Duration(q.Count) * q.Every }

// Quality is what a detector has learned of the network.
type Quality struct {
	Loss      float64       // of heartbeats, 0…1, as observed
	Margin    time.Duration // how late a heartbeat may be
	RoundTrip time.Duration // smoothed; 0 if never measured
	Questions Questions
}

// Grace is the least time between the moment at which a heartbeat was due and
// the earliest takeover by anybody. A leader that is late by less has nothing to
// fear, which is what makes it safe to hold the address between two heartbeats.
// A tenth of the interval costs a tenth of the shortest possible outage; 4 ms
// are what a busy Linux kernel without real-time priorities needs to run a
// process that became ready.
func Grace(interval time.Duration) time.Duration {
	return max(4*time.Millisecond, interval/10)
}
