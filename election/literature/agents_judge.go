package literature

import (
	"slices"

	"topdog/election"
	"topdog/wire"
)

// This file is phase 3 of agents: the judge names the leader. Meanwhile the judge
// is a candidate, whether it may lead itself or not.
//
// What is ours:
//   - A leader that lives answers COLLECT with a heartbeat, which ends the election.
//   - The judge chooses among those that have reported. Until it has been in the
//     round for 2δ it trusts everybody, the dead too.
//   - The judge prefers a fitter board, see election.Rank.
//   - If nobody in the list may lead, or there never was a list, the priorities in
//     the boards' own messages count. The board that is suspected, or
//     has resigned, comes last.
//   - A board follows the new leader when it hears its COORDINATOR, which counts as the
//     leader's first heartbeat, and not when it hears LEADER: the named board does
//     not have the address before it has heard LEADER too.
//   - LEADER is repeated until the COORDINATOR comes. If none comes, the next judge tries.
//   - A board that is named does not take the lead if it has heard the leader since COLLECT.
//   - COLLECT counts as a message of the judge, so that one of two judges gives way
//     before either has decided. It also ends the handover of a leader that has resigned if
//     its successors do not answer.
//   - At a cold start the judge has the address probed meanwhile, see election.Board.StartProbe.

// nameTries is how often LEADER is sent, 2Δ apart. At a loss of 20 % LEADER or the
// COORDINATOR that answers it is lost three times in a row once in 20 times.
const nameTries = 3

// assess has the judge elect if there is no leader that it trusts. The judge assesses this
// every δ, and when the leader may become suspect.
func (a *agents) assess() {
	switch {
	case a.judge != a.ID(), !a.isFollower():
	case a.Leader() != wire.Nobody && a.Now() < a.SuspectAt():
		a.SetDeadline(stableDue, a.SuspectAt())
	case a.AwaitsSuccessor():
	case a.Leader() == wire.Nobody:
		a.elect(election.ReasonNoLeader)
	default:
		a.elect(election.ReasonSilence)
	}
}

// elect is lines 50 to 52: the judge collects the lists.
func (a *agents) elect(reason election.Reason) {
	if !a.isFollower() || a.HandingOver() || !slices.ContainsFunc(a.trust, a.mayLead) {
		return
	}
	a.BecomeCandidate(reason)
	a.StartProbe()
	a.reported = append(a.reported[:0], a.ID())
	a.chosen, a.naming = wire.Nobody, 0
	a.Tell(a.trusted(), round(wire.TypeCollect, a.current))
	a.awaitReports()
}

// awaitReports begins to wait, or waits anew, until the list is stable for 2Δ (line 53), the
// time that COLLECT and REPORT may take together.
func (a *agents) awaitReports() {
	a.stableAt = a.Now() + 2*a.delay()
	a.SetDeadline(stableDue, a.stableAt)
}

// mayLead reports whether a board may lead: the priority in its last message lets it, and no pause forbids it.
func (a *agents) mayLead(id wire.ID) bool {
	return a.rank(id).Eligible() && !a.PausedOut(id)
}

// trusted are the other boards in the trusted set.
func (a *agents) trusted() []wire.ID {
	return slices.DeleteFunc(slices.Clone(a.trust), func(id wire.ID) bool { return id == a.ID() })
}

// collect is lines 67 and 68.
func (a *agents) collect(m *wire.Message) {
	if !a.presides(m.Sender, m.Round.Number) {
		return
	}
	a.collected, a.collectedAt = true, a.Now()
	switch {
	case a.isLeader():
		a.Reply()
	case a.EndHandover():
	case a.isFollower():
		a.Send(m.Sender, a.listMessage())
	}
}

