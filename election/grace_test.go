package election

import (
	"fmt"
	"testing"
	"time"

	"topdog/election/silence"
	"topdog/wire"
)

// TestMarginThatGrowsLate: a timer that rings late after the turn was planned makes the
// margin larger, of which the turn knows nothing, and leaves less of the grace to the
// questions. Nobody claims before the grace is over nevertheless.
func TestMarginThatGrowsLate(t *testing.T) {
	for _, interval := range []time.Duration{10, 50, 60, 70, 75, 90, 100, 200} {
		interval *= time.Millisecond
		t.Run(fmt.Sprint(interval), func(t *testing.T) {
			b := newBoard(t, func(c *Config) { c.Interval = interval })
			beats := func(m *wire.Message) {
				leading(m)
				m.Heartbeat = wire.Heartbeat{Interval: interval, Number: m.Heartbeat.Number}
			}
			var last Instant
			for beat := range uint8(200) {
				b.sleep(interval)
				b.hear(3, wire.TypeHeartbeat, beats, func(m *wire.Message) { m.Heartbeat.Number = beat })
				last = b.clock
			}
			for range 8 {
				b.detector.Woke(silence.Tick)
			}
			const look = 50 * time.Microsecond
			for b.role != Leader && b.clock < last+3*interval {
				b.sleep(look)
			}
			switch claims, earliest := b.clock, last+interval+silence.DefaultGrace(interval); {
			case b.role != Leader:
				t.Fatalf("it is a %v", b.role)
			case claims < earliest:
				t.Errorf("it claims %v after the heartbeat was due, want at least %v", claims-last-interval, silence.DefaultGrace(interval))
			}
		})
	}
}

// TestSecondWitness: a board that hears badly overlooks lost heartbeats. When one of lower
// rank, which hears well, misses the leader, it does not object and go on to sleep: it
// looks for itself at once.
func TestSecondWitness(t *testing.T) {
	for _, asked := range []bool{false, true} {
		b := newBoard(t)
		for beat := range uint8(200) {
			b.sleep(testInterval)
			if beat%2 == 0 { // it hears every other one
				b.hear(3, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Heartbeat.Number = beat })
			}
		}
		b.hear(1, wire.TypeHello)
		b.hear(3, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Heartbeat.Number = 200 })
		last := b.clock
		doubts := last + testInterval + silence.DefaultGrace(testInterval)
		b.sleep(doubts - b.clock + time.Millisecond)
		if b.role != Follower {
			t.Fatalf("it asks without having been asked, %v after the last heartbeat", b.clock-last)
		}
		if asked {
			b.hear(1, wire.TypeElection, func(m *wire.Message) {
				m.Election = wire.Election{Suspect: 3, Incarnation: 30, LastHeard: b.lastLeader.lastHeard, Round: 1}
			})
		}
		b.sleep(time.Millisecond)
		if candidate := b.role == Candidate; candidate != asked {
			t.Errorf("asked by another board: %t; it asks for the leader itself: %t", asked, candidate)
		}
	}
}

// TestStandstillIsNoLoss: heartbeats that came while this board stood still, and are dropped since
// a later one is read first, do not count as lost.
func TestStandstillIsNoLoss(t *testing.T) {
	b := followerOf3(t, 50)
	before := b.Status(b.clock).Quality.Loss
	b.clock += 3*testInterval + 20*time.Millisecond
	b.sequence += 2
	b.hear(3, wire.TypeHeartbeat, leading)
	if after := b.Status(b.clock).Quality.Loss; after > before {
		t.Errorf("the loss was %v, and is %v after a standstill", before, after)
	}
	b.sleep(testInterval)
	b.sequence += 2
	b.hear(3, wire.TypeHeartbeat, leading)
	if after := b.Status(b.clock).Quality.Loss; after <= before {
		t.Errorf("without a standstill, the loss was %v, and is %v", before, after)
	}
}
