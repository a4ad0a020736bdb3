package daemon

import (
	"errors"
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// TestResignWaitsForTheRelease has the kernel not let go of the address. Whoever is named in a
// RESIGN claims at once, so there would be two holders; unless the fence keeps everybody off.
func TestResignWaitsForTheRelease(t *testing.T) {
	for _, fenced := range []bool{true, false} {
		name := map[bool]string{true: "fenced", false: "unfenced"}[fenced]
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				_, _, three, latest := l.armedThree(nil)
				fence := latest().fakeFence
				said := three.says(t)
				fence.get(func() { fence.closes = fenced })
				three.get(func() { three.releaseFails = errors.New("the kernel is busy") })
				go three.Resign(t.Context())
				pass(2 * time.Millisecond)
				named := false
				for _, m := range said() {
					named = named || m.Type == wire.TypeResign
				}
				assert.Is(t, fenced, named, "a successor was named")
				if !fenced {
					l.wantHolders(3) // the others have not been told to claim
				}
				fence.get(func() {
					if !fence.shut || fence.armed {
						t.Errorf("shut: %t, armed: %t", fence.shut, fence.armed)
					}
				})
				var kinds []console.ProblemKind
				for _, p := range three.mustStatus(t).Problems {
					kinds = append(kinds, p.Kind)
				}
				if len(kinds) != 1 || kinds[0] != console.ProblemAddressNotReleased {
					t.Errorf("the problems are %v", kinds)
				}

				three.get(func() { three.releaseFails = nil })
				pass(retryReleaseEvery + time.Millisecond)
				fence.get(func() {
					if fence.shut {
						t.Error("it is not known that the address is released")
					}
				})
				pass(time.Second)
				if holders := l.holders(); len(holders) != 1 || holders[0] == 3 {
					t.Errorf("%v hold it", holders)
				}
				three.wantNoProblem(t)
			})
		})
	}
}

// TestLeaseBeginsBeforeTheAddressIsAcquired: a board that freezes in between must not answer for ever.
func TestLeaseBeginsBeforeTheAddressIsAcquired(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		var fence *fakeFence
		begun, acquired := false, 0
		l.board(1, nil)
		l.board(2, func(_ *config.Config, b *fakeBoard) {
			withSwitch(b)
			fence = b.fence
			b.onAcquire = func() {
				acquired++
				fence.get(func() { begun = fence.armed })
			}
		})
		pass(3 * time.Second)
		l.wantHolders(2)
		if acquired == 0 || !begun {
			t.Errorf("acquired %d times, the lease had begun: %t", acquired, begun)
		}
	})
}

// TestFirstLeaseIsShort: a successor that stands still before its COORDINATOR leaves falls silent before
// another board claims, which does so half an interval and the questions later.
func TestFirstLeaseIsShort(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		const interval = time.Second
		slow := func(c *config.Config, _ *fakeBoard) { c.Interval = interval }
		_, three := l.board(1, slow), l.board(3, slow)
		var fence *fakeFence
		var first, now time.Duration
		l.board(2, func(c *config.Config, b *fakeBoard) {
			c.Interval = interval
			withSwitch(b)
			fence = b.fence
			b.onAcquire = func() { now = b.now(); fence.get(func() { first = fence.end }) }
		})
		pass(10 * time.Second)
		l.wantHolders(3)
		go three.Resign(t.Context())
		pass(interval / 4)
		l.wantHolders(2)
		if first-now > interval/2 || first <= now {
			t.Errorf("before its COORDINATOR the lease ends in %v, want at most %v", first-now, interval/2)
		}
		fence.get(func() {
			if fence.end <= first {
				t.Errorf("its COORDINATOR has left, and the lease ends at %v", fence.end)
			}
		})
	})
}

