package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/console"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/observe"
)

// until waits until nothing is missing any more. missing says what is, in words. It waits in vain if a daemon has ended
// that nobody has told to: no service manager starts it again.
func (c *testCluster) until(what string, missing func() string) {
	c.t.Helper()
	var ended *board
	must(c.t, cluster.Until(what, func() string {
		lack := missing()
		if lack == "" {
			return ""
		}
		for _, b := range c.boards {
			if b.started && !b.mayEnd && !b.withoutHolder && !b.Running() {
				ended, lack = b, ""
			}
		}
		return lack
	}))
	if ended != nil {
		c.t.Fatalf("%s: %s has ended by itself: %v", what, ended, ended.Wait())
	}
}

// untilTrue waits like until, where there is nothing more to say than that it is not so.
func (c *testCluster) untilTrue(what string, is func() bool) {
	c.t.Helper()
	c.until(what, func() string {
		if is() {
			return ""
		}
		return "it is not so"
	})
}

// untilEnded waits until a process has ended, though its parent may not have noticed.
func (c *testCluster) untilEnded(what string, pid int) {
	c.t.Helper()
	c.untilTrue(what+" has ended", func() bool { return zombie(pid) })
}

// untilStatus waits until the board's status is as it should be.
func (b *board) untilStatus(what string, missing func(console.Status) string) (s console.Status) {
	b.c.t.Helper()
	b.c.until(fmt.Sprintf("%s: %s", b, what), func() string {
		var err error
		if s, err = b.Status(); err != nil {
			return err.Error()
		}
		return missing(s)
	})
	return s
}

// untilStatusIs waits until something is so by the board's status.
func (b *board) untilStatusIs(what string, is func(console.Status) bool) console.Status {
	b.c.t.Helper()
	return b.untilStatus(what, func(s console.Status) string {
		if is(s) {
			return ""
		}
		return fmt.Sprintf("it is a %s that knows the leader %q; holding: %v, %s", s.Role, s.LeaderName, s.Holding, s.HoldText)
	})
}

// untilProblem waits until the board's status mentions a problem with all of
// these words in it.
func (b *board) untilProblem(words ...string) {
	b.c.t.Helper()
	b.untilStatus("a problem", func(s console.Status) string {
		for _, p := range s.Problems {
			if containsAll(p.Text, words) {
				return ""
			}
		}
		return fmt.Sprintf("no problem with %q among %q", words, s.Problems)
	})
}

// untilNoProblems waits until the board has nothing to complain about. That a leader was late, on a busy machine, is
// nothing that a test can wait to be over: the group remembers it for hours. That no other board could take over is for
// TestNoSpare: a test may have ended the others.
func (b *board) untilNoProblems() {
	b.c.t.Helper()
	b.untilStatus("no problems", func(s console.Status) string {
		problems := slices.DeleteFunc(s.Problems, func(p console.Problem) bool {
			return string(p.Kind) == election.NoticePatience.Identifier() || p.Kind == console.ProblemNoSpare
		})
		if len(problems) == 0 {
			return ""
		}
		return fmt.Sprintf("%q", problems)
	})
}

// untilLogged waits until the board has logged a line with all of these words in it.
func (b *board) untilLogged(words ...string) {
	b.c.t.Helper()
	b.c.until(b.String()+" logs", func() string {
		if b.Log.Logged(words...) {
			return ""
		}
		return fmt.Sprintf("no line with %q", words)
	})
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// agree waits until the given boards, or all that run if none is given, agree
// on one of them as the leader: by their status they know each other and it,
// by the kernel it alone has the address, and it answers the client. It returns the leader.
func (c *testCluster) agree(members ...*board) *board {
	c.t.Helper()
	if len(members) == 0 {
		members = c.running()
	}
	var leader *board
	c.until("agree on a leader", func() string {
		var lack string
		leader, lack = c.agreed(members)
		return lack
	})
	c.answeredBy(leader)
	return leader
}

// agreeOn is agree for when the leader is known.
func (c *testCluster) agreeOn(leader *board, members ...*board) {
	c.t.Helper()
	c.until("follow "+leader.String(), func() string {
		got, lack := c.agreed(members)
		if lack == "" && got != leader {
			return fmt.Sprintf("they follow %s", got)
		}
		return lack
	})
	c.answeredBy(leader)
}

// agreed finds the leader that all members agree on, or says what is missing.
func (c *testCluster) agreed(members []*board) (leader *board, lack string) {
	var daemons []*cluster.Topdog
	for _, b := range members {
		daemons = append(daemons, b.Topdog)
	}
	found, err := c.Agreed(daemons)
	if err != nil {
		return nil, err.Error()
	}
	return c.named(found.String()), ""
}

// answeredBy waits for an answer of the board to the client, at each address.
func (c *testCluster) answeredBy(b *board) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cluster.Timeout)
	defer cancel()
	for _, asker := range []*observe.Asker{c.asker, c.asker6} {
		if asker == nil {
			continue
		}
		if _, err := asker.WaitAnswer(ctx, func(n int) bool { return n == b.Number }); err != nil {
			c.t.Fatalf("%s does not answer the client: %v", b, err)
		}
	}
}

