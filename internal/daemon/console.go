package daemon

import (
	"context"
	"errors"
	"time"

	"topdog/internal/console"
	"topdog/wire"
)

// resignWithin is how long a successor may take. If none answers this board
// claims the lead itself again, after a few heartbeats.
const resignWithin = 2 * time.Second

// Resign hands the lead over, and returns when another board has it.
func (d *Daemon) Resign(ctx context.Context) (console.Handover, error) {
	var refused error
	successor := make(chan console.Handover, 1)
	err := d.tasks.call(ctx, func() { refused = d.resign(successor) })
	if err = errors.Join(err, refused); err != nil {
		return console.Handover{}, err
	}
	return d.awaitSuccessor(ctx, successor, "resigned")
}

// awaitSuccessor waits until another board leads. done is what this board has done for that.
func (d *Daemon) awaitSuccessor(ctx context.Context, successor chan console.Handover, done string) (console.Handover, error) {
	defer d.tasks.post(func() { d.handover.forget(successor) })
	select {
	case h := <-successor:
		return h, nil
	case <-time.After(resignWithin):
		return console.Handover{}, errors.New(done + ", but no other board has taken over yet: look at topdog status")
	case <-ctx.Done():
		return console.Handover{}, ctx.Err()
	}
}

// Leave hands over, if this board leads, and ends the daemon. It returns who leads then, or that it
// has left without a successor.
func (d *Daemon) Leave(ctx context.Context) (console.Handover, error) {
	successor := make(chan console.Handover, 1)
	err := d.tasks.call(ctx, func() {
		if !d.handover.waits() {
			d.handover.begin(successor)
		}
		d.stop()
	})
	if err != nil {
		return console.Handover{}, err
	}
	select {
	case h := <-successor:
		return h, nil
	case <-d.tasks.ctx.Done():
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

// resign begins to hand over. successor is told who leads next, unless it is refused.
func (d *Daemon) resign(successor chan<- console.Handover) error {
	switch {
	case d.core == nil:
		return errors.New("this board does not lead: it has no network yet")
	case d.handover.waits():
		return errors.New("this board is handing over already")
	}
	d.trace.asked()
	effects, err := d.core.Resign(d.now())
	if err == nil {
		d.handover.begin(successor)
	}
	d.carryOut(effects) // also if it refuses: it may have found that it does not lead any more
	return err
}

// handedOver tells whoever has made this board resign who leads now.
func (d *Daemon) handedOver(to wire.ID) {
	h := console.Handover{Text: "handed over to " + d.called(to)}
	h.Leader, h.LeaderName = d.idAndName(to)
	d.handover.succeeded(h)
}

// handover is what somebody waits for who has made this board resign.
type handover struct {
	successor chan<- console.Handover // nil if nobody waits
}

// begin has a caller wait for the successor.
func (h *handover) begin(successor chan<- console.Handover) { h.successor = successor }

// waits reports whether somebody waits.
func (h *handover) waits() bool { return h.successor != nil }

// succeeded tells whoever waits who leads now.
func (h *handover) succeeded(to console.Handover) {
	h.successor <- to
	h.successor = nil
}

// forget is called for one who does not wait any more; somebody else may.
func (h *handover) forget(successor chan<- console.Handover) {
	if h.successor == successor {
		h.successor = nil
	}
}

// serveRetry is how long to wait before the sockets are made again.
const serveRetry = 5 * time.Second

// serveConsole answers people and programs. A socket that cannot be made is
// reported and tried again; the election does not depend on it.
func (d *Daemon) serveConsole(ctx context.Context) error {
	for {
		err := d.console.Run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		d.tasks.tryPost(func() {
			if err != nil {
				d.reporter.warn(console.ProblemControlSocket, err.Error(), forever)
			}
		})
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(serveRetry):
		}
	}
}
