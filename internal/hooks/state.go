package hooks

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/console"
)

// word is keepalived's name for the state of a board.
type word string

// The words that keepalived gives to scripts.
const (
	master word = "MASTER" // the board leads and has the addresses
	backup word = "BACKUP" // another board leads, or this one is looking for a leader
	fault  word = "FAULT"  // it takes no part, or leads without the addresses, or its checks fail and another board leads
	stop   word = "STOP"   // its daemon stops, or doesn't run
)

// state is the state of the board, and the transition that led to it.
type state struct {
	word word
	console.Transition
}

// wordOf returns the word for a board whose daemon runs.
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

// faultAfter is how long a fault must last before it counts. A daemon that has just started has no network for a moment, and
// a new leader has no address yet: neither should start or stop services. If a leader loses its role by a fault, the fault
// counts at once, since another board has the address by then.
const faultAfter = time.Second

// waits reports whether a fault must last for faultAfter before it counts.
func (s *state) waits(before word) bool {
	return s.word == fault && before != fault && (before != master || s.Role == console.RoleLeader)
}

// follow follows the daemon, and calls run, which takes the states of the board. When ctx ends, or the daemon can't be
// followed, follow ends the context of run. It returns why that context has ended.
func follow(ctx context.Context, c *console.Client, log *logrus.Entry, run func(context.Context, *newest)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	happened, states := make(chan console.Transition), newNewest()
	var following sync.WaitGroup
	following.Go(func() { classify(ctx, happened, states.put) })
	following.Go(func() {
		cancel(c.Follow(ctx, console.WatchOptions{}, func(t console.Transition) error { return heard(ctx, log, happened, t) }))
	})
	run(ctx, states)
	cancel(nil)
	following.Wait()
	return context.Cause(ctx)
}

// heard passes on what happens, and logs that the daemon is followed, or has gone.
func heard(ctx context.Context, log *logrus.Entry, happened chan<- console.Transition, t console.Transition) error {
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
}

// classify turns transitions into states until ctx ends.
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
			if stopped { // whatever role the daemon reports while it stops
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

// newest keeps the newest state while its reader is busy.
type newest struct {
	wake chan struct{} // has an element when there is a new state

	mu        sync.Mutex
	state     state
	taken     bool
	overtaken int // states that were never taken
}

func newNewest() *newest { return &newest{wake: make(chan struct{}, 1), taken: true} }

// put stores a state, and never blocks. A state with the same word and leader as the one before doesn't replace that one,
// so the earlier event is kept. This happens, for instance, when a leader has acquired the address.
func (n *newest) put(s state) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.overtaken += int(s.Missed)
	if s.word == n.state.word && s.Leader == n.state.Leader {
		return
	}
	if !n.taken {
		n.overtaken++
	}
	n.state, n.taken = s, false
	select {
	case n.wake <- struct{}{}:
	default: // the reader was woken already
	}
}

// take returns the newest state, whether it is new since the last call, and how many states were overtaken meanwhile.
func (n *newest) take() (s state, another bool, overtaken int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	another, overtaken = !n.taken, n.overtaken
	n.taken, n.overtaken = true, 0
	return n.state, another, overtaken
}
