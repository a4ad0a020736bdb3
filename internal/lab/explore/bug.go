package explore

import (
	"slices"

	"topdog/election/steps"
)

// bug is a mistake that is made on purpose, in words: an explorer that does not find it proves nothing.
type bug string

// The seeded bugs of the daemon, the switch and the fence.
const (
	noBug             bug = ""
	bugLeaseAfterSend bug = "lease counted from after the send"
	bugStore          bug = "store instead of swap" // of the lease word
	bugResignFirst    bug = "switch resigns before it closes the fence"
	bugResignBefore   bug = "daemon resigns before it releases"
	bugNewestPlan     bug = "switch sends the RESIGN of a later plan" // than the one with which it fired
	bugMonotonic      bug = "clock that stands still while suspended"
	bugNoFence        bug = "no fence" // only the switch
	bugNoSlack        bug = "lease without a quarter of the grace"
)

// The seeded bugs of strict.
const (
	bugPromiseBack      bug = "promise whose end moves back" // when the same leader is heard again
	bugPromiseRole      bug = "promise lost at a change of role"
	bugPromiseLink      bug = "promise lost with the link"
	bugVotesAtOnce      bug = "restarted voter that votes at once"
	bugLeaseFromReceipt bug = "lease counted from the acknowledgement" // from when that was received
	bugFirstLease       bug = "first lease counted from the votes"     // likewise
	bugAnySequence      bug = "acknowledgement of any heartbeat counts"
	bugOwnVote          bug = "own vote given in spite of a promise"
	bugVotesTwice       bug = "vote that is no promise"
	bugOtherVoters      bug = "another list of voters counts"
)

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
