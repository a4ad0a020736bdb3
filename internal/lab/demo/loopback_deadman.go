package demo

import (
	"os"
	"sync"
	"time"

	"topdog/internal/daemon"
	"topdog/netio"
)

// loopbackDeadman plays the dead man's switch of a board: when the lease of its daemon ends, or the
// daemon is killed, it releases the address and sends the RESIGN that the daemon has signed. A goroutine plays
// the process; the rules and the times are those of netio.Holder.
type loopbackDeadman struct {
	board     *loopbackBoard
	fence     *loopbackFence
	dismissed chan struct{}
	dismiss   sync.Once
	exited    chan struct{}

	mu       sync.Mutex
	prepared netio.PreparedResign
}

// Times of the dead man's switch, see netio.
const (
	// machineFrozenAfter is how late the switch must be itself to conclude that not the daemon
	// but the machine stood still, and daemonWakes is how long the daemon then gets.
	machineFrozenAfter = 2 * time.Millisecond
	daemonWakes        = 8 * time.Millisecond
)

// resignPauses are the times between copies of the RESIGN.
var resignPauses = [...]time.Duration{2 * time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond}

// startDeadman starts the switch of a daemon that starts.
func (b *loopbackBoard) startDeadman() daemon.Deadman {
	d := &loopbackDeadman{board: b, fence: b.fence.Load(), dismissed: make(chan struct{}), exited: make(chan struct{})}
	b.mu.Lock()
	b.deadman = d
	b.mu.Unlock()
	go d.attend()
	return d
}

func (d *loopbackDeadman) Prepare(r netio.PreparedResign) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prepared = r
	return nil
}

// Lost never happens: the switch is a part of this process.
func (d *loopbackDeadman) Lost() <-chan struct{} { return nil }

func (d *loopbackDeadman) PID() int { return os.Getpid() }

// Close ends the switch, which then releases nothing.
func (d *loopbackDeadman) Close() error {
	d.dismiss.Do(func() { close(d.dismissed) })
	<-d.exited
	return nil
}

// attend waits for the end of the lease, again and again.
func (d *loopbackDeadman) attend() {
	defer close(d.exited)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		at, runs := d.fence.wakes()
		if runs && at != netio.NoEnd {
			timer.Reset(at - netio.Now())
		} else {
			timer.Stop()
		}
		select {
		case <-d.dismissed:
			return
		case <-d.fence.moved:
			continue
		case <-timer.C:
		}
		if netio.Now()-at > machineFrozenAfter {
			time.Sleep(daemonWakes)
		}
		if d.board.powered.Load() && d.fence.expire(at) {
			d.release()
		}
	}
}

// daemonKilled is what the switch does when the daemon has ended during a lease.
func (d *loopbackDeadman) daemonKilled() {
	if d.fence.fire() {
		d.release()
	}
}

// release releases the address, and tells the other boards afterwards.
func (d *loopbackDeadman) release() {
	_ = d.board.Release() // what can fail is to close a socket
	d.resign()
	for _, pause := range resignPauses {
		time.Sleep(pause)
		d.resign()
	}
}

// resign sends the prepared RESIGN once.
func (d *loopbackDeadman) resign() {
	d.mu.Lock()
	prepared := d.prepared
	d.mu.Unlock()
	d.board.mu.Lock()
	transport := d.board.transport
	d.board.mu.Unlock()
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