// TestLateHeartbeatIsToldOf has a heartbeat leave after the lease although the call came in time: people are told
// that the group waits for longer from then on.
func TestLateHeartbeatIsToldOf(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.get(func() { three.sendTakes = 9 * time.Millisecond })
		pass(110 * time.Millisecond)
		three.get(func() { three.sendTakes = 0 })
		pass(time.Second)
		l.wantHolders(3)
		three.wantLog(t, "a leader may be late by 40ms from now on", 1)
	})
}

// TestPatience: a leader that stood still teaches the group to wait longer for a late one, which each board says. Then such a pause
// moves nothing.
func TestPatience(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three, latest := l.armedThree(nil)
		three.freeze(125 * time.Millisecond)
		latest().untilFired(t)
		pass(time.Second)
		l.wantHolders(2)
		var grace time.Duration
		for _, b := range l.boards {
			p := b.mustStatus(t).Patience
			if grace = time.Duration(p.GraceNs); p.GraceNs <= p.DefaultGraceNs || p.LearnedText == "" {
				t.Errorf("board %d has learned nothing: %+v", b.number, p)
			}
		}
		if text := two.text(t); !strings.Contains(text, "patience") || !strings.Contains(text, "a leader may be late by") {
			t.Errorf("topdog status does not say what was learned:\n%s", text)
		}
		for range 5 {
			two.freeze(3 * grace / 4)
			for range 50 {
				pass(10 * time.Millisecond)
				l.wantHolders(2)
			}
		}
	})
}

// unreleasedThree has the leader of three boards let go of an address that its kernel keeps, without a fence. said is
// what it has said since.
func (l *fakeLAN) unreleasedThree(change func(*config.Config)) (three *fakeBoard, said func() []wire.Message) {
	l.t.Helper()
	_, _, three, latest := l.armedThree(change)
	latest().fakeFence.get(func() { latest().fakeFence.closes = false })
	all := three.says(l.t)
	three.get(func() { three.releaseFails = errors.New("the kernel is busy") })
	before := len(all())
	three.onLoop(l.t, func() { three.carryOut(three.core.Reprioritise(three.now(), 0, false)) })
	return three, func() []wire.Message { return all()[before:] }
}

// TestUnreleasedSaysNothing has the kernel not let go of the address for longer than any message takes
// to come. Each of them, even a HELLO, would tell the others that their leader leads no more.
func TestUnreleasedSaysNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		three, said := l.unreleasedThree(nil)
		for range 1500 {
			pass(time.Millisecond)
			l.wantHolders(3)
		}
		if news := said(); len(news) > 0 {
			t.Errorf("it says %v", news[0])
		}
		three.get(func() { three.releaseFails = nil })
		pass(time.Second)
		if holders := l.holders(); len(holders) != 1 || holders[0] == 3 {
			t.Errorf("%v hold it", holders)
		}
	})
}

// TestUnreleasedForEver has the kernel never let go of the address. When its lifetime has ended it is
// gone, whatever the kernel says to who wants it removed, and the board speaks again.
func TestUnreleasedForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, said := l.unreleasedThree(nil)
		pass(netio.GoneAfter - time.Millisecond)
		if news := said(); len(news) > 0 {
			t.Errorf("it says %v", news[0])
		}
		pass(10 * time.Second)
		if len(said()) == 0 {
			t.Error("it never speaks again")
		}
	})
}

// TestUnreleasedAsksForNoVotes: with strict, a request for votes says as well that this board leads no more. If it
// stands still then, nobody hears of its candidacy again, and its kernel still answers for the address.
func TestUnreleasedAsksForNoVotes(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three, latest := l.armedThree(func(c *config.Config) {
			c.Algorithm, c.Voters = wire.AlgorithmStrict, votersOf(1, 2, 3)
		})
		latest().fakeFence.get(func() { latest().fakeFence.closes = false })
		three.get(func() { three.releaseFails = errors.New("the kernel is busy") })
		said := three.says(t)
		before := len(said())
		go three.Resign(t.Context())
		for asks := 0; asks < 200 && len(said()) == before; { // a candidate asks within 20 ms
			pass(100 * time.Microsecond)
			if three.mustStatus(t).Role == election.Candidate.String() {
				asks++
			}
		}
		three.freeze(3 * time.Second)
		for range 1500 {
			pass(time.Millisecond)
			l.wantHolders(3)
		}
	})
}

