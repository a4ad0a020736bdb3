package netns

import (
	"net"
	"testing"
)

// TestHaltAndSplit says something between each two boards before, during and after a fault of
// the switch. A text that was lost must not arrive later: the next one to arrive is what was
// said afterwards.
func TestHaltAndSplit(t *testing.T) {
	for _, c := range []struct {
		name     string
		hurt     func(*LAN) error
		heal     func(*LAN) error
		together func(a, b int) bool // whether two boards reach each other meanwhile
	}{
		{"halt", (*LAN).Halt, (*LAN).Resume, func(_, _ int) bool { return false }},
		{"split", func(l *LAN) error { return l.Split(l.Board(1), l.Board(2), l.Client()) }, (*LAN).Join,
			func(a, b int) bool { return (a <= 2) == (b <= 2) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLAN(t, 4)
			ears := make([]*net.UDPConn, 5)
			for n := 1; n <= 4; n++ {
				ears[n] = listen(t, l.Board(n))
			}
			exchange := func(text string, reach func(a, b int) bool) {
				t.Helper()
				for a := 1; a <= 4; a++ {
					for b := 1; b <= 4; b++ {
						if a == b {
							continue
						}
						say(t, l.Board(a), l.Board(b).Addr.Addr(), text)
						if !reach(a, b) {
							continue
						}
						if got, from := hear(t, ears[b]); got != text || from != l.Board(a).Addr.Addr() {
							t.Fatalf("board %d heard %q from %v, want %q from board %d", b, got, from, text, a)
						}
					}
				}
			}
			everybody := func(_, _ int) bool { return true }
			// Everybody learns everybody's hardware address first, so that ARP holds nothing back.
			exchange("before", everybody)
			for range 2 { // the second split does not have to make its other half
				must(t, c.hurt(l))
				exchange("meanwhile", c.together)
				for n := 1; n <= 4; n++ {
					if !running(t, l.Board(n)) {
						t.Errorf("board %d lost its carrier", n)
					}
				}
				must(t, c.heal(l))
				exchange("after", everybody)
			}
		})
	}
}

// A port that is muted, or whose interface is gone, during a split is on its side of it afterwards.
func TestSplitOfAMutedPort(t *testing.T) {
	l := newLAN(t, 4)
	muted, deleted, with := l.Board(1), l.Board(2), l.Board(3)
	must(t, muted.Mute())
	must(t, deleted.DeleteInterface())
	must(t, l.Split(muted, deleted, with))
	must(t, muted.Unmute())
	must(t, deleted.CreateInterface())
	ear := listen(t, with)
	for _, b := range []*Host{l.Board(4), muted, deleted} {
		say(t, b, with.Addr.Addr(), b.Name)
	}
	for _, want := range []*Host{muted, deleted} {
		if got, _ := hear(t, ear); got != want.Name {
			t.Errorf("heard %q, want %q", got, want.Name)
		}
	}
}
