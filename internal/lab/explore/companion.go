package explore

import (
	"time"

	"topdog/wire"
)

// companionStep is what the switch does next (internal package netio, companion.go and
// lease.go): it reads the word, swaps it, removes the address, and sends the RESIGN.
type companionStep uint8

const (
	companionWaits companionStep = iota
	companionSwaps
	companionEnds // the daemon has ended, whatever the word says
	companionRemoves
	companionSends
)

var companionNames = [...]string{
	companionWaits: "wakes and reads the lease word", companionSwaps: "swaps the lease word",
	companionEnds: "fires, since the daemon has ended", companionRemoves: "removes the address", companionSends: "sends the RESIGN",
}

const (
	// frozenAfter is how late the switch must be to give the daemon the time daemonWakes.
	frozenAfter = 2 * time.Millisecond
	daemonWakes = 4 * time.Millisecond
	// resignPause is the time between two copies of its RESIGN.
	resignPause  = 2 * time.Millisecond
	resignCopies = 2
)

// toggleAt returns when the switch takes its next step; ok is false if it waits for others.
func (b *board) toggleAt(now time.Duration) (at time.Duration, ok bool) {
	t := &b.toggle
	switch {
	case t.dead || t.paused || b.kernel.off:
		return 0, false
	case t.step != companionWaits:
		return max(now, t.at), true
	case b.kernel.closed:
		return max(now, t.at), true
	case b.kernel.timer == 0 || b.kernel.timer == wordForever:
		return 0, false
	}
	return max(now, t.at, b.clock.global(b.kernel.timer)), true
}

// runToggle takes the next step of the switch.
func (w *world) runToggle(b *board) {
	t := &b.toggle
	t.at = w.now + busy
	w.traceToggle(b)
	switch t.step {
	case companionWaits:
		w.toggleWakes(b)
	case companionSwaps:
		if b.kernel.word != t.seen {
			t.step = companionWaits
			break
		}
		b.kernel.word = wordFired
		t.step = companionRemoves
	case companionEnds:
		b.kernel.word = wordFired
		t.step = companionRemoves
	case companionRemoves:
		w.toggleRemoves(b)
	case companionSends:
		w.toggleSends(b)
	}
	w.remarkable = true
}

// toggleWakes decides whether the lease has run out.
func (w *world) toggleWakes(b *board) {
	t := &b.toggle
	now, end := b.clock.local(w.now), b.kernel.timer
	t.release = t.plan // it reads its plans first; one that comes later has to wait
	t.seen = b.kernel.word
	switch {
	case b.kernel.closed:
		b.kernel.closed = false
		if t.seen > wordIdle {
			t.step = companionEnds
		}
	default:
		b.kernel.timer = 0
		if t.seen <= wordIdle {
			return // it fired for a lease that is over
		}
		if now-end > frozenAfter {
			t.at = w.now + daemonWakes
		}
		t.step = companionSwaps
	}
	if w.bug == bugResignFirst && t.step != companionWaits {
		t.after, t.step = t.step, companionSends
	}
}

func (w *world) toggleRemoves(b *board) {
	t := &b.toggle
	t.step = companionSends
	if w.bug == bugResignFirst {
		t.step = companionWaits
	}
	if b.kernel.word != wordFired {
		return // the daemon knows by now; an address that is here was acquired since
	}
	if b.kernel.address {
		b.kernel.address, b.kernel.deleted = false, true
	}
}

func (w *world) toggleSends(b *board) {
	t := &b.toggle
	if w.bug == bugNewestPlan {
		t.release = t.plan
	}
	if t.release != nil {
		w.transmit(b, flightDatagram, wire.Nobody, t.release)
	}
	if t.resigns++; t.resigns < resignCopies {
		t.at = w.now + resignPause
		return
	}
	t.resigns, t.step = 0, companionWaits
	if w.bug == bugResignFirst {
		t.step = t.after
	}
}
