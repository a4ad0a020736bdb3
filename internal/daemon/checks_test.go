package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

var (
	webCheck     = check.Check{Kind: check.Unit, Target: "web.service", Every: time.Second, Timeout: time.Second, Rise: 2, Fall: 3}
	leadingCheck = check.Check{Kind: check.TCP, Target: "10.0.0.100:80", Every: time.Second, Timeout: time.Second, Rise: 2, Fall: 3, When: check.Leading, Grace: 5 * time.Second}
)

// checking has a board run checks.
func checking(checks ...check.Check) func(*config.Config, *fakeBoard) {
	return func(c *config.Config, _ *fakeBoard) { c.Checks, c.StartGrace = checks, 10*time.Second }
}

// says has the checker of a board report.
func (b *fakeBoard) reports(c check.Check, why string) {
	b.checker.say(c, why)
	pass(10 * time.Millisecond)
}

// wantGrade compares the grade of a board, and the reason for it.
func (b *fakeBoard) wantGrade(t *testing.T, grade, part string) console.Status {
	t.Helper()
	s := b.mustStatus(t)
	if s.Grade != grade || s.Board.Grade != grade || !strings.Contains(s.GradeText, part) {
		t.Errorf("board %d is %s (%s to the others): %q; want %s: %q", b.number, s.Grade, s.Board.Grade, s.GradeText, grade, part)
	}
	return s
}

func TestServiceFails(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two := l.board(1, checking(webCheck)), l.board(2, checking(webCheck))
		pass(3 * time.Second)
		l.wantHolders(2)
		two.wantGrade(t, "passing", "its checks pass")
		two.reports(webCheck, "it has ended")
		l.wantHolders(1)
		s := two.wantGrade(t, "failing", "unit web.service: it has ended")
		want := []console.Check{{
			Kind: "unit", Target: "web.service", When: "always", State: "failing", SinceNs: 1e7, NameText: "unit web.service", Text: "it has ended",
		}}
		assert.Equal(t, want, s.Checks, "checks")
		if !two.hasProblem(t, console.ProblemChecks) {
			t.Error("nobody is told")
		}
		two.reports(webCheck, "")
		if s := two.wantGrade(t, "probation", "after a relapse"); s.GradeEndsInNs < 4.5e9 || s.GradeEndsInNs > 5e9 {
			t.Errorf("the probation ends in %d ns", s.GradeEndsInNs)
		}
		pass(6 * time.Second)
		two.wantGrade(t, "passing", "its checks pass")
		l.wantHolders(1)
		if two.hasProblem(t, console.ProblemChecks) {
			t.Error("the problem is not solved")
		}
		want2 := []string{
			"info: grade passing: its checks pass", "warning: grade failing: unit web.service: it has ended",
			"info: grade probation: its checks pass again, after a relapse, for 5s", "info: grade passing: its checks pass",
		}
		assert.Equal(t, want2, two.loggedWith("grade "), "the log")
		_ = one
	})
}

// TestServiceDiesOnAllBoards: the address stays where it is, and goes to the first board that answers.
func TestServiceDiesOnAllBoards(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three := l.board(1, checking(webCheck)), l.board(2, checking(webCheck)), l.board(3, checking(webCheck))
		pass(3 * time.Second)
		for _, b := range []*fakeBoard{one, two, three} {
			b.reports(webCheck, "it has ended")
			b.wantGrade(t, "failing", "")
		}
		pass(time.Minute)
		l.wantHolders(3)
		one.reports(webCheck, "")
		pass(10 * time.Millisecond)
		l.wantHolders(1)
		pass(time.Minute)
		l.wantHolders(1)
	})
}

// TestServiceComesAndGoes: a service that dies again and again does not drag the address along.
func TestServiceComesAndGoes(t *testing.T) {
	for _, preempt := range []bool{false, true} {
		t.Run(fmt.Sprintf("preempt: %t", preempt), func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				change := func(c *config.Config, b *fakeBoard) { checking(webCheck)(c, b); c.Preempt = preempt }
				l.board(1, change)
				two := l.board(2, change)
				pass(3 * time.Second)
				l.wantHolders(2)
				moves, former := 0, 2
				look := func(lasts time.Duration) {
					for range lasts / (10 * time.Millisecond) {
						pass(10 * time.Millisecond)
						if h := l.holders(); len(h) == 1 && h[0] != former {
							moves, former = moves+1, h[0]
						}
					}
				}
				for range 4 { // scripts/bench has ten
					two.reports(webCheck, "it has ended")
					look(200 * time.Millisecond)
					two.reports(webCheck, "")
					look(700 * time.Millisecond)
				}
				look(2 * time.Minute)
				two.wantGrade(t, "passing", "")
				if moves < 1 || moves > 2 {
					t.Errorf("the address moved %d times", moves)
				}
			})
		})
	}
}

