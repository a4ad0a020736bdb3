package election

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/wire"
)

// TestLease holds for how long a leader can be sure of itself, from its last heartbeat on.
func TestLease(t *testing.T) {
	const ms = time.Millisecond
	asked := func(interval time.Duration) time.Duration { return interval + DefaultGrace(interval)*3/4 }
	follows := func(m *wire.Message) { m.Hello.Following = 2 }
	for _, test := range []struct {
		name   string
		change func(*Config)
		play   func(b *board)
		want   time.Duration
	}{
		{"alone", nil, func(*board) {}, 0},
		{"with a follower", nil, func(b *board) { b.hear(1, wire.TypeHello, follows) }, asked(testInterval)},
		{"with one that never leads", nil, func(b *board) {
			b.hear(1, wire.TypeHello, follows, func(m *wire.Message) { m.Priority = 0 })
		}, 0},
		{"with one that left", nil, func(b *board) {
			b.hear(1, wire.TypeHello, follows)
			b.hear(1, wire.TypeResign, func(m *wire.Message) { m.Priority = 0 })
		}, 0},
		{"with one that was not heard for long", nil, func(b *board) {
			b.hear(1, wire.TypeHello, follows)
			b.sleep(helloLosses * helloFloor)
		}, 0},
		{"10 ms", func(c *Config) { c.Interval = 10 * ms }, func(b *board) { b.hear(1, wire.TypeHello, follows) }, asked(10 * ms)},
		{"1 s", func(c *Config) { c.Interval = time.Second }, func(b *board) { b.hear(1, wire.TypeHello, follows) }, asked(time.Second)},
		{"fixed", func(c *Config) { c.Detector = DetectorFixed }, func(b *board) { b.hear(1, wire.TypeHello, follows) }, 260 * ms},
		{"nfd-e", func(c *Config) { c.Detector = DetectorNFDE }, func(b *board) { b.hear(1, wire.TypeHello, follows) }, 175 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBoard(t, func(c *Config) {
				if test.change != nil {
					test.change(c)
				}
			})
			b.takeLead()
			test.play(b)
			end, ends := b.LeaseEnd()
			if ends != (test.want > 0) {
				t.Fatalf("the lease ends: %t", ends)
			}
			if got := end - b.leading.sentAt; ends && got != test.want {
				t.Errorf("the lease lasts for %v, want %v", got, test.want)
			}
		})
	}
}

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
		b.clock += roundTripMin
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
		b.clock += b.answerWithin() + roundTripMin
		b.Wake(b.clock)
		if end, _ := b.LeaseEnd(); end != ended {
			t.Errorf("it has read nothing yet, and the lease ends at %v", end)
		}
		b.sleep(roundTripMin)
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
		late := time.Millisecond + withinLease(b.defaultGrace())
		if learned := b.patience.learned; learned <= leaseGrace(late) {
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
		learned, former := b.patience.learned, b.grace.lease
		ended, _ := b.LeaseEnd()
		b.beats()
		if b.grace.lease <= former {
			t.Fatalf("the lease has a grace of %v, as before", b.grace.lease)
		}
		b.LeaseLapsed(ended+time.Millisecond, ended)
		if b.patience.learned != learned {
			t.Errorf("it was %v late, allowed were %v, and has learned a grace of %v",
				time.Millisecond+withinLease(former), learned, b.patience.learned)
		}
	})
}

func TestPresignedResign(t *testing.T) {
	b := newBoard(t)
	if m, ok := b.PresignedResign(); ok {
		t.Errorf("a listener leaves %+v", m)
	}
	b.hear(3, wire.TypeHeartbeat, leading)
	b.hear(1, wire.TypeHello)
	if m, ok := b.PresignedResign(); ok {
		t.Errorf("a follower leaves %+v", m)
	}
	b = newBoard(t)
	b.lead()
	if m, ok := b.PresignedResign(); ok || m.Resign.Successor != wire.Nobody {
		t.Errorf("one that is alone names %+v", m)
	}
	b.hear(1, wire.TypeHello)
	b.hear(3, wire.TypeHello, func(m *wire.Message) { m.Priority = 50 })
	got, ok := b.PresignedResign()
	want := wire.Message{
		Header: wire.Header{Type: wire.TypeResign, Algorithm: wire.AlgorithmHeir, Sender: 2, Term: b.term},
		Resign: wire.Resign{Successor: 1},
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("ok is %t (-want +got):\n%s", ok, diff)
	}
	if b.role != Leader || len(b.effects) != 0 && b.effects[0].Kind == EffectRelease {
		t.Error("who signs a RESIGN beforehand has not resigned")
	}
}
