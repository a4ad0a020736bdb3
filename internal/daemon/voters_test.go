package daemon

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// voters starts boards 1 to n of the algorithm strict, the first three of which vote.
func (l *fakeLAN) voters(n int, change func(number int, c *config.Config)) (boards []*fakeBoard) {
	for number := 1; number <= n; number++ {
		boards = append(boards, l.board(number, func(c *config.Config, _ *fakeBoard) {
			c.Algorithm, c.Voters = wire.AlgorithmStrict, votersOf(1, 2, 3)
			if change != nil {
				change(number, c)
			}
		}))
	}
	pass(5 * time.Second)
	return boards
}

// votersOf are the ids of boards by their numbers.
func votersOf(numbers ...int) (ids []wire.ID) {
	for _, n := range numbers {
		ids = append(ids, wire.ID(10<<24+n))
	}
	return ids
}

// problem returns the text of a problem of that kind; "" if there is none.
func (b *fakeBoard) problem(t *testing.T, kind console.ProblemKind) string {
	t.Helper()
	for _, p := range b.mustStatus(t).Problems {
		if p.Kind == kind {
			return p.Text
		}
	}
	return ""
}

// wantTold wants a problem of that kind with this part; with "" it wants none of that kind.
func (b *fakeBoard) wantTold(t *testing.T, kind console.ProblemKind, part string) {
	t.Helper()
	if text := b.problem(t, kind); !strings.Contains(text, part) || part == "" && text != "" {
		t.Errorf("board %d says %q, want %q", b.number, text, part)
	}
}

// TestVoterReturns: the leader of strict that is heard after a long time is resolved once, so that the
// kernels do not hold back the votes for it: its voters have asked it meanwhile. Who has only heard of
// another board is not held back, and a burst of losses is not long enough.
func TestVoterReturns(t *testing.T) {
	for _, test := range []struct {
		name   string
		silent time.Duration
		want   string
	}{
		{"after a long time", 3 * time.Second, "[10.0.0.3]"},
		{"after a moment", 500 * time.Millisecond, "[]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				boards := l.voters(3, nil)
				l.wantHolders(3)
				set := func(deaf bool) {
					for _, b := range boards {
						b.get(func() { b.deaf = deaf })
					}
				}
				set(true)
				pass(test.silent)
				set(false)
				pass(10 * time.Second)
				for _, b := range boards[:2] {
					b.get(func() { assert.Is(t, test.want, fmt.Sprint(b.resolved), "board %d has resolved", b.number) })
				}
			})
		})
	}
}

// The status shows the voters, and on the leader who of them acknowledges it.
func TestStatusOfVoters(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		boards := l.voters(3, nil)
		l.wantHolders(3)
		s := boards[2].mustStatus(t)
		if len(s.Voters) != 3 || s.MajorityUnheard || len(s.Problems) > 0 {
			t.Fatalf("voters %+v, majority unheard: %v, problems %v", s.Voters, s.MajorityUnheard, s.Problems)
		}
		for i, v := range s.Voters {
			if v.Name != boards[i].cfg.Name || v.Supports == nil || !*v.Supports || v.Twice {
				t.Errorf("voter %+v", v)
			}
		}
		if v := boards[0].mustStatus(t).Voters; len(v) != 3 || v[0].Supports != nil {
			t.Errorf("a follower sees %+v", v)
		}
		boards[0].Kill()
		pass(time.Second)
		if v := boards[2].mustStatus(t).Voters; *v[0].Supports || !*v[1].Supports {
			t.Errorf("board 1 is dead, and the leader sees %+v", v)
		}
		l.wantHolders(3)
		boards[1].Kill()
		pass(300 * time.Millisecond)
		l.wantHolders()
		if s := boards[2].mustStatus(t); !s.MajorityUnheard || s.Held() {
			t.Errorf("alone: majority unheard: %v, held: %v", s.MajorityUnheard, s.Held())
		}
	})
}