// TestStartWithoutService: a board that starts before its service does not take the address, though it is the best one. It does
// when the service is there, since it passes for the first time and has had no relapse.
func TestStartWithoutService(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		change := func(c *config.Config, b *fakeBoard) { checking(webCheck)(c, b); c.Preempt = true }
		l.board(1, change)
		pass(3 * time.Second)
		two := l.board(2, func(c *config.Config, b *fakeBoard) { change(c, b); c.Priority, b.checker.mute = 200, true })
		pass(10 * time.Millisecond)
		two.reports(webCheck, "there is no such process")
		pass(2 * time.Second)
		if s := two.wantGrade(t, "failing", ""); !s.Starting {
			t.Errorf("it is not starting: %s", s.GradeText)
		}
		l.wantHolders(1)
		two.reports(webCheck, "")
		pass(2 * time.Second)
		l.wantHolders(2)
	})
}

// hasProblem reports whether a board tells of such a problem.
func (b *fakeBoard) hasProblem(t *testing.T, kind console.ProblemKind) bool {
	t.Helper()
	for _, p := range b.mustStatus(t).Problems {
		if p.Kind == kind {
			return true
		}
	}
	return false
}

// TestCheckOnTheLeaderOnly: the checker is told who leads, a failure is excused at first, and then the board hands over
// and stands back.
func TestCheckOnTheLeaderOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.board(1, checking(leadingCheck))
		two := l.board(2, checking(leadingCheck))
		pass(2 * time.Second)
		l.wantHolders(2)
		if last := two.checker.last(); !last.Leading || last.Interface != "eth0" || len(last.Floating) != 1 {
			t.Errorf("the checker of the leader is told %+v", last)
		}
		two.reports(leadingCheck, "refused")
		assert.Is(t, "excused", two.wantGrade(t, "passing", "").Checks[0].State, "its check")
		l.wantHolders(2)
		pass(6 * time.Second)
		l.wantHolders(1)
		assert.Is(t, "not_judged", two.wantGrade(t, "failing", "stands back").Checks[0].State, "its check")
		pass(6 * time.Second)
		two.wantGrade(t, "passing", "")
		l.wantHolders(1)
	})
}

// TestLeadersCheckFailsEverywhere: what no board can do does not send the address round without end: the pauses
// double.
func TestLeadersCheckFailsEverywhere(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		slowly := func(c *config.Config, b *fakeBoard) { checking(leadingCheck)(c, b); c.Interval = time.Second } // or it takes a processor ten times as long
		boards := []*fakeBoard{l.board(1, slowly), l.board(2, slowly)}
		moves := func(lasts time.Duration) (n int) {
			former := l.holders()
			for range int(lasts / time.Second) {
				pass(time.Second)
				for _, b := range boards {
					b.checker.with(func() {
						if last := b.checker.orders; len(last) > 0 && last[len(last)-1].Leading {
							b.checker.reports <- check.Report{ID: leadingCheck.ID(), Text: "refused"}
						}
					})
				}
				if now := l.holders(); len(now) == 1 && !slices.Equal(now, former) {
					n, former = n+1, now
				}
			}
			return n
		}
		first := moves(10 * time.Minute)
		moves(30 * time.Minute)
		later := moves(time.Hour)
		t.Logf("%d moves in the first 10 minutes, %d in an hour later", first, later)
		if first < 2 || first > 20 || later > 15 {
			t.Errorf("%d moves in the first 10 minutes, %d in an hour later", first, later)
		}
	})
}

func TestCheckerEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking(webCheck))
		pass(2 * time.Second)
		one.checker.Kill()
		pass(1500 * time.Millisecond)
		assert.Is(t, 2, one.checker.started(), "checkers that were started")
		one.wantGrade(t, "passing", "")
		one.wantLog(t, "the checker has ended; starting another one", 1)
	})
}

