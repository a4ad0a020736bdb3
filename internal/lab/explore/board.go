package explore

import (
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// board is one board: a kernel, in which the fence is, and two processes, the daemon and the
// switch. Each of the three goes on when the others stand still.
type board struct {
	id     wire.ID
	clock  clock
	kernel kernel
	daemon daemon
	toggle deadman

	incarnation wire.Incarnation // of the last daemon
	reign       reign
}

// clock is CLOCK_BOOTTIME of a board.
type clock struct {
	sim.Clock
	lost time.Duration // for how long CLOCK_MONOTONIC stood still; only a seeded bug reads it
}

func (c clock) local(at time.Duration) election.Instant { return c.Local(at) - c.lost }

// global is the first moment at which the clock shows that much.
func (c clock) global(shows election.Instant) time.Duration {
	if shows == wordForever {
		return wordForever
	}
	return c.Global(shows + c.lost)
}

// The values of the lease word that are no instant.
const (
	wordFired   = 0 // the fence is closed: the switch has ended this reign, or the daemon releases the address
	wordIdle    = 1 // there is no address that should be fenced off
	wordForever = election.Instant(1<<63 - 1)
)

// kernel is what goes on when the processes of a board stand still.
type kernel struct {
	off     bool // no power, or suspended: it answers nobody
	address bool // the floating address is on an interface
	word    election.Instant
	timer   election.Instant // wakes the switch; 0 is not set
	closed  bool             // the daemon is gone, and so its end of the socket is closed
	inbox   []received       // in the socket of the daemon
	deleted bool             // the daemon was not told yet that somebody has removed the address
	cable   bool
}

// deadman is the switch.
type deadman struct {
	paused  bool
	steps   []deadmanStep // that it takes next; it waits if there are none
	at      time.Duration // when it takes the next one
	seen    election.Instant
	plan    *packet // the RESIGN in the newest plan that was sent to it; nil for none
	release *packet // the one in the plan that it carries out
}

// reign is what the judge knows of a board that leads, and no board does.
type reign struct {
	answering bool
	// until is when its right to answer ends on its own clock: one lease after it has really
	// sent the newest heartbeat.
	until election.Instant
}

// answers reports whether somebody who asks for the address now gets an answer of this board.
func (w *world) answers(b *board) bool {
	k := &b.kernel
	open := k.word == wordIdle || k.word != wordFired && b.clock.local(w.now) < k.word
	return !k.off && k.cable && k.address && (open || w.bug == bugNoFence)
}
