package literature

import (
	"slices"
	"sort"

	"topdog/election"
	"topdog/wire"
)

// candidates is the algorithm of Murshed and Allen, "Enhanced bully algorithm for
// leader node election in synchronous distributed systems" (2012), as Kabashi,
// Zeqiri and Zabeli restate it: the upper half of the boards are candidates, the
// others are ordinary, and only candidates are asked.
//
// It assumes that boards know each other's ids and who is a candidate, but not
// who is alive; that messages arrive within a bounded time; and that boards do
// not pause.
//
//  1. A board notices that the coordinator has failed.
//     a. An ordinary one sends ELECTION to the candidates. If none of them answers,
//     it sends ELECTION to the ordinary boards of higher rank.
//     b. A candidate sends ELECTION to the candidates of higher rank.
//  2. A board that receives an ELECTION answers OK (ANSWER).
//  3. The board that asked names the highest of those that answered, or itself if
//     nobody did, in a COORDINATOR to all. The COORDINATOR also lists the candidates.
//  4. A board joins.
//     a. It sends QUERY to the candidates; if it is one itself, to those of higher rank.
//     b. A board that receives it answers with the coordinator and the candidates: the
//     coordinator itself with its COORDINATOR, to this board alone; the others
//     with an ANSWER.
//     c. If it outranks the coordinator, it holds an election.
//
// With n boards, including the failed coordinator, an election costs n-1 messages
// at best: a candidate that has only the failed coordinator above it sends
// COORDINATOR at once. At worst an ordinary board notices: ⌈n/2⌉ ELECTION, an OK
// from all of their receivers except the failed one, n-1 COORDINATOR.
//
// The candidates are the upper ⌈n/2⌉ of the boards that the author of the
// COORDINATOR knows. The new coordinator is always one of them, whatever its rank. All
// boards use the set that they heard last. A board that has heard none derives one from
// the boards that it knows.
//
// What is ours, besides what initiator says:
//
//   - The round in an ELECTION says which boards a multicast concerns: 1 is for the
//     candidates, and 2 for all boards of higher rank. Only a COORDINATOR carries the
//     candidates, an ANSWER does not.
//   - A board that joins and knows nobody asks everybody. A board that has nobody above
//     it to ask listens for a heartbeat first. The coordinator answers every question.
//   - A board that does not know the candidates, or has not heard one of them, asks
//     where it would claim otherwise, because a board may be above it.
//   - A board that outranks a new coordinator holds an election as in 4c: its OK was
//     lost, or it was cut off.
//   - A living coordinator of lower rank hands over before the winner acquires the
//     address (see election.Board.Claim). If it fails meanwhile, that is step 1.
//   - A board that holds an election answers a QUERY as well (4b). A board that joins
//     would hear nobody otherwise, and claim beside it.
type candidates struct {
	initiator
	set []wire.ID // the candidates, as heard last; never changed, only replaced
}

func newCandidates(b *election.Board) election.Algorithm {
	return &candidates{initiator: initiator{plain: plain{b}}}
}

// The rounds in which an ELECTION is sent.
const (
	candidatesOnly = 1 // it concerns the candidates
	allHigher      = 2 // it concerns all that outrank the sender
)

// current is the set of candidates that this board uses.
func (a *candidates) current() []wire.ID {
	if len(a.set) > 0 {
		return a.set
	}
	return a.upperHalf(a.Predecessor())
}

func (a *candidates) candidate(id wire.ID) bool { return slices.Contains(a.current(), id) }

func everybody(*election.Peer) bool { return true }

