package literature

import (
	"slices"
	"time"

	"topdog/election"
	"topdog/wire"
)

// agents is the algorithm of Li, Zhao and Wang, "Group leader election algorithm
// for agent groups based distributed network management". Its line numbers are
// those of the paper's pseudo-code.
//
// It assumes that processes know each other, that they crash and do not come
// back, that links lose messages now and then, and that from some time on what is
// not lost arrives within Δ (partial synchrony). It does not assume that all
// processes can know the one of the highest rank: one process judges for all.
//
//  1. The leader sends its list of the processes and their priorities with every
//     heartbeat, and a detector with freshness points, NFD-E (in package silence),
//     watches the heartbeats. (Below, lines 1–15.)
//  2. All processes agree on which of them are trusted, by a coordinator that rotates
//     (Aguilera, Delporte-Gallet, Fauconnier and Toueg, "Stable leader election",
//     2001): the judge of round r is process r mod n. (agents_trust.go, lines 16–44.)
//  3. The judge collects the lists when the leader is gone, and names the process of
//     the largest priority in the newest one. (agents_judge.go, lines 45–68.)
//
// Its messages are START, OK and ACK of phase 2, COLLECT, REPORT and LEADER of
// phase 3. Phase 2 never ends: with n boards it costs one OK to n-1 and n-1 ACKs
// every δ = 2H, on a multicast wire n packets, which is the price of a
// membership that all agree on. Each board that comes costs a START more. Phase 3
// costs one COLLECT and one LEADER to n-1, and n-2 REPORTs of those that live. A
// takeover takes the detector's 1¼ to 2¼ H and 2Δ = H/2, and up to 4H in all for the
// judge if that dies at the same time.
//
// The leader is the board of the highest rank in the list at the time of the election.
// A board of higher rank that comes later does not take the lead from it.
//
// What is ours in phase 1: a HEARTBEAT has 24 bytes whatever the size of the group, so the
// list travels beside it as a REPORT, when it has changed and once a second. What
// is ours in the other phases stands there.
type agents struct {
	plain
	running bool // takes part in phases 2 and 3: it has listened

	// Phase 1.
	list              []wire.Standing // ListPRI
	timestamp         uint32          // of the list
	author            wire.ID         // whose list it is
	authorIncarnation wire.Incarnation
	listedAt          election.Instant // when this leader sent its list last

	// Phase 2.
	current   uint32    // r, the round that this board is in
	judge     wire.ID   // of that round; Nobody if this board has just joined
	heard     bool      // the judge has spoken in this round
	trust     []wire.ID // the trusted set; replaced, never changed in place
	enteredAt election.Instant
	// protestedAt is when this board last began a round because OK did not trust it.
	protestedAt election.Instant
	acked       map[wire.ID]election.Instant // of the judge: when each acknowledged the round last

	// Phase 3.
	collected   bool             // the judge of this round has sent COLLECT
	collectedAt election.Instant // when it did so last
	reported    []wire.ID        // who answered the COLLECT of this judge
	stableAt    election.Instant // when its list has not changed for 2Δ
	chosen      wire.ID          // whom it has named, or Nobody
	naming      int              // how often
}

func newAgents(b *election.Board) election.Algorithm {
	return &agents{
		plain: plain{b}, acked: make(map[wire.ID]election.Instant),
		protestedAt: b.Now() - time.Minute,
	}
}

// The deadlines of agents.
const (
	roundDue  = election.OwnDeadline + iota // the judge of the round is late
	judgeDue                                // the judge speaks again
	stableDue                               // the judge's list has been stable for long enough
)

// listInterval is how often the leader sends its list although nothing has changed.
// Boards that joined or lost a REPORT are without it for so long.
const listInterval = time.Second

// okInterval is δ: the judge says OK every δ, and who does not hear it for 2δ goes on
// to the next round. A takeover waits that long if the judge has died too, and all
// boards answer every OK. With two heartbeats in between, the judge is missed
// after at most 4H, about twice as long as the detector may need for the leader, and the
// answers of 50 boards are 250 small packets a second at the default H.
func (a *agents) okInterval() time.Duration { return 2 * a.Interval() }

// delay is Δ, within which a message arrives that is not lost. A quarter of the
// interval, 25 ms at the default one, is what the detector too allows for jitter.
func (a *agents) delay() time.Duration { return a.Interval() / 4 }

// ElectionDuration: the lists are stable after 2Δ, and LEADER and COORDINATOR take Δ each.
func (a *agents) ElectionDuration() time.Duration { return 4 * a.delay() }

