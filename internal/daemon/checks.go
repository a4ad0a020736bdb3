package daemon

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/health"
	"topdog/wire"
)

// checks are the checks of this board, the process that runs them and the score command, and the resulting grade.
type checks struct {
	shared
	link     *link
	score    *score
	floating []netip.Addr
	health   *health.Health

	order   check.Order // that the checker has
	awaited bool        // the checker has something to run
	heardAt time.Duration
	lost    bool            // nothing was heard of it for too long
	aimed   map[string]bool // the checks that turned out to be aimed at a floating address

	refused bool // the kernel refuses the address

	judged   health.Judgement // the last one
	judgeAt  time.Duration    // when it may change though nothing is reported
	outdated bool             // it may have changed
}

const (
	// checkerRestartPause is the pause before a checker that has ended is replaced.
	checkerRestartPause = time.Second
	// checkerLostAfter is how long reports count while nothing is heard of the checker, which reports every second
	// that it runs. One that is killed is replaced by then.
	checkerLostAfter = 3 * time.Second
)

func newChecks(s shared, cfg *config.Config, l *link, score *score) *checks {
	c := &checks{shared: s, link: l, score: score, floating: ipsOf(cfg.Addresses), aimed: map[string]bool{}}
	c.health = health.New(s.now(), cfg.StartGrace, cfg.Checks)
	c.order = check.Order{Checks: cfg.Checks, Score: scoreCommand(cfg), Floating: c.floating}
	c.judgeAsOf(s.now())
	return c
}

// start begins to listen to the checker, and gives it its first order.
func (c *checks) start() {
	if c.platform.Checker == nil {
		return
	}
	c.tasks.start(func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case r, open := <-c.platform.Checker.Reports():
				if !open {
					c.tasks.post(c.starterEnded)
					return nil
				}
				c.tasks.post(func() { c.reported(r) })
			}
		}
	})
	c.send()
}

// starterEnded tells people that no checker can be started any more. The board goes on.
func (c *checks) starterEnded() {
	c.reporter.alert(console.ProblemStarter,
		"the process that starts checkers has ended: no checks run, and no score command, until systemctl restart topdog", forever)
}

// send gives the checker its order. A checker that doesn't take it is stuck.
func (c *checks) send() {
	runs := !c.order.Idle()
	if c.platform.Checker == nil || !runs && !c.awaited {
		return
	}
	if !c.awaited {
		c.heardAt = c.now()
	}
	c.awaited = runs
	if err := c.platform.Checker.Send(c.order); err != nil {
		c.reporter.failed("give the checker its order", err)
		c.platform.Checker.Kill()
	}
}

// ended replaces a checker that has ended, if there is anything to run.
func (c *checks) ended(e *check.Ended) {
	switch {
	case e.PID == 0:
		c.reporter.warn(console.ProblemChecker, e.Reason, forever)
	case e.Reason != "" && !c.order.Idle():
		c.reporter.log.Warnf("the checker (process %d) has ended; starting another one", e.PID)
	}
	// If another one runs already, because it had an order before this report came, the order changes nothing.
	c.tasks.postAfter(checkerRestartPause, c.send)
}

// reported takes a report of the checker.
func (c *checks) reported(r check.Report) {
	if r.Ended != nil {
		c.ended(r.Ended)
		return
	}
	c.heardAt = c.now()
	if c.lost {
		c.lost = false
		c.health.Uncheck(c.now(), false)
		c.outdated = true
	}
	c.reporter.solved(console.ProblemChecker)
	if r.Score != nil {
		c.score.computed(r.Score)
	}
	if r.ID == "" {
		return
	}
	delete(c.aimed, r.ID)
	if r.Misaimed {
		c.aimed[r.ID] = true
	}
	c.health.Report(c.now(), r.ID, r.Passing, r.Text)
	c.outdated = true
}

// configure replaces the checks.
func (c *checks) configure(cfg *config.Config) {
	c.health.Configure(c.now(), cfg.StartGrace, cfg.Checks)
	c.order.Checks = cfg.Checks
	c.outdated = true
	maps.DeleteFunc(c.aimed, func(id string, _ bool) bool { // checks that go on don't report it again
		return !slices.ContainsFunc(cfg.Checks, func(k check.Check) bool { return k.ID() == id })
	})
	if len(cfg.Checks) == 0 {
		c.health.Uncheck(c.now(), false)
	}
	if c.order.Idle() {
		c.lost = false
		c.reporter.solved(console.ProblemChecker)
	}
	c.send()
}

// replaceScore runs another score command from now on. Whether one runs at all changes with a restart only.
func (c *checks) replaceScore(command []string) {
	if len(c.order.Score) == 0 || len(command) == 0 {
		return
	}
	c.order.Score = command
	c.send()
}

// drain says whether somebody has drained this board.
func (c *checks) drain(drained bool) {
	c.health.Drain(c.now(), drained)
	c.outdated = true
}

