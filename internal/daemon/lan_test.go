package daemon

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
)

// hosts of the LAN that are no boards.
var (
	router = netip.MustParseAddr("10.0.0.254")
	nas    = netip.MustParseAddr("10.0.0.253")
)

// asked returns whom a board has asked by ARP since the last call, and by which MAC address.
func (b *fakeBoard) asked() (all []string) {
	b.get(func() {
		for _, q := range b.questions {
			text := q.Addr.String()
			if q.To != nil {
				text += " at " + q.To.String()
			}
			all = append(all, text)
		}
		b.questions = nil
	})
	return all
}

func (b *fakeBoard) wantAsked(t *testing.T, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, b.asked(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s, board %d has asked (-want +got):\n%s", when, b.number, diff)
	}
}

// An address that answers is not claimed, though its daemon is silent.
func TestAddressThatAnswersIsNotClaimed(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three := l.three()
		pass(30 * time.Second)
		two.asked()
		go three.tasks.post(func() { <-time.After(5 * time.Second) })
		pass(4 * time.Second)
		l.wantHolders(3)
		if asked := two.asked(); len(asked) == 0 || asked[0] != "10.0.0.100 at 02:00:00:00:00:03" {
			t.Errorf("the heir has asked %v, want the leader by its MAC address", asked)
		}
		three.get(func() { three.silent = true }) // its fence, or the end of the lifetime
		pass(500 * time.Millisecond)
		l.wantHolders(2, 3)
	})
}

// The witnesses are asked when the link comes up, at a doubt and once after it, and
// never in between.
func TestWhenWitnessesAreAsked(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.hosts = []netip.Addr{router, nas}
		_, two, three := l.three()
		pass(time.Minute)
		if asked := two.asked(); len(asked) == 0 || len(asked) > 3 || count(asked, "10.0.0.254") != len(asked) {
			t.Errorf("at the start, board 2 has asked %v", asked)
		}
		pass(time.Hour)
		two.wantAsked(t, "in an hour without a doubt")
		two.change(func(s *netio.Snapshot) { s.Link.Up = false })
		pass(time.Second)
		two.change(func(s *netio.Snapshot) { s.Link.Up = true })
		pass(time.Second)
		two.wantAsked(t, "when the link came up", "10.0.0.254")
		two.change(func(s *netio.Snapshot) { s.Local = append(s.Local, netio.LocalAddr{Index: 9}) })
		pass(time.Minute)
		two.wantAsked(t, "when something else changed")

		three.get(func() { three.silent = true })
		three.Kill()
		pass(time.Second)
		asked := two.asked()
		for _, want := range []string{"10.0.0.100 at 02:00:00:00:00:03", "10.0.0.254", "10.0.0.253 at 02:00:00:00:01:01"} {
			if n := count(asked, want); n == 0 || n > 5 {
				t.Errorf("when the leader died, %q was asked %d times, want a few: %q", want, n, asked)
			}
		}
		pass(time.Minute + 2*time.Second)
		two.wantAsked(t, "after the doubt, and once a minute by which is known that only its daemon is dead", "10.0.0.3", "10.0.0.254", "10.0.0.3")
	})
}

func count(all []string, want string) (n int) {
	for _, one := range all {
		if one == want {
			n++
		}
	}
	return n
}

// The configured witnesses replace the gateway, at the start and on reload.
func TestConfiguredWitnesses(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.hosts = []netip.Addr{router, nas}
		one := l.board(1, func(c *config.Config, _ *fakeBoard) { c.Witness = config.Witness{Addrs: []netip.Addr{nas}} })
		pass(time.Minute)
		one.wantAsked(t, "at the start, when it finds no leader, and when that doubt is over", "10.0.0.253", "10.0.0.253", "10.0.0.253")
		assert.Equal(t, []console.Witness{{Address: "10.0.0.253", Answers: true}}, one.mustStatus(t).Witnesses, "the witnesses")
		one.reload(func(c *config.Config) { c.Witness = config.Witness{Addrs: []netip.Addr{router}} })
		pass(time.Second)
		one.wantAsked(t, "when it is new", "10.0.0.254")
		assert.Equal(t, []console.Witness{{Address: "10.0.0.254", Answers: true}}, one.mustStatus(t).Witnesses, "the witnesses after a reload")
		one.reload(func(c *config.Config) { c.Witness = config.Witness{} })
		pass(time.Millisecond)
		one.change(func(s *netio.Snapshot) { s.Link.Up = false })
		pass(time.Second)
		one.change(func(s *netio.Snapshot) { s.Link.Up = true })
		pass(5 * time.Second)
		if asked := one.asked(); count(asked, "10.0.0.253")+count(asked, "10.0.0.254") > 0 {
			t.Errorf("without a witness, it has asked %v", asked)
		}
	})
}

