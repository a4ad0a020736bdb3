package daemon

import (
	"testing"
	"time"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// TestMisaimedAfterReload: a check that turned out to be aimed at the floating address is told of as long as it is there.
func TestMisaimedAfterReload(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		web := check.Check{Kind: check.TCP, Target: "name.lan:80", Every: time.Second, Timeout: time.Second, Rise: 2, Fall: 3}
		l.board(1, checking())
		two := l.board(2, checking(web))
		pass(3 * time.Second)
		two.checker.reports <- check.Report{ID: web.ID(), Text: "name.lan is the floating address", Misaimed: true}
		pass(10 * time.Millisecond)
		if !two.hasProblem(t, console.ProblemCheckAim) {
			t.Fatal("no problem")
		}
		two.reload(func(c *config.Config) { c.Checks = []check.Check{web, webCheck} })
		pass(60 * time.Second)
		two.wantGrade(t, "failing", "name.lan is the floating address")
		if !two.hasProblem(t, console.ProblemCheckAim) {
			t.Error("still misaimed, and after a reload that added another check nobody says so")
		}
	})
}

// TestSecondCheckerStuck: a checker that has replaced a lost one, and says nothing either, is replaced as well.
func TestSecondCheckerStuck(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.board(1, checking())
		two := l.board(2, checking(webCheck))
		pass(3 * time.Second)
		two.checker.with(func() { two.checker.mute, two.checker.silent = true, true })
		pass(5 * time.Second)
		assert.Is(t, 2, two.checker.started(), "checkers that were started")
		pass(5 * time.Minute)
		if two.checker.started() == 2 {
			t.Error("a second checker that says nothing is kept for 5 minutes")
		}
	})
}
