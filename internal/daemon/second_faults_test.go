package daemon

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
)

// silentOnBoth has nothing of a board arrive anywhere any more, as when its power fails.
func (b *fakeBoard) powerFails() {
	b.get(func() { b.dead = true; b.mute, b.deaf = true, true })
	b.changeSecond(func(s *netio.Snapshot) { s.Link.Up = false })
}

// A board whose port was silent loses its power. It is heard on no path any more, and people are told that.
func TestSecondPathFaultBoardThatIsOffIsNotHeardOnWLAN(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, _ := l.threeWithSecond(t)
		one.get(func() { one.mute, one.deaf = true, true })
		pass(20 * time.Second)
		two.wantProblem(t, "pi1 (10.0.0.1) is heard on wlan0 and not on eth0: look at the cable")
		one.powerFails()
		pass(10 * time.Minute)
		var told []string
		off := false
		for _, p := range two.mustStatus(t).Problems {
			told = append(told, p.Text)
			off = off || p.Kind == console.ProblemBoardSilent
			if p.Kind == console.ProblemFirstPathMissing {
				t.Errorf("ten minutes after it was switched off: %s", p.Text)
			}
		}
		if !off {
			t.Errorf("nobody is told that the board is off: %q", told)
		}
	})
}

// Many boards, whose HELLOs come rarely, see nothing wrong on a second path that works.
func TestSecondPathFaultManyBoardsMissNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		var boards []*fakeBoard
		for n := 1; n <= 80; n++ {
			boards = append(boards, l.board(n, withSecondPath))
		}
		said := map[string]bool{}
		for range 24 {
			pass(10 * time.Second)
			for _, p := range boards[0].mustStatus(t).Problems {
				if p.Kind == console.ProblemSecondPathMissing || p.Kind == console.ProblemSecondPath {
					said[p.Text] = true
				}
			}
		}
		if len(said) > 0 {
			t.Errorf("%d problems though nothing is wrong, such as %s", len(said), slices.Sorted(func(yield func(string) bool) {
				for s := range said {
					if !yield(s) {
						return
					}
				}
			})[0])
		}
	})
}

// Who has no carrier blames its cable, and not one by one those of all the others.
func TestSecondPathFaultOwnCable(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		var boards []*fakeBoard
		for n := 1; n <= 20; n++ {
			boards = append(boards, l.board(n, withSecondPath))
		}
		pass(20 * time.Second)
		boards[0].unplugged(true)
		pass(20 * time.Second)
		n := 0
		for _, p := range boards[0].mustStatus(t).Problems {
			if p.Kind == console.ProblemFirstPathMissing {
				n++
			}
		}
		if n > 1 {
			t.Errorf("the cable of this board is out, and it has %d problems with those of others, and as many lines in the log", n)
		}
	})
}

// The leader's Wi-Fi gets its address while the holder is busy for as long as it may be. The address stays.
func TestSecondPathFaultSlowHolder(t *testing.T) {
	for _, takes := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				_, _, three := l.threeWithSecond(t)
				real := three.Daemon.second.platform.OpenSecond
				three.onLoop(t, func() {
					three.Daemon.second.platform.OpenSecond = func(iface string, local netip.Addr) (Transport, error) {
						time.Sleep(takes)
						return real(iface, local)
					}
				})
				three.changeSecond(func(s *netio.Snapshot) { s.Link.Addrs = nil })
				pass(2 * time.Second)
				l.wantHolders(3)
				three.changeSecond(func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.1.0.77/24")} })
				pass(takes / 2)
				t.Logf("meanwhile: holders %v", l.holders())
				pass(takes + time.Second)
				l.wantHolders(3)
				for _, b := range l.boards {
					for _, line := range b.loggedWith("this daemon was not running for a while") {
						t.Errorf("board %d while its second path opens: %s", b.number, line)
					}
				}
				t.Logf("%v %q", textOfSecond(three.mustStatus(t)), l.story[max(0, len(l.story)-6):])
			})
		})
	}
}

// The second path of this board comes back. Nothing is wrong from then on, and nobody is told otherwise.
func TestSecondPathFaultSecondPathComesBack(t *testing.T) {
	for _, test := range []struct {
		name          string
		breaks, mends func(*netio.Snapshot)
	}{
		{"carrier", func(s *netio.Snapshot) { s.Link.Up = false }, func(s *netio.Snapshot) { s.Link.Up = true }},
		{"address", func(s *netio.Snapshot) { s.Link.Addrs = nil }, func(s *netio.Snapshot) {
			s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.1.0.77/24")}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				_, _, three := l.threeWithSecond(t)
				three.changeSecond(test.breaks)
				pass(2 * time.Minute)
				before := len(three.loggedWith("warning: "))
				three.changeSecond(test.mends)
				pass(30 * time.Second)
				if said := three.loggedWith("warning: "); len(said) > before {
					t.Errorf("logged after it came back: %q", said[before:])
				}
			})
		})
	}
}

// A second path without a carrier is a problem of its own, and its packets are no failures to send.
func TestSecondPathFaultSendErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.threeWithSecond(t)
		three.changeSecond(func(s *netio.Snapshot) { s.Link.Up = false })
		pass(time.Minute)
		if n := three.mustStatus(t).Counters.SendErrors; n > 0 {
			t.Errorf("%d failures to send in a minute without the second path", n)
		}
	})
}

// A board that starts behind a silent port is heard by the second path alone, and people are told that.
func TestSecondPathFaultNeverHeardOnFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, _ := l.threeWithSecond(t)
		four := l.board(4, func(c *config.Config, b *fakeBoard) { withSecondPath(c, b); b.mute, b.deaf = true, true })
		pass(time.Minute)
		s := two.mustStatus(t)
		var texts []string
		found := false
		for _, p := range s.Problems {
			texts = append(texts, p.Text)
			found = found || p.Kind == console.ProblemFirstPathMissing
		}
		for _, o := range s.Boards {
			t.Logf("%s heard %v second %v", o.Name, o.HeardMs, o.HeardBySecondPathMs)
		}
		t.Logf("four: %v, %v", four.mustStatus(t).Role, four.mustStatus(t).Problems)
		if !found {
			t.Errorf("nobody is told: %q", texts)
		}
	})
}

// What the board behind a port that was silent from the start says of itself, with a second path and without one; and what the group
// sends meanwhile.
func TestSecondPathFaultSilentFromTheStart(t *testing.T) {
	for _, second := range []bool{false, true} {
		inBubble(t, func(t *testing.T, l *fakeLAN) {
			one, two, three := l.threeWithSecond(t)
			sent := func() (n int) {
				for _, b := range []*fakeBoard{one, two, three} {
					b.get(func() { n += b.sent + b.second.sent })
				}
				return n
			}
			four := l.board(4, func(c *config.Config, b *fakeBoard) {
				if second {
					withSecondPath(c, b)
				}
				b.mute, b.deaf = true, true
			})
			pass(30 * time.Second)
			before := sent()
			pass(time.Minute)
			s := four.mustStatus(t)
			t.Logf("second path %v: it is a %v; the three others send %d packets a minute", second, s.Role, sent()-before)
			found := false
			for _, p := range s.Problems {
				t.Logf("   %s: %s", p.Kind, p.Text)
				found = found || p.Kind == console.ProblemPortSilent || p.Kind == console.ProblemFirstPathMissing
			}
			if second && !found {
				t.Errorf("second path %v: the board does not say that nothing arrives on its port", second)
			}
		})
	}
}
