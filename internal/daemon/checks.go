package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/health"
	"topdog/wire"
)

// checks runs the checks and the score command of this board, in a process of their own, and keeps what follows from
// them: the grade and the score.
type checks struct {
	shared
	link   *link
	scored func(uint32) // is called in the loop with the result of each run of the score command
	health *health.Health
	judged health.Judgement // the last one

	order   check.Order     // what the checker runs
	awaited bool            // the checker has something to run
	resends bool            // a checker that has ended will be replaced soon
	heardAt time.Duration   // when the checker was last heard
	lost    bool            // the checker was silent for too long
	aimed   map[string]bool // the checks that turned out to be aimed at a floating address

	score         uint32        // 0 until the command has printed one, and while it fails
	scoreFails    bool          // the log says that the command fails, and not yet that it works again
	scoreFailedAt time.Duration // when the log said so
}

const (
	// checkerRestartPause is the pause before a checker that has ended is replaced.
	checkerRestartPause = time.Second
	// checkerLostAfter is how long the last reports count while the checker is silent. It says every second that it
	// runs, and one that was killed is replaced in less time.
	checkerLostAfter = 3 * time.Second
)

func newChecks(s shared, cfg *config.Config, l *link, scored func(uint32)) *checks {
	c := &checks{shared: s, link: l, scored: scored, aimed: map[string]bool{}, scoreFailedAt: -tellEvery}
	c.health = health.New(s.now(), cfg.StartGrace, cfg.Checks)
	c.judged = c.health.Judge(s.now())
	c.order = check.Order{Checks: cfg.Checks, Floating: slices.Concat(ipsOf(cfg.Addresses), cfg.OtherAddresses)}
	if cfg.ScoreSource == election.ScoreFromCommand {
		c.order.Score = cfg.ScoreCommand
	}
	return c
}

