package explore

import (
	"slices"

	"topdog/election/steps"
)

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
	bugMonotonic          // the clocks stand still while the board is suspended
	bugNoFence            // there is no fence, only the switch
	bugNoSlack            // the lease lasts as long as the others wait at least

	// The seeded bugs of strict.
	bugPromiseBack      // the end of a promise moves back when the same leader is heard again
	bugPromiseRole      // a promise ends when the role of the voter changes
	bugPromiseLink      // a promise ends when the link of the voter is lost
	bugVotesAtOnce      // a voter votes as soon as it is started
	bugLeaseFromReceipt // the lease counts from when the acknowledgement was received
	bugFirstLease       // the first lease counts from when the votes were received
	bugAnySequence      // an acknowledgement of any heartbeat counts for the newest one
	bugOwnVote          // a candidate votes for itself although it has promised to support another one
	bugVotesTwice       // a voter that has voted does not remember it
	bugOtherVoters      // another list of voters counts
	bugCount
)

var bugNames = [bugCount]string{
	noBug: "none", bugLeaseAfterSend: "lease counted from after the send", bugStore: "store instead of swap",
	bugResignFirst: "switch resigns before it closes the fence", bugResignBefore: "daemon resigns before it releases",
	bugNewestPlan: "switch sends the RESIGN of a later plan",
	bugMonotonic:  "clock that stands still while suspended", bugNoFence: "no fence", bugNoSlack: "lease without a quarter of the grace",
	bugPromiseBack: "promise whose end moves back", bugPromiseRole: "promise lost at a change of role", bugPromiseLink: "promise lost with the link",
	bugVotesAtOnce: "restarted voter that votes at once", bugLeaseFromReceipt: "lease counted from the acknowledgement",
	bugFirstLease: "first lease counted from the votes", bugAnySequence: "acknowledgement of any heartbeat counts",
	bugOwnVote: "own vote given in spite of a promise", bugVotesTwice: "vote that is no promise",
	bugOtherVoters: "another list of voters counts",
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
	if slices.Contains(steps.Release, s.Kind) {
		return 1
	}
	return 0
}

// spoilLease makes the lease too long before it is set.
func (w *world) spoilLease(b *board) {
	d := &b.daemon
	switch w.bug {
	case bugLeaseAfterSend:
		d.late = b.clock.local(w.now) - d.read
	case bugNoSlack:
		d.late = w.grace() / 4
	}
}
