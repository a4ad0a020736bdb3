package election

import (
	"testing"
	"time"

	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// takeLead makes the board lead, however long it has to listen.
func (b *board) takeLead() {
	b.t.Helper()
	for range 100 {
		b.sleep(100 * time.Millisecond)
		b.Probed(b.clock, false)
		if b.role == Leader {
			return
		}
	}
	b.t.Fatalf("the board does not lead, it is a %v", b.role)
}

// TestLapsedLease: a leader that sends its heartbeat after the end of its lease has the lease
// again only when it would have heard whoever has claimed meanwhile.
func TestLapsedLease(t *testing.T) {
	const late = 20 * time.Millisecond // beyond the grace, and within the interval
	begin := func(t *testing.T) (b *board, ended Instant) {
		b = leads(t)
		b.beats()
		ended, _ = b.LeaseEnd()
		if effects := b.wakesLate(late); sent(effects, wire.TypeHeartbeat) == 0 {
			t.Fatalf("it does %v, want a heartbeat at once", described(effects))
		}
		if end, ends := b.LeaseEnd(); !ends || end != ended {
			t.Fatalf("the lease that ended at %v ends at %v", ended, end)
		}
		return b, ended
	}
	again := func(t *testing.T, b *board) {
		if end, ends := b.LeaseEnd(); !ends || end != b.leading.sentAt+b.lease() {
			t.Errorf("at %v the lease ends at %v", b.clock, end)
		}
	}
	t.Run("nobody has claimed", func(t *testing.T) {
		b, _ := begin(t)
		b.sleep(b.answerWithin())
		again(t, b)
	})
	t.Run("it replies meanwhile", func(t *testing.T) {
		b, ended := begin(t)
		b.clock += silence.RoundTripMin
		b.hear(1, wire.TypeElection, func(m *wire.Message) { m.Election.Suspect, m.Election.Round = 2, 1 })
		if end, _ := b.LeaseEnd(); end != ended {
			t.Errorf("a reply has moved the end of the lease to %v", end)
		}
		b.sleep(b.answerWithin())
		again(t, b)
	})
	t.Run("another board has", func(t *testing.T) {
		b, _ := begin(t)
		b.clock += b.answerWithin() / 2
		effects := b.hear(1, wire.TypeCoordinator, leading, func(m *wire.Message) { m.Term = b.term + 1 })
		if b.role != Follower || effects[1].Kind != EffectRelease {
			t.Errorf("it is a %v, and does %v", b.role, described(effects))
		}
	})
	t.Run("it stands still once more", func(t *testing.T) {
		b, ended := begin(t)
		b.clock += b.answerWithin() + silence.RoundTripMin
		b.Wake(b.clock)
		if end, _ := b.LeaseEnd(); end != ended {
			t.Errorf("it has read nothing yet, and the lease ends at %v", end)
		}
		b.sleep(silence.RoundTripMin)
		again(t, b)
	})
	t.Run("it stands still once more, until the next lease would have ended", func(t *testing.T) {
		b := leads(t)
		for range 10 { // where an answer takes long, it is still awaited when the next heartbeat is due
			b.detector.Answered(testInterval/2, testInterval/2)
		}
		b.beats()
		ended, _ := b.LeaseEnd()
		b.wakesLate(late)
		b.wakesLate(lease.WithinLease(b.grace.Announced) + ms) // it has learned a longer grace from the first time
		b.clock += silence.RoundTripMin
		b.Wake(b.clock)
		if end, _ := b.LeaseEnd(); end != ended {
			t.Errorf("nobody had a round trip to object to its heartbeat, and the lease ends at %v", end)
		}
		b.sleep(b.answerWithin())
		again(t, b)
	})
	t.Run("the heartbeat left late", func(t *testing.T) {
		b := leads(t)
		b.beats()
		ended, _ := b.LeaseEnd()
		b.beats()
		b.clock = ended + time.Millisecond // between the clock that the core was told and the send
		b.LeaseLapsed(b.clock, ended)
		if end, _ := b.LeaseEnd(); end != ended {
			t.Errorf("the lease that ended at %v ends at %v", ended, end)
		}
		late := time.Millisecond + lease.WithinLease(b.grace.Default())
		if learned := b.grace.Learned; learned <= lease.GraceFor(late) {
			t.Errorf("it was %v late, and has learned a grace of %v", late, learned)
		}
		b.sleep(b.answerWithin())
		again(t, b)
	})
	t.Run("the heartbeat that begins a longer grace left late", func(t *testing.T) {
		b := leads(t)
		b.beats()
		b.wakesLate(late)
		b.sleep(b.answerWithin())
		learned, former := b.grace.Learned, b.grace.Lease
		ended, _ := b.LeaseEnd()
		b.beats()
		if b.grace.Lease <= former {
			t.Fatalf("the lease has a grace of %v, as before", b.grace.Lease)
		}
		b.LeaseLapsed(ended+time.Millisecond, ended)
		if b.grace.Learned != learned {
			t.Errorf("it was %v late, allowed were %v, and has learned a grace of %v",
				time.Millisecond+lease.WithinLease(former), learned, b.grace.Learned)
		}
	})
}
