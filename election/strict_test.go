package election

import (
	"testing"
	"time"

	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// newVoter returns board 2 of the voters 1 to 3. It has just begun to make promises.
func newVoter(t *testing.T, change ...func(*Config)) *board {
	t.Helper()
	b := newBoard(t, append([]func(*Config){func(c *Config) {
		c.Algorithm, c.Voters = wire.AlgorithmStrict, []wire.ID{3, 1, 2}
	}}, change...)...)
	b.hear(3, wire.TypeHeartbeat, leading) // so that it does not begin an election itself
	b.sleep(lease.PromiseMax(testInterval, silence.DefaultPatience(testInterval)) - time.Millisecond)
	b.hear(3, wire.TypeHeartbeat, leading) // still too early
	b.sleep(time.Millisecond)
	if p := &b.votes.promise; b.role != Follower || !p.Free(b.clock) {
		t.Fatalf("a %v, with the promise %+v", b.role, p)
	}
	return b
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

// grant has a voter vote for this board.
func (b *board) grant(sender wire.ID, number uint32, change ...func(*wire.Message)) []Effect {
	return b.hear(sender, wire.TypeGrant, append([]func(*wire.Message){func(m *wire.Message) {
		m.Grant = wire.Grant{Candidate: 2, Incarnation: 22, Number: number, Voters: b.votes.hash}
	}}, change...)...)
}

// elected makes board 2 the leader by the vote of board 1, and returns when it asked for it.
func elected(t *testing.T, change ...func(*Config)) (b *board, askedAt Instant) {
	t.Helper()
	b = newVoter(t, change...)
	b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
	askedAt = b.clock
	b.sleep(time.Millisecond)
	b.sendAll(b.grant(1, b.votes.support.Number))
	if b.role != Leader {
		t.Fatalf("a %v", b.role)
	}
	return b, askedAt
}

// TestSilentAfterStart: until its former life can have promised nothing any more, a voter says nothing.
func TestSilentAfterStart(t *testing.T) {
	b := newBoard(t, func(c *Config) { c.Algorithm, c.Voters = wire.AlgorithmStrict, []wire.ID{1, 2, 3} })
	silent := lease.PromiseMax(testInterval, silence.DefaultPatience(testInterval))
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

// TestGrantsAgainWithoutMore: a voter whose vote a candidate has tells it so once more if that one asks again. It does not
// extend its promise if another candidate waits. That one gets the vote when the promise is over and it asks once more.
func TestGrantsAgainWithoutMore(t *testing.T) {
	b := newVoter(t)
	asks := func(candidate wire.ID, number uint32) []Effect {
		return b.hear(candidate, wire.TypeVote, func(m *wire.Message) {
			m.Vote = wire.Vote{Number: number, Interval: testInterval, Voters: b.votes.hash}
		})
	}
	granted := func(effects []Effect, candidate wire.ID, number uint32) {
		t.Helper()
		for _, e := range effects {
			if g := e.Message.Grant; e.Message.Type == wire.TypeGrant && e.To == candidate && g.Candidate == candidate && g.Number == number {
				return
			}
		}
		t.Errorf("board %v was not told that it has the vote for its request %d: %v", candidate, number, described(effects))
	}
	granted(asks(1, 5), 1, 5)
	until := b.votes.promise.Until
	b.sleep(time.Millisecond)
	if n := sent(asks(3, 7), wire.TypeGrant); n > 0 {
		t.Errorf("while the promise to board 1 lasts, %d more grants", n)
	}
	b.sleep(time.Millisecond)
	granted(asks(1, 6), 1, 5)
	if b.votes.promise.Until != until {
		t.Errorf("the promise was extended from %v to %v", until, b.votes.promise.Until)
	}
	b.sleep(until - b.clock)
	granted(asks(3, 8), 3, 8)
}