// upperHalf divides all boards that this one knows, dead or alive and including itself,
// into candidates, which it returns by rank, and ordinary ones. Candidates
// that this board has only been told of count, and there are no fewer candidates than
// before: a board that has just joined knows too few boards to divide them.
func (a *candidates) upperHalf(coordinator wire.ID) []wire.ID {
	ranks := []election.Rank{a.Rank()}
	for _, id := range a.Peers(everybody) {
		p, _ := a.Peer(id)
		ranks = append(ranks, p.Rank())
	}
	half := max((len(ranks)+1)/2, len(a.set))
	ranks = slices.DeleteFunc(ranks, func(r election.Rank) bool { return !r.Eligible() })
	sort.Slice(ranks, func(i, j int) bool { return a.Above(ranks[i], ranks[j]) })
	var set []wire.ID
	for _, r := range ranks {
		set = append(set, r.ID)
	}
	for _, id := range a.set {
		if _, known := a.Peer(id); !known && id != a.ID() {
			set = append(set, id)
		}
	}
	set = set[:min(half, len(set))]
	switch {
	case coordinator == wire.Nobody || slices.Contains(set, coordinator):
	case len(set) < max(half, 2):
		set = append(set, coordinator)
	default:
		set[len(set)-1] = coordinator
	}
	return set
}

// electors are the candidates that this board asks: all of them, or those of higher
// rank if it is one itself. The set is ordered by rank, as its author knew the ranks. A
// board that comes later in the set may be higher nevertheless, by what this board knows. If
// this board knows nothing of it, it asks that board if it was never told the candidates, or
// if it would claim without the leave of a leader.
//
// A live board that is higher than a candidate, and is no candidate itself, has joined since
// the boards were divided. It counts as a candidate.
func (a *candidates) electors() []wire.ID {
	set, mine := a.current(), a.Rank()
	place := slices.Index(set, a.ID())
	doubtful := len(a.set) == 0 || a.isCandidate() && a.SuspectsLeader()
	electors := make([]wire.ID, 0, len(set))
	for i, id := range set {
		p, known := a.Peer(id)
		higher := doubtful
		if known && !p.Expected {
			higher = a.Above(p.Rank(), mine)
		}
		if id != a.ID() && (place < 0 || i < place || higher) {
			electors = append(electors, id)
		}
	}
	if place < 0 {
		return electors
	}
	return append(electors, a.Peers(func(p *election.Peer) bool {
		return p.ID != a.Predecessor() && p.Live(a.Now()) && p.Rank().Eligible() &&
			a.Above(p.Rank(), mine) && !slices.Contains(set, p.ID)
	})...)
}

// ordinaries are the ordinary boards of higher rank. A board that was never heard counts,
// since it may have any rank.
func (a *candidates) ordinaries() []wire.ID {
	set, mine := a.current(), a.Rank()
	return a.Peers(func(p *election.Peer) bool {
		higher := p.Rank().Eligible() && a.Above(p.Rank(), mine)
		return !slices.Contains(set, p.ID) && (p.Expected || higher)
	})
}

// Step does what the steps of the paper say.
func (a *candidates) Step(e election.Event) (done bool) {
	switch e.Kind {
	case election.EventTurn: // 1
		a.turn(e.Reason)
	case election.AnswersDue, election.EventAddressFree: // 3, and the second part of 1a
		a.conclude()
	case election.EventJoined: // 4c
		a.supersede(election.ReasonJoining)
	case election.EventLeader: // 4c, for a board that finds in another way that it outranks the leader
		a.supersede(election.ReasonOutranks)
	case election.EventListen:
		if len(a.Peers(everybody)) > 0 && len(a.electors()) == 0 {
			a.AskLater(a.Interval() + a.Grace())
		}
	case election.EventAsk: // 4a
		return a.askElectors(e.Message)
	case election.EventQuery: // 4b
		return a.answerQuery(e.Message)
	case election.EventProclaim: // 3: a new leader divides the boards again
		a.set = a.upperHalf(a.ID())
		e.Message.Coordinator.Candidates = a.set
	case election.EventCandidates:
		a.set = slices.Clone(e.Message.Coordinator.Candidates)
	case election.EventCutOff:
		a.cutOff()
	case election.EventMessage:
		switch e.Message.Type {
		case wire.TypeElection:
			a.election(e.Message)
		case wire.TypeAnswer:
			a.answer(e.Message)
		case wire.TypeCoordinator:
			a.named(e.Message)
		}
	}
	return false
}

func (a *candidates) turn(reason election.Reason) {
	if a.waitsInTurn(reason) || !a.eligible() {
		return
	}
	cold := a.isListener()
	a.stand(reason)
	a.hold(cold)
}

