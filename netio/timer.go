package netio

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Timer expires once, at a time that can be moved. It is a timerfd on the clock of Now, so
// that it has expired when a machine wakes up that slept over it, and exact to some
// ten microseconds.
//
// A timer of the Go runtime is late by up to a millisecond, since the runtime waits in
// whole ones. And when it is moved to a later time, the process is woken at the former
// one nevertheless. The deadline of a follower moves with every heartbeat, so that
// doubled the number of wake-ups, which is what an idle daemon costs.
type Timer struct {
	file    *os.File
	fd      int
	expired chan struct{}
	done    chan struct{}
}

// NewTimer returns a timer that is not set.
func NewTimer() (*Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("netio: make a timer: %w", os.NewSyscallError("timerfd_create", err))
	}
	t := &Timer{
		file:    os.NewFile(uintptr(fd), "timer"), // does not block, so the runtime's poller waits for it
		fd:      fd,
		expired: make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	go t.wait()
	return t, nil
}

// Set has it expire that long from now, after an hour at the latest, and not at the time
// that was set before. It may expire for the former time if that has just come.
func (t *Timer) Set(after time.Duration) {
	// A time of 0 would switch it off, and on a 32-bit board seconds end in 68 years.
	after = min(max(after, 1), time.Hour)
	// It fails only for a descriptor or a time that is none.
	_ = unix.TimerfdSettime(t.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(after))}, nil)
}

// Expired delivers a value when it expires.
func (t *Timer) Expired() <-chan struct{} { return t.expired }

func (t *Timer) wait() {
	defer close(t.done)
	var expirations [8]byte
	for {
		if _, err := t.file.Read(expirations[:]); err != nil {
			return // closed
		}
		select {
		case t.expired <- struct{}{}:
		default: // that it has expired is known already
		}
	}
}

// Close ends the timer. Set must not be called afterwards.
func (t *Timer) Close() error {
	err := t.file.Close()
	<-t.done
	return err
}
