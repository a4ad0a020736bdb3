package election

import (
	"testing"

	"topdog/wire"
)

// TestLeaderHearsMulticastAgain: a board that got no multicast when it followed, and leads now, finds
// out from the first multicast of any board that it does, in whatever order the copies come.
func TestLeaderHearsMulticastAgain(t *testing.T) {
	for _, test := range []struct {
		name string
		hear func(b *board)
		lost bool // still
	}{
		{"broadcast alone", func(b *board) { b.StepDirect(b.clock, b.from(1, wire.TypeHello)) }, true},
		{"multicast alone", func(b *board) { b.hear(1, wire.TypeHello) }, false},
		{"broadcast, then the copy", func(b *board) {
			b.StepDirect(b.clock, b.from(1, wire.TypeHello))
			b.HeardMulticast(b.clock, 1)
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := followerOf3(t, 20)
			for range 2 * multicastMissed {
				b.sleep(testInterval)
				b.StepDirect(b.clock, b.from(3, wire.TypeHeartbeat, leading))
			}
			if !b.Status(b.clock).NoMulticast {
				t.Fatal("the follower does not find out that it gets no multicast")
			}
			b.sleep(2 * multicastMissed * testInterval)
			if b.role != Leader || !b.losesMulticast() {
				t.Fatalf("a %v, loses multicast: %v", b.role, b.losesMulticast())
			}
			test.hear(b)
			if s := b.Status(b.clock); s.NoMulticast != test.lost || b.losesMulticast() != test.lost {
				t.Errorf("it gets no multicast: %v, and broadcasts: %v", s.NoMulticast, b.losesMulticast())
			}
		})
	}
}
