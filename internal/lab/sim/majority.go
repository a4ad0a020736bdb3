package sim

import "topdog/wire"

// In the algorithm strict the lease of a leader ends when no majority has acknowledged its
// heartbeats, whether it stands still or not, and then its fence closes. The fence outlives the
// process here: a crash does not silence the address before the lease is over. The
// algorithm must do without that.

func (b *Board) strict() bool { return b.Config.Algorithm == wire.AlgorithmStrict }

// moveLease tells the fence when the lease ends. So whose address answers, in the true time of
// the simulation, is who holds it and has a lease that is not over.
func (b *Board) moveLease() {
	if !b.strict() || !b.holding {
		return
	}
	end, leads := b.core.LeaseEnd()
	until := b.clock.Global(end)
	if !leads || until == b.majorityUntil {
		return
	}
	b.majorityUntil = until
	if closed := until <= b.sim.now; closed != b.fenced {
		b.fence(closed)
	}
	core := b.core
	b.sim.At(max(until-b.sim.now, 0), func() {
		switch {
		case b.majorityUntil != until || !b.holding:
		case b.core != core:
			b.hold(false) // the process was gone before
		case !b.fenced:
			b.fence(true)
		}
	})
}
