package netio

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/boottime"
)

// Now is the clock of the leases: the kernel's, on which all processes of a machine agree, and the programs that run in
// its kernel; see [boottime.Now].
func Now() time.Duration { return time.Duration(boottime.Now()) }

// RateMeter measures at which rate the clock of Now runs, by CLOCK_MONOTONIC_RAW: the same
// oscillator, which nothing adjusts. The kernel also tells what it was asked to adjust
// (adjtimex(2)); but a service manager or a container that lets nobody set the clock refuses to
// tell, and what counts is the rate that comes of it.
type RateMeter struct {
	adjusted, raw time.Duration // what both clocks showed last; 0 before they were read
}

const (
	// readTogether is how far apart two readings may be to be of one moment. That is 0.025 % of
	// the shortest window.
	readTogether = 50 * time.Microsecond
	// rateWindow is the shortest time over which a rate is measured.
	rateWindow = 200 * time.Millisecond
)

// NewRateMeter begins to measure.
func NewRateMeter() *RateMeter {
	m := &RateMeter{}
	m.Measure()
	return m
}

// Measure returns by how much the clock has run faster than it should since the last
// measurement, as a share. It has not measured if that is too short a time, or if this process was
// interrupted; then ask again later.
func (m *RateMeter) Measure() (off float64, measured bool) {
	adjusted, raw, together := readBoth()
	window := raw - m.raw
	switch {
	case !together:
		return 0, false
	case m.raw == 0: // the first reading
		m.adjusted, m.raw = adjusted, raw
		return 0, false
	case window < rateWindow:
		return 0, false
	}
	off = float64(adjusted-m.adjusted)/float64(window) - 1
	m.adjusted, m.raw = adjusted, raw
	return off, true
}

// readBoth reads both clocks, and reports whether it was at one moment.
func readBoth() (adjusted, raw time.Duration, together bool) {
	before := boottime.Read(unix.CLOCK_MONOTONIC)
	raw = boottime.Read(unix.CLOCK_MONOTONIC_RAW)
	after := boottime.Read(unix.CLOCK_MONOTONIC)
	return before + (after-before)/2, raw, after-before <= readTogether
}

// Timer expires once, at a time that can be moved. It is a timerfd on the clock of Now, so
// that it has expired when a machine wakes up that slept over it, and exact to some
// ten microseconds.
//
// A timer of the Go runtime is late by up to a millisecond, since the runtime waits in
// whole ones. And when it is moved to a later time, the process is woken at the former
// one nevertheless. The deadline of a follower moves with every heartbeat, so that
// doubled the number of wake-ups, which is what an idle daemon costs.
type Timer struct {
	*wakeTimer
	expired chan struct{}
	done    chan struct{}
}

// NewTimer returns a timer that is not set.
func NewTimer() (*Timer, error) {
	wake, err := openWakeTimer()
	if err != nil {
		return nil, err
	}
	t := &Timer{wake, make(chan struct{}, 1), make(chan struct{})}
	go t.wait()
	return t, nil
}

// Expired delivers a value when it expires.
func (t *Timer) Expired() <-chan struct{} { return t.expired }

func (t *Timer) wait() {
	defer close(t.done)
	t.each(func() {
		select {
		case t.expired <- struct{}{}:
		default: // that it has expired is known already
		}
	})
}

// Close ends the timer. Set must not be called afterwards.
func (t *Timer) Close() error {
	err := t.wakeTimer.Close()
	<-t.done
	return err
}

// wakeTimer is what a Timer is made of: it calls a function.
type wakeTimer struct {
	file   *os.File
	socket syscall.RawConn
	fd     int
}

func openWakeTimer() (*wakeTimer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("netio: make a timer: %w", os.NewSyscallError("timerfd_create", err))
	}
	t := &wakeTimer{file: os.NewFile(uintptr(fd), "timer"), fd: fd} // does not block, so the runtime's poller waits for it
	if t.socket, err = t.file.SyscallConn(); err != nil {
		t.file.Close()
		return nil, fmt.Errorf("netio: hand a timer to the runtime: %w", err)
	}
	return t, nil
}

// Set has it expire that long from now, after an hour at the latest, and not at the time
// that was set before. It may expire for the former time if that has just come.
func (t *wakeTimer) Set(after time.Duration) {
	// A time of 0 would switch it off, and on a 32-bit board seconds end in 68 years.
	after = min(max(after, 1), time.Hour)
	setTimer(t.fd, 0, after)
}

// each calls a function whenever it has expired, until Close. It does not read the timer, which would cost two system calls
// each time: the kernel tells the poller again when the timer expires again.
func (t *wakeTimer) each(expired func()) {
	waited := false
	_ = t.socket.Read(func(fd uintptr) bool {
		var expirations [8]byte
		if !waited { // it may have expired before the poller was asked
			waited = true
			if _, err := unix.Read(int(fd), expirations[:]); err != nil {
				return false
			}
		}
		expired()
		return false
	})
}

// Close ends each. Set must not be called afterwards.
func (t *wakeTimer) Close() error { return t.file.Close() }