// TestUnreleasedChallengesNobody is the same with a board that comes meanwhile and does not prove itself: it
// hears nobody. The second CHALLENGE to it is multicast, and says like any message that this board leads no more.
func TestUnreleasedChallengesNobody(t *testing.T) {
	for _, algorithm := range []wire.Algorithm{wire.AlgorithmHeir, wire.AlgorithmStrict} {
		t.Run(algorithm.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				chosen := func(c *config.Config) {
					if c.Algorithm = algorithm; algorithm == wire.AlgorithmStrict {
						c.Voters = votersOf(1, 2, 3)
					}
				}
				three, said := l.unreleasedThree(chosen)
				l.board(4, func(c *config.Config, b *fakeBoard) { chosen(c); b.deaf = true })
				for range 200 { // until board 4, which is alone for all it knows, may claim
					pass(time.Millisecond)
					l.wantHolders(3)
				}
				if news := said(); len(news) > 0 {
					t.Errorf("it says %v", news[0])
				}
				three.get(func() { three.releaseFails = nil })
				pass(time.Second)
				if len(said()) == 0 {
					t.Error("it goes on to say nothing when the address is released")
				}
			})
		})
	}
}

// TestCoverAgainWaits has the fence be refused by an interface, and the kernel be busy for others when that is tried
// again: the leader goes on to send heartbeats.
func TestCoverAgainWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three, latest := l.armedThree(nil)
		term := three.mustStatus(t).Term
		fence, waits := latest().fakeFence, make(chan struct{})
		fence.get(func() { fence.coverFails, fence.coverWaits = errors.New("another program is there"), waits })
		three.change(func(*netio.Snapshot) {})
		go func() {
			time.Sleep(coverRetryEvery + 300*time.Millisecond)
			close(waits)
		}()
		pass(coverRetryEvery + 400*time.Millisecond)
		l.wantHolders(3)
		assert.Is(t, term, two.mustStatus(t).Term, "the term, if the lead has not moved")
		pass((coverRetries + 1) * coverRetryEvery)
		three.wantProblem(t, "another program is there")
		fence.get(func() { fence.coverFails = nil })
		three.change(func(*netio.Snapshot) {})
		pass(time.Millisecond)
		three.wantNoProblem(t)
	})
}

// TestFenceFollowsTheInterfaces: it is on every interface before the loop hears of it.
func TestFenceFollowsTheInterfaces(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(_ *config.Config, b *fakeBoard) { withSwitch(b) })
		pass(time.Second)
		one.change(func(s *netio.Snapshot) { s.Interfaces = []int{2, 9} })
		pass(time.Second)
		one.fence.get(func() {
			assert.Equal(t, []int{2, 9}, one.fence.covered[len(one.fence.covered)-1], "the interfaces that it covers")
		})
	})
}

// TestLateHeartbeatOpensNoFence has the process stand still between reading the clock and sending,
// for longer than the lease. The heir has claimed by then, so the lease must not begin again.
func TestLateHeartbeatOpensNoFence(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		const interval = time.Second
		_, _, three, latest := l.armedThree(func(c *config.Config) {
			c.Interval, c.Watch = interval, election.NoWatch // else the address that falls silent would be missed first
		})
		fence := latest().fakeFence
		fence.get(func() { fence.running = nil }) // the switch stands still as well
		said := three.says(t)
		heartbeats := func() (n int) {
			for _, m := range said() {
				if m.Type == wire.TypeHeartbeat && !m.Reply {
					n++
				}
			}
			return n
		}
		for heartbeats() == 0 {
			pass(time.Millisecond)
		}
		three.get(func() { three.sendTakes, three.silent = 3*silence.DefaultGrace(interval)/2, true })
		before := heartbeats()
		var ended time.Duration
		fence.get(func() { ended = fence.end })
		for range 1500 {
			pass(time.Millisecond)
			if heartbeats() > before { // its heartbeat has left
				three.get(func() { three.sendTakes = 0 })
			}
			fence.get(func() {
				if fence.armed && fence.end != ended {
					t.Fatalf("at %v the lease that ended at %v ends at %v", three.now(), ended, fence.end)
				}
			})
		}
		if holders := l.holders(); len(holders) != 1 || holders[0] == 3 {
			t.Errorf("%v hold it", holders)
		}
	})
}

