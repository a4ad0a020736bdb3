package daemon

import (
	"testing"
	"time"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
)

// TestMisaimedAfterReload: a check that turned out to be aimed at the floating address is told of as long as it is there.
func TestMisaimedAfterReload(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		web := check.Check{Kind: check.TCP, Target: "name.lan:80", Every: time.Second, Timeout: time.Second, Rise: 2, Fall: 3}
		l.board(1, checking())
		two := l.board(2, checking(web))
		pass(3 * time.Second)
		var reports chan check.Report
		two.get(func() { reports = two.checker.reports })
		reports <- check.Report{ID: web.ID(), Text: "name.lan is the floating address", Misaimed: true}
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
		current := func() (c *fakeChecker) {
			two.get(func() { c = two.checker })
			return c
		}
		first := current()
		two.get(func() { two.muteCheckers = true })
		first.mu.Lock()
		first.silent = true
		first.mu.Unlock()
		pass(10 * time.Second)
		second := current()
		if second == first {
			t.Fatal("not replaced")
		}
		pass(5 * time.Minute)
		if current() == second {
			t.Error("a second checker that says nothing is kept for 5 minutes")
		}
	})
}
