package explore

import (
	"time"

	"topdog/wire"
)

// deadmanStep is what the switch does next (internal package netio, deadman.go and
// lease.go): it reads the word, swaps it, removes the address, and sends the RESIGN.
type deadmanStep uint8

const (
	deadmanWaits deadmanStep = iota
	deadmanSwaps
	deadmanEnds // the daemon has ended, whatever the word says
	deadmanRemoves
	deadmanSends
)

var deadmanNames = [...]string{
	deadmanWaits: "wakes and reads the lease word", deadmanSwaps: "swaps the lease word",
	deadmanEnds: "fires, since the daemon has ended", deadmanRemoves: "removes the address", deadmanSends: "sends the RESIGN",
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
	case t.paused || b.kernel.off:
		return 0, false
	case t.step != deadmanWaits:
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
	w.tracef("the switch of board %d %s", b.id, deadmanNames[t.step])
	switch t.step {
	case deadmanWaits:
		w.toggleWakes(b)
	case deadmanSwaps:
		if b.kernel.word != t.seen {
			t.step = deadmanWaits
			break
		}
		b.kernel.word = wordFired
		t.step = deadmanRemoves
	case deadmanEnds:
		b.kernel.word = wordFired
		t.step = deadmanRemoves
	case deadmanRemoves:
		w.toggleRemoves(b)
	case deadmanSends:
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
			t.step = deadmanEnds
		}
	default:
		b.kernel.timer = 0
		if t.seen <= wordIdle {
			return // it fired for a lease that is over
		}
		if now-end > frozenAfter {
			t.at = w.now + daemonWakes
		}
		t.step = deadmanSwaps
	}
	if w.bug == bugResignFirst && t.step != deadmanWaits {
		t.after, t.step = t.step, deadmanSends
	}
}

func (w *world) toggleRemoves(b *board) {
	t := &b.toggle
	t.step = deadmanSends
	if w.bug == bugResignFirst {
		t.step = deadmanWaits
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
	t.resigns, t.step = 0, deadmanWaits
	if w.bug == bugResignFirst {
		t.step = t.after
	}
}
