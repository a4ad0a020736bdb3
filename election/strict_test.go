package election

import (
	"slices"
	"testing"
	"time"

	"topdog/wire"
)

// testBinds is for how long a heartbeat of the tests binds a voter.
var testBinds = promised(testInterval, 0)

// newVoter returns board 2 of the voters 1 to 3. It has just begun to make promises.
func newVoter(t *testing.T, change ...func(*Config)) *board {
	t.Helper()
	b := newBoard(t, append([]func(*Config){func(c *Config) {
		c.Algorithm, c.Voters = wire.AlgorithmStrict, []wire.ID{3, 1, 2}
	}}, change...)...)
	b.hear(3, wire.TypeHeartbeat, leading) // so that it does not begin an election itself
	b.sleep(promiseMax(testInterval, DefaultPatience(testInterval)) - time.Millisecond)
	b.hear(3, wire.TypeHeartbeat, leading) // still too early
	b.sleep(time.Millisecond)
	if p := &b.strict().promise; b.role != Follower || !p.free(b.clock) {
		t.Fatalf("a %v, with the promise %+v", b.role, p)
	}
	return b
}

func (b *board) strict() *strict { return b.algorithm.(*strict) }

// vote has a board say something about its candidacy.
func (b *board) vote(sender wire.ID, ballot wire.Ballot, number uint32, change ...func(*wire.Message)) []Effect {
	return b.hear(sender, wire.TypeVote, append([]func(*wire.Message){func(m *wire.Message) {
		m.Vote = wire.Vote{Ballot: ballot, Number: number, Interval: testInterval, Voters: b.strict().hash}
	}}, change...)...)
}

// grants returns the votes among effects.
func grants(effects []Effect) (to []wire.Grant) {
	for _, e := range effects {
		if e.Kind == EffectSend && e.Message.Type == wire.TypeGrant {
			to = append(to, e.Message.Grant)
		}
	}
	return to
}

// sendAll tells the core the sequences of what it has sent, and returns the newest of them.
func (b *board) sendAll(effects []Effect) (newest wire.Sequence) {
	for _, e := range effects {
		if e.Beat != 0 {
			b.sent++
			b.Sent(e.Beat, b.sent)
		}
	}
	return b.sent
}

// support has a voter acknowledge a heartbeat of this board.
func (b *board) support(sender wire.ID, heartbeat wire.Sequence, change ...func(*wire.Message)) []Effect {
	return b.hear(sender, wire.TypeSupport, append([]func(*wire.Message){func(m *wire.Message) {
		m.Support = wire.Support{Leader: 2, Incarnation: 22, Term: b.term, Heartbeat: heartbeat, Voters: b.strict().hash}
	}}, change...)...)
}

// grant has a voter vote for this board.
func (b *board) grant(sender wire.ID, number uint32, change ...func(*wire.Message)) []Effect {
	return b.hear(sender, wire.TypeGrant, append([]func(*wire.Message){func(m *wire.Message) {
		m.Grant = wire.Grant{Candidate: 2, Incarnation: 22, Number: number, Voters: b.strict().hash}
	}}, change...)...)
}

// elected makes board 2 the leader by the vote of board 1, and returns when it asked for it.
func elected(t *testing.T, change ...func(*Config)) (b *board, askedAt Instant) {
	t.Helper()
	b = newVoter(t, change...)
	b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
	askedAt = b.clock
	b.sleep(time.Millisecond)
	b.sendAll(b.grant(1, b.strict().support.number))
	if b.role != Leader {
		t.Fatalf("a %v", b.role)
	}
	return b, askedAt
}

// TestAcknowledges: a voter acknowledges each heartbeat of its leader, and is bound from then on.
func TestAcknowledges(t *testing.T) {
	b := newVoter(t)
	effects := b.hear(3, wire.TypeHeartbeat, leading)
	i := slices.IndexFunc(effects, func(e Effect) bool { return e.Message.Type == wire.TypeSupport })
	if i < 0 {
		t.Fatalf("not acknowledged: %v", described(effects))
	}
	got, want := effects[i], wire.Support{Leader: 3, Incarnation: 30, Term: 0, Heartbeat: b.sequence, Voters: wire.VotersHash([]wire.ID{1, 2, 3})}
	if got.To != 3 || got.Message.Support != want {
		t.Errorf("to %v: %+v, want %+v", got.To, got.Message.Support, want)
	}
	if p := b.strict().promise; p.to != 3 || p.until != b.clock+testBinds {
		t.Errorf("promised %+v", p)
	}
}

