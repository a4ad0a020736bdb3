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

// Checker runs the checks in a process of its own; check.Process is the real one.
type Checker interface {
	Send(check.Order) error
	Reports() <-chan check.Report // closed when the checker has ended
	PID() int
	Kill()
	Close() error
}

// checks are the checks of this board, the process that runs them and the score command, and the grade that they come to.
type checks struct {
	shared
	link     *link
	score    *score
	floating []netip.Addr
	health   *health.Health

	order   check.Order // that the checker has, or is given when it has started
	process Checker     // nil while there is none
	awaited bool        // it was started, or could not be
	heardAt time.Duration
	lost    bool            // it was not heard for too long
	aimed   map[string]bool // the checks that turned out to be aimed at a floating address

	refused bool // the kernel refuses the address

	judged   health.Judgement // the last one
	judgeAt  time.Duration    // when it may be another one though nothing is reported
	outdated bool             // it may be another one now
}

func newChecks(s shared, cfg *config.Config, l *link, score *score) *checks {
	c := &checks{shared: s, link: l, score: score, floating: ipsOf(cfg.Addresses), aimed: map[string]bool{}}
	c.health = health.New(s.now(), cfg.StartGrace, cfg.Checks)
	c.order = check.Order{Checks: cfg.Checks, Score: scoreCommand(cfg), Floating: c.floating}
	c.judgeAsOf(s.now())
	return c
}

const (
	// checkerRestartPause is the pause before a checker that has ended is replaced.
	checkerRestartPause = time.Second
	// checkerLostAfter is how long what was reported is good while nothing is heard of the checker, which says every
	// second that it runs: one that is killed is replaced by then.
	checkerLostAfter = 3 * time.Second
)

// start starts the checker, if there is anything to run.
func (c *checks) start() {
	if c.process != nil || c.platform.StartChecker == nil || c.order.Idle() {
		return
	}
	if !c.awaited {
		c.awaited, c.heardAt = true, c.now()
	}
	process, err := c.platform.StartChecker()
	if err != nil {
		c.reporter.warn(console.ProblemChecker, err.Error(), forever)
		c.tasks.postAfter(checkerRestartPause, c.start)
		return
	}
	c.process = process
	c.tasks.start(func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case r, runs := <-process.Reports():
				if !runs {
					c.tasks.post(func() { c.ended(process) })
					return nil
				}
				c.tasks.post(func() { c.reported(r) })
			}
		}
	})
	c.send()
}

// send gives the checker its order. One that does not take it is stuck.
func (c *checks) send() {
	if c.process == nil {
		return
	}
	if err := c.process.Send(c.order); err != nil {
		c.reporter.failed("give the checker its order", err)
		c.process.Kill()
	}
}

// ended replaces a checker that has ended, which it must not.
func (c *checks) ended(process Checker) {
	c.process = nil
	c.tasks.start(func(context.Context) error {
		if err := process.Close(); process.PID() == 0 { // else it was one of those that end, and how tells nothing
			c.tasks.post(func() { c.reporter.warn(console.ProblemChecker, err.Error(), forever) })
		}
		return nil
	})
	if c.order.Idle() {
		return
	}
	if pid := process.PID(); pid != 0 {
		c.reporter.log.Warnf("the checker (process %d) has ended; starting another one", pid)
	}
	c.tasks.postAfter(checkerRestartPause, c.start)
}

// reported takes what the checker reports.
func (c *checks) reported(r check.Report) {
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
	maps.DeleteFunc(c.aimed, func(id string, _ bool) bool { // the others go on, and report nothing new
		return !slices.ContainsFunc(cfg.Checks, func(k check.Check) bool { return k.ID() == id })
	})
	if len(cfg.Checks) == 0 {
		c.health.Uncheck(c.now(), false)
	}
	if c.order.Idle() {
		c.lost = false
		c.reporter.solved(console.ProblemChecker)
	}
	if c.process == nil {
		c.awaited = false
		c.start()
		return
	}
	c.send()
}

// replaceScore has another score command run from now on. Without a command there is nothing to change: whether one
// is run at all takes a restart.
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

// follow tells the checker, and whoever judges, what has become of this board.
func (c *checks) follow(leading bool) {
	if leading == c.order.Leading && c.link.iface() == c.order.Interface {
		return
	}
	c.outdated = c.outdated || leading != c.order.Leading
	c.order.Leading, c.order.Interface = leading, c.link.iface()
	c.health.Lead(c.now(), leading)
	if slices.ContainsFunc(c.order.Checks, func(k check.Check) bool { return k.When == check.Leading || k.Kind == check.Gateway }) {
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

// judgeAsOf judges, and notes until when that is good. Both belong to one time: what is due between two would
// be forgotten.
func (c *checks) judgeAsOf(now time.Duration) {
	c.outdated, c.judgeAt = false, never
	c.judged = c.health.Judge(now)
	if at, ok := c.health.Deadline(now); ok {
		c.judgeAt = at
	}
}

// grade returns the grade that judge has returned last.
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

// noteProblem keeps up to date what a person should look into.
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

// due is when the grade may change though nothing is reported.
func (c *checks) due() time.Duration {
	return min(c.judgeAt, c.lostAt())
}

// lostAt is when the checker counts as lost, unless it is heard until then. If it is lost already, the one that
// has replaced it is then.
func (c *checks) lostAt() time.Duration {
	if !c.awaited || c.order.Idle() {
		return never
	}
	return c.heardAt + checkerLostAfter
}

// expire notices that the checker is lost. What else is due is judged after every event.
func (c *checks) expire(now time.Duration) {
	lostAt := c.lostAt()
	if now < lostAt {
		return
	}
	if now > lostAt+checkerRestartPause {
		c.heardAt = now // this process did not run: what the checker has said meanwhile waits to be read
		return
	}
	c.heardAt = now
	if !c.lost {
		c.lost = true
		c.lose(now)
	}
	if c.process != nil {
		c.process.Kill()
	}
}

// lose forgets what the checker has said. Without checks to run, its end says nothing of how fit this board is.
func (c *checks) lose(now time.Duration) {
	if len(c.order.Checks) > 0 {
		c.outdated = true
		c.health.Uncheck(now, true)
		c.reporter.alert(console.ProblemChecker, "the checks do not run: nothing is heard of the process that runs them", forever)
	}
	if len(c.order.Score) > 0 {
		c.score.computed(&check.Score{Program: c.order.Score[0], Failure: "does not run: nothing is heard of the process that runs it"})
	}
}

// close ends the checker.
func (c *checks) close() {
	if c.process != nil {
		c.reporter.failed("close the checker", c.process.Close())
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