// untilHolders waits until the kernels have the address on such boards; every
// state is looked at, however short.
func (c *testCluster) untilHolders(what string, cond func(holders []int) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cluster.Timeout)
	defer cancel()
	if err := c.Holders.WaitFor(ctx, cond); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
}

// untilTakenFrom waits until only another board than this one has the address.
func (c *testCluster) untilTakenFrom(b *board) {
	c.t.Helper()
	another := func(h []int) bool { return len(h) == 1 && h[0] != b.Number }
	c.untilHolders("somebody takes over from "+b.String(), another)
	if c.Holders6 != nil {
		c.until("the IPv6 address is taken over from "+b.String(), func() string {
			if h := c.Holders6.Current(); !another(h) {
				return fmt.Sprintf("it is on %v", h)
			}
			return ""
		})
	}
}

// watchFor goes on for a while during which nothing is expected to happen.
func (c *testCluster) watchFor(d time.Duration) { <-time.After(d) }

// slack is how long after a change the kernels may go on with what they had begun.
var slack = silence.DefaultGrace(heartbeat)

// twoHoldersAtMost tells what has happened to the address since a moment, and checks
// that no two boards had it for longer than they may.
func (c *testCluster) twoHoldersAtMost(since time.Time, twoHolders time.Duration) {
	c.t.Helper()
	seen, asked := c.Holders.Since(since), c.asker.Report(since)
	c.t.Logf("two holders %.1f ms, no holder %.1f ms, %d moves; the client waited %.1f ms at most (itself late by %.1f ms)",
		ms(seen.Overlap()), ms(seen.Vacant()), seen.Moves(), ms(asked.Longest.Duration()), ms(asked.Pause))
	if seen.Overlap() > twoHolders {
		c.t.Errorf("two boards had the address for %.1f ms, more than %.1f: %s", ms(seen.Overlap()), ms(twoHolders), c.spans(since))
	}
	if c.Holders6 == nil {
		return
	}
	seen, asked = c.Holders6.Since(since), c.asker6.Report(since)
	c.t.Logf("IPv6: two holders %.1f ms, no holder %.1f ms, %d moves; the client waited %.1f ms at most",
		ms(seen.Overlap()), ms(seen.Vacant()), seen.Moves(), ms(asked.Longest.Duration()))
	if seen.Overlap() > twoHolders {
		c.t.Errorf("two boards had the IPv6 address for %.1f ms, more than %.1f", ms(seen.Overlap()), ms(twoHolders))
	}
}

// handedOver checks that a board leads because the one before let it.
func (c *testCluster) handedOver(to *board) {
	c.t.Helper()
	s, err := to.Status()
	must(c.t, err)
	if want := election.ReasonHandover.Identifier(); len(s.Changes) == 0 || s.Changes[0].Reason != want {
		c.t.Errorf("%s does not lead because %s: %+v", to, want, s.Changes)
	}
}

// awayAtMost checks that since a moment the address was on no board for no
// longer than that.
func (c *testCluster) awayAtMost(since time.Time, most time.Duration) {
	c.t.Helper()
	if gone := c.Holders.Since(since).Vacant(); gone > most {
		c.t.Errorf("no board had the address for %.1f ms, more than %.1f: %s", ms(gone), ms(most), c.spans(since))
	}
}

// spans says who had the address when, in milliseconds since a moment.
func (c *testCluster) spans(since time.Time) string {
	var texts []string
	for _, s := range c.Holders.Since(since).Spans {
		texts = append(texts, fmt.Sprintf("pi%d %.1f-%.1f", s.Board, ms(s.From.Sub(since)), ms(s.To.Sub(since))))
	}
	return strings.Join(texts, ", ")
}

// undisturbed checks that since a moment the address has stayed where it was.
func (c *testCluster) undisturbed(since time.Time, leader *board) {
	c.t.Helper()
	seen := c.Holders.Since(since)
	still := seen.Moves() == 0 && seen.Vacant() == 0 && seen.Overlap() == 0 && seen.Held(leader.Number) > 0
	for n := range c.asker.Report(since).Answers {
		still = still && n == leader.Number
	}
	if !still {
		c.t.Errorf("the address did not simply stay at %s: %s; answers by board: %v",
			leader, c.spans(since), c.asker.Report(since).Answers)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
