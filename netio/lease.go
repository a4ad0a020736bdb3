package netio

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lease is the time for which the daemon may hold the addresses, as the daemon and its
// companion share it: a word of memory that says when it runs out, and a timer that
// wakes the companion then.
//
// Both ends change the word by compare-and-swap: either the lease was extended before
// it ran out, or it has run out and the daemon is told, never both.
type lease struct {
	word   *atomic.Uint32 // when it runs out (see leaseAt), or one of the values below
	memory []byte         // the page that has the word
	timer  int            // a timerfd
}

// The values of the word that are no moment.
//
// It has 32 bits since a Raspberry Pi Zero cannot swap 64 of them at once: what Go does
// there instead locks out the threads of its own process, and no other one.
const (
	leaseIdle    = iota // there is nothing to release
	leaseFired          // the companion has taken over
	leaseForever        // only the daemon's end ends it
	leaseFirst          // no moment is less
)

// leaseAt is a moment on the clock of Now: in microseconds, of which 32 bits are kept. They
// repeat after 71 minutes, and a lease lasts for seconds. Whether it has run out is asked of
// the timer.
func leaseAt(t time.Duration) uint32 { return max(uint32(t/time.Microsecond), leaseFirst) }

// newLease makes a lease, and the file through which the companion maps it.
func newLease() (l lease, shared *os.File, err error) {
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return lease{timer: -1}, nil, os.NewSyscallError("timerfd_create", err)
	}
	memory, err := unix.MemfdCreate("topdog-lease", unix.MFD_CLOEXEC)
	if err != nil {
		return l, nil, os.NewSyscallError("memfd_create", err)
	}
	shared = os.NewFile(uintptr(memory), "lease")
	err = shared.Truncate(int64(os.Getpagesize()))
	if err == nil {
		err = l.mapWord(memory)
	}
	if err != nil {
		shared.Close()
		return l, nil, err
	}
	return l, shared, nil
}

// mapWord maps the word that both processes share.
func (l *lease) mapWord(fd int) (err error) {
	l.memory, err = unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	l.word = (*atomic.Uint32)(unsafe.Pointer(&l.memory[0]))
	return nil
}

// wakeAt sets the timer to a moment on the clock of Now.
func (l *lease) wakeAt(t time.Duration) {
	// It fails only for a descriptor or a time that is none.
	_ = unix.TimerfdSettime(l.timer, unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(t))}, nil)
}

// close gives back what newLease took.
func (l *lease) close() {
	if l.timer >= 0 {
		unix.Close(l.timer)
	}
	if l.memory != nil {
		_ = unix.Munmap(l.memory)
	}
}

const (
	// machineFrozenAfter is how late the companion must be itself to conclude that not the
	// daemon but the machine stood still. Linux wakes a process whose time has come within
	// a fraction of it.
	machineFrozenAfter = 2 * time.Millisecond
	// daemonWakes is how long the daemon then gets to extend the lease, once. It runs again
	// by then, and knows better than a pre-signed RESIGN what is to be done.
	daemonWakes = 4 * time.Millisecond
)

// expire ends a lease that has run out, unless the daemon is sooner. The word is read before
// the timer, and the daemon sets the timer before the word. So if the timer has fired, and
// the word is the same when it is swapped, nobody has extended the lease.
func (l *lease) expire() bool {
	end := l.word.Load()
	var count [8]byte
	if _, err := unix.Read(l.timer, count[:]); err != nil {
		return false // it was set anew meanwhile
	}
	if end < leaseFirst {
		return false // it fired for a lease that is over
	}
	if late := int32(leaseAt(Now()) - end); time.Duration(late)*time.Microsecond > machineFrozenAfter {
		_, _ = unix.Poll(nil, int(daemonWakes.Milliseconds()))
	}
	return l.word.CompareAndSwap(end, leaseFired)
}
