package literature

import (
	"slices"

	"topdog/election"
	"topdog/wire"
)

// This file is phase 2 of agents: the boards agree on which of them are trusted.
//
// What is ours:
//   - The paper's processes are numbered once and for all. Here n and the numbers
//     follow from the boards that each board knows as live, ordered by id, and
//     those may differ for a while. So whoever says OK in a round is taken for its
//     judge; of two judges of one round the one with the larger id stays, and the
//     other one follows it when it hears it.
//   - A board that enters a round because its judge said OK sends that judge no
//     START, which would tell it what it has just said.
//   - With multicast START reaches everybody. So the first one makes all boards
//     enter the round, and they do not tell the judge what it has heard as well; one
//     of an earlier round is answered by the judge alone. More than that, a board
//     that a judge did not know is known to all then: in a group of 250 it says
//     HELLO every 31 s only.
//   - A board that OK does not trust starts a round once in δ at most, or it and a
//     judge that does not know it could start them as fast as messages travel.
//   - Rounds are compared by serial number arithmetic (RFC 1982): neither a
//     counter that wraps nor a forged round can stop the group for ever.

// later reports whether the round k comes after r.
func later(k, r uint32) bool { return int32(k-r) > 0 }

// members are the boards that this one knows as live, itself among them: Π.
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
	a.Tell([]wire.ID{a.judge}, wire.Message{
		Header: wire.Header{Type: wire.TypeStart},
		Round:  wire.Round{Number: s},
	})
}

// enterNext enters a round in which no judge has spoken yet.
func (a *agents) enterNext(s uint32) {
	members := a.members()
	a.enter(s, members[s%uint32(len(members))])
	if a.judge == a.ID() {
		a.preside()
	}
}

// enter is lines 18 to 21: everybody is trusted at first.
func (a *agents) enter(s uint32, judge wire.ID) {
	a.current, a.judge, a.heard = s, judge, false
	a.trust = a.members()
	a.enteredAt, a.collected = a.Now(), false
	clear(a.acked)
	a.ClearDeadline(judgeDue)
	a.ClearDeadline(stableDue)
	a.restartTimer()
	if a.isCandidate() {
		a.BecomeFollower(a.Leader(), election.ReasonNewRound) // its phase 3 is void
	}
}

// restartTimer is lines 21 and 37. The timer is up after 2δ (line 38).
func (a *agents) restartTimer() { a.SetDeadline(roundDue, a.Now()+2*a.okInterval()) }

func (a *agents) sendRound(to wire.ID, kind wire.Type, round uint32) {
	a.Send(to, wire.Message{Header: wire.Header{Type: kind}, Round: wire.Round{Number: round}})
}

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
	a.restartTimer() // it hears itself
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
		a.sendRound(m.Sender, wire.TypeAck, a.current)
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
		a.sendRound(from, wire.TypeStart, a.current)
	}
}

// presides notes that a board speaks as the judge of round k, and reports
// whether it is the judge of the round that this board is in now.
func (a *agents) presides(judge wire.ID, k uint32) bool {
	switch {
	case later(a.current, k):
		a.sendRound(judge, wire.TypeStart, a.current) // lines 43 and 44
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