// TestSilentAfterStart: until its former life can have promised nothing any more, a voter says nothing.
func TestSilentAfterStart(t *testing.T) {
	b := newBoard(t, func(c *Config) { c.Algorithm, c.Voters = wire.AlgorithmStrict, []wire.ID{1, 2, 3} })
	silent := promiseMax(testInterval, DefaultPatience(testInterval))
	for b.clock < silent {
		if n := sent(b.hear(3, wire.TypeHeartbeat, leading), wire.TypeSupport); n > 0 {
			t.Fatalf("acknowledged after %v", b.clock)
		}
		b.sleep(testInterval / 2)
	}
	if n := sent(b.hear(3, wire.TypeHeartbeat, leading), wire.TypeSupport); n != 1 {
		t.Errorf("after %v, %d acknowledgements", b.clock, n)
	}
}

// TestBound: a voter that has promised its support answers another board when the promise
// ends, whatever has become of it meanwhile, and not a moment before.
func TestBound(t *testing.T) {
	for _, test := range []struct {
		name  string
		play  func(b *board)
		bound bool
	}{
		{"nothing", func(*board) {}, true},
		{"the link was lost", func(b *board) { b.Link(b.clock, false); b.Link(b.clock, true) }, true},
		{"a new leader", func(b *board) { b.term = 5; b.hear(1, wire.TypeHeartbeat, leading) }, true},
		{"suspicion", func(b *board) { b.Suspect(b.clock) }, true},
		{"conflict", func(b *board) { b.OtherVersion(b.clock, 9) }, true},
		{"another board resigned", func(b *board) { b.hear(1, wire.TypeResign) }, true},
		{"its leader was started anew", func(b *board) {
			b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Incarnation = 31 })
		}, true},
		{"its leader resigned", func(b *board) { b.hear(3, wire.TypeResign) }, false},
		{"a RESIGN from before", func(b *board) {
			b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Sequence -= 2 })
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newVoter(t)
			b.hear(3, wire.TypeHeartbeat, leading)
			ends := b.clock + testBinds
			test.play(b)
			p := &b.strict().promise
			if p.free(ends-1) == test.bound {
				t.Errorf("bound until %v, the promise was until %v", p.until, ends)
			}
		})
	}
}

// TestDefers: the answer of a bound voter comes when its promise ends.
func TestDefers(t *testing.T) {
	b := newVoter(t)
	b.hear(3, wire.TypeHeartbeat, leading)
	b.sleep(50 * time.Millisecond)
	if got := grants(b.vote(1, wire.BallotRequest, 7)); got != nil {
		t.Fatalf("voted while bound: %v", got)
	}
	left := testBinds - 50*time.Millisecond
	if got := grants(b.sleep(left - 1)); got != nil {
		t.Fatalf("voted while bound: %v", got)
	}
	want := []wire.Grant{{Candidate: 1, Incarnation: 10, Number: 7, Voters: b.strict().hash}}
	if got := grants(b.sleep(1)); !slices.Equal(got, want) {
		t.Errorf("voted %v, want %v", got, want)
	}
	if p := b.strict().promise; p.to != 1 || p.until != b.clock+testBinds {
		t.Errorf("bound by its vote: %+v", p)
	}
	if n := sent(b.hear(3, wire.TypeHeartbeat, leading), wire.TypeSupport); n != 0 {
		t.Error("acknowledged the former leader although it has voted for another one")
	}
}

// TestPromisesNeverShrink: what binds for a shorter time does not end a promise sooner.
func TestPromisesNeverShrink(t *testing.T) {
	b := newVoter(t)
	long := func(m *wire.Message) { m.Leading, m.Heartbeat.Grace = true, 200*time.Millisecond }
	b.hear(3, wire.TypeHeartbeat, long)
	until := b.strict().promise.until
	if until != b.clock+300*time.Millisecond {
		t.Errorf("bound until %v at %v", until, b.clock)
	}
	b.hear(3, wire.TypeHeartbeat, leading)
	if b.strict().promise.until != until {
		t.Errorf("bound until %v, and then until %v", until, b.strict().promise.until)
	}
	tooLong := func(m *wire.Message) {
		m.Leading, m.Heartbeat.Grace = true, promiseMax(testInterval, DefaultPatience(testInterval))-testInterval+1
	}
	effects := b.hear(3, wire.TypeHeartbeat, tooLong)
	if sent(effects, wire.TypeSupport) != 0 || !slices.Contains(described(effects), "notice about 3") {
		t.Errorf("asked for more than it may promise: %v", described(effects))
	}
}

