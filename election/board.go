package election

import (
	"fmt"
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// Board is a board as its algorithm sees it: all that an algorithm may read of the
// core, and all that it may do. It has no state of its own.
type Board struct{ core *Core }

// Who this board is, and what it knows of the others.

// Config returns the configuration. The priority in it is not the rank: see Rank.
func (b *Board) Config() Config { return b.core.cfg }

// ID returns the id of this board.
func (b *Board) ID() wire.ID { return b.core.cfg.ID }

// Interval returns the heartbeat interval, H.
func (b *Board) Interval() time.Duration { return b.core.cfg.Interval }

// Grace returns how late a heartbeat of the leader may be before anybody takes over, G.
func (b *Board) Grace() time.Duration { return b.core.detector.Grace() }

// Now returns the time of the present call of the core.
func (b *Board) Now() Instant { return b.core.now }

// Role returns what this board is at the moment.
func (b *Board) Role() Role { return b.core.role }

// Leader returns whom this board follows or suspects, itself if it leads, or wire.Nobody.
func (b *Board) Leader() wire.ID { return b.core.leader }

// Rank returns the rank of this board. One that stops may not lead.
func (b *Board) Rank() Rank { return b.core.rank() }

// Above reports whether the rank x comes before y in the order of the group.
func (b *Board) Above(x, y Rank) bool { return b.core.Above(x, y) }

// RankOf returns the rank of a message's sender.
func (b *Board) RankOf(h *wire.Header) Rank { return b.core.rankOf(h) }

// Outranks reports whether this board comes before another one that it knows.
func (b *Board) Outranks(id wire.ID) bool { return b.core.outranks(id) }

// PausedOut reports whether a board may not lead because of a pause.
func (b *Board) PausedOut(id wire.ID) bool { return b.core.paused() && b.core.pause.leader != id }

// Supersedes reports whether this board should have the lead instead of a living leader: it
// outranks it, and it passes. An unfit board does not take the lead from anybody, and an unfit
// leader gives it to a fitter board by itself.
func (b *Board) Supersedes(leader wire.ID) bool { return b.core.supersedes(leader) }

// Peer returns what this board knows of another one; ok is false if that is nothing.
func (b *Board) Peer(id wire.ID) (p Peer, ok bool) { return b.core.Peer(id) }

// Peers returns the ids of the boards that satisfy a condition, dead or alive, ordered by id.
// The condition must not change them.
func (b *Board) Peers(holds func(*Peer) bool) []wire.ID { return b.core.roster.Which(holds) }

// Predecessor returns the leader that this board suspects or has lost, or wire.Nobody.
func (b *Board) Predecessor() wire.ID { return b.core.predecessor() }

// Succession returns how many live boards come before this one when the predecessor is gone.
func (b *Board) Succession() int { return b.core.succession() }

// What this board knows of the leader and of its own candidacy.

// SuspectAt returns when the leader becomes suspect unless it is heard before.
func (b *Board) SuspectAt() Instant { return b.core.detector.Freshness() }

// AnswerTimeout returns the time limit T, within which a living board answers.
func (b *Board) AnswerTimeout() time.Duration { return b.core.detector.Questions().Duration() }

// Evidence returns what this board knows of its leader, as an ANSWER tells it.
func (b *Board) Evidence() wire.Answer {
	return b.core.knownOfLeader()
}

// Cause returns why this board became a candidate.
func (b *Board) Cause() Reason { return b.core.candidacy.cause }

// SetCause replaces the cause of a candidate. Its reason to lead follows from that.
func (b *Board) SetCause(reason Reason) { b.core.candidacy.cause = reason }

// SuspectsLeader reports whether this board is a candidate because the leader fell silent or
// there is none, and not because it joins, was called upon or outranks the leader.
func (b *Board) SuspectsLeader() bool { return b.core.suspectsLeader() }

// Round returns how often this board has asked since it became a candidate. It is 0 again
// when the board was not running while it waited for answers.
func (b *Board) Round() uint8 { return b.core.asking.round }

// MayClaim reports whether nothing but the algorithm stands between a candidate and the
// lead: at a cold start the address must have been found free, and later it must not answer
// for a leader that is silent, and this board must hear at all. When something stood between
// them, and does no more, the algorithm gets EventAddressFree.
func (b *Board) MayClaim() bool {
	return b.core.mayClaimOrWait()
}

// AddressInUse reports whether this board waits because a foreign machine has the address.
// Such a board answers no ELECTION: it could not win, and the others would ask again for ever.
func (b *Board) AddressInUse() bool { return b.core.role == Listener && b.core.coldStart.retry > 0 }

// AwaitsSuccessor reports whether the leader has handed over to a board that has
// not been heard to lead yet. That one comes first.
func (b *Board) AwaitsSuccessor() bool {
	c := b.core
	return c.role == Follower && c.leader == wire.Nobody && c.following.turn.Ahead(c.now)
}

// HandingOver reports whether this board leaves the group, or has resigned and not heard
// its successor yet.
func (b *Board) HandingOver() bool { return b.core.stopping || b.core.handover.repeat.Set }

// HeartbeatOverdue reports whether this leader should have sent a heartbeat by now. Then
// its process was late, and what came meanwhile is still to be received.
func (b *Board) HeartbeatOverdue() bool { return b.core.leading.heartbeat.Reached(b.core.now) }

// deadline returns where one of the algorithm's deadlines is kept; nil if the present role
// has none of that name.
func (b *Board) deadline(d EventKind) *clock.Deadline {
	c := b.core
	switch {
	case d >= OwnDeadline:
		return &c.own[d-OwnDeadline]
	case d == AnswersDue && (c.role == Candidate || c.role == Leader):
		return &c.answers
	case d == CoordinatorDue && c.role == Candidate:
		return &c.candidacy.coordinator
	default:
		return nil
	}
}

// SetDeadline sets one of the algorithm's deadlines. To set one that the present role does
// not have is a mistake of the algorithm: it must change the role before.
func (b *Board) SetDeadline(d EventKind, at Instant) {
	kept := b.deadline(d)
	if kept == nil {
		panic(fmt.Sprintf("election: a %v has no deadline %d", b.core.role, d))
	}
	*kept = clock.Due(at)
}

// ClearDeadline clears one of them.
func (b *Board) ClearDeadline(d EventKind) {
	if kept := b.deadline(d); kept != nil {
		*kept = clock.Deadline{}
	}
}

// Deadline returns one of them.
func (b *Board) Deadline(d EventKind) (set clock.Deadline) {
	if kept := b.deadline(d); kept != nil {
		set = *kept
	}
	return set
}

// Postpone gives a board of higher rank that acts the time to finish, as a follower does.
func (b *Board) Postpone(by time.Duration) { b.core.postpone(by) }

// KeepListening makes a listener listen for so long at least.
func (b *Board) KeepListening(d time.Duration) {
	b.core.keepListening(d)
}

// AskLater makes a listener ask only then who leads, unless it has found out.
func (b *Board) AskLater(after time.Duration) { b.core.listening.query = clock.Due(b.core.now + after) }

// The doors between roles.

// BecomeFollower makes this board follow a leader, or wait for one if that is wire.Nobody.
func (b *Board) BecomeFollower(leader wire.ID, reason Reason) { b.core.becomeFollower(leader, reason) }

// BecomeCandidate makes this board a candidate that has not asked anybody.
func (b *Board) BecomeCandidate(reason Reason) { b.core.becomeCandidate(reason) }

// BecomeLeader makes this board acquire the address and proclaim itself.
func (b *Board) BecomeLeader(reason Reason) { b.core.becomeLeader(reason) }

// StartProbe has the address probed if this board has found no leader since its start.
func (b *Board) StartProbe() { b.core.startProbe() }

// Claim makes this candidate the leader, since nobody has objected. If a leader of lower rank
// is alive, this board asks it to hand over first. AnswersDue says then when to claim again.
func (b *Board) Claim() { b.core.claim() }

// SetPredecessor says which leader this board takes for failed.
func (b *Board) SetPredecessor(id wire.ID) { b.core.lastLeader.predecessor = id }

// DeclareDead takes a board for dead until it is heard again.
func (b *Board) DeclareDead(id wire.ID) { b.core.roster.DeclareDead(id) }

// EndHandover gives up waiting for the successor of this board, since there is an election.
// It reports whether the board was to stop, and has finished.
func (b *Board) EndHandover() (finished bool) { return b.core.endHandover() }

// What this board says.

// Send sends a message to one board, or to the whole group if that is wire.Nobody.
func (b *Board) Send(to wire.ID, m wire.Message) { b.core.send(to, m) }

// Tell sends what concerns several boards: as one multicast that the others ignore, or as
// a unicast to each, as the configuration has it. nil means everybody.
func (b *Board) Tell(audience []wire.ID, m wire.Message) { b.core.tell(audience, m) }

// CallElection asks an audience, or everybody if that is nil, in an ELECTION of this
// round, and gives it so much time to answer.
func (b *Board) CallElection(round uint8, audience []wire.ID, within time.Duration) {
	b.core.asking.round = round
	b.core.sendElection(audience)
	b.SetDeadline(AnswersDue, b.core.now+within)
}

// SayHello makes this board known to another one, or to all.
func (b *Board) SayHello(to wire.ID) { b.core.sayHello(to) }

// Proclaim has this leader say once more that it leads.
func (b *Board) Proclaim() { b.core.proclaim() }

// Coordinator returns the COORDINATOR of this leader without the candidates.
func (b *Board) Coordinator() wire.Message { return b.core.coordinator() }

// Reply has this leader answer all who doubt that it lives.
func (b *Board) Reply() { b.core.reply() }
