package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// kernelNow reads the clock of all traces.
func kernelNow(t testing.TB) int64 {
	t.Helper()
	var now unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
	return now.Nano()
}

// trace runs the command with --json.
func (b *board) trace(args ...string) console.Trace {
	b.c.t.Helper()
	o := b.topdog(append([]string{"trace", "--json"}, args...)...)
	var got console.Trace
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil || o.status != 0 {
		b.c.t.Fatalf("%s: %v\n%v", b, err, o)
	}
	return got
}

// What the boards say of a pulled cable is what has happened, by the clock of this test.
func TestTrace(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.board(1).topdog("trace").want(t, exitFailure, "no daemon", "does not run")
		c.board(1).topdog("trace", "now").want(t, exitUsage, "superfluous argument")
		c.start(c.boards...)
		old := c.agree()
		c.watchFor(5 * heartbeat)

		pulled := kernelNow(t)
		must(t, old.Pull())
		c.untilTakenFrom(old)
		leader := c.agree(c.except(old)...)
		answered := kernelNow(t)

		got := leader.trace()
		if len(got.Changes) != 1 {
			t.Fatalf("%d changes without --all, want 1", len(got.Changes))
		}
		change := got.Changes[0]
		if change.OldLeaderName != old.String() || change.NewLeaderName != leader.String() || change.To != console.RoleLeader {
			t.Errorf("%s says that the lead went from %q to %q", leader, change.OldLeaderName, change.NewLeaderName)
		}
		var steps []string
		for _, s := range change.Steps {
			steps = append(steps, strings.TrimSpace(s.Step+" "+s.Message))
			if s.Step == console.StepAcquireEnded && (s.AtNs < pulled || s.AtNs > answered) {
				t.Errorf("%s took the address at %d, and the cable was pulled at %d and the client answered by %d", leader, s.AtNs, pulled, answered)
			}
		}
		for _, want := range []string{
			"heard HEARTBEAT", "address_missed", "sent ELECTION", "acquire_begun", "acquire_ended", "announced", "sent COORDINATOR",
		} {
			if !slices.Contains(steps, want) {
				t.Errorf("%s does not tell of %q: %q", leader, want, steps)
			}
		}
		// The messages take their time, and not more than the machine was busy for.
		for _, s := range change.Steps {
			if s.HandledNs != nil && *s.HandledNs < s.AtNs {
				t.Errorf("a message was taken in before it was read: %+v", s)
			}
			if s.DueNs != nil && *s.DueNs > s.AtNs {
				t.Errorf("the timer rang too early: %+v", s)
			}
		}

		loser := old.trace().Changes[0]
		lost := slices.IndexFunc(loser.Steps, func(s console.TraceStep) bool { return s.Step == console.StepLinkLost })
		released := slices.IndexFunc(loser.Steps, func(s console.TraceStep) bool { return s.Step == console.StepReleaseEnded })
		if lost < 0 || released < lost || loser.Steps[lost].AtNs < pulled {
			t.Errorf("%s, whose cable was pulled at %d, says %+v", old, pulled, loser.Steps)
		}

		for _, b := range []*board{old, leader} {
			scene := b.topdog("trace", "--scene")
			file := filepath.Join(t.TempDir(), "report.txt")
			must(t, os.WriteFile(file, []byte(scene.stdout), 0o600))
			executed(t, "sim", "play", file).want(t, 0, "a recording that is played", "= ")
			must(t, os.WriteFile(file, []byte(strings.Replace(scene.stdout, ": link up\n", ": link down\n", 1)), 0o600))
			executed(t, "sim", "play", file).want(t, exitFailure, "a recording that was changed", "steps differ")
		}

		if all := leader.trace("--all"); len(all.Changes) < 2 {
			t.Errorf("%d changes with --all: that it found its first leader is missing", len(all.Changes))
		}
		leader.topdog("trace").want(t, 0, "trace",
			"the lead went from "+old.String(), "asks for the leader's address in vain", "has announced the address")
	})
}
