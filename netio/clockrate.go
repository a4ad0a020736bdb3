package netio

import (
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/boottime"
)

// RateMeter measures at which rate the clock of Now runs, by CLOCK_MONOTONIC_RAW: the same
// oscillator, which nothing adjusts. The kernel also tells what it was asked to adjust
// (adjtimex(2)); but a service manager or a container that lets nobody set the clock refuses to
// tell, and what counts is the rate that comes of it.
type RateMeter struct {
	adjusted, raw time.Duration // what both clocks showed last; 0 before they were read
}

const (
	// readTogether is how far apart two readings may be to be of one moment. Of the shortest
	// window it is 0.02 %.
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
