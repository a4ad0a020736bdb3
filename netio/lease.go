package netio

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"topdog/internal/boottime"
)

// sharedLease is the time for which the daemon may answer for the addresses. The daemon, its holder and the kernel
// share it: a word of memory says when it ends, and a timer wakes the holder then.
//
// The word changes only by compare-and-swap. So either the daemon extends the lease before somebody ends it, or it
// learns that the lease was ended, and never both.
type sharedLease struct {
	word   sharedWord
	memory []byte   // the page that contains the word
	file   *os.File // what is mapped there: an array map of BPF, or a memfd
	timer  int      // a timerfd
	set    uint64   // the value that the daemon has set last
}

// The word is the moment at which the lease ends, on CLOCK_BOOTTIME in nanoseconds, or one of
// these values. Those that are negative as a signed number open the fence, see assembler.jumpOpen.
const (
	leaseFired   uint64 = 0         // somebody has ended it, which is final until the daemon has released the addresses
	leaseIdle    uint64 = 1<<64 - 1 // there is nothing to release
	leaseForever uint64 = 1<<64 - 2 // only the daemon's end ends it
)

// wordOf returns the word for an end.
func wordOf(end time.Duration) uint64 {
	if end == NoEnd {
		return leaseForever
	}
	return max(uint64(end), leaseFired+1)
}

// newLease makes a lease in an array map of BPF or, if that is nil, in a memfd.
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

// mapWord maps the shared word.
func (l *sharedLease) mapWord(fd int) (err error) {
	l.memory, err = unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	l.word = sharedWord{(*uint64)(unsafe.Pointer(&l.memory[0]))}
	return nil
}

// put sets the word to a value, and returns the former value.
func (l *sharedLease) put(value uint64) (former uint64) {
	for {
		if former = l.word.load(); l.word.swap(former, value) {
			return former
		}
	}
}

// wakeAt sets the timer to a moment on the clock of Now.
func (l *sharedLease) wakeAt(t time.Duration) { setTimer(l.timer, unix.TFD_TIMER_ABSTIME, t) }

// wakes reports whether the timer is set and has not expired.
func (l *sharedLease) wakes() bool {
	var at unix.ItimerSpec
	return unix.TimerfdGettime(l.timer, &at) == nil && at.Value != unix.Timespec{}
}

// close closes what newLease has opened.
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

// NoEnd is the end of a lease that lasts until the daemon ends.
const NoEnd time.Duration = 1<<63 - 1

// Begin begins a lease that ends at a moment on the clock of Now, or at NoEnd. It must be
// called before the addresses are acquired.
func (l *sharedLease) Begin(end time.Duration) { l.change(end, end) }

// Extend moves the end of the lease, and sets when the holder wakes: at the end, or later. It may be later if a closed
// fence is enough for a daemon that runs without a lease, so that the holder has nothing to do. Extend reports false
// if somebody has ended the lease before: then the addresses are gone or about to go, and a fence keeps everybody off
// them.
func (l *sharedLease) Extend(end, wake time.Duration) bool { return l.change(end, wake) }

// change is called only by the daemon. If the word is not what the daemon has set last, somebody else has ended the lease.
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

// Shut ends the lease before the addresses are released, and so closes the fence if there is one.
// It reports false if somebody else has ended the lease before.
func (l *sharedLease) Shut() bool {
	l.set = leaseFired
	return l.put(leaseFired) != leaseFired
}

// Released says that the addresses were released, and opens the fence.
func (l *sharedLease) Released() {
	l.set = leaseIdle
	l.put(leaseIdle)
}

// Fired reports whether somebody other than the daemon has ended the lease.
func (l *sharedLease) Fired() bool { return l.set != leaseFired && l.word.load() == leaseFired }

// lasts reports whether there is a lease, and it is not over.
func (l *sharedLease) lasts() bool {
	word := l.word.load()
	return word != leaseIdle && word > uint64(Now())
}

const (
	// machineFrozenAfter is how late the holder must wake to conclude that the whole machine stood still, and not
	// only the daemon. Linux wakes a process within a fraction of that. The lateness is counted from the end of the
	// lease. So a holder whose timer was set for later than that always concludes so.
	machineFrozenAfter = 2 * time.Millisecond
	// daemonWakes is how long the daemon then has to extend the lease. It runs again as well, and knows better than a
	// pre-signed RESIGN what to do: within 5 ms, the round trip that it assumes before it has measured one, it hears
	// whether another board leads.
	daemonWakes = 8 * time.Millisecond
)

// expire ends a lease that is over, unless the daemon extends it first. It reads the word before the timer, and the
// daemon sets the timer before the word. So if the timer has expired, and the word is still the same when it is
// swapped, nobody has extended the lease. While expire waits, the daemon may leave the end as it is, and only have the
// holder wake later: the timer shows that.
func (l *sharedLease) expire() bool {
	end := l.word.load()
	var count [8]byte
	if _, err := unix.Read(l.timer, count[:]); err != nil {
		return false // the timer was set anew meanwhile
	}
	now := uint64(boottime.Read(unix.CLOCK_BOOTTIME)) // the timer's clock; Now may be slightly behind it
	if end == leaseFired || end > now {
		return false // the timer was set for an earlier lease
	}
	if now-end > uint64(machineFrozenAfter) {
		_, _ = unix.Poll(nil, int(daemonWakes.Milliseconds()))
		if l.wakes() {
			return false
		}
	}
	return l.word.swap(end, leaseFired)
}