// TestFirstLease: the first lease is counted from the request, the next ones from the
// heartbeats that a majority has acknowledged.
func TestFirstLease(t *testing.T) {
	b, askedAt := elected(t)
	lease := leased(testInterval, 0)
	if end, ends := b.LeaseEnd(); !ends || end != askedAt+lease {
		t.Errorf("the lease ends at %v, asked at %v", end, askedAt)
	}
	beat := b.sent
	proclaimedAt := b.clock
	b.sleep(time.Millisecond)
	b.support(1, beat+1) // it was never sent
	b.support(1, beat, func(m *wire.Message) { m.Support.Voters++ })
	b.support(1, beat, func(m *wire.Message) { m.Support.Incarnation++ })
	b.support(1, beat, func(m *wire.Message) { m.Support.Term++ })
	b.support(4, beat)
	if end, _ := b.LeaseEnd(); end != askedAt+lease {
		t.Errorf("something that does not count has moved the end of the lease to %v", end)
	}
	b.support(1, beat)
	if end, _ := b.LeaseEnd(); end != proclaimedAt+lease {
		t.Errorf("the lease ends at %v, proclaimed at %v", end, proclaimedAt)
	}
}

// TestRepeats: what a majority has not acknowledged is repeated to those who have not, until the
// lease is over. Then the leader says nothing of it, and the address is back when they are heard.
func TestRepeats(t *testing.T) {
	b, askedAt := elected(t)
	end := askedAt + leased(testInterval, 0)
	effects := b.sleep(end - 1 - b.clock)
	b.sendAll(effects)
	for _, to := range []wire.ID{1, 3} {
		n := 0
		for _, e := range effects {
			if e.Kind == EffectSend && e.Message.Type == wire.TypeHeartbeat && e.To == to {
				n++
			}
		}
		if n < 10 {
			t.Errorf("repeated %d times to %v", n, to)
		}
	}
	if b.strict().fence.closed {
		t.Error("closed before its end")
	}
	effects = b.sleep(1)
	if got := described(effects); !slices.Contains(got, "fenced") || slices.Contains(got, "release") || b.role != Leader {
		t.Errorf("at the end of the lease: %v, a %v", got, b.role)
	}
	beat := b.sendAll(append(effects, b.sleep(5*time.Millisecond)...))
	if got := described(b.support(1, beat)); !slices.Contains(got, "take") {
		t.Errorf("when the majority is heard again: %v", got)
	}
}

// TestLetsGo: a leader that the majority does not acknowledge for long lets go.
func TestLetsGo(t *testing.T) {
	b, _ := elected(t)
	effects := b.sleep(leased(testInterval, 0) + letGoLeast)
	if b.role == Leader || sent(effects, wire.TypeResign) == 0 {
		t.Errorf("a %v", b.role)
	}
}

// TestVotesDoNotOutliveTheCandidacy: who has withdrawn does not count the votes that it had.
func TestVotesDoNotOutliveTheCandidacy(t *testing.T) {
	b := newVoter(t)
	resign := func(m *wire.Message) { m.Resign.Successor = 2 }
	b.hear(3, wire.TypeResign, resign)
	first := b.strict().support.number
	effects := b.hear(3, wire.TypeHeartbeat, leading)
	if b.role != Follower || sent(effects, wire.TypeVote) != 1 || sent(effects, wire.TypeSupport) != 1 {
		t.Fatalf("a %v that hears a leader: %v", b.role, described(effects))
	}
	b.hear(3, wire.TypeResign, resign)
	if b.role != Candidate {
		t.Fatalf("a %v", b.role)
	}
	if b.grant(1, first); b.role != Candidate {
		t.Errorf("a %v by a vote for the former candidacy", b.role)
	}
	if b.grant(1, b.strict().support.number); b.role != Leader {
		t.Errorf("a %v", b.role)
	}
}

// TestGivesWayOnce: a candidate gives its vote to a candidate of higher rank, and to the
// same one not twice.
func TestGivesWayOnce(t *testing.T) {
	b := newVoter(t)
	named := func(m *wire.Message) { m.Resign.Successor = 2 }
	b.hear(3, wire.TypeResign, named)
	effects := b.vote(3, wire.BallotRequest, 4)
	if b.role != Follower || len(grants(effects)) != 1 || sent(effects, wire.TypeVote) != 1 {
		t.Fatalf("a %v: %v", b.role, described(effects))
	}
	b.vote(3, wire.BallotWithdraw, 4)
	b.hear(3, wire.TypeResign, named)
	effects = b.vote(3, wire.BallotRequest, 5)
	if b.role != Candidate || len(grants(effects)) != 0 {
		t.Errorf("a %v: %v", b.role, described(effects))
	}
}

// TestVotesInVain: a candidate that has made nothing of a vote comes last.
func TestVotesInVain(t *testing.T) {
	b := newVoter(t, func(c *Config) { c.Priority = 0 })
	if got := grants(b.vote(3, wire.BallotRequest, 1)); len(got) != 1 || got[0].Candidate != 3 {
		t.Fatalf("voted %v", got)
	}
	if got := grants(b.vote(3, wire.BallotRequest, 2)); len(got) != 1 || got[0].Number != 2 {
		t.Errorf("nobody else waits: %v", got)
	}
	b.sleep(time.Millisecond)
	b.vote(1, wire.BallotRequest, 1)
	until := b.strict().promise.until
	if got := grants(b.vote(3, wire.BallotRequest, 3)); len(got) != 1 || got[0].Number != 2 || b.strict().promise.until != until {
		t.Errorf("while another one waits: %v", got)
	}
	if got := grants(b.sleep(until - b.clock)); len(got) != 1 || got[0].Candidate != 1 {
		t.Errorf("when the promise had ended: %v", got)
	}
}

