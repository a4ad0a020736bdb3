package daemon

import (
	"context"
	"time"

	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// Deadman releases the addresses, and says so, when this daemon no longer can;
// netio.Deadman is the real one.
type Deadman interface {
	Prepare(netio.ReleasePlan) error
	Exited() <-chan struct{}
	PID() int
	Close() error
}

// deadman is the dead man's switch. A companion process releases the address, and
// sends the RESIGN that was signed for it, when the lease of this daemon ends. A
// leader extends its lease with each heartbeat that it sends.
type deadman struct {
	shared
	group *group
	lease *lease

	companion Deadman // nil while there is no companion
	problem   string  // why it cannot be started; "" if it can
	prepared  preparation
}

// preparation is what the companion was told, and what that was made of.
type preparation struct {
	resign   wire.Message // with its sequence
	link     int          // of the plan
	label    string       // likewise
	revision int          // of the group
	fence    int          // revision of the fence
}

// deadmanRestartPause is the pause before a companion that has ended is replaced.
const deadmanRestartPause = time.Second

// start starts the companion, and calls ready when there is one. The election
// does not depend on it.
func (s *deadman) start(ready func()) {
	if s.platform.StartDeadman == nil || !s.lease.enforced() {
		return
	}
	companion, err := s.platform.StartDeadman()
	if err != nil {
		s.problem = err.Error()
		if s.reporter.note(console.ProblemDeadman, err.Error(), forever) {
			s.reporter.log.Warnf("%v; if this daemon is frozen, its address stays for up to two seconds", err)
		}
		s.tasks.postAfter(deadmanRestartPause, func() { s.start(ready) })
		return
	}
	s.reporter.solved(console.ProblemDeadman)
	s.companion, s.problem, s.prepared = companion, "", preparation{}
	s.tasks.start(func(ctx context.Context) error {
		select {
		case <-companion.Exited():
			s.tasks.post(func() { s.restart(ready) })
		case <-ctx.Done():
		}
		return nil
	})
	ready()
}

// restart replaces a companion that somebody has killed.
func (s *deadman) restart(ready func()) {
	s.reporter.log.Warnf("the dead man's switch (process %d) has ended; starting another one", s.companion.PID())
	s.close()
	s.tasks.postAfter(deadmanRestartPause, func() { s.start(ready) })
}

// close ends the companion.
func (s *deadman) close() {
	if s.companion != nil {
		s.reporter.failed("close the dead man's switch", s.companion.Close())
	}
	s.companion = nil
}

// update keeps what the companion is told up to date: what there is to release, and the RESIGN that
// it sends.
func (s *deadman) update(plan netio.ReleasePlan, resign wire.Message) {
	// A leader that runs is not deposed because what was prepared is out of date.
	if s.companion != nil && s.outdated(&plan, &resign) {
		s.prepare(plan, resign)
	}
}

// outdated reports whether the companion has to be told something else.
func (s *deadman) outdated(plan *netio.ReleasePlan, resign *wire.Message) bool {
	p := &s.prepared
	return resign.Term != p.resign.Term || resign.Grade != p.resign.Grade || resign.Resign != p.resign.Resign || s.group.presignDue(p.resign.Sequence) ||
		plan.Link != p.link || plan.Label != p.label || s.group.revision() != p.revision || s.lease.revision() != p.fence
}

// prepare tells the companion what there is to release, and what to send.
func (s *deadman) prepare(plan netio.ReleasePlan, resign wire.Message) {
	resign.Sequence = s.group.presignSequence()
	if resign.Resign.Successor != wire.Nobody {
		datagram, err := s.group.presign(resign)
		if err != nil {
			s.reporter.log.Errorf("sign the RESIGN in advance: %v", err)
			return
		}
		plan.Resign, plan.To, plan.From = datagram, append(plan.To, s.group.destinations()...), s.group.connection()
	}
	if err := s.companion.Prepare(plan); err != nil {
		// A companion that has ended is replaced; a link that has gone is told of elsewhere.
		if !isLinkDown(err) {
			s.reporter.warn(console.ProblemDeadmanOutdated, err.Error(), time.Minute)
		}
		return
	}
	s.prepared = preparation{resign, plan.Link, plan.Label, s.group.revision(), s.lease.revision()}
}

// named is the successor that the companion's RESIGN names; Nobody if it has none to send.
func (s *deadman) named() wire.ID { return s.prepared.resign.Resign.Successor }

// acted is called when the lease was ended by the companion.
func (s *deadman) acted() {
	// The RESIGN was sent, or is about to be. What this board says from now on must
	// come after it.
	s.group.skipTo(s.prepared.resign.Sequence)
	s.reporter.log.Warn("this daemon did not run when its next heartbeat was due: its dead man's switch has released the address")
}

// status fills in what topdog status shows of it.
func (s *deadman) status(status *console.Status) {
	d := console.Defence{Kind: console.DefenceSwitch, On: s.companion != nil, Text: s.problem}
	switch {
	case d.On:
		d.Text = "a process of its own releases the address, and says so, when this daemon is killed or frozen"
	case d.Text == "":
		d.Text = "not started"
	}
	status.Defences = append(status.Defences, d)
}