// A list that does not fit is told of: no board of it, an even number, and another list.
func TestOddLists(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		boards := l.voters(4, func(number int, c *config.Config) {
			if number == 1 {
				c.Voters = votersOf(1, 2, 3, 5)
			}
		})
		l.wantHolders(3)
		boards[3].wantTold(t, console.ProblemNoVoter, "10.0.0.4, which is not among the voters")
		boards[0].wantTold(t, console.ProblemEvenVoters, "4 voters: no more of them may fail than of 3")
		for i, b := range boards[:3] {
			text := b.problem(t, "other_voters")
			if !strings.Contains(text, "has another list of voters") {
				t.Errorf("board %d says %q, and board 1 has another list", i+1, text)
			}
		}
		boards[2].wantAcknowledged(t, 2, 3)
	})
}

// wantAcknowledged wants these voters to acknowledge the leader.
func (b *fakeBoard) wantAcknowledged(t *testing.T, want ...int) {
	t.Helper()
	var got []int
	for _, v := range b.mustStatus(t).Voters {
		if v.Supports != nil && *v.Supports {
			got = append(got, int(netip.MustParseAddr(v.ID).As4()[3]))
		}
	}
	assert.Equal(t, want, got, "who acknowledges board %d", b.number)
}

// TestWitnessTwice: a witness that was started twice under one id does not count, and is reported.
func TestWitnessTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		boards := l.voters(3, func(number int, c *config.Config) {
			if number == 1 {
				c.Priority = 0
			}
		})
		l.wantHolders(3)
		boards[2].wantAcknowledged(t, 1, 2, 3)
		l.board(4, func(c *config.Config, _ *fakeBoard) {
			c.Algorithm, c.Voters, c.ID, c.Priority = wire.AlgorithmStrict, votersOf(1, 2, 3), votersOf(1)[0], 0
		})
		for range 50 {
			pass(100 * time.Millisecond)
			l.wantHolders(3)
		}
		boards[2].wantProblem(t, "10.0.0.1")
		boards[2].wantProblem(t, "is there twice")
		boards[2].wantAcknowledged(t, 2, 3)
	})
}

// A board whose clock is too fast or too slow neither leads nor votes, says so, and comes back.
func TestClockOff(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		boards := l.voters(3, nil)
		l.wantHolders(3)
		slew := func(b *fakeBoard, off float64) {
			b.mu.Lock()
			b.clockOff = off
			b.mu.Unlock()
			pass(3 * time.Second)
		}
		slew(boards[2], -0.009)
		l.wantHolders(3)
		slew(boards[2], -0.011)
		l.wantHolders(2)
		boards[2].wantTold(t, console.ProblemClockRate, "runs -1.1 % off")
		if v := boards[1].mustStatus(t).Voters; *v[2].Supports {
			t.Error("it still votes")
		}
		for range 3 { // by about as much as is allowed
			slew(boards[2], -0.0099)
			l.wantHolders(2)
			slew(boards[2], -0.0101)
		}
		boards[2].wantLog(t, "off its rate, and more", 2) // -1.1 %, and then -1.0 %
		slew(boards[2], 0)
		boards[2].wantTold(t, console.ProblemClockRate, "")
		if v := boards[1].mustStatus(t).Voters; !*v[2].Supports {
			t.Error("it does not vote again")
		}
	})
}

// A witness votes and never leads, whatever its file says, also when that is read again.
func TestWitnessConfiguration(t *testing.T) {
	cfg := config.Defaults()
	cfg.Priority, cfg.Preempt, cfg.Witness = 200, true, config.Witness{Gateway: true}
	w := witnessed(cfg)
	if w.Witness.Gateway || w.Priority != 0 || w.Preempt || w.LED.String() != "none" || cfg.Priority != 200 {
		t.Errorf("%+v", w)
	}
	p := Witness(cfg)
	if p.OpenAddresses != nil || p.StartDeadman != nil {
		t.Error("it can do what a witness needs no right for")
	}
}

// A voter that needs another incarnation does not know what it has promised in the former one, so it
// is silent first, as a process that has just started.
func TestNewIncarnationIsSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		boards := l.voters(3, nil)
		l.wantHolders(3)
		boards[1].Kill()
		one := boards[0]
		one.onLoop(t, func() { one.group.sequence = lastSequence })
		pass(400 * time.Millisecond)
		l.wantHolders()
		pass(3 * time.Second)
		l.wantHolders(3)
	})
}