// extendedFence remembers how the lease was extended.
type extendedFence struct {
	Fence
	closes    bool
	end, wake time.Duration
	times     int
}

func (f *extendedFence) Begin(time.Duration) {}
func (f *extendedFence) Closes() bool        { return f.closes }

func (f *extendedFence) Extend(end, wake time.Duration) bool {
	f.end, f.wake = end, wake
	f.times++
	return true
}

// TestSwitchLooksLater: where a fence ends what the leader answers, its dead man's switch does not look before the
// daemon is overdue. Not for a moment may it be set to an end that is over: it would act at once.
func TestSwitchLooksLater(t *testing.T) {
	const end, before, after = 100 * time.Millisecond, 90 * time.Millisecond, 150 * time.Millisecond
	for _, test := range []struct {
		name    string
		closes  bool
		overdue time.Duration
		want    time.Duration
	}{
		{"a fence, overdue later", true, after, after},
		{"a fence, overdue sooner", true, before, end},
		{"a fence, and no votes", true, 0, end},
		{"no fence", false, after, end},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &extendedFence{closes: test.closes}
			l := lease{fence: f}
			l.begin(time.Millisecond)
			for range 2 {
				l.extend(end, test.overdue)
			}
			if f.end != end || f.wake != test.want || f.times != 1 {
				t.Errorf("it ends at %v, the switch looks at %v, set %d times; want %v, %v, once", f.end, f.wake, f.times, end, test.want)
			}
			l.extend(end, test.overdue+time.Second) // another heartbeat, and no acknowledgement
			if moved := f.times == 2; moved != test.closes {
				t.Errorf("a heartbeat moves what the switch looks at: %t", moved)
			}
		})
	}
}

// TestSwitchLooksAtTheEnd: without votes the end of a lease is what the others count by. The switch looks then, also
// while the daemon that stood still finds out whether anybody has claimed.
func TestSwitchLooksAtTheEnd(t *testing.T) {
	for still := 102 * time.Millisecond; still <= 112*time.Millisecond; still += time.Millisecond {
		inBubble(t, func(t *testing.T, l *fakeLAN) {
			_, _, three, latest := l.armedThree(nil)
			d := latest()
			said := three.says(t)
			for len(said()) == 0 { // until a heartbeat has left
				pass(100 * time.Microsecond)
			}
			d.get(func() { d.closes, d.running = true, nil }) // the holder stands still as well
			three.freeze(still)
			pass(still + 3*time.Millisecond)
			d.get(func() {
				if d.running = d; d.later {
					t.Errorf("%v: the switch is to look later than at the end", still)
				}
			})
		})
	}
}

// TestStatusTellsTheLease: a page that has asked a moment ago can tell whether this board may still answer for the
// address, though the daemon has stood still since.
func TestStatusTellsTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three := l.three()
		for range 20 { // at different moments of an interval
			left := time.Duration(three.mustStatus(t).LeaseEndsInNs)
			if left <= 0 || left > 2*election.DefaultInterval {
				t.Errorf("the lease of the leader ends in %v", left)
			}
			pass(13 * time.Millisecond)
		}
		assert.Is(t, 0, two.mustStatus(t).LeaseEndsInNs, "when the lease of a follower ends")
		l.boards[0].Kill()
		l.boards[1].Kill()
		pass(time.Minute)
		assert.Is(t, console.NoLeaseEnd, three.mustStatus(t).LeaseEndsInNs, "when the lease of the last board ends")
	})
}
