package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// TestDrainAndUndrain plays the owner of three boards who works on the leader: it hands over, is drained after a
// restart of its daemon too, and stands for the address again when the work is done.
func TestDrainAndUndrain(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		leader := c.agree()

		drained := time.Now()
		if o := leader.topdog("drain"); o.status != 0 || !strings.HasPrefix(o.stdout, "handed over to ") {
			t.Fatalf("drain: %v", o)
		}
		next := c.agree()
		if next == leader {
			t.Fatalf("%s is drained, and leads", leader)
		}
		c.twoHoldersAtMost(drained, 0)
		if o := leader.topdog("status"); !strings.Contains(o.stdout, "follower, drained") {
			t.Errorf("it does not show that it is drained:\n%s", o.stdout)
		}

		leader.signal(syscall.SIGTERM)
		leader.ended()
		c.start(leader)
		c.agree()
		leader.untilGrade("drained")
		next.untilBoardGrade(leader, "drained")

		// The address goes to the board that is not drained, though the other one has the higher rank.
		other := c.except(leader, next)[0]
		next.signal(syscall.SIGTERM)
		next.ended()
		if after := c.agree(c.except(next)...); after != other {
			t.Errorf("%s leads, and %s is not drained", after, other)
		}
		if o := other.topdog("drain"); o.status == 0 || !strings.Contains(o.stderr, "no other live board passes") {
			t.Errorf("the last board that passes is drained: %v", o)
		}
		if o := other.topdog("drain", "--for", "-1s"); o.status != exitUsage {
			t.Errorf("a negative time is accepted: %v", o)
		}
		if o := leader.topdog("undrain"); o.status != 0 || !strings.Contains(o.stdout, "this board is passing") {
			t.Errorf("undrain: %v", o)
		}
		other.untilBoardGrade(leader, "passing")
		if o := leader.topdog("undrain"); o.status == 0 || !strings.Contains(o.stderr, "is not drained") {
			t.Errorf("undrain again: %v", o)
		}
	})
}

// TestPauseAndUnpause: the leader stands still during a pause until its switch has released the address, and has it back. Then it
// is killed, and nobody takes the address until the pause is over.
func TestPauseAndUnpause(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		leader := c.agree()
		other := c.except(leader)[0]
		if o := other.topdog("pause", "--for", "10m"); o.status != 0 || !strings.Contains(o.stdout, "the group is paused for 10m0s: only "+leader.String()) {
			t.Fatalf("pause: %v", o)
		}
		for _, b := range c.boards {
			b.untilProblem("the group is paused", "may lead")
		}
		if o := leader.topdog("resign"); o.status == 0 || !strings.Contains(o.stderr, "topdog unpause") {
			t.Errorf("the leader resigns during a pause: %v", o)
		}
		leader.signal(syscall.SIGSTOP)
		c.untilHolders("the switch releases the address", func(h []int) bool { return len(h) == 0 })
		leader.signal(syscall.SIGCONT)
		c.agreeOn(leader, c.boards...)
		leader.untilLogged("dead man's switch has released")

		leader.signal(9)
		leader.gone()
		killed := time.Now()
		c.watchFor(time.Second)
		for _, b := range c.except(leader) {
			if o := b.topdog("status"); o.status != 1 {
				t.Errorf("%s says that the address is held: %v", b, o)
			}
		}
		if moves := c.Holders.Since(killed).Moves(); moves != 0 {
			t.Errorf("the address moved %d times during the pause", moves)
		}
		if o := other.topdog("unpause"); o.status != 0 {
			t.Errorf("unpause: %v", o)
		}
		c.agree(c.except(leader)...)
	})
}

// untilBoardGrade waits until this board knows how fit another one is.
func (b *board) untilBoardGrade(other *board, grade string) {
	b.c.t.Helper()
	b.untilStatus(other.String()+" "+grade, func(s console.Status) string {
		for _, known := range s.Boards {
			if known.Name == other.String() && known.Grade == grade {
				return ""
			}
		}
		return "the boards are " + s.LeaderName
	})
}
