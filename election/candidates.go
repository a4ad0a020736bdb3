package election

import (
	"slices"
	"sort"
	"time"

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
//  2. Who receives an ELECTION answers OK (ANSWER).
//  3. The board that asked names the highest of those that answered, or itself if
//     nobody did, in a COORDINATOR to all. It says who are the candidates, too.
//  4. A board joins.
//     a. It sends QUERY to the candidates; if it is one itself, to those of higher rank.
//     b. Who receives it answers with the coordinator and the candidates: the
//     coordinator itself with its COORDINATOR, for this board alone; the others
//     with an ANSWER.
//     c. If it outranks the coordinator, it holds an election.
//
// With n boards, the failed coordinator among them, an election costs n-1 messages
// at best: a candidate that has only the failed coordinator above it sends
// COORDINATOR at once. At worst an ordinary one notices: ⌈n/2⌉ ELECTION, an OK
// from all of those but the failed one, n-1 COORDINATOR.
//
// The candidates are the upper ⌈n/2⌉ boards of those that the author of the
// COORDINATOR knows, with the new coordinator among them whatever its rank. All
// use the set that they heard last. Who has heard none makes one up from
// those that it knows.
//
// What is ours, besides what electioneer says:
//
//   - The round in an ELECTION tells which boards a multicast concerns, 1 the
//     candidates and 2 all of higher rank. An ANSWER does not carry the candidates,
//     only a COORDINATOR does.
//   - A board that joins and knows nobody asks everybody; one that has nobody above
//     it to ask listens for a heartbeat first. The coordinator answers whoever asks.
//   - A board that was not told who the candidates are, or has not heard one of
//     them, asks where it would claim otherwise: somebody may be above it.
//   - A board that outranks a new coordinator holds an election as in 4c: its OK was
//     lost, or it was cut off.
//   - A living coordinator of lower rank hands over before the winner takes the
//     address (see Core.claim).
type candidates struct {
	electioneer
	set []wire.ID // who are candidates, as heard last; never changed, only replaced
}

func (a *candidates) number() wire.Algorithm { return wire.AlgorithmCandidates }

// current is the set of candidates that this board goes by.
func (a *candidates) current() []wire.ID {
	if len(a.set) > 0 {
		return a.set
	}
	return a.upperHalf(a.predecessor())
}

func (a *candidates) candidate(id wire.ID) bool { return slices.Contains(a.current(), id) }

// upperHalf divides all boards that are known, dead or alive, this one among
// them, into candidates, which it returns by rank, and ordinary ones. Candidates
// that this board has only been told of count, and there are no fewer candidates than
// before: a board that has just joined knows too few boards to divide them.
func (a *candidates) upperHalf(coordinator wire.ID) []wire.ID {
	ranks := []Rank{a.rank()}
	for _, id := range a.roster.All() {
		ranks = append(ranks, a.roster.Peer(id).Rank())
	}
	half := max((len(ranks)+1)/2, len(a.set))
	ranks = slices.DeleteFunc(ranks, func(r Rank) bool { return !r.Eligible() })
	sort.Slice(ranks, func(i, j int) bool { return a.above(ranks[i], ranks[j]) })
	var set []wire.ID
	for _, r := range ranks {
		set = append(set, r.ID)
	}
	for _, id := range a.set {
		if id != a.cfg.ID && a.roster.Peer(id) == nil {
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

// electors are those candidates that this board asks: all, or those of higher
// rank if it is one itself. The set is ordered by rank, as its author knew it. Who
// comes later in it may be higher nevertheless, by what this board knows; and if that
// is nothing, one is asked if nobody has said that it is lower, or if this
// board would claim without the leave of a leader.
//
// A live board that is higher than a candidate and none itself has joined since the
// boards were divided. It counts as one.
func (a *candidates) electors() []wire.ID {
	set, mine := a.current(), a.rank()
	place := slices.Index(set, a.cfg.ID)
	doubtful := len(a.set) == 0 || a.role == Candidate && a.suspicious()
	electors := make([]wire.ID, 0, len(set))
	for i, id := range set {
		p := a.roster.Peer(id)
		higher := doubtful
		if p != nil && !p.Expected {
			higher = a.above(p.Rank(), mine)
		}
		if id != a.cfg.ID && (place < 0 || i < place || higher) {
			electors = append(electors, id)
		}
	}
	if place < 0 {
		return electors
	}
	return append(electors, a.roster.Which(func(p *Peer) bool {
		return p.eligible(a.now, a.predecessor()) && a.above(p.Rank(), mine) && !slices.Contains(set, p.ID)
	})...)
}

// ordinaries are the ordinary boards of higher rank. One that was never heard may
// be of any rank, too.
func (a *candidates) ordinaries() []wire.ID {
	set, mine := a.current(), a.rank()
	return a.roster.Which(func(p *Peer) bool {
		higher := p.Rank().Eligible() && a.above(p.Rank(), mine)
		return !slices.Contains(set, p.ID) && (p.Expected || higher)
	})
}

func (a *candidates) turn(reason Reason) {
	if a.waitsInTurn(reason) || !a.rank().Eligible() {
		return
	}
	cold := a.role == Listener
	a.stand(reason)
	a.hold(cold)
}

// hold is step 1. A board that nobody has told who the candidates are asks all
// boards, unless it has listened in vain and knows of nobody above it: then it claims
// if the address is free.
func (a *candidates) hold(cold bool) {
	electors := a.electors()
	others := slices.ContainsFunc(electors, func(id wire.ID) bool { return id != a.predecessor() })
	direct := a.candidate(a.cfg.ID) && !others
	told := len(a.set) > 0
	switch {
	case direct && (cold || !a.suspicious() || told && obvious(a.cause)):
		a.won()
	case direct, !told && a.suspicious(), a.cause == ReasonSuspended:
		a.round++ // whoever outranks this board may answer
		a.ask(nil)
	default:
		a.ask(electors) // 1a, 1b
	}
}

func (a *candidates) wake(k alarm) {
	switch {
	case k != alarmAsk || a.role != Candidate:
	case a.asking && a.round == 0:
		a.hold(false) // it overslept, and with it the answers
	case a.first != wire.Nobody:
		a.set = a.upperHalf(a.first)
		a.nominate(a.set) // step 3
	case a.asking && a.round == 1 && !a.candidate(a.cfg.ID):
		a.askOrdinaries()
	default:
		a.asking = false
		a.won() // step 3
	}
}

// askOrdinaries is the second part of step 1a.
func (a *candidates) askOrdinaries() {
	if ordinaries := a.ordinaries(); len(ordinaries) > 0 {
		a.ask(ordinaries)
		return
	}
	a.asking = false
	a.won()
}

func (a *candidates) step(m *wire.Message) {
	switch m.Type {
	case wire.TypeElection:
		a.election(m)
	case wire.TypeAnswer:
		a.answer(m)
	case wire.TypeCoordinator:
		a.named(m)
	}
}

// election is step 2.
func (a *candidates) election(m *wire.Message) {
	if a.calledUpon(m) && a.concerned(m) {
		a.sayOK(m)
	}
	a.standBack()
}

// concerned reports whether an ELECTION of a board of lower rank concerns this one.
// In the first round that is so for candidates, among which is whoever is higher than
// one, and in the second one for all. Who does not know the candidates, or holds an
// election as well, makes itself heard in any case.
func (a *candidates) concerned(m *wire.Message) bool {
	return m.Election.Round > 1 || a.candidate(a.cfg.ID) || a.candidate(m.Sender) || len(a.set) == 0 || a.role == Candidate
}

// answer takes in an OK, and the ANSWER of step 4b: somebody leads, whose own word
// has not come yet, so this board listens a little longer.
func (a *candidates) answer(m *wire.Message) {
	if a.role == Listener && m.Answer.Leader != wire.Nobody && m.Answer.Leader != a.cfg.ID {
		a.alarms[alarmListen] = max(a.alarms[alarmListen], a.now+a.cfg.Interval)
	}
	a.electioneer.answer(m)
}

// joined is step 4c.
func (a *candidates) joined() { a.supersede(ReasonJoining) }

func (a *candidates) followed() { a.supersede(ReasonOutranks) }

// supersede holds an election if this board outranks its leader.
func (a *candidates) supersede(reason Reason) {
	if a.outranks(a.leader) {
		a.turn(reason)
	}
}

// inquiry is step 4a. The second question goes to everybody.
func (a *candidates) inquiry() (audience []wire.ID, after time.Duration) {
	if len(a.roster.All()) == 0 || a.asked > 0 {
		return nil, 0
	}
	if electors := a.electors(); len(electors) > 0 {
		return electors, 0
	}
	return nil, a.cfg.Interval + Grace(a.cfg.Interval)
}

// query is step 4b.
func (a *candidates) query(m *wire.Message) {
	set := a.current()
	concerns := slices.Contains(set, a.cfg.ID) &&
		(!slices.Contains(set, m.Sender) || a.above(a.rank(), a.rankOf(&m.Header)))
	switch {
	case a.role == Leader && m.Query.Round == 1:
		a.send(m.Sender, wire.Message{
			Header: wire.Header{Type: wire.TypeCoordinator, Reply: true},
			Coordinator: wire.Coordinator{
				Coordinator: a.cfg.ID, Interval: a.cfg.Interval, Number: a.Core.beat, Candidates: set,
			},
		})
	case a.role == Follower && a.leader != wire.Nobody && a.leader != m.Sender && concerns:
		a.send(m.Sender, wire.Message{
			Header: wire.Header{Type: wire.TypeAnswer},
			Answer: wire.Answer{
				Leader: a.leader, Incarnation: a.leaderIncarnation, LastHeard: a.lastHeard,
				Age: a.detector.Age(a.now), Round: m.Query.Round,
			},
		})
	default:
		a.plain.query(m) // who asks again has the candidates, or does without
	}
}

// candidates is what a COORDINATOR of this board says of them: a new reign
// divides the boards anew.
func (a *candidates) candidates() []wire.ID {
	a.set = a.upperHalf(a.cfg.ID)
	return a.set
}

// announced learns who are candidates.
func (a *candidates) announced(m *wire.Message) {
	if len(m.Coordinator.Candidates) > 0 {
		a.set = slices.Clone(m.Coordinator.Candidates)
	}
}
