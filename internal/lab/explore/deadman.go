package explore

import (
	"time"

	"topdog/wire"
)

// deadmanStep is what the switch does next (internal package netio, deadman.go and
// lease.go): it reads the word, swaps it, removes the address, and sends the RESIGN.
type deadmanStep uint8

const (
	deadmanWakes deadmanStep = iota
	deadmanSwaps
	deadmanEnds // the daemon has ended, whatever the word says
	deadmanRemoves
	deadmanSends
)

var deadmanNames = [...]string{
	deadmanWakes: "wakes and reads the lease word", deadmanSwaps: "swaps the lease word",
	deadmanEnds: "fires, since the daemon has ended", deadmanRemoves: "removes the address", deadmanSends: "sends the RESIGN",
}

const (
	// frozenAfter is how late the switch must be to give the daemon the time daemonWakes.
	frozenAfter = 2 * time.Millisecond
	daemonWakes = 4 * time.Millisecond
	// resignPause is the time between the two copies of its RESIGN.
	resignPause = 2 * time.Millisecond
)

// next is what the switch does next.
func (t *deadman) next() deadmanStep {
	if len(t.steps) > 0 {
		return t.steps[0]
	}
	return deadmanWakes
}

// toggleAt returns when the switch takes its next step; ok is false if it waits for others.
func (b *board) toggleAt(now time.Duration) (at time.Duration, ok bool) {
	t := &b.toggle
	switch {
	case t.paused || b.kernel.off:
		return 0, false
	case len(t.steps) > 0 || b.kernel.closed:
		return max(now, t.at), true
	case b.kernel.timer == 0 || b.kernel.timer == wordForever:
		return 0, false
	}
	return max(now, t.at, b.clock.global(b.kernel.timer)), true
}

// runToggle takes the next step of the switch.
func (w *world) runToggle(b *board) {
	t, step := &b.toggle, b.toggle.next()
	t.at = w.now + busy
	t.steps = t.steps[min(1, len(t.steps)):]
	w.tracef("the switch of board %d %s", b.id, deadmanNames[step])
	switch step {
	case deadmanWakes:
		w.toggleWakes(b)
	case deadmanSwaps:
		if b.kernel.word != t.seen {
			t.steps = nil
			break
		}
		b.kernel.word = wordFired
	case deadmanEnds:
		b.kernel.word = wordFired
	case deadmanRemoves:
		// If the word says something else, the daemon knows by now, and an address that is here was acquired since.
		if b.kernel.word == wordFired && b.kernel.address {
			b.kernel.address, b.kernel.deleted = false, true
		}
	case deadmanSends:
		if w.bug == bugNewestPlan {
			t.release = t.plan
		}
		if t.release != nil {
			w.transmit(b, flightDatagram, wire.Nobody, t.release)
		}
		if t.next() == deadmanSends {
			t.at = w.now + resignPause
		}
	}
	w.remarkable = true
}

// toggleWakes decides whether the lease has run out.
func (w *world) toggleWakes(b *board) {
	t, k := &b.toggle, &b.kernel
	t.release = t.plan // it reads its plans first; one that comes later has to wait
	t.seen = k.word
	fires, late := deadmanSwaps, b.clock.local(w.now)-k.timer > frozenAfter
	if k.closed {
		fires, late, k.closed = deadmanEnds, false, false
	} else {
		k.timer = 0
	}
	if t.seen <= wordIdle {
		return // the lease is over already
	}
	if late {
		t.at = w.now + daemonWakes
	}
	t.steps = []deadmanStep{fires, deadmanRemoves, deadmanSends, deadmanSends}
	if w.bug == bugResignFirst {
		t.steps = []deadmanStep{deadmanSends, deadmanSends, fires, deadmanRemoves}
	}
}
