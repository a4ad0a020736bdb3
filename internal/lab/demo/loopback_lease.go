package demo

import (
	"os"
	"sync"
	"time"

	"topdog/internal/daemon"
	"topdog/netio"
)

// loopbackLease is the lease of a daemon on loopback. It plays the fence in the kernel: when the
// lease has ended, the board's answers to the client cease, whatever its daemon does. And it plays the dead man's switch, which
// releases the address then, or when the daemon is killed, and sends the RESIGN that the daemon has signed. The rules and the times
// are those of netio.Fence and netio.Holder.
type loopbackLease struct {
	board   *loopbackBoard
	looking sync.Mutex  // held while the switch looks, and does what it does
	timer   *time.Timer // until it looks

	mu       sync.Mutex
	state    leaseState
	own      bool          // the daemon has shut it, not somebody else
	end      time.Duration // on the clock of netio.Now
	wake     time.Duration // when the dead man's switch looks
	prepared netio.PreparedResign
}

// leaseState is how a lease stands.
type leaseState int

const (
	leaseIdle  leaseState = iota // there is nothing to release
	leaseRuns                    // until its end
	leaseFired                   // it was ended
)

// Times of the dead man's switch, see netio.
const (
	// machineFrozenAfter is how late the switch must be itself to conclude that not the daemon
	// but the machine stood still, and daemonWakes is how long the daemon then gets.
	machineFrozenAfter = 2 * time.Millisecond
	daemonWakes        = 8 * time.Millisecond
)

// resignPauses are the times between copies of the RESIGN.
var resignPauses = [...]time.Duration{2 * time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond}

// openFence makes the lease of a daemon that starts.
func (b *loopbackBoard) openFence() (daemon.Fence, error) {
	l := &loopbackLease{board: b}
	l.timer = time.AfterFunc(time.Hour, l.look)
	l.timer.Stop() // it has not begun
	b.lease.Store(l)
	return l, nil
}

// startDeadman starts the switch, which is a part of the lease.
func (b *loopbackBoard) startDeadman() daemon.Deadman { return b.lease.Load() }

// open reports whether the board may answer now. While there is nothing to release, everything passes.
func (l *loopbackLease) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == leaseIdle || l.state == leaseRuns && netio.Now() < l.end
}

func (l *loopbackLease) Begin(end time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.own = leaseRuns, false
	l.move(end, end)
}

func (l *loopbackLease) Extend(end, wake time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != leaseRuns {
		return false
	}
	l.move(end, wake)
	return true
}

// move moves the end. l.mu is held.
func (l *loopbackLease) move(end, wake time.Duration) {
	l.end, l.wake = end, wake
	if wake == netio.NoEnd {
		l.timer.Stop()
	} else {
		l.timer.Reset(wake - netio.Now())
	}
}

func (l *loopbackLease) Shut() (inTime bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inTime = l.state != leaseFired
	l.state, l.own = leaseFired, true
	return inTime
}

func (l *loopbackLease) Released() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = leaseIdle
}

func (l *loopbackLease) Fired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == leaseFired && !l.own
}

// look is what the switch does at the time to look, unless the daemon has moved it since.
func (l *loopbackLease) look() {
	l.looking.Lock()
	defer l.looking.Unlock()
	l.mu.Lock()
	at := l.wake
	l.mu.Unlock()
	if netio.Now()-at > machineFrozenAfter {
		time.Sleep(daemonWakes)
	}
	if l.board.powered.Load() && l.fire(func() bool { return l.state == leaseRuns && l.wake == at && netio.Now() >= at }) {
		l.release()
	}
}

// daemonKilled is what the switch does when the daemon has ended during a lease.
func (l *loopbackLease) daemonKilled() {
	if l.fire(func() bool { return l.state != leaseIdle }) {
		l.release()
	}
}

// fire ends the lease if it is such that something is to be released.
func (l *loopbackLease) fire(due func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !due() {
		return false
	}
	l.state, l.own = leaseFired, false
	return true
}

// release releases the address, and tells the other boards afterwards.
func (l *loopbackLease) release() {
	_ = l.board.Release() // what can fail is to close a socket
	l.resign()
	for _, pause := range resignPauses {
		time.Sleep(pause)
		l.resign()
	}
}

// resign sends the prepared RESIGN once.
func (l *loopbackLease) resign() {
	l.mu.Lock()
	prepared := l.prepared
	l.mu.Unlock()
	l.board.mu.Lock()
	transport := l.board.transport
	l.board.mu.Unlock()
	if len(prepared.Datagram) == 0 || transport == nil {
		return
	}
	for _, to := range prepared.To { // what fails is as if it were lost
		switch {
		case to.Addr().IsMulticast():
			_ = transport.Multicast(prepared.Datagram)
		case to.Addr() == netio.LimitedBroadcast:
			_ = transport.Broadcast(prepared.Datagram)
		default:
			_ = transport.Unicast(prepared.Datagram, to)
		}
	}
}

func (l *loopbackLease) Prepare(r netio.PreparedResign) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prepared = r
	return nil
}

// Close ends the switch, which then releases nothing.
func (l *loopbackLease) Close() error {
	l.timer.Stop()
	l.looking.Lock() // until it is done with what it does
	defer l.looking.Unlock()
	return nil
}

// Lost never happens: the switch is a part of this process.
func (*loopbackLease) Lost() <-chan struct{} { return nil }
func (*loopbackLease) PID() int              { return os.Getpid() }

// The fence covers the only interface, always.
func (*loopbackLease) Cover([]int) error                { return nil }
func (*loopbackLease) CoverAgain() error                { return nil }
func (*loopbackLease) Closes() bool                     { return true }
func (*loopbackLease) State() (netio.FenceKind, string) { return netio.FenceTCX, "" }