// TestVoterTwice: a voter in two incarnations at once does not count.
func TestVoterTwice(t *testing.T) {
	b, askedAt := elected(t)
	beat := b.sent
	b.hear(1, wire.TypeHello, func(m *wire.Message) { m.Incarnation = 11 })
	effects := b.hear(1, wire.TypeHello)
	if got := described(effects); !slices.Contains(got, "notice about 1") {
		t.Errorf("%v", got)
	}
	b.support(1, beat)
	if end, _ := b.LeaseEnd(); end > b.clock {
		t.Errorf("elected at %v, and the lease ends at %v", askedAt, end)
	}
}

// TestOtherVoters: another list of voters is reported to all, and its votes do not count.
func TestOtherVoters(t *testing.T) {
	b := newVoter(t)
	effects := b.vote(1, wire.BallotRequest, 1, func(m *wire.Message) { m.Vote.Voters++ })
	if got := described(effects); !slices.Contains(got, "notice about 1") || !slices.Contains(got, "VOTE to all") || len(grants(effects)) > 0 {
		t.Errorf("%v", got)
	}
}

// TestNoVoter: a board that is not in the list follows, and neither votes nor leads; one whose
// clock is not to be trusted does likewise.
func TestNoVoter(t *testing.T) {
	b := newVoter(t, func(c *Config) { c.Voters = []wire.ID{1, 3} })
	check := func(what string) {
		t.Helper()
		effects := append(b.hear(3, wire.TypeHeartbeat, leading), b.vote(1, wire.BallotRequest, 1)...)
		effects = append(effects, b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })...)
		effects = append(effects, b.sleep(time.Second)...)
		if sent(effects, wire.TypeSupport)+sent(effects, wire.TypeGrant)+sent(effects, wire.TypeVote) > 0 || b.Signature().Priority != 0 {
			t.Errorf("%s: %v", what, described(effects))
		}
	}
	check("no voter")
	b, _ = elected(t)
	if got := described(b.ClockTrusted(b.clock, false)); !slices.Contains(got, "release") {
		t.Errorf("a leader with a bad clock: %v", got)
	}
	check("a bad clock")
	b.ClockTrusted(b.clock, true)
	b.hear(3, wire.TypeHeartbeat, leading)
	if sent(b.hear(3, wire.TypeHeartbeat, leading), wire.TypeSupport) == 0 || b.Signature().Priority == 0 {
		t.Error("its clock is good again, and it does not vote")
	}
}

// TestWitness: a voter of priority 0 votes and follows, and never leads.
func TestWitness(t *testing.T) {
	b := newVoter(t, func(c *Config) { c.Priority = 0 })
	if sent(b.hear(3, wire.TypeHeartbeat, leading), wire.TypeSupport) != 1 {
		t.Error("it does not acknowledge")
	}
	effects := b.sleep(10 * time.Second)
	if b.role != Follower || sent(effects, wire.TypeVote)+sent(effects, wire.TypeElection) > 0 {
		t.Errorf("without a leader, a %v: %v", b.role, described(effects))
	}
	if len(grants(b.vote(1, wire.BallotRequest, 1))) != 1 {
		t.Error("it does not vote")
	}
}

// TestResignEndsBeforeVotes: a board that has resigned, and asks for votes before its successor is
// heard, repeats its RESIGN no more. That would release the very votes that it counts.
func TestResignEndsBeforeVotes(t *testing.T) {
	b, _ := elected(t, func(c *Config) { c.Priority = 150 })
	b.hear(1, wire.TypeHello)
	effects, err := b.Resign(b.clock)
	if err != nil || sent(effects, wire.TypeResign) != 1 {
		t.Fatalf("%v: %v", err, described(effects))
	}
	b.clock += 30 * time.Millisecond // the process stands still, and then goes on
	asked := false
	for range 100 {
		for _, e := range b.sleep(time.Millisecond) {
			switch kind := e.Message.Type; {
			case e.Kind != EffectSend:
			case kind == wire.TypeVote:
				asked = true
			case kind == wire.TypeResign && asked:
				t.Fatalf("a %v that asks for votes says that it has resigned", b.role)
			}
		}
	}
	if !asked {
		t.Errorf("a %v, which has asked for no votes", b.role)
	}
}
