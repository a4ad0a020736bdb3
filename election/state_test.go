package election

import (
	"math/rand/v2"
	"testing"
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// TestStateBelongsToItsRole plays random messages and events, and holds that nothing is ever
// kept for a role that the board does not have: a deadline that was set before the door
// would be lost silently.
func TestStateBelongsToItsRole(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		b := newBoard(t, func(c *Config) { c.Preempt = seed%2 == 0 })
		visited := map[Role]bool{}
		for range 400 {
			if at, ok := b.Deadline(); ok && rng.IntN(2) == 0 {
				b.clock = max(b.clock, at)
			}
			b.clock += time.Duration(rng.IntN(5)) * time.Millisecond
			switch rng.IntN(40) {
			case 0:
				b.Link(b.clock, false)
			case 1:
				b.hear(1, wire.TypeHeartbeat, func(m *wire.Message) { m.Algorithm = wire.AlgorithmBully })
			case 2:
				b.LeaseExpired(b.clock)
			case 3, 4:
				b.Probed(b.clock, rng.IntN(4) == 0)
			case 5, 6:
				b.Link(b.clock, true)
			case 7:
				_, _ = b.Resign(b.clock)
			case 8:
				b.clock += 3 * testInterval
				b.Wake(b.clock)
			case 9, 10, 11, 12, 13, 14:
				kind := wire.TypeHeartbeat + wire.Type(rng.IntN(int(wire.TypeAnswer)))
				b.hear(1+2*wire.ID(rng.IntN(2)), kind, func(m *wire.Message) {
					m.Leading = rng.IntN(2) == 0
					m.Term += wire.Term(rng.IntN(2))
					m.Resign.Successor = wire.ID(rng.IntN(4))
					m.Query.Purpose = wire.Purpose(rng.IntN(2))
				})
			default:
				b.Wake(b.clock)
			}
			visited[b.role] = true
			if where := b.misplaced(); where != "" {
				t.Fatalf("seed %d: a %v keeps something of a %s", seed, b.role, where)
			}
		}
		if seed == 0 && len(visited) < 4 {
			t.Errorf("the test has only seen %v", visited)
		}
	}
}

// misplaced names the role of which something is kept although the board does not have it.
func (c *Core) misplaced() string {
	switch {
	case c.role != Listener && c.listening != listenerState{}:
		return "listener"
	case c.role != Follower && c.following != followerState{}:
		return "follower"
	case c.role != Candidate && c.candidacy != candidateState{}:
		return "candidate"
	case c.role != Leader && c.leading != leaderState{}:
		return "leader"
	case c.role != Barred && c.barred != barredState{}:
		return "barred"
	}
	return ""
}

// TestEveryDeadlineIsInTheTimetable: one that is not would never come.
func TestEveryDeadlineIsInTheTimetable(t *testing.T) {
	b := newBoard(t)
	listed := map[*clock.Deadline]bool{}
	for _, duty := range b.timetable {
		listed[duty.deadline] = true
	}
	for name, d := range map[string]*clock.Deadline{
		"listening.end": &b.listening.end, "listening.query": &b.listening.query,
		"following.turn": &b.following.turn, "following.missed": &b.following.missed, "following.measure": &b.following.measure, "following.preempt": &b.following.preempt,
		"candidacy.incumbent": &b.candidacy.incumbent, "candidacy.coordinator": &b.candidacy.coordinator,
		"leading.reclaim": &b.leading.reclaim, "leading.hearing.again": &b.leading.hearing.again, "candidacy.askLAN": &b.candidacy.askLAN, "candidacy.second": &b.candidacy.second,
		"candidacy.address.ask": &b.candidacy.address.ask, "candidacy.address.silent": &b.candidacy.address.silent,
		"leading.heartbeat": &b.leading.heartbeat, "leading.lapse.over": &b.leading.lapse.over, "answers": &b.answers, "named": &b.named, "leading.deposed.look": &b.leading.deposed.look,
		"leading.yield": &b.leading.yield, "pause.end": &b.pause.end, "barred.end": &b.barred.end, "handover.repeat": &b.handover.repeat, "hello": &b.Core.hello,
		"votes.promiseEnds": &b.votes.promiseEnds, "leading.fence.repeat": &b.leading.fence.repeat, "leading.fence.leaseEnds": &b.leading.fence.leaseEnds,
		"own": &b.own[0], "own, the last one": &b.own[ownDeadlines-1],
	} {
		if !listed[d] {
			t.Errorf("nobody looks after the deadline %s", name)
		}
	}
	if len(listed) != 27+ownDeadlines {
		t.Errorf("the timetable has %d deadlines, this test knows %d", len(listed), 27+ownDeadlines)
	}
}

// TestDeadlineOfAnotherRole: an algorithm that sets a deadline before it has changed the
// role is stopped, since the deadline would be lost.
func TestDeadlineOfAnotherRole(t *testing.T) {
	b := newBoard(t)
	board := &Board{b.Core}
	if got := panics(func() { board.SetDeadline(AnswersDue, b.clock) }); got != "election: a listener has no deadline 0" {
		t.Errorf("it panics with %q", got)
	}
	board.SetDeadline(OwnDeadline, b.clock+time.Second)
	if board.Deadline(OwnDeadline) != clock.Due(b.clock+time.Second) {
		t.Error("a deadline of the algorithm's own depends on the role")
	}
}
