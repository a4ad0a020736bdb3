package netio

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Timer rings once, at a time that can be moved. It is a timerfd, and exact to some
// ten microseconds.
//
// A timer of the Go runtime is late by up to a millisecond, since the runtime waits in
// whole ones. And when it is moved to a later time, the process is woken at the
// former one nevertheless: for a follower, whose deadline moves with every heartbeat,
// that doubled the number of wake-ups, which is what an idle daemon costs.
type Timer struct {
	file  *os.File
	fd    int
	rings chan struct{}
	done  chan struct{}
}

// NewTimer returns an alarm that is not set.
func NewTimer() (*Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("netio: make an alarm: %w", os.NewSyscallError("timerfd_create", err))
	}
	a := &Timer{
		file:  os.NewFile(uintptr(fd), "alarm"), // does not block, so the runtime's poller waits for it
		fd:    fd,
		rings: make(chan struct{}, 1),
		done:  make(chan struct{}),
	}
	go a.wait()
	return a, nil
}

// Set has it ring that long from now, after an hour at the latest, and not at the time
// that was set before. It may ring for the former time if that has just come.
func (a *Timer) Set(after time.Duration) {
	// A time of 0 would switch it off, and on a 32-bit board seconds end in 68 years.
	after = min(max(after, 1), time.Hour)
	// It fails only for a descriptor or a time that is none.
	_ = unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(after))}, nil)
}

// Rings delivers a value when it rings.
func (a *Timer) Rings() <-chan struct{} { return a.rings }

func (a *Timer) wait() {
	defer close(a.done)
	var expirations [8]byte
	for {
		if _, err := a.file.Read(expirations[:]); err != nil {
			return // closed
		}
		select {
		case a.rings <- struct{}{}:
		default: // it rings already
		}
	}
}

// Close ends the alarm. Set must not be called afterwards.
func (a *Timer) Close() error {
	err := a.file.Close()
	<-a.done
	return err
}