// follow tells the checker and the health of this board's role and interface.
func (c *checks) follow(leading bool) {
	if leading == c.order.Leading && c.link.iface() == c.order.Interface {
		return
	}
	c.outdated = c.outdated || leading != c.order.Leading
	c.order.Leading, c.order.Interface = leading, c.link.iface()
	c.health.Lead(c.now(), leading)
	concerns := func(k check.Check) bool { return k.When == check.Leading || k.Kind == check.Gateway }
	if slices.ContainsFunc(c.order.Checks, concerns) {
		c.send()
	}
}

// unheld says whether the kernel refuses the address to this board.
func (c *checks) unheld(unheld bool) {
	if unheld != c.refused {
		c.refused, c.outdated = unheld, true
		c.health.Unheld(c.now(), unheld)
	}
}

// judge returns the grade of this board, and reports whether it has changed.
func (c *checks) judge() (grade wire.Grade, changed bool) {
	now := c.now()
	if !c.outdated && now < c.judgeAt {
		return c.judged.Grade, false
	}
	former := c.judged
	c.judgeAsOf(now)
	j := &c.judged
	if former.Grade != j.Grade || former.Starting && !j.Starting {
		c.tell(former)
	}
	c.noteProblem()
	return j.Grade, former.Grade != j.Grade
}

// judgeAsOf judges, and notes how long that is good for. Both use the same time: otherwise what is due in between would
// be forgotten.
func (c *checks) judgeAsOf(now time.Duration) {
	c.outdated, c.judgeAt = false, never
	c.judged = c.health.Judge(now)
	if at, ok := c.health.Deadline(now); ok {
		c.judgeAt = at
	}
}

// grade returns the last grade that judge has returned.
func (c *checks) grade() wire.Grade { return c.judged.Grade }

// tell logs a change of the grade.
func (c *checks) tell(former health.Judgement) {
	j := &c.judged
	text := fmt.Sprintf("grade %v: %s", j.Grade, j.Text)
	if j.Until != 0 {
		text += fmt.Sprintf(", for %v", (j.Until - c.now()).Round(time.Second))
	}
	if j.Grade > former.Grade || former.Starting && j.Grade == wire.GradeFailing {
		c.reporter.log.Warn(text)
	} else {
		c.reporter.log.Info(text)
	}
}

// noteProblem updates the problems that people should look into.
func (c *checks) noteProblem() {
	if len(c.aimed) > 0 {
		for _, k := range c.health.Checks(c.now()) {
			if c.aimed[k.ID()] {
				c.reporter.note(console.ProblemCheckAim, k.Check.String()+": "+k.Text, forever)
			}
		}
	} else {
		c.reporter.solved(console.ProblemCheckAim)
	}
	if c.judged.Grade == wire.GradeFailing && !c.judged.Starting {
		c.reporter.note(console.ProblemChecks, "this board is failing: "+c.judged.Text, forever)
	} else {
		c.reporter.solved(console.ProblemChecks)
	}
}

// due returns when the grade may change though nothing is reported.
func (c *checks) due() time.Duration {
	return min(c.judgeAt, c.lostAt())
}

// lostAt returns when the checker counts as lost, unless it is heard before. If it is lost already, its replacement
// counts as lost then.
func (c *checks) lostAt() time.Duration {
	if !c.awaited {
		return never
	}
	return c.heardAt + checkerLostAfter
}

// expire notices that the checker is lost. Everything else that is due is judged after every event.
func (c *checks) expire(now time.Duration) {
	lostAt := c.lostAt()
	if now < lostAt {
		return
	}
	if now > lostAt+checkerRestartPause {
		c.heardAt = now // this process didn't run: reports may wait to be read
		return
	}
	c.heardAt = now
	if !c.lost {
		c.lost = true
		c.lose(now)
	}
	c.platform.Checker.Kill()
}

// lose forgets what the checker has reported. If there are no checks, that says nothing about this board's fitness.
func (c *checks) lose(now time.Duration) {
	if len(c.order.Checks) > 0 {
		c.outdated = true
		c.health.Uncheck(now, true)
		const text = "the checks do not run: nothing is heard of the process that runs them"
		c.reporter.alert(console.ProblemChecker, text, forever)
	}
	if len(c.order.Score) > 0 {
		const failure = "does not run: nothing is heard of the process that runs it"
		c.score.computed(&check.Score{Program: c.order.Score[0], Failure: failure})
	}
}

// close ends the checker.
func (c *checks) close() {
	if c.platform.Checker != nil {
		c.reporter.failed("close the checker", c.platform.Checker.Stop())
	}
}

// status fills in what topdog status shows of it.
func (c *checks) status(s *console.Status) {
	now := c.now()
	j := c.health.Judge(now)
	s.Grade, s.GradeText, s.Starting = j.Grade.String(), j.Text, j.Starting
	if j.Until != 0 {
		s.GradeEndsInNs = int64(max(0, j.Until-now))
	}
	for _, k := range c.health.Checks(now) {
		s.Checks = append(s.Checks, console.Check{
			Kind: k.Kind.String(), Target: k.Target, When: k.When.String(), State: k.State.String(),
			SinceNs: int64(now - k.Since), Text: k.Text, NameText: strings.TrimSpace(k.Check.String()),
		})
	}
}