// hold is step 1. A board that was never told the candidates asks all
// boards. But if it has listened in vain and knows of nobody above it, it claims
// if the address is free.
func (a *candidates) hold(cold bool) {
	electors := a.electors()
	others := slices.ContainsFunc(electors, func(id wire.ID) bool { return id != a.Predecessor() })
	direct := a.candidate(a.ID()) && !others
	told := len(a.set) > 0
	switch {
	case direct && (cold || !a.SuspectsLeader() || told && obvious(a.Cause())):
		a.won()
	case direct, !told && a.SuspectsLeader(), a.Cause() == election.ReasonSuspended:
		a.ask(allHigher, nil)
	default:
		a.ask(candidatesOnly, electors) // 1a, 1b
	}
}

// conclude is step 3, and the second part of step 1a.
func (a *candidates) conclude() {
	switch {
	case a.missedAnswers():
		a.hold(false)
	case a.first != wire.Nobody:
		a.set = a.upperHalf(a.first)
		a.nominate(a.set) // step 3
	case a.asking && a.Round() == candidatesOnly && !a.candidate(a.ID()):
		a.askOrdinaries()
	case a.lostIncumbent():
		a.SetCause(election.ReasonSilence)
		a.hold(false) // step 1
	default:
		a.asking = false
		a.won() // step 3
	}
}

// askOrdinaries is the second part of step 1a.
func (a *candidates) askOrdinaries() {
	if ordinaries := a.ordinaries(); len(ordinaries) > 0 {
		a.ask(allHigher, ordinaries)
		return
	}
	a.asking = false
	a.won()
}

// election is step 2.
func (a *candidates) election(m *wire.Message) {
	if a.calledUpon(m) && a.concerned(m) {
		a.sayOK(m)
	}
	a.standBack()
}

// concerned reports whether an ELECTION of a board of lower rank concerns this one. The
// first round concerns the candidates, and every board that is higher than a candidate. The
// second round concerns all. A board that does not know the candidates, or holds an
// election as well, always answers.
func (a *candidates) concerned(m *wire.Message) bool {
	return m.Election.Round > candidatesOnly || a.candidate(a.ID()) || a.candidate(m.Sender) || len(a.set) == 0 || a.isCandidate()
}

// answer receives an OK, or the ANSWER of step 4b: there is a leader that this board
// has not heard yet, so it listens a little longer.
func (a *candidates) answer(m *wire.Message) {
	if a.isListener() && m.Answer.Leader != wire.Nobody && m.Answer.Leader != a.ID() {
		a.KeepListening(a.Interval())
	}
	a.initiator.answer(m)
}

// supersede holds an election if this board outranks its leader.
func (a *candidates) supersede(reason election.Reason) {
	if a.Supersedes(a.Leader()) {
		a.turn(reason)
	}
}

// askElectors is step 4a. The second question goes to everybody.
func (a *candidates) askElectors(m *wire.Message) (asked bool) {
	if m.Query.Round != 1 || len(a.Peers(everybody)) == 0 {
		return false
	}
	electors := a.electors()
	if len(electors) > 0 {
		a.Tell(electors, *m)
	}
	return len(electors) > 0
}

// answerQuery is step 4b. A board that asks again has the candidates, or does without them. A board that
// holds an election always answers: a board that hears nobody claims.
func (a *candidates) answerQuery(m *wire.Message) (answered bool) {
	set := a.current()
	concerns := slices.Contains(set, a.ID()) &&
		(!slices.Contains(set, m.Sender) || a.Above(a.Rank(), a.RankOf(&m.Header)))
	switch {
	case a.isLeader() && m.Query.Round == 1:
		coordinator := a.Coordinator()
		coordinator.Reply, coordinator.Coordinator.Candidates = true, set
		a.Send(m.Sender, coordinator)
	case a.isCandidate(), a.isFollower() && a.Leader() != wire.Nobody && a.Leader() != m.Sender && concerns:
		answer := a.Evidence()
		answer.Round = m.Query.Round
		a.Send(m.Sender, wire.Message{Header: wire.Header{Type: wire.TypeAnswer}, Answer: answer})
	default:
		return false
	}
	return true
}
