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
