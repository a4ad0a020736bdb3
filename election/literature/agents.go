package literature

import (
	"slices"
	"sort"
	"time"

	"topdog/election"
	"topdog/wire"
)

// agents is the algorithm of Li, Zhao and Wang, "Group leader election algorithm
// for agent groups based distributed network management". Its line numbers are
// those of the paper's pseudo-code.
//
// It assumes that processes know each other, that they crash and do not come
// back, that links lose messages now and then, and that from some time on every message
// that is not lost arrives within Δ (partial synchrony). It does not assume that all
// processes can know the one of the highest rank: one process judges for all.
//
//  1. The leader sends its list of the processes and their priorities with every
//     heartbeat, and a detector with freshness points, NFD-E (in package silence),
//     watches the heartbeats. (Lines 1–15.)
//  2. All processes agree on which of them are trusted, by a coordinator that rotates
//     (Aguilera, Delporte-Gallet, Fauconnier and Toueg, "Stable leader election",
//     2001): the judge of round r is process r mod n. (Lines 16–44.)
//  3. The judge collects the lists when the leader is gone, and names the process of
//     the largest priority in the newest one. (agents_judge.go, lines 45–68.)
//
// Its messages are START, OK and ACK of phase 2, COLLECT, REPORT and LEADER of
// phase 3. Phase 2 never ends: with n boards it costs one OK to n-1 and n-1 ACKs
// every δ = 2H, which is n packets on a multicast wire. That is the price of a
// membership that all agree on. Each board that joins costs one START more. Phase 3
// costs one COLLECT and one LEADER to n-1, and n-2 REPORTs of those that live. A
// takeover takes the detector's 1¼ to 2¼ H and 2Δ = H/2. If the judge dies at the same
// time, it takes up to 4H in all.
//
// The leader is the board of the highest rank in the list at the time of the election.
// A board of higher rank that joins later does not take the lead from it.
//
// What is ours in phase 1: a HEARTBEAT has 24 bytes whatever the size of the group, so the
// list travels beside it as a REPORT, when it has changed and once a second. What
// is ours in phase 2 follows further below, and phase 3 has a file of its own.
type agents struct {
	plain
	running bool // takes part in phases 2 and 3: it has listened

	// Phase 1.
	list              []wire.Standing // ListPRI
	timestamp         uint32          // of the list
	author            wire.ID         // the leader that has sent the list
	authorIncarnation wire.Incarnation
	listedAt          election.Instant // when this leader last sent its list

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
	chosen      wire.ID          // the board that it has named, or Nobody
	naming      int              // how often it has named that board
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
// A board that has joined or lost a REPORT is without the list for that long.
const listInterval = time.Second

// okInterval is δ: the judge says OK every δ, and a board that does not hear it for 2δ goes on
// to the next round. A longer δ makes a takeover wait longer if the judge has died too. A
// shorter one makes more traffic, since all boards answer every OK. With δ = 2H, the judge is
// missed after at most 4H, about twice as long as the detector may need for the leader, and
// the answers of 50 boards are 250 small packets a second at the default H.
func (a *agents) okInterval() time.Duration { return 2 * a.Interval() }

// delay is Δ, within which a message arrives that is not lost. It is a quarter of the
// interval, 25 ms by default. The detector allows as much for jitter.
func (a *agents) delay() time.Duration { return a.Interval() / 4 }

// ElectionDuration: the lists are stable after 2Δ, and LEADER and COORDINATOR take Δ each.
func (a *agents) ElectionDuration() time.Duration { return 4 * a.delay() }

// Step does what the lines of the pseudo-code say.
func (a *agents) Step(e election.Event) (done bool) {
	switch e.Kind {
	case election.EventTurn: // 8
		a.turn(e.Reason)
	case election.EventJoined:
		a.joined()
	case election.EventLeader:
		a.leaderChanged()
	case election.EventHeartbeat: // 4–6
		a.sendList()
	case roundDue: // 38, 39
		a.startRound(a.current + 1)
	case judgeDue: // task 0 of the judge
		a.preside()
	case stableDue: // 53
		if a.isCandidate() {
			a.decide()
		} else {
			a.assess()
		}
	case election.EventAddressFree: // 53 at a cold start
		a.decide()
	case election.EventCutOff: // this board leaves all rounds, and forgets the lists
		*a = *newAgents(a.Board).(*agents)
	case election.EventMessage:
		if a.running {
			a.receive(e.Message)
		}
	}
	return false
}

// turn is line 8: the leader is suspected, or there is none. Only the judge acts, as soon
// as its detector suspects the leader.
func (a *agents) turn(reason election.Reason) {
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

// joined: a board that finds a group is in no round until it hears the judge. The judge's OK
// does not trust it yet, so it begins the next round (line 33). Ours: the paper's
// processes all begin together, with round 0; here that would only be answered with START.
func (a *agents) joined() {
	a.leaderChanged()
	if !a.running {
		a.running = true
		a.enter(0, wire.Nobody)
	}
}

// leaderChanged is line 66 for a board that did not get LEADER: a new leader counts
// its lists from 1. The old list stays until the first of them comes.
func (a *agents) leaderChanged() {
	if p, known := a.Peer(a.Leader()); known && (a.author != p.ID || a.authorIncarnation != p.Incarnation) {
		a.author, a.authorIncarnation, a.timestamp = p.ID, p.Incarnation, 0
	}
}

// sendList is lines 4 to 6: the leader sends its list, a REPORT beside the heartbeat.
func (a *agents) sendList() {
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
		if _, known := a.Peer(id); known || id == a.ID() {
			list = append(list, wire.Standing{ID: id, Priority: a.rank(id).Priority})
		}
	}
	return list
}

// rank returns the rank in a board's last message. A board with the priority 0 must not lead.
func (a *agents) rank(id wire.ID) election.Rank {
	if id == a.ID() {
		return a.Rank()
	}
	p, _ := a.Peer(id)
	return election.Rank{Grade: p.Grade, Priority: p.Priority, ID: id}
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

// receive receives the messages of phases 2 and 3, and the lists of phase 1.
func (a *agents) receive(m *wire.Message) {
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

// Trusted lists the boards that this one trusts.
func (a *agents) Trusted() []wire.ID {
	trusted := slices.Clone(a.trust)
	sort.Slice(trusted, func(i, j int) bool { return trusted[i] < trusted[j] })
	return trusted
}

// Phase 2: the boards agree on which of them are trusted.
//
// What is ours:
//   - The paper's processes are numbered once and for all. Here n and the numbers
//     follow from the boards that each board knows as live, ordered by id, and
//     those may differ for a while. So the board that says OK in a round counts as its
//     judge. Of two judges of one round, the one with the larger id stays, and the
//     other one follows it as soon as it hears it.
//   - A board that enters a round because of an OK sends no START to that judge, which
//     knows the round already.
//   - With multicast, START reaches everybody. So the first one makes all boards
//     enter the round, and they need not tell the judge, which has heard it too. Only
//     the judge answers a START of an earlier round. Multicast also makes a board that
//     the judge did not know known to all: in a group of 250, a board says
//     HELLO only every 31 s.
//   - A board that OK does not trust starts a round at most once in δ. Otherwise it and a
//     judge that does not know it could start rounds as fast as messages travel.
//   - Rounds are compared by serial number arithmetic (RFC 1982): neither a
//     counter that wraps nor a forged round can stop the group for ever.

// later reports whether the round k comes after r.
func later(k, r uint32) bool { return int32(k-r) > 0 }

// members are the boards that this one knows as live, including itself: Π.
func (a *agents) members() []wire.ID {
	ids := a.Peers(func(p *election.Peer) bool { return p.ID != wire.Nobody && p.Live(a.Now()) })
	at, _ := slices.BinarySearch(ids, a.ID())
	return slices.Insert(ids, at, a.ID())
}

// startRound is lines 16 to 21.
func (a *agents) startRound(s uint32) {
	if a.enterNext(s); a.judge == a.ID() {
		return
	}
	a.Tell([]wire.ID{a.judge}, round(wire.TypeStart, s))
}

// enterNext enters a round in which no judge has spoken yet.
func (a *agents) enterNext(s uint32) {
	members := a.members()
	a.enter(s, members[s%uint32(len(members))])
	if a.judge == a.ID() {
		a.preside()
	}
}

// enter is lines 18 to 21. At first everybody is trusted.
func (a *agents) enter(s uint32, judge wire.ID) {
	a.current, a.judge, a.heard = s, judge, false
	a.trust = a.members()
	a.enteredAt, a.collected = a.Now(), false
	clear(a.acked)
	a.ClearDeadline(judgeDue)
	a.ClearDeadline(stableDue)
	a.restartTimer()
	if a.isCandidate() {
		a.BecomeFollower(a.Leader(), election.ReasonNewRound) // phase 3 of the former round is void
	}
}

// restartTimer is lines 21 and 37. The timer expires after 2δ (line 38).
func (a *agents) restartTimer() { a.SetDeadline(roundDue, a.Now()+2*a.okInterval()) }

// preside is task 0 of the judge, lines 25 to 30: once every δ.
func (a *agents) preside() {
	if a.Now()-a.enteredAt >= 2*a.okInterval() {
		a.trust = slices.DeleteFunc(slices.Clone(a.trust), a.unacknowledged)
	}
	a.heard = true
	a.Tell(nil, wire.Message{
		Header: wire.Header{Type: wire.TypeOK},
		OK:     wire.OK{Round: a.current, Trust: a.trust},
	})
	a.restartTimer() // a judge hears itself
	a.SetDeadline(judgeDue, a.Now()+a.okInterval())
	a.assess()
}

// unacknowledged is the condition of line 29.
func (a *agents) unacknowledged(id wire.ID) bool {
	at, ok := a.acked[id]
	return id != a.ID() && (!ok || a.Now()-at > 2*a.okInterval())
}

func (a *agents) ack(m *wire.Message) {
	if a.judge == a.ID() && m.Round.Number == a.current && slices.Contains(a.trust, m.Sender) {
		a.acked[m.Sender] = a.Now()
	}
}

// ok is task 1 for OK, lines 31 to 37 and 40 to 44.
func (a *agents) ok(m *wire.Message) {
	switch {
	case !a.presides(m.Sender, m.OK.Round):
	case !slices.Contains(m.OK.Trust, a.ID()):
		if a.Now()-a.protestedAt >= a.okInterval() {
			a.protestedAt = a.Now()
			a.startRound(a.current + 1) // line 33
		}
	default:
		if !slices.Equal(a.trust, m.OK.Trust) {
			a.trust = slices.Clone(m.OK.Trust)
		}
		a.Send(m.Sender, round(wire.TypeAck, a.current))
		a.restartTimer()
	}
}

// start is task 1 for START, lines 40 to 44.
func (a *agents) start(from wire.ID, k uint32) {
	switch {
	case later(k, a.current) && a.Config().Fanout == election.FanoutMulticast:
		a.enterNext(k)
	case later(k, a.current):
		a.startRound(k)
	case later(a.current, k) && (a.judge == a.ID() || a.Config().Fanout == election.FanoutUnicast):
		a.Send(from, round(wire.TypeStart, a.current))
	}
}

// presides notes that a board speaks as the judge of round k, and reports
// whether it is the judge of the round that this board is in now.
func (a *agents) presides(judge wire.ID, k uint32) bool {
	switch {
	case later(a.current, k):
		a.Send(judge, round(wire.TypeStart, a.current)) // lines 43 and 44
		return false
	case later(k, a.current):
		a.enter(k, judge) // lines 40 to 42
	case judge == a.judge:
	case a.heard && judge < a.judge:
		return false // it will hear that there is another judge
	default:
		a.enter(k, judge)
	}
	a.heard = true
	return true
}