// TestEndIsForgedWithoutEnd: a checker that was taken over makes the daemon neither log nor wait for each of its lies.
func TestEndIsForgedWithoutEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking(webCheck))
		pass(2 * time.Second)
		var before, after int
		one.checker.with(func() { before = len(one.checker.orders) })
		for range 500 {
			one.checker.reports <- check.Report{Ended: true}
		}
		pass(1500 * time.Millisecond)
		one.checker.with(func() { after = len(one.checker.orders) })
		assert.Is(t, 1, after-before, "orders for another one")
		one.wantLog(t, "the checker has ended; starting another one", 1)
	})
}

// TestCheckerEndsAsIfIdle: one that has something to run and ends as if it had not is replaced as well, though nobody tells
// its end.
func TestCheckerEndsAsIfIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking(webCheck))
		pass(2 * time.Second)
		one.checker.with(func() { one.checker.stop() })
		pass(6 * time.Second)
		assert.Is(t, 2, one.checker.started(), "checkers that were started")
		one.wantGrade(t, "probation", "")
	})
}

// TestCheckerEndsWithItsChecks: after a reload without checks, a checker that ends is not replaced, and nobody is told.
func TestCheckerEndsWithItsChecks(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking(webCheck))
		pass(2 * time.Second)
		one.reload(func(c *config.Config) { c.Checks = nil })
		pass(10 * time.Millisecond)
		assert.Is(t, false, one.checker.runs(), "a checker without checks runs")
		one.checker.reports <- check.Report{Ended: true}
		pass(1500 * time.Millisecond)
		assert.Is(t, 1, one.checker.started(), "checkers that were started")
		one.wantLog(t, "has ended", 0)
		one.wantNoProblem(t)
	})
}

// TestCheckerIsSilent: one that says nothing any more is replaced, and what it has said is not believed.
func TestCheckerIsSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking(webCheck))
		pass(2 * time.Second)
		one.wantGrade(t, "passing", "")
		one.checker.with(func() { one.checker.silent = true })
		pass(3500 * time.Millisecond)
		one.wantGrade(t, "failing", "do not run")
		pass(1500 * time.Millisecond)
		one.wantGrade(t, "probation", "")
		assert.Is(t, 2, one.checker.started(), "checkers that were started")
	})
}

func TestCheckerCannotBeStarted(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, b *fakeBoard) {
			checking(webCheck)(c, b)
			b.checker.broken = errors.New("start the checker: no memory")
		})
		pass(3500 * time.Millisecond)
		one.wantGrade(t, "failing", "do not run")
		if !one.hasProblem(t, console.ProblemChecker) {
			t.Error("nobody is told")
		}
		l.wantHolders(1) // somebody has to
		one.checker.with(func() { one.checker.broken = nil })
		pass(1500 * time.Millisecond)
		one.wantGrade(t, "passing", "")
		if one.hasProblem(t, console.ProblemChecker) {
			t.Error("the problem is not solved")
		}
	})
}

// TestMisaimedCheckIsAProblem: a name that turns out to be that of the floating address.
func TestMisaimedCheckIsAProblem(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking(webCheck))
		pass(time.Second)
		one.checker.reports <- check.Report{ID: webCheck.ID(), Text: "a is the floating address", Misaimed: true}
		pass(10 * time.Millisecond)
		if !one.hasProblem(t, console.ProblemCheckAim) {
			t.Error("nobody is told")
		}
		one.reports(webCheck, "")
		if one.hasProblem(t, console.ProblemCheckAim) {
			t.Error("the problem is not solved")
		}
	})
}

func TestReloadChecks(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, checking())
		pass(2 * time.Second)
		one.wantGrade(t, "passing", "no checks")
		configure := func(checks ...check.Check) {
			one.reload(func(c *config.Config) { c.Checks = checks })
			pass(10 * time.Millisecond)
		}
		configure(webCheck)
		one.wantGrade(t, "passing", "its checks pass")
		assert.Is(t, 1, one.checker.started(), "checkers that were started")
		one.reports(webCheck, "it has ended")
		one.wantGrade(t, "failing", "")
		configure()
		one.wantGrade(t, "probation", "")
		pass(20 * time.Second)
		one.wantGrade(t, "passing", "no checks")
		one.wantNoProblem(t)
	})
}

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
