package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// nobodyElse is a user whom this machine does not know, and who may do nothing.
const nobodyElse = 54321

// newStrict builds a LAN of boards that vote; the last one is to be a witness.
func newStrict(t testing.TB, boards int) *testCluster {
	t.Helper()
	c := newCluster(t, boards, nil)
	var voters []string
	for _, b := range c.boards {
		voters = append(voters, quote(b.Addr.Addr().String()))
	}
	for _, b := range c.boards {
		b.set(settings{"algorithm": quote("strict"), "voters": "[" + strings.Join(voters, ", ") + "]"})
	}
	return c
}

// startWitness starts a witness on the board, as a user without any right.
func (b *board) startWitness() {
	b.c.t.Helper()
	for _, path := range []string{b.Dir, b.KeyFile()} {
		must(b.c.t, os.Chown(path, nobodyElse, nobodyElse))
	}
	b.Log.Note("start the witness")
	must(b.c.t, b.Launch(b.Program.Path, []string{"witness", "--config", b.ConfigFile()}, netns.Env(b.Program.Env...), netns.User(nobodyElse)))
}

// untilAcknowledged waits until so many voters acknowledge the leader.
func (b *board) untilAcknowledged(want int) {
	b.c.t.Helper()
	b.untilStatus(fmt.Sprintf("%d voters acknowledge it", want), func(s console.Status) string {
		got := 0
		for _, v := range s.Voters {
			if v.Supports != nil && *v.Supports {
				got++
			}
		}
		if got != want {
			return fmt.Sprintf("%d do: %+v", got, s.Voters)
		}
		return ""
	})
}

// Two boards and a witness without any right: what is lost of the three, the other two go on, and of
// one alone nobody answers.
func TestTwoBoardsAndAWitness(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newStrict(t, 3)
		one, two, witness := c.board(1), c.board(2), c.board(3)
		witness.set(settings{"priority": "254"}) // which a witness does not use
		c.start(one, two)
		witness.startWitness()
		leader := c.agree(one, two)
		leader.untilAcknowledged(3)
		if s := witness.untilStatusIs("it follows", func(s console.Status) bool {
			return s.Role == console.RoleFollower && s.LeaderName == leader.String()
		}); s.Board.Priority != 0 || s.HoldMethod != "" || len(s.Problems) > 0 {
			t.Errorf("the witness has priority %d, holds by %q, and says %v", s.Board.Priority, s.HoldMethod, s.Problems)
		}
		wantNoRight(t, witness.PID())

		// It may go, and its file may be read again: nothing changes, and it never leads.
		since := time.Now()
		witness.signal(syscall.SIGHUP)
		witness.untilLogged("nothing has changed")
		witness.signal(syscall.SIGKILL)
		leader.untilAcknowledged(2)
		c.watchFor(5 * heartbeat)
		c.undisturbed(since, leader)
		witness.startWitness()
		leader.untilAcknowledged(3)

		// Of the two boards one may go.
		other := c.except(leader, witness)[0]
		must(t, leader.Pull())
		c.answeredBy(other)
		must(t, leader.Plug())
		c.agreeOn(other, one, two)
		other.untilAcknowledged(3)

		// Alone, a board does not answer, and says why.
		witness.signal(syscall.SIGKILL)
		other.untilAcknowledged(2)
		leader.signal(syscall.SIGKILL)
		other.untilStatusIs("it does not answer", func(s console.Status) bool { return !s.Held() })
		silent := time.Now()
		c.watchFor(5 * heartbeat)
		if n := len(c.asker.Report(silent).Answers); n > 0 {
			t.Errorf("without a majority %d boards answer", n)
		}
		witness.startWitness()
		c.answeredBy(other)
	})
}

// wantNoRight looks whether the kernel gives a process any capability.
func wantNoRight(t testing.TB, pid int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	if !strings.Contains(string(text), "CapEff:\t0000000000000000") {
		t.Errorf("the witness has rights:\n%s", text)
	}
}

// The LAN falls in two: on the side of the majority somebody answers, and on the other one nobody. Then all processes of the
// next leader's board stand still: another board takes over, and when they go on nobody but that board answers.
func TestStrictSplit(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newStrict(t, 3)
		c.start(c.boards...)
		old := c.agree()
		must(t, c.LAN.Filter(netns.Cut(old.Port())...))
		c.untilAnswered("the majority answers", func(n int) bool { return n != old.Number })
		old.untilStatusIs("the old leader does not answer", func(s console.Status) bool {
			return !s.Held() || s.HeldBy != s.Board.ID
		})
		must(t, c.LAN.Filter())
		next := c.agree()
		if next == old {
			t.Errorf("the address is back at %s, and another board served meanwhile", old)
		}

		pids, err := next.Processes()
		must(t, err)
		for _, pid := range pids {
			must(t, netns.Freeze(pid))
		}
		c.untilAnswered("another board answers", func(n int) bool { return n != next.Number })
		for _, pid := range pids {
			must(t, syscall.Kill(pid, syscall.SIGCONT))
		}
		if c.agree() == next {
			t.Errorf("%s leads again after it was replaced", next)
		}
	})
}

// Whoever asks for a witness without votes is told what is missing. Without a terminal that is after it has read the
// file again for a while.
func TestWitnessWithoutVotes(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/topdog.toml"
	must(t, os.WriteFile(path, []byte("address = \"10.0.0.9\"\nkey_file = \"none\"\n"), 0o600))
	began := time.Now()
	got := execHere(t, "witness", "--config", path)
	if took := time.Since(began); took < mendWithin {
		t.Errorf("it gave up after %v, and whoever mends the file has %v", took, mendWithin)
	}
	got.want(t, exitConfig, "another algorithm", `only the algorithm "strict" has votes`)
}

// untilAnswered waits for an answer of a board to the client.
func (c *testCluster) untilAnswered(what string, by func(board int) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cluster.Timeout)
	defer cancel()
	if _, err := c.asker.WaitAnswer(ctx, by); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
}