// A witness that does not answer is asked again, at last once a minute. People are told until it answers.
func TestWitnessDoesNotAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.hosts = nil
		l.three()
		four := l.board(4, func(c *config.Config, _ *fakeBoard) { c.Witness = config.Witness{Addrs: []netip.Addr{nas}} })
		pass(time.Minute)
		if asked := four.asked(); len(asked) != 3 {
			t.Errorf("in a minute it has asked %v, want three questions", asked)
		}
		pass(time.Hour)
		if asked := four.asked(); len(asked) < 59 || len(asked) > 61 {
			t.Errorf("in the hour after that it has asked %d times, want once a minute", len(asked))
		}
		const silent = "witness 10.0.0.253 does not answer ARP requests, so it cannot show"
		four.wantProblem(t, silent)
		if text := four.text(t); !strings.Contains(text, silent) {
			t.Errorf("the status does not say so:\n%s", text)
		}
		set := func(hosts ...netip.Addr) {
			l.mu.Lock()
			l.hosts = hosts
			l.mu.Unlock()
		}
		set(nas)
		pass(time.Minute)
		if s := four.mustStatus(t); len(s.Problems) > 0 || !s.Witnesses[0].Answers {
			t.Errorf("it answers, and the status says %q, %v", s.Problems, s.Witnesses)
		}
		set(router)
		four.onLoop(t, four.Daemon.lan.findWitnesses)
		pass(3 * time.Second)
		four.wantProblem(t, silent)
		up := func(so bool) {
			four.change(func(s *netio.Snapshot) { s.Link.Up = so })
			pass(3 * time.Second)
		}
		up(false)
		four.wantTold(t, console.ProblemWitness, "")
		up(true)
		four.wantProblem(t, silent)
		four.reload(func(c *config.Config) { c.Witness = config.Witness{Gateway: true} })
		pass(3 * time.Second)
		four.wantNoProblem(t)
	})
}

// What was heard before the question, or answers an older one, is no evidence.
func TestEvidenceIsNewerThanTheQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.hosts = []netip.Addr{router}
		one := l.board(1, nil)
		pass(5 * time.Second)
		call := func(do func()) {
			t.Helper()
			one.onLoop(t, do)
		}
		one.get(func() { one.deaf = true })
		var before time.Duration
		call(func() {
			before = one.now()
			one.Daemon.lan.ask(netip.Addr{})
		})
		pass(time.Second)
		call(func() {
			if one.Daemon.lan.heardFrames() {
				t.Error("nothing has arrived, and frames count as heard")
			}
			if one.Daemon.lan.isNews(netio.ARPAnswer{Addr: router, AskedAt: before - 1}) {
				t.Error("the answer to an older question is news")
			}
		})
		one.get(func() { one.frames++ })
		call(func() {
			if !one.Daemon.lan.heardFrames() {
				t.Error("a frame has arrived, and does not count")
			}
			if one.Daemon.lan.heardFrames() || one.Daemon.lan.isNews(netio.ARPAnswer{Addr: router, AskedAt: before}) {
				t.Error("what was heard already is news")
			}
			one.Daemon.lan.ask(netip.Addr{})
			if one.Daemon.lan.heardFrames() {
				t.Error("a frame from before the question counts")
			}
		})
	})
}

