package hooks

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/console"
)

// word is what keepalived calls the state of a board.
type word string

// The words, as keepalived's scripts get them.
const (
	master word = "MASTER" // the board leads and has the addresses
	backup word = "BACKUP" // another board leads, or this one looks for a leader
	fault  word = "FAULT"  // it takes no part, or leads without the addresses, or its checks fail and another one leads
	stop   word = "STOP"   // its daemon stops, or there is none
)

// state is how the board is.
type state struct {
	word word
	console.Transition
}

// wordOf maps the board of a daemon that runs to a word.
func wordOf(t *console.Transition) word {
	switch {
	case t.Leads():
		return master
	case t.Role == console.RoleLeader, t.Role == console.RoleIsolated, t.Role == console.RoleBarred, t.Grade == console.GradeFailing:
		return fault
	default:
		return backup
	}
}

// faultAfter is how long a fault must last. A daemon that starts is without a network for a moment, and a
// leader without the address: neither should start or stop services. A leader that loses its role is
// not waited for, since another board has the address by then.
const faultAfter = time.Second

// waits reports whether a fault is only believed when it has lasted.
func (s *state) waits(before word) bool {
	return s.word == fault && before != fault && (before != master || s.Role == console.RoleLeader)
}

// follow calls each with the state of the board: at once, and after every transition that counts,
// until ctx ends.
func follow(ctx context.Context, c *console.Client, o console.WatchOptions, log *logrus.Entry, each func(state)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	happened := make(chan console.Transition)
	go func() {
		cancel(c.Follow(ctx, o, func(t console.Transition) error {
			switch t.Event {
			case console.EventSnapshot:
				log.Info("follows the daemon")
			case console.EventDaemonGone:
				log.Warnf("no daemon: %s", t.ReasonText)
			}
			select {
			case happened <- t:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	}()
	classify(ctx, happened, each)
	return context.Cause(ctx)
}

// classify makes states of transitions until ctx ends.
func classify(ctx context.Context, happened <-chan console.Transition, each func(state)) {
	var now, waiting state
	stopped := false
	patience := time.NewTimer(0)
	patience.Stop()
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-patience.C:
			now = waiting
			each(now)
		case t := <-happened:
			next := state{wordOf(&t), t}
			switch t.Event {
			case console.EventSnapshot:
				stopped = false
			case console.EventStopping, console.EventDaemonGone:
				stopped = true
			}
			if stopped { // whatever its role is on the way
				next.word = stop
			}
			if next.waits(now.word) {
				if waiting.word != fault {
					patience.Reset(faultAfter)
				}
				waiting = next
				continue
			}
			patience.Stop()
			now, waiting = next, state{}
			each(now)
		}
	}
}
