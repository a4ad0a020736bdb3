package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"topdog/election"
	"topdog/election/record"
	"topdog/internal/console"
	"topdog/wire"
)

// resignWithin is how long a successor may take. If none answers, this board claims the lead again itself, after a few
// heartbeats.
const resignWithin = 2 * time.Second

// errNoNetworkYet says that the daemon does not know which board this is.
var errNoNetworkYet = errors.New("this board has no network yet, so it does not know its id: look at topdog status")

// Resign hands the lead over, and returns when another board has it.
func (d *Daemon) Resign(ctx context.Context) (console.Handover, error) {
	successor := make(chan console.Handover, 1)
	if err := d.tasks.call(ctx, func() error { return d.resign(successor) }); err != nil {
		return console.Handover{}, err
	}
	return d.awaitSuccessor(ctx, successor, "resigned")
}

// awaitSuccessor waits until another board leads, or this one has left. done says what this board has done so far.
func (d *Daemon) awaitSuccessor(ctx context.Context, successor chan console.Handover, done string) (console.Handover, error) {
	defer d.tasks.post(func() {
		if d.successor == successor { // another caller may wait by now
			d.successor = nil
		}
	})
	select {
	case h := <-successor:
		return h, nil
	case <-d.tasks.ctx.Done():
	case <-time.After(resignWithin):
		return console.Handover{}, errors.New(done + ", but no other board has taken over yet: look at topdog status")
	case <-ctx.Done():
		return console.Handover{}, ctx.Err()
	}
	select {
	case h := <-successor:
		return h, nil
	default:
		return console.Handover{Text: "left the group"}, nil
	}
}

// Leave hands over, if this board leads, and ends the daemon. It returns who leads then, or that this board has left
// without a successor.
func (d *Daemon) Leave(ctx context.Context) (console.Handover, error) {
	successor := make(chan console.Handover, 1)
	err := d.tasks.call(ctx, func() error {
		if d.successor == nil {
			d.successor = successor
		}
		d.stop()
		return nil
	})
	if err != nil {
		return console.Handover{}, err
	}
	return d.awaitSuccessor(ctx, successor, "leaving")
}

// resign begins to hand over. successor is told who leads next, unless this board refuses.
func (d *Daemon) resign(successor chan<- console.Handover) error {
	switch {
	case d.core == nil:
		return errors.New("this board does not lead: it has no network yet")
	case d.successor != nil:
		return errors.New("this board is handing over already")
	}
	d.trace.asked()
	effects, err := d.core.Resign(d.now())
	if err == nil {
		d.successor = successor
	}
	d.carryOut(effects) // even if it refuses: it may have found that it does not lead any more
	return err
}

// handedOver tells the caller that has made this board resign who leads now.
func (d *Daemon) handedOver(to wire.ID) {
	h := console.Handover{Text: "handed over to " + d.called(to)}
	h.Leader, h.LeaderName = d.idAndName(to)
	d.successor <- h
	d.successor = nil
}

// Pause keeps the address where it is, on all boards of the group.
func (d *Daemon) Pause(ctx context.Context, asked console.PauseRequest) (console.Done, error) {
	return d.changePause(ctx, func(core *record.Core) ([]election.Effect, error) {
		return core.Pause(d.now(), time.Duration(asked.ForNs))
	})
}

// Unpause ends a pause.
func (d *Daemon) Unpause(ctx context.Context) (console.Done, error) {
	return d.changePause(ctx, func(core *record.Core) ([]election.Effect, error) { return core.Unpause(d.now()) })
}

// changePause asks the core to begin or end a pause, and says what has come of it.
func (d *Daemon) changePause(ctx context.Context, change func(*record.Core) ([]election.Effect, error)) (done console.Done, err error) {
	err = d.tasks.call(ctx, func() error {
		if d.core == nil {
			return errNoNetworkYet
		}
		effects, refused := change(d.core)
		d.carryOut(effects)
		done.Text = d.describePause()
		return refused
	})
	return done, err
}

