package sim

// The fence of a board ends its right to answer for the floating address when its lease ends,
// although its daemon stands still. It belongs to the kernel.

// awaitLeaseEnd has the fence close at the end of the lease if the board still stands still.
func (b *Board) awaitLeaseEnd() {
	core := b.core
	if core == nil || !b.holding || b.fenced {
		return
	}
	end, ends := core.LeaseEnd()
	if !ends {
		return
	}
	b.sim.At(max(0, b.clock.global(end)-b.sim.now), func() {
		if now, _ := core.LeaseEnd(); b.core == core && b.frozen && b.holding && !b.fenced && now == end {
			b.fence(true)
		}
	})
}

// reopen opens the fence of a leader that has a lease again.
func (b *Board) reopen() {
	if !b.fenced || !b.holding || b.core == nil {
		return
	}
	if end, ends := b.core.LeaseEnd(); !ends || end > b.local() {
		b.fence(false)
	}
}

// fence closes the fence, or opens it.
func (b *Board) fence(closed bool) {
	b.fenced = closed
	b.sim.trace(b, EventAddress, "%s", map[bool]string{
		true: "its lease ends, and the address falls silent", false: "has a lease again, and the address answers",
	}[closed])
	b.sim.holds.change(b.sim.now, b, !closed)
}
