package sim

import (
	"topdog/election"
	"topdog/wire"
)

// The fence of a board ends its right to answer for the floating address when its lease ends,
// although its daemon stands still. It belongs to the kernel. The dead man's switch is a process,
// which does not stand still with the daemon if the board has one: it says that the lease has ended.

// awaitLeaseEnd has the fence close at the end of the lease if the board still stands still. A leader that
// knows of nobody has a lease without an end, but its kernel removes the address.
func (b *Board) awaitLeaseEnd() {
	core := b.core
	if core == nil || !b.holding || b.fenced && !b.strict() {
		return
	}
	end, ends := core.LeaseEnd()
	left := election.AddressOutlives
	if ends {
		end = max(end, core.OverdueAt()) // with votes the fence closes before
		left = max(0, b.clock.Global(end)-b.sim.now)
	}
	freezes := b.freezes
	b.sim.At(left, func() {
		if b.core != core || !b.frozen || b.freezes != freezes || !b.holding || b.fenced && !b.strict() {
			return
		}
		if !b.fenced {
			b.fence(true)
		}
		if ends {
			b.fireSwitch()
		}
	})
}

// LeaseEnds reports whether the board leads by a lease that has an end.
func (b *Board) LeaseEnds() bool {
	if b.core == nil {
		return false
	}
	_, ends := b.core.LeaseEnd()
	return ends
}

// extendLease has the fence take in when the lease ends now. The one of a leader that has a lease again opens.
func (b *Board) extendLease() {
	if b.fenced && b.holding && b.core != nil {
		if end, ends := b.core.LeaseEnd(); !ends || end > b.local() {
			b.fence(false)
		}
	}
	if !b.finished {
		b.moveLease()
	}
}

// fence closes the fence, or opens it.
func (b *Board) fence(closed bool) {
	b.fenced = closed
	b.sim.trace(b, EventAddress, "%s", map[bool]string{
		true: "its lease ends, and the address falls silent", false: "has a lease again, and the address answers",
	}[closed])
	b.sim.note()
}

// fireSwitch has the switch, if there is one, release the address and send the RESIGN that was
// signed for it.
func (b *Board) fireSwitch() {
	if !b.Switch {
		return
	}
	b.fired = true
	b.hold(false)
	if resign, _ := b.core.PresignedResign(); resign.Resign.Successor != wire.Nobody {
		b.transmit(&election.Effect{Kind: election.EffectSend, Message: resign})
	}
}

// learnFired tells a daemon that runs again what its switch has done, before anything else.
func (b *Board) learnFired() {
	if b.fired && b.core != nil {
		b.fired = false
		b.act(b.core.LeaseExpired(b.local()))
	}
}

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
