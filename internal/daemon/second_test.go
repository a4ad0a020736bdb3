package daemon

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
)

// threeWithSecond are three boards with a second path. The third one leads.
func (l *fakeLAN) threeWithSecond(t *testing.T) (one, two, three *fakeBoard) {
	t.Helper()
	one, two, three = l.board(1, withSecondPath), l.board(2, withSecondPath), l.board(3, withSecondPath)
	pass(7 * time.Second) // by then each has said HELLO on both paths
	l.wantHolders(3)
	return one, two, three
}

// secondLost is when a small group misses a board on the second path.
const secondLost = 35 * time.Second

func (b *fakeBoard) wantSecondPath(t *testing.T, want string) {
	t.Helper()
	assert.Equal(t, want, textOfSecond(b.mustStatus(t)), "board %d: second path", b.number)
}

// On a quiet network both paths work, and each board says so. The second one costs little.
func TestSecondPathWorks(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		boards := []*fakeBoard{}
		for n := 1; n <= 3; n++ {
			boards = append(boards, l.board(n, withSecondPath))
		}
		pass(7 * time.Second)
		l.wantHolders(3)
		before := 0
		for _, b := range boards {
			b.get(func() { before += b.second.sent })
			b.wantSecondPath(t, "wlan0 "+secondAddress(b.number).String()+" works ")
			b.wantNoProblem(t)
			s := b.mustStatus(t)
			for i := range s.Boards {
				if o := &s.Boards[i]; !o.Self && (o.HeardBySecondPathMs == nil || *o.HeardBySecondPathMs > 5000) {
					t.Errorf("board %d has heard %s by the second path %v ms ago", b.number, o.Name, o.HeardBySecondPathMs)
				}
			}
		}
		pass(10 * time.Second)
		sent := 0
		for _, b := range boards {
			b.get(func() { sent += b.second.sent })
		}
		if n := sent - before; n < 10 || n > 20 {
			t.Errorf("%d packets in 10 s on the second path, want 10 to 20", n)
		}
	})
}

// A leader whose cable is pulled names its successor by the second path.
func TestSecondPathCarriesResign(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three := l.threeWithSecond(t)
		three.unplugged(true)
		pass(3 * time.Millisecond)
		l.wantHolders(2)
		if at := two.loggedWith("the leader handed over"); len(at) == 0 {
			t.Errorf("the successor was not named: %q", two.loggedWith("leads"))
		}
		three.unplugged(false)
		pass(3 * time.Second)
		l.wantHolders(2)
		two.wantNoProblem(t)
	})
}

// The cable of a board was out, and is back. Nobody was missing on the first path but the board itself.
func TestSecondPathAfterOwnCable(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, _ := l.threeWithSecond(t)
		for phase := range 10 { // of the cable's return, in the second between two HELLOs
			one.unplugged(true)
			pass(20*time.Second + time.Duration(phase)*100*time.Millisecond)
			one.unplugged(false)
			pass(10 * time.Second)
		}
		one.wantLog(t, "is heard on wlan0 and not on eth0", 0)
		one.wantNoProblem(t)
	})
}

// A board whose port is silent is heard on the second path. The others say so, and not that it is silent.
func TestSecondPathShowsSilentPort(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, _ := l.threeWithSecond(t)
		silent := func(so bool) { one.get(func() { one.mute, one.deaf = so, so }) }
		silent(true)
		pass(20 * time.Second)
		l.wantHolders(3)
		two.wantProblem(t, "pi1 (10.0.0.1) is heard on wlan0 and not on eth0: look at the cable")
		for _, p := range two.mustStatus(t).Problems {
			if p.Kind == console.ProblemBoardSilent {
				t.Errorf("and it says of the same board: %s", p.Text)
			}
		}
		silent(false)
		pass(3 * time.Second)
		two.wantNoProblem(t)
		l.wantHolders(3)
	})
}