// That a board gets no multicast is told as long as it is so: after minutes still, and not when
// multicast is heard again, also if the board leads by then.
func TestNoMulticastUntilItIsHeard(t *testing.T) {
	const kind = "no_multicast"
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprintf("it leads: %t", leads), func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				one, two, three := l.three()
				two.get(func() { two.noMulticast = true })
				pass(5 * time.Minute)
				one.wantLog(t, "warning: pi2 (10.0.0.2) gets no multicast", 1)
				if leads {
					three.Kill()
					pass(10 * time.Second)
					l.wantHolders(2)
				}
				for _, b := range []*fakeBoard{one, two} {
					if b.problem(t, kind) == "" {
						t.Errorf("board %d does not say that board 2 gets no multicast", b.number)
					}
				}
				two.get(func() { two.noMulticast = false })
				pass(3 * time.Second)
				for _, b := range []*fakeBoard{one, two} {
					b.wantTold(t, kind, "")
				}
			})
		})
	}
}

// Boards that start where there is no multicast at all find each other.
func TestNoMulticastFromTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		for n := range 3 {
			l.board(n+1, func(_ *config.Config, b *fakeBoard) { b.noMulticast = true })
		}
		pass(10 * time.Second)
		if holders := l.holders(); len(holders) != 1 {
			t.Errorf("%v hold the address, want one", holders)
		}
	})
}

// TestCutOff: what a board that is cut off on one way or both does to the others, and who leads when it is back.
func TestCutOff(t *testing.T) {
	const mute, deaf = true, true
	for _, test := range []struct {
		name       string
		board      int
		mute, deaf bool
		lasts      time.Duration
		meanwhile  []int
		after      int
	}{
		{"a deaf follower claims nothing, and asks", 1, false, deaf, 10 * time.Second, []int{3}, 3},
		{"a follower alone claims nothing, and asks", 1, mute, deaf, 10 * time.Second, []int{3}, 3},
		{"a deaf heir claims nothing, and asks", 2, false, deaf, 10 * time.Second, []int{3}, 3},
		{"a deaf leader hands over, once", 3, false, deaf, 10 * time.Second, []int{2}, 2},
		{"a mute leader hears that it is replaced", 3, mute, false, 10 * time.Second, []int{2}, 2},
		{"a leader alone cannot know at once, and whoever served meanwhile stays", 3, mute, deaf, 200 * time.Millisecond, []int{2, 3}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				l.three()
				pass(10 * time.Second)
				b := l.boards[test.board-1]
				b.get(func() { b.mute, b.deaf = test.mute, test.deaf })
				pass(test.lasts)
				l.wantHolders(test.meanwhile...)
				if role := b.mustStatus(t).Role; test.board < 3 && role != election.Candidate.String() {
					t.Errorf("it is a %s", role)
				}
				b.get(func() { b.mute, b.deaf = false, false })
				pass(400 * time.Millisecond)
				l.wantHolders(test.after)
				assert.Is(t, test.after, l.untilElected(t, l.boards...), "who leads")
			})
		})
	}
}

// TestLostTogether: whoever is left of several boards that are lost at once takes over, in the order of rank, and stays the leader
// when they are back.
func TestLostTogether(t *testing.T) {
	for _, test := range []struct {
		name   string
		boards int
		deaf   []int // before
		lost   []int
		next   int
	}{
		{"the leader, and the heir is deaf", 3, []int{2}, []int{3}, 1},
		{"the leader and the heir", 5, nil, []int{5, 4}, 3},
		{"the leader, its heir and the next in rank", 5, nil, []int{5, 4, 3}, 2},
		{"all but one", 4, nil, []int{4, 3, 2}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				for n := range test.boards {
					l.board(n+1, nil)
				}
				pass(10 * time.Second)
				l.wantHolders(test.boards)
				set := func(numbers []int, deaf, up bool) {
					for _, n := range numbers {
						b := l.boards[n-1]
						b.get(func() { b.deaf = deaf })
						b.change(func(s *netio.Snapshot) { s.Link.Up = up })
					}
				}
				set(test.deaf, true, true)
				pass(2 * time.Second)
				l.wantHolders(test.boards)
				set(test.lost, false, false)
				pass(time.Second)
				l.wantHolders(test.next)
				set(append(test.deaf, test.lost...), false, true)
				for range 100 {
					pass(100 * time.Millisecond)
					l.wantHolders(test.next)
				}
			})
		})
	}
}
