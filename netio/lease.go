package netio

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"topdog/internal/boottime"
)

// sharedLease is the time for which the daemon may answer for the addresses, as the daemon, its
// holder and the kernel share it: a word of memory that says when it ends, and a timer
// that wakes the holder then.
//
// The word changes by compare-and-swap only: either the lease was extended before somebody
// ended it, or it was ended and the daemon is told, never both.
type sharedLease struct {
	word   sharedWord
	memory []byte   // the page that has the word
	file   *os.File // what is mapped there: an array of the kernel, or a file in memory
	timer  int      // a timerfd
	set    uint64   // what the daemon has set the word to last
}

// The word is the moment at which the lease ends, on CLOCK_BOOTTIME in nanoseconds, or one of
// these. The kernel takes those that are less than 0 for open, see assembler.jumpOpen.
const (
	leaseFired   uint64 = 0         // it was ended; that is final until the daemon has released the addresses
	leaseIdle    uint64 = 1<<64 - 1 // there is nothing to release
	leaseForever uint64 = 1<<64 - 2 // it has no end
)

// wordOf is an end as the word has it.
func wordOf(end time.Duration) uint64 {
	if end == NoEnd {
		return leaseForever
	}
	return max(uint64(end), leaseFired+1)
}

// newLease makes a lease in an array of the kernel, or, if there is none, in a file in memory.
func newLease(array *os.File) (l sharedLease, err error) {
	l = sharedLease{timer: -1, file: array}
	if l.file == nil {
		fd, err := unix.MemfdCreate("topdog-lease", unix.MFD_CLOEXEC)
		if err != nil {
			return l, os.NewSyscallError("memfd_create", err)
		}
		l.file = os.NewFile(uintptr(fd), "lease")
		if err := l.file.Truncate(int64(os.Getpagesize())); err != nil {
			return l, err
		}
	}
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		l.timer = -1
		return l, os.NewSyscallError("timerfd_create", err)
	}
	if err := l.mapWord(int(l.file.Fd())); err != nil {
		return l, err
	}
	l.set = leaseIdle
	l.put(leaseIdle)
	return l, nil
}

// mapWord maps the word that all share.
func (l *sharedLease) mapWord(fd int) (err error) {
	l.memory, err = unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	l.word = sharedWord{(*uint64)(unsafe.Pointer(&l.memory[0]))}
	return nil
}

// put changes the word to a value whatever it was, and returns what it was.
func (l *sharedLease) put(value uint64) (former uint64) {
	for {
		if former = l.word.load(); l.word.swap(former, value) {
			return former
		}
	}
}

// wakeAt sets the timer to a moment on the clock of Now.
func (l *sharedLease) wakeAt(t time.Duration) {
	// It fails only for a descriptor or a time that is none.
	_ = unix.TimerfdSettime(l.timer, unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(t))}, nil)
}

// wakes reports whether the timer is set to a moment that is not over.
func (l *sharedLease) wakes() bool {
	var at unix.ItimerSpec
	return unix.TimerfdGettime(l.timer, &at) == nil && at.Value != unix.Timespec{}
}

// close gives back what newLease took.
func (l *sharedLease) close() {
	if l.timer >= 0 {
		unix.Close(l.timer)
	}
	if l.memory != nil {
		_ = unix.Munmap(l.memory)
	}
	if l.file != nil {
		l.file.Close()
	}
}

// NoEnd is the end of a lease that only the daemon's end ends.
const NoEnd time.Duration = 1<<63 - 1

// Begin begins a lease, which ends at a moment on the clock of Now, or at NoEnd. It must be
// called before the addresses are acquired.
func (l *sharedLease) Begin(end time.Duration) { l.change(end, end) }

// Extend moves the end of the lease, and has the holder wake at a moment that is not before it. That is
// the end, or later where the daemon may run and have no lease: then the fence is closed, and there is
// nothing for a holder to do. It reports false if the lease was ended before: then the addresses are
// gone, or about to go, and nobody reaches them through a fence.
func (l *sharedLease) Extend(end, wake time.Duration) bool { return l.change(end, wake) }

// change is done by the daemon only. If the word is not what the daemon has set it to,
// another one has ended the lease.
func (l *sharedLease) change(end, wake time.Duration) bool {
	next := wordOf(end)
	if wake != NoEnd {
		l.wakeAt(wake) // before the word changes; see sharedLease.expire
	}
	if !l.word.swap(l.set, next) {
		return false
	}
	l.set = next
	return true
}

// Shut ends the lease, and closes the fence if there is one, before the addresses are released.
// It reports false if the lease was ended before.
func (l *sharedLease) Shut() bool {
	l.set = leaseFired
	return l.put(leaseFired) != leaseFired
}

// Released tells that the addresses were released, so that nothing has to be fenced off.
func (l *sharedLease) Released() {
	l.set = leaseIdle
	l.put(leaseIdle)
}

// Fired reports whether somebody else than the daemon has ended the lease.
func (l *sharedLease) Fired() bool { return l.set != leaseFired && l.word.load() == leaseFired }

// lasts reports whether there is a lease that is not over.
func (l *sharedLease) lasts() bool {
	word := l.word.load()
	return word != leaseIdle && word > uint64(Now())
}

const (
	// machineFrozenAfter is how late the holder must be itself to conclude that not the
	// daemon but the machine stood still. Linux wakes a process whose time has come within
	// a fraction of it. It is counted from the end of the lease, so one that had to wake later than
	// that always takes itself for late.
	machineFrozenAfter = 2 * time.Millisecond
	// daemonWakes is how long the daemon then gets to extend the lease, once. It runs again
	// by then, and knows better than a pre-signed RESIGN what is to be done: within the 5 ms
	// of a round trip that was never measured it hears whether somebody leads.
	daemonWakes = 8 * time.Millisecond
)

// expire ends a lease that has run out, unless the daemon is sooner. The word is read before
// the timer, and the daemon sets the timer before the word. So if the timer has fired, and
// the word is the same when it is swapped, nobody has extended the lease. While expire waits, the daemon may
// leave the end as it is, and have the holder wake later: the timer tells.
func (l *sharedLease) expire() bool {
	end := l.word.load()
	var count [8]byte
	if _, err := unix.Read(l.timer, count[:]); err != nil {
		return false // it was set anew meanwhile
	}
	now := uint64(boottime.Read(unix.CLOCK_BOOTTIME)) // the timer goes by it; Now may be behind a little
	if end == leaseFired || end > now {
		return false // it fired for a lease that is over
	}
	if now-end > uint64(machineFrozenAfter) {
		_, _ = unix.Poll(nil, int(daemonWakes.Milliseconds()))
		if l.wakes() {
			return false
		}
	}
	return l.word.swap(end, leaseFired)
}