// Whatever is missing on the second path is waited for and told, and the first one does not suffer.
func TestSecondPathWaits(t *testing.T) {
	for _, test := range []struct {
		name       string
		breaks     func(*fakeBoard)
		mends      func(*fakeBoard)
		path, says string
	}{
		{"no interface", func(b *fakeBoard) {
			b.changeSecond(func(s *netio.Snapshot) { s.Present = false })
		}, func(b *fakeBoard) {
			b.changeSecond(func(s *netio.Snapshot) { s.Present, s.Link.Index = true, 9 })
		}, "wlan0  waits the interface wlan0 does not exist (yet)", "the second path does not work: the interface wlan0 does not exist (yet)"},
		{"no address", func(b *fakeBoard) {
			b.changeSecond(func(s *netio.Snapshot) { s.Link.Addrs = nil })
		}, func(b *fakeBoard) {
			b.changeSecond(func(s *netio.Snapshot) { s.Link.Addrs = append(s.Link.Addrs, netip.MustParsePrefix("10.1.0.77/24")) })
		}, "wlan0  waits the interface wlan0 has no IPv4 address (yet)", "the second path does not work: the interface wlan0 has no IPv4 address (yet)"},
		{"no carrier", func(b *fakeBoard) {
			b.changeSecond(func(s *netio.Snapshot) { s.Link.Up = false })
		}, func(b *fakeBoard) {
			b.changeSecond(func(s *netio.Snapshot) { s.Link.Up = true })
		}, "wlan0 10.1.0.3 waits wlan0 has no carrier: check the cable", "the second path does not work: wlan0 has no carrier"},
		{"no sockets", func(b *fakeBoard) {
			b.get(func() { b.second.noSockets = errors.New("the port is taken") })
			b.changeSecond(func(s *netio.Snapshot) { s.Link.Index = 10 })
		}, func(b *fakeBoard) {
			b.get(func() { b.second.noSockets = nil }) // it tries again by itself
		}, "wlan0  waits the port is taken", "the second path does not work: the port is taken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				_, _, three := l.threeWithSecond(t)
				test.breaks(three)
				pass(2 * time.Second)
				three.wantSecondPath(t, test.path)
				three.wantProblem(t, test.says)
				three.wantLog(t, "warning: "+test.says, 1)
				pass(time.Minute)
				l.wantHolders(3)
				three.wantProblem(t, test.says)
				test.mends(three)
				pass(8 * time.Second)
				if text := textOfSecond(three.mustStatus(t)); !strings.Contains(text, " works ") {
					t.Errorf("mended: %s", text)
				}
				three.wantNoProblem(t)
				l.wantHolders(3)
			})
		})
	}
}

// A second path by which nobody is heard says so, and one by which one board is not heard names that board. A board without a second
// path is no problem.
func TestSecondPathSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three := l.threeWithSecond(t)
		l.board(4, nil)
		one.changeSecond(func(s *netio.Snapshot) { s.Link.Up = false })
		pass(secondLost + 10*time.Second)
		two.wantProblem(t, "pi1 (10.0.0.1) is heard on eth0 and not on wlan0")
		two.changeSecond(func(s *netio.Snapshot) { s.Link.Up = false })
		pass(secondLost + 10*time.Second)
		three.wantSecondPath(t, "wlan0 10.1.0.3 silent no board is heard on wlan0")
		three.wantProblem(t, "no board is heard on wlan0, the second path")
		three.changeSecond(func(s *netio.Snapshot) { s.Link.Addrs = append(s.Link.Addrs, netip.MustParsePrefix("10.1.0.99/24")) })
		pass(0)
		three.wantProblem(t, "no board is heard on wlan0, the second path")
		for _, b := range []*fakeBoard{one, two} {
			b.changeSecond(func(s *netio.Snapshot) { s.Link.Up = true })
		}
		pass(10 * time.Second)
		three.wantNoProblem(t)
		l.wantHolders(3)
	})
}

// The boards change their key, and go on hearing each other on both paths.
func TestSecondPathChangesKeys(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three := l.threeWithSecond(t)
		old, fresh := testKey(7), testKey(8)
		for _, keys := range []config.Keyring{{Signs: old, Also: fresh}, {Signs: fresh, Also: old}, {Signs: fresh}} {
			for _, b := range []*fakeBoard{one, two, three} {
				b.reload(func(c *config.Config) { c.Keys = keys })
				pass(2 * time.Second)
			}
		}
		pass(secondLost + 10*time.Second)
		for _, b := range []*fakeBoard{one, two, three} {
			b.wantNoProblem(t)
			for _, o := range b.mustStatus(t).Boards {
				if !o.Self && (o.HeardBySecondPathMs == nil || *o.HeardBySecondPathMs > 6000) {
					t.Errorf("board %d has heard %s by the second path %v ms ago", b.number, o.Name, o.HeardBySecondPathMs)
				}
			}
		}
		l.wantHolders(3)
	})
}

// A board leaves, and its second path with it.
func TestSecondPathEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.threeWithSecond(t)
		three.end()
		pass(time.Second)
		l.wantHolders(2)
		select {
		case <-three.second.transport.closed:
		default:
			t.Error("the sockets of the second path are still open")
		}
	})
}
