// Package observe watches a cluster from outside.
//
// An [Asker] is a client that asks all the time who answers at the floating address. An
// [Answerer] is the service on each board that answers it. [Holders] record which boards have
// the address. A [Report] and a [Timeline] put both together.
//
// The package knows nothing of the boards. The code that builds them opens the sockets and
// reports who has the address. So the demo on loopback uses the package without root, and a
// LAN of network namespaces or of emulated boards uses it in the same way.
package observe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// errClosed is the error of waiting for something that is not observed any more.
var errClosed = errors.New("the observation has ended")

// Line is what an Asker asks through. One goroutine sends and another one receives.
type Line interface {
	// Ask sends a question with a number. An error other than net.ErrClosed means that this
	// question stays without an answer.
	Ask(number uint32) error
	// Answer waits for the next answer and returns the board that gave it. An error other
	// than net.ErrClosed is no answer.
	Answer() (board int, err error)
	// Close makes both return net.ErrClosed.
	Close() error
}

// Asker is a client that keeps asking who answers at the floating address, as an impatient
// user would: a new question does not wait for the answer to the old one.
type Asker struct {
	line     Line
	interval time.Duration
	stop     chan struct{}
	stopOnce sync.Once
	wg       sync.WaitGroup

	mu   sync.Mutex
	log  askLog
	wake chan struct{} // closed at the next answer or the end; nil if nobody waits
}

// StartAsker starts asking through a line, once every interval. It ends when the Asker or the line
// is closed.
func StartAsker(line Line, interval time.Duration) *Asker {
	a := &Asker{line: line, interval: interval, stop: make(chan struct{}), log: askLog{start: time.Now()}}
	a.wg.Go(a.ask)
	a.wg.Go(a.listen)
	return a
}

// Close ends the asking. The answers until then can still be evaluated.
func (a *Asker) Close() {
	a.stopOnce.Do(func() {
		close(a.stop)
		a.line.Close()
	})
	a.wg.Wait()
}

// ask sends the questions.
func (a *Asker) ask() {
	tick := time.NewTicker(a.interval)
	defer tick.Stop()
	last := time.Now()
	for number := uint32(1); ; number++ {
		select {
		case <-a.stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		// The question is noted before it is sent, since the answer may be here before
		// the call returns.
		a.mu.Lock()
		if now.Sub(last) > 2*a.interval {
			a.log.addPause(last, now)
		}
		a.log.ask(now)
		a.mu.Unlock()
		last = now
		if errors.Is(a.line.Ask(number), net.ErrClosed) {
			return
		}
	}
}

// listen receives the answers.
func (a *Asker) listen() {
	for {
		board, err := a.line.Answer()
		at := time.Now()
		closed := errors.Is(err, net.ErrClosed)
		if err != nil && !closed {
			continue
		}
		a.mu.Lock()
		if closed {
			a.log.end = at
		} else {
			a.log.add(at, board)
		}
		a.wakeAll()
		a.mu.Unlock()
		if closed {
			return
		}
	}
}

// wakeAll wakes all callers of WaitAnswer. a.mu is held.
func (a *Asker) wakeAll() {
	if a.wake != nil {
		close(a.wake)
		a.wake = nil
	}
}

// WaitAnswer waits for an answer, arriving from now on, of a board for which
// cond is true, and returns that board.
func (a *Asker) WaitAnswer(ctx context.Context, cond func(board int) bool) (board int, err error) {
	a.mu.Lock()
	seen := a.log.total()
	a.mu.Unlock()
	for {
		a.mu.Lock()
		fresh := a.log.from(seen)
		seen = a.log.total()
		ended := !a.log.end.IsZero()
		if a.wake == nil {
			a.wake = make(chan struct{})
		}
		wake := a.wake
		a.mu.Unlock()

		for _, answer := range fresh {
			if cond(int(answer.board)) {
				return int(answer.board), nil
			}
		}
		if ended {
			return 0, fmt.Errorf("wait for an answer: %w", errClosed)
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for an answer: %w", ctx.Err())
		}
	}
}

// Last returns who has answered last, and for how long nobody has. The board is 0 if none
// ever did.
func (a *Asker) Last() (board int, silent time.Duration) {
	log := a.snapshot()
	last, at := 0, log.start
	if n := len(log.answers); n > 0 {
		last, at = int(log.answers[n-1].board), log.start.Add(log.answers[n-1].at)
	}
	return last, log.until().Sub(at)
}

// Trip is the median time from a question to its answer so far, or 0.
func (a *Asker) Trip() time.Duration {
	var trips []time.Duration
	for _, answer := range a.snapshot().answers {
		trips = append(trips, time.Duration(answer.waited)*time.Microsecond)
	}
	slices.Sort(trips)
	return Percentile(trips, 50)
}

// Report evaluates the answers since a point in time.
func (a *Asker) Report(since time.Time) Report {
	log := a.snapshot()
	return log.report(since, log.until(), a.interval)
}

// Gaps returns the gaps between the answers after the first n of all time, and how many
// answers there have been. Only those are returned that are worth a mention (see
// Report.Outage).
func (a *Asker) Gaps(n int) ([]Gap, int) {
	log := a.snapshot()
	return log.gaps(n, a.interval), log.total()
}

// snapshot returns the log as it is now. It shares memory that is never written again.
func (a *Asker) snapshot() askLog {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log
}