// Turn is line 8: the leader is suspected, or there is none. Only the judge acts, as soon
// as its detector suspects the leader.
func (a *agents) Turn(reason election.Reason) {
	if a.isListener() {
		a.BecomeFollower(wire.Nobody, reason)
	}
	if !a.running {
		a.running = true
		a.startRound(0) // lines 22 and 23
	}
	switch {
	case a.judge == a.ID():
		a.elect(reason)
	case a.judge == a.Predecessor() && a.judge != wire.Nobody:
		// Ours: nobody waits for an OK of the board that is suspected or has left.
		a.startRound(a.current + 1)
	}
}

// Joined: a board that finds a group is in no round until it hears the judge,
// whose OK does not trust it yet: it has the next round begin (line 33). Ours: the paper's
// processes all begin together, with round 0; here that would only be answered with START.
func (a *agents) Joined() {
	a.LeaderChanged()
	if !a.running {
		a.running = true
		a.enter(0, wire.Nobody)
	}
}

// LeaderChanged is line 66 for a board that did not get LEADER: a new leader counts
// its lists from 1. The old list stays until then.
func (a *agents) LeaderChanged() {
	if p, known := a.Peer(a.Leader()); known && (a.author != p.ID || a.authorIncarnation != p.Incarnation) {
		a.author, a.authorIncarnation, a.timestamp = p.ID, p.Incarnation, 0
	}
}

// Reset leaves all rounds, and forgets the lists.
func (a *agents) Reset() { *a = *newAgents(a.Board).(*agents) }

// HeartbeatSent is lines 4 to 6: the leader sends its list, a REPORT beside the heartbeat.
func (a *agents) HeartbeatSent() {
	if a.author != a.ID() {
		a.author, a.authorIncarnation, a.timestamp = a.ID(), a.Config().Incarnation, 0
	}
	list := a.ranks()
	if a.timestamp > 0 && a.Now()-a.listedAt < listInterval && slices.Equal(list, a.list) {
		return
	}
	a.timestamp++
	a.list, a.listedAt = list, a.Now()
	a.Send(wire.Nobody, a.listMessage())
}

// ranks lists the trusted boards with the priorities that they told last.
func (a *agents) ranks() []wire.Standing {
	list := make([]wire.Standing, 0, len(a.trust))
	for _, id := range a.trust {
		if priority, known := a.priority(id); known {
			list = append(list, wire.Standing{ID: id, Priority: priority})
		}
	}
	return list
}

// priority returns what a board told of itself last. 0 is one that must not lead.
func (a *agents) priority(id wire.ID) (priority uint8, known bool) {
	if id == a.ID() {
		return a.Rank().Priority, true
	}
	p, known := a.Peer(id)
	return p.Priority, known
}

// grade returns how fit a board said it was last.
func (a *agents) grade(id wire.ID) wire.Grade {
	if id == a.ID() {
		return a.Rank().Grade
	}
	p, _ := a.Peer(id)
	return p.Grade
}

func (a *agents) listMessage() wire.Message {
	return wire.Message{
		Header: wire.Header{Type: wire.TypeReport},
		Report: wire.Report{Round: a.current, Timestamp: a.timestamp, Standings: a.list},
	}
}

// adopt takes over a list that is newer.
func (a *agents) adopt(r *wire.Report) {
	a.list, a.timestamp = slices.Clone(r.Standings), r.Timestamp
}

// Step receives the messages of phases 2 and 3, and the lists of phase 1.
func (a *agents) Step(m *wire.Message) {
	if !a.running {
		return
	}
	switch m.Type {
	case wire.TypeStart:
		a.start(m.Sender, m.Round.Number)
	case wire.TypeOK:
		a.ok(m)
	case wire.TypeAck:
		a.ack(m)
	case wire.TypeCollect:
		a.collect(m)
	case wire.TypeReport:
		a.report(m)
	case wire.TypeLeader:
		a.named(m)
	}
}

// Expired is lines 38 and 39, task 0 of the judge, and line 53.
func (a *agents) Expired(d election.Deadline) {
	switch d {
	case roundDue:
		a.startRound(a.current + 1) // lines 38 and 39
	case judgeDue:
		a.preside()
	case stableDue:
		if a.isCandidate() {
			a.decide()
		} else {
			a.assess()
		}
	}
}

// AddressFree is line 53 at a cold start.
func (a *agents) AddressFree() { a.decide() }

// Trusted lists the boards that this one trusts.
func (a *agents) Trusted() []wire.ID { return slices.Sorted(slices.Values(a.trust)) }