// tellPause logs when a pause begins and ends, wherever somebody has asked for it.
func (d *Daemon) tellPause() {
	if d.core == nil {
		return
	}
	leader, _, paused := d.core.Paused(d.now())
	if !paused {
		leader = wire.Nobody
	}
	if leader != d.pausedFor {
		d.pausedFor = leader
		d.reporter.log.Info(d.describePause())
	}
}

// Drain has this board leave the lead to others from now on, and returns when another board has it. The file is
// written first, and outside of the loop: a disk may take its time. What the file says is then done even if the caller
// has given up meanwhile.
func (d *Daemon) Drain(ctx context.Context, asked console.DrainRequest) (console.Handover, error) {
	length := time.Duration(asked.ForNs)
	if length != 0 && (length < minDrain || length > maxDrain) {
		return console.Handover{}, fmt.Errorf("the time %v is not from %v to %v", length, minDrain, maxDrain)
	}
	var board wire.ID
	err := d.tasks.call(ctx, func() error {
		board = d.group.self
		return d.mayDrain(asked.Force)
	})
	if err != nil {
		return console.Handover{}, err
	}
	note := &drainNote{Board: board.String()}
	if length != 0 {
		note.Boot, note.UntilNs = bootID(), int64(d.drain.awake()+length)
	}
	successor := make(chan console.Handover, 1)
	err = d.drain.change(ctx, func() error {
		if err := d.drain.file.write(note); err != nil {
			return err
		}
		return d.tasks.call(context.WithoutCancel(ctx), func() error {
			d.beginDrain(note.until(), successor)
			return nil
		})
	})
	if err != nil {
		return console.Handover{}, err
	}
	return d.awaitSuccessor(ctx, successor, "drained")
}

// mayDrain refuses to drain the last board that passes its checks.
func (d *Daemon) mayDrain(force bool) error {
	if d.core == nil {
		return errNoNetworkYet
	}
	now := d.now()
	status := d.core.Status(now)
	passing := status.Rank.Grade >= wire.GradeDrained // then there is nothing to lose
	for i := range status.Peers {
		p := &status.Peers[i]
		passing = passing || p.Live(now) && p.Rank().Eligible() && p.Grade < wire.GradeDrained
	}
	if !passing && !force {
		return errors.New("no other live board passes its checks, so the address would stay here, or go to one whose service does not work: look at topdog status, or use --force")
	}
	return nil
}

// beginDrain drains this board, and tells the caller what has come of that, at once or when another board leads.
func (d *Daemon) beginDrain(until time.Duration, successor chan<- console.Handover) {
	led := d.core.Role() == election.Leader
	d.drain.set(until)
	d.checkGrade()
	leads := d.core.Role() == election.Leader
	if led && !leads && d.successor == nil {
		d.successor = successor
		return
	}
	h := console.Handover{Text: "drained"}
	if leader := d.core.Leader(); leader != wire.Nobody {
		h.Leader, h.LeaderName = d.idAndName(leader)
		h.Text = "drained; " + d.called(leader) + " leads"
	}
	if leads {
		h.Text = "drained; this board leads on, since no other board is fitter or the group is paused"
	}
	successor <- h
}

// Undrain has this board stand for the lead again.
func (d *Daemon) Undrain(ctx context.Context) (done console.Done, err error) {
	err = d.drain.change(ctx, func() error {
		drained := false
		err := d.tasks.call(ctx, func() error {
			if d.core == nil {
				return errNoNetworkYet
			}
			drained = d.drain.on
			return nil
		})
		if err != nil {
			return err
		}
		if note, err := d.drain.file.read(); !drained && note == nil && err == nil {
			return errors.New("this board is not drained")
		}
		if err := d.drain.file.remove(); err != nil {
			return err
		}
		return d.tasks.call(context.WithoutCancel(ctx), func() error {
			d.drain.end()
			d.checkGrade()
			done.Text = "not drained any more; this board is " + d.core.Grade().String()
			return nil
		})
	})
	return done, err
}
