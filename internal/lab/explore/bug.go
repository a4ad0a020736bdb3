package explore

import "slices"

// bug is a mistake that is made on purpose: an explorer that does not find it proves nothing.
type bug uint8

// The seeded bugs of the daemon, the switch and the fence.
const (
	noBug             bug = iota
	bugLeaseAfterSend     // the lease counts from a clock that is read after the heartbeat was sent
	bugStore              // the daemon stores the lease word instead of swapping it
	bugResignFirst        // the switch sends its RESIGN before it closes the fence
	bugResignBefore       // the daemon sends its RESIGN before it releases the address
	bugNewestPlan         // the switch sends the RESIGN of a plan that came after it had fired
	bugNoSkip             // what a daemon says does not come after the RESIGN of its switch
	bugMonotonic          // the clocks stand still while the board is suspended
	bugNoFence            // there is no fence, only the switch
	bugNoSlack            // the lease lasts as long as the others wait at least
	bugCount
)

var bugNames = [bugCount]string{
	noBug: "none", bugLeaseAfterSend: "lease counted from after the send", bugStore: "store instead of swap",
	bugResignFirst: "switch resigns before it closes the fence", bugResignBefore: "daemon resigns before it releases",
	bugNewestPlan: "switch sends the RESIGN of a later plan", bugNoSkip: "sequence not moved past the RESIGN of the switch",
	bugMonotonic: "clock that stands still while suspended", bugNoFence: "no fence", bugNoSlack: "lease without a quarter of the grace",
}

func (b bug) String() string { return bugNames[b] }

// reordered are the steps of a daemon as one with a seeded bug takes them.
func (w *world) reordered(steps []step) []step {
	if w.bug == bugResignBefore {
		slices.SortStableFunc(steps, func(a, b step) int { return releases(a) - releases(b) })
	}
	return steps
}

func releases(s step) int {
	if s.kind == stepRemove || s.kind == stepDisarm {
		return 1
	}
	return 0
}