// report is lines 59 to 63, for the judge, and lines 10 to 12 for what the leader sends.
func (a *agents) report(m *wire.Message) {
	r := &m.Report
	switch {
	case m.Leading && m.Sender == a.Leader():
		a.leaderChanged()
		if r.Timestamp > a.timestamp {
			a.adopt(r)
		}
	case m.Leading, a.judge != a.ID(), !a.isCandidate(), a.chosen != wire.Nobody, r.Round != a.current:
	case slices.Contains(a.trust, m.Sender) && !slices.Contains(a.reported, m.Sender):
		a.reported = append(a.reported, m.Sender)
		if r.Timestamp > a.timestamp {
			a.adopt(r)
			a.awaitReports()
		}
	}
}

// decide is lines 53 to 57, and what follows if nobody hears LEADER.
func (a *agents) decide() {
	switch {
	case !a.isCandidate() || a.Now() < a.stableAt || !a.MayClaim():
		return
	case a.chosen == wire.Nobody:
		a.chosen = a.mostImportant()
	}
	switch {
	case a.chosen == wire.Nobody:
		a.BecomeFollower(a.Leader(), election.ReasonNoLeader) // until the next OK
	case a.naming == nameTries:
		a.startRound(a.current + 1)
	case a.chosen == a.ID():
		a.BecomeLeader(election.ReasonNamed)
		a.name()
	default:
		a.name()
		a.SetDeadline(stableDue, a.Now()+2*a.delay())
	}
}

// name is lines 56 and 57.
func (a *agents) name() {
	a.naming++
	a.Tell(a.trusted(), wire.Message{
		Header: wire.Header{Type: wire.TypeLeader},
		Leader: wire.Leader{Leader: a.chosen, Timestamp: a.timestamp},
	})
	a.timestamp = 0
}

// mostImportant is line 55, or Nobody if none of those that reported may lead.
func (a *agents) mostImportant() wire.ID {
	var best standing
	for _, id := range a.reported {
		if !a.mayLead(id) {
			continue
		}
		if s := a.standing(id); best.rank.ID == wire.Nobody || a.moreImportant(s, best) {
			best = s
		}
	}
	return best.rank.ID
}

// standing is what counts for a board in an election.
type standing struct {
	rank   election.Rank // with the priority of the list, if the board is in it
	listed bool
	last   bool // it is suspected, or has resigned
}

func (a *agents) standing(id wire.ID) standing {
	s := standing{rank: a.rank(id), last: id == a.Predecessor()}
	i := slices.IndexFunc(a.list, func(s wire.Standing) bool { return s.ID == id })
	if i >= 0 && a.list[i].Priority > 0 {
		s.rank.Priority, s.listed = a.list[i].Priority, true
	}
	return s
}

// moreImportant reports whether the judge prefers x to y. The list has no grades, so it
// counts only among boards of the same grade.
func (a *agents) moreImportant(x, y standing) bool {
	switch {
	case x.last != y.last:
		return y.last
	case x.rank.Grade != y.rank.Grade:
		return x.rank.Grade < y.rank.Grade
	case x.listed != y.listed:
		return x.listed
	default:
		return a.Above(x.rank, y.rank)
	}
}

// named is lines 64 to 66.
func (a *agents) named(m *wire.Message) {
	if a.isCandidate() {
		a.BecomeFollower(a.Leader(), election.ReasonNewRound) // another judge has decided
	}
	if m.Sender != a.judge {
		return
	}
	a.timestamp = 0
	switch {
	case m.Leader.Leader != a.ID():
	case a.isLeader():
		a.Reply() // the judge has not heard the COORDINATOR
	case a.isFollower() && a.eligible() && !a.trustsLeader():
		a.BecomeLeader(election.ReasonNamed)
	}
}

// trustsLeader reports whether this board knows better than a judge that has
// named it, since it has heard the leader after the judge asked.
func (a *agents) trustsLeader() bool {
	p, known := a.Peer(a.Leader())
	switch {
	case !known:
		return false
	case !a.collected: // COLLECT was lost
		return a.Now() < a.SuspectAt()
	default:
		return p.LastHeard > a.collectedAt
	}
}