// start begins to listen to the checker, and gives it its first order.
func (c *checks) start() {
	if c.platform.Checker == nil {
		return
	}
	c.tasks.start(func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case r, open := <-c.platform.Checker.Reports():
				if !open {
					c.tasks.post(c.starterEnded)
					return
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
		"the process that starts checkers has ended: no checks run, and no score command, until systemctl restart topdog")
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

// ended replaces a checker that has ended, or couldn't be started for a reason, if there is anything to run. A
// checker that was taken over may report its end again and again.
func (c *checks) ended(notStarted string) {
	if c.resends {
		return
	}
	c.resends = true
	switch {
	case notStarted != "":
		c.reporter.set(console.ProblemChecker, notStarted)
	case !c.order.Idle():
		c.reporter.log.Warn("the checker has ended; starting another one")
	}
	// If another one runs already, because it had an order before this report came, the order changes nothing.
	c.tasks.postAfter(checkerRestartPause, func() {
		c.resends = false
		c.send()
	})
}

// reported takes a report of the checker.
func (c *checks) reported(r check.Report) {
	if r.Ended {
		c.ended(r.Text)
		return
	}
	c.heardAt = c.now()
	if c.lost {
		c.lost = false
		c.health.Uncheck(c.now(), false)
	}
	c.reporter.solved(console.ProblemChecker)
	if r.Score != nil {
		c.computed(r.Score)
	}
	if r.ID != "" {
		delete(c.aimed, r.ID)
		if r.Misaimed {
			c.aimed[r.ID] = true
		}
		c.health.Report(c.now(), r.ID, r.Passing, r.Text)
		c.noteAim()
	}
}

// noteAim has the status show a check that is aimed at a floating address.
func (c *checks) noteAim() {
	text := ""
	for _, k := range c.health.Checks(c.now()) {
		if c.aimed[k.ID()] {
			text = k.Check.String() + ": " + k.Text
		}
	}
	c.reporter.show(console.ProblemCheckAim, text)
}

// computed takes the result of a run of the score command. A board that does not know its score counts for nothing,
// so that it does not push itself forward. A failure is logged once and not for each run, even if the failures differ
// or come and go.
func (c *checks) computed(s *check.Score) {
	c.score = s.Value
	if s.Failure != "" {
		c.score = 0
		text := fmt.Sprintf("the score command %s %s; the score of this board is 0 until it works", s.Program, s.Failure)
		c.reporter.show(console.ProblemScoreCommand, text)
		if now := c.now(); now-c.scoreFailedAt >= tellEvery {
			c.reporter.log.Warn(text)
			c.scoreFails, c.scoreFailedAt = true, now
		}
	} else {
		c.reporter.solved(console.ProblemScoreCommand)
		if c.scoreFails {
			c.reporter.log.Infof("the score command %s works again", s.Program)
			c.scoreFails = false
		}
	}
	c.scored(c.score)
}

// configure replaces the checks, and the score command. Whether one runs at all changes with a restart only.
func (c *checks) configure(cfg *config.Config) {
	c.health.Configure(c.now(), cfg.StartGrace, cfg.Checks)
	c.order.Checks = cfg.Checks
	if len(c.order.Score) > 0 && len(cfg.ScoreCommand) > 0 {
		c.order.Score = cfg.ScoreCommand
	}
	c.noteAim()
	if len(cfg.Checks) == 0 {
		c.health.Uncheck(c.now(), false)
	}
	if c.order.Idle() {
		c.lost = false
		c.reporter.solved(console.ProblemChecker)
	}
	c.send()
}

// follow tells the checker and the health about this board's role and interface.
func (c *checks) follow(leading bool) {
	if leading == c.order.Leading && c.link.iface() == c.order.Interface {
		return
	}
	c.order.Leading, c.order.Interface = leading, c.link.iface()
	c.health.Lead(c.now(), leading)
	concerns := func(k check.Check) bool { return k.When == check.Leading || k.Kind == check.Gateway }
	if slices.ContainsFunc(c.order.Checks, concerns) {
		c.send()
	}
}

// judge brings the grade of this board up to date, and reports whether it has changed. drained says that somebody has
// drained the board, unheld that the kernel refuses it the address.
func (c *checks) judge(drained, unheld bool) (grade wire.Grade, changed bool) {
	c.health.Drained, c.health.Unheld = drained, unheld
	former := c.judged
	c.judged = c.health.Judge(c.now())
	j := &c.judged
	if *j == former {
		return j.Grade, false
	}
	if former.Grade != j.Grade || former.Starting && !j.Starting {
		c.tell(former)
	}
	failing := ""
	if j.Grade == wire.GradeFailing && !j.Starting {
		failing = "this board is failing: " + j.Text
	}
	c.reporter.show(console.ProblemChecks, failing)
	return j.Grade, former.Grade != j.Grade
}

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

// expire notices, in each look, that the checker is lost, or its replacement after that.
func (c *checks) expire(now time.Duration) {
	silent := now - c.heardAt
	if !c.awaited || silent < checkerLostAfter {
		return
	}
	c.heardAt = now
	if silent > checkerLostAfter+2*lookEvery {
		return // this process did not run: reports may wait to be read
	}
	if !c.lost {
		c.lost = true
		c.lose(now)
	}
	c.platform.Checker.Kill()
	// Its end is told, unless it has ended by itself as if it had nothing to run.
	c.tasks.postAfter(checkerRestartPause, c.send)
}

// lose forgets what the checker has reported. If there are no checks, that says nothing about the fitness of this board.
func (c *checks) lose(now time.Duration) {
	if len(c.order.Checks) > 0 {
		c.health.Uncheck(now, true)
		const text = "the checks do not run: nothing is heard of the process that runs them"
		c.reporter.alert(console.ProblemChecker, text)
	}
	if len(c.order.Score) > 0 {
		const failure = "does not run: nothing is heard of the process that runs it"
		c.computed(&check.Score{Program: c.order.Score[0], Failure: failure})
	}
}

// close ends the checker.
func (c *checks) close() {
	if c.platform.Checker != nil {
		c.platform.Checker.Stop()
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
