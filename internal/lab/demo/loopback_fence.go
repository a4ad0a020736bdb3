package demo

import (
	"sync"
	"time"

	"topdog/internal/daemon"
	"topdog/netio"
)

// loopbackFence is the lease of a board on loopback. It plays the fence in the kernel: when the
// lease has ended, the board's answers to the client cease, whatever its daemon does. The rules are those of
// netio.Fence.
type loopbackFence struct {
	moved chan struct{} // holds a token when the end has moved

	mu    sync.Mutex
	state leaseState
	own   bool          // the daemon has shut it, not somebody else
	end   time.Duration // on the clock of netio.Now
	wake  time.Duration // when the dead man's switch looks
}

// leaseState is how a lease stands.
type leaseState int

const (
	leaseIdle  leaseState = iota // there is nothing to release
	leaseRuns                    // until its end
	leaseFired                   // it was ended
)

// openFence makes the lease of a daemon that starts.
func (b *loopbackBoard) openFence() (daemon.Fence, error) {
	f := &loopbackFence{moved: make(chan struct{}, 1)}
	b.fence.Store(f)
	return f, nil
}

// open reports whether the board may answer now. While there is nothing to release, everything passes.
func (f *loopbackFence) open() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state == leaseIdle || f.state == leaseRuns && netio.Now() < f.end
}

func (f *loopbackFence) Begin(end time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.own = leaseRuns, false
	f.move(end, end)
}

func (f *loopbackFence) Extend(end, wake time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != leaseRuns {
		return false
	}
	f.move(end, wake)
	return true
}

// move moves the end. f.mu is held.
func (f *loopbackFence) move(end, wake time.Duration) {
	f.end, f.wake = end, wake
	select {
	case f.moved <- struct{}{}:
	default: // that it has moved is known, and who looks sees the latest
	}
}

func (f *loopbackFence) Shut() (inTime bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	inTime = f.state != leaseFired
	f.state, f.own = leaseFired, true
	return inTime
}

func (f *loopbackFence) Released() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = leaseIdle
}

func (f *loopbackFence) Fired() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state == leaseFired && !f.own
}

// wakes returns when the dead man's switch looks, if the lease runs.
func (f *loopbackFence) wakes() (at time.Duration, runs bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wake, f.state == leaseRuns
}

// expire ends a lease of which the time to look was at a moment, unless the daemon has moved it since.
func (f *loopbackFence) expire(at time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != leaseRuns || f.wake != at {
		return false
	}
	f.state = leaseFired
	return true
}

// fire ends the lease of a daemon that is no more. It reports false if there was nothing to release.
func (f *loopbackFence) fire() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == leaseIdle {
		return false
	}
	f.state, f.own = leaseFired, false
	return true
}

// The fence covers the only interface, always.
func (f *loopbackFence) Cover([]int) error                { return nil }
func (f *loopbackFence) CoverAgain() error                { return nil }
func (f *loopbackFence) Closes() bool                     { return true }
func (f *loopbackFence) Revision() int                    { return 0 }
func (f *loopbackFence) State() (netio.FenceKind, string) { return netio.FenceTCX, "" }
func (f *loopbackFence) Close() error                     { return nil }
