package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// drain is whether somebody has asked this board to leave the lead to others. That outlives the
// daemon, and the board's next boot too unless it was asked for a time: see drainFile.
type drain struct {
	shared
	file     drainFile
	awake    func() time.Duration // for how long the machine has been awake since its boot
	changing chan struct{}        // is full while the file is changed; see change

	on      bool
	until   time.Duration // by awake; never if it has no end
	checkAt time.Duration // when that may be
}

func newDrain(s shared, stateDir string) *drain {
	d := &drain{shared: s, file: drainFile{dir: stateDir}, awake: s.now, changing: make(chan struct{}, 1), until: never, checkAt: never}
	if s.platform.Awake != nil {
		d.awake = s.platform.Awake
	}
	return d
}

// The bounds of a drain with an end.
const (
	minDrain = time.Second
	maxDrain = 30 * 24 * time.Hour
)

// load reads what was asked of a former daemon of this board.
func (d *drain) load(board wire.ID) {
	note, err := d.file.read()
	switch {
	case err != nil:
		d.reporter.warn(console.ProblemDrain, err.Error(), forever)
	case note == nil:
	case note.Board != board.String():
		d.reporter.warn(console.ProblemDrain, fmt.Sprintf("%s is of board %s, and this is board %v, so this board is not drained: run topdog drain if it shall be, or remove the file",
			d.file.path(), note.Board, board), forever)
	case note.Boot != "" && (note.Boot != bootID() || time.Duration(note.UntilNs) <= d.awake()):
		d.forget() // it was asked for a time, which is over
	default:
		d.set(note.until())
		d.reporter.log.Info("this board is drained; topdog undrain ends that")
	}
}

// set notes that this board is drained, until that time.
func (d *drain) set(until time.Duration) {
	d.on, d.until, d.checkAt = true, until, never
	if until != never {
		d.checkAt = d.now() + max(0, until-d.awake())
	}
	d.reporter.solved(console.ProblemDrain)
}

// end notes that this board is not drained any more.
func (d *drain) end() { d.on, d.until, d.checkAt = false, never, never }

// expire ends a drain whose time is over, and reports whether it has. While the machine is suspended the
// time stands still.
func (d *drain) expire(now time.Duration) bool {
	if now < d.checkAt {
		return false
	}
	if left := d.until - d.awake(); left > 0 {
		d.checkAt = now + left
		return false
	}
	d.end()
	d.forget()
	d.reporter.log.Info("this board is not drained any more: the time is over")
	return true
}

// forget removes the file, beside the loop, unless somebody has drained the board anew meanwhile.
func (d *drain) forget() {
	d.tasks.start(func(ctx context.Context) error {
		err := d.change(ctx, func() error {
			on := false
			if err := d.tasks.call(ctx, func() { on = d.on }); err != nil || on {
				return err
			}
			return d.file.remove()
		})
		if err != nil && ctx.Err() == nil {
			d.tasks.tryPost(func() { d.reporter.warn(console.ProblemDrain, err.Error(), forever) })
		}
		return nil
	})
}

// change has one after the other change the file, and returns when the loop knows of it as well. The loop never calls it.
func (d *drain) change(ctx context.Context, do func() error) error {
	select {
	case d.changing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.changing }()
	return do()
}

// status fills in what topdog status shows of it.
func (d *drain) status(s *console.Status) {
	s.Drained = d.on
	if d.until != never {
		s.DrainLeftNs = int64(max(0, d.until-d.awake()))
	}
}

// errNoNetworkYet says that the daemon does not know which board this is.
var errNoNetworkYet = errors.New("this board has no network yet, so it does not know its id: look at topdog status")

// Drain has this board leave the lead to others from now on, and returns when another board has it.
// The file is written first, beside the loop: a disk may take its time.
func (d *Daemon) Drain(ctx context.Context, asked console.DrainRequest) (console.Handover, error) {
	length := time.Duration(asked.ForNs)
	if length != 0 && (length < minDrain || length > maxDrain) {
		return console.Handover{}, fmt.Errorf("the time %v is not from %v to %v", length, minDrain, maxDrain)
	}
	var board wire.ID
	var refused error
	err := d.tasks.call(ctx, func() { board, refused = d.mayDrain(asked.Force) })
	if err = errors.Join(err, refused); err != nil {
		return console.Handover{}, err
	}
	note := &drainNote{Board: board.String()}
	if length != 0 {
		note.Boot, note.UntilNs = bootID(), int64(d.drain.awake()+length)
	}
	successor := make(chan console.Handover, 1)
	if err := d.noteDrain(ctx, note, successor); err != nil {
		return console.Handover{}, err
	}
	return d.awaitSuccessor(ctx, successor, "drained")
}

// noteDrain writes the note, and then does what it says, also if the caller has given up meanwhile.
func (d *Daemon) noteDrain(ctx context.Context, note *drainNote, successor chan<- console.Handover) error {
	return d.drain.change(ctx, func() error {
		if err := d.drain.file.write(note); err != nil {
			return err
		}
		return d.tasks.call(context.WithoutCancel(ctx), func() { d.beginDrain(note.until(), successor) })
	})
}

// mayDrain returns which board this is. It refuses to drain the last one that passes.
func (d *Daemon) mayDrain(force bool) (wire.ID, error) {
	if d.core == nil {
		return wire.Nobody, errNoNetworkYet
	}
	now := d.now()
	status := d.core.Status(now)
	passing := status.Rank.Grade >= wire.GradeDrained // then there is nothing to lose
	for i := range status.Peers {
		p := &status.Peers[i]
		passing = passing || p.Live(now) && p.Rank().Eligible() && p.Grade < wire.GradeDrained
	}
	if !passing && !force {
		return wire.Nobody, errors.New("no other live board passes its checks, so the address would stay here, or go to one whose service does not work: look at topdog status, or use --force")
	}
	return d.group.self, nil
}

// beginDrain drains this board, and tells whoever waits what comes of that.
func (d *Daemon) beginDrain(until time.Duration, successor chan<- console.Handover) {
	leads := d.core.Role() == election.Leader
	if leads && !d.handover.waits() {
		d.handover.begin(successor)
	}
	d.drain.set(until)
	d.checks.drain(true)
	d.checkGrade()
	h := console.Handover{Text: "drained"}
	if leader := d.core.Leader(); leader != wire.Nobody {
		h.Leader, h.LeaderName = d.idAndName(leader)
		h.Text = "drained; " + d.called(leader) + " leads"
	}
	switch {
	case leads && d.core.Role() == election.Leader:
		d.handover.forget(successor)
		h.Text = "drained; this board leads on, since no other board is fitter or the group is paused"
	case leads:
		return // the successor is awaited
	}
	successor <- h
}

// Undrain has this board stand for the lead again.
func (d *Daemon) Undrain(ctx context.Context) (done console.Done, err error) {
	err = d.drain.change(ctx, func() error {
		var drained, known bool
		if err := d.tasks.call(ctx, func() { drained, known = d.drain.on, d.core != nil }); err != nil {
			return err
		}
		if !known {
			return errNoNetworkYet
		}
		if note, err := d.drain.file.read(); !drained && note == nil && err == nil {
			return errors.New("this board is not drained")
		}
		if err := d.drain.file.remove(); err != nil {
			return err
		}
		return d.tasks.call(context.WithoutCancel(ctx), func() {
			d.endDrain()
			done.Text = "not drained any more; this board is " + d.core.Grade().String()
		})
	})
	return done, err
}

// endDrain has the grade follow from the checks alone.
func (d *Daemon) endDrain() {
	d.drain.end()
	d.checks.drain(false)
	d.checkGrade()
}
