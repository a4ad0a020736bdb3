package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// A leader that stood still teaches the group to wait longer for a late one. Then the same pause
// moves nothing, `topdog status` says on every board what was learned.
func TestPatience(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		leader := c.agree()
		for learned := false; !learned; { // what took longer than the patience is no lesson
			old := leader
			old.signal(syscall.SIGSTOP)
			c.untilTakenFrom(old) // its lease is over
			old.signal(syscall.SIGCONT)
			old.untilLogged("dead man's switch has released")
			leader = c.agree()
			c.watchFor(3 * heartbeat)
			s, err := leader.Status()
			must(t, err)
			learned = s.Patience.GraceNs > s.Patience.DefaultGraceNs
		}
		var grace time.Duration
		for _, b := range c.boards {
			s := b.untilStatus("a longer grace", func(s console.Status) string {
				if s.Patience.GraceNs <= s.Patience.DefaultGraceNs || s.Patience.LearnedText == "" {
					return "nothing was learned"
				}
				return ""
			})
			grace = time.Duration(s.Patience.GraceNs)
		}
		if out := leader.topdog("status").stdout; !strings.Contains(out, "patience") || !strings.Contains(out, "a leader may be late by") {
			t.Errorf("topdog status does not say what was learned:\n%s", out)
		}

		began := time.Now()
		for range 5 {
			leader.signal(syscall.SIGSTOP)
			c.watchFor(grace / 4)
			leader.signal(syscall.SIGCONT)
			c.watchFor(3 * heartbeat)
		}
		c.undisturbed(began, leader)
	})
}
