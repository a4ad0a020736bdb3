package election

import (
	"slices"
	"testing"
	"time"

	"topdog/election/clock"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// followerOf3 returns board 2, which follows board 3 and has heard that many of its
// heartbeats on a wire that loses nothing. Board 1 follows as well.
func followerOf3(t *testing.T, beats int, change ...func(*Config)) *board {
	t.Helper()
	b := newBoard(t, change...)
	for i := range beats {
		if i > 0 {
			b.sleep(testInterval)
		}
		b.hear(3, wire.TypeHeartbeat, leading)
		if i%10 == 0 {
			b.hear(1, wire.TypeHello)
		}
	}
	if b.role != Follower || b.leader != 3 {
		t.Fatalf("the board is a %v and follows %v", b.role, b.leader)
	}
	return b
}

func reply(m *wire.Message) { leading(m); m.Reply = true }

// sent counts the messages of a type among effects.
func sent(effects []Effect, kind wire.Type) (n int) {
	for _, e := range effects {
		if e.Kind == EffectSend && e.Message.Type == kind {
			n++
		}
	}
	return n
}

// TestRoundsOfQuestions: every question in vain is followed by a better one, but only
// so many times, and after the last one its answer has its time.
func TestRoundsOfQuestions(t *testing.T) {
	b := followerOf3(t, 200)
	q := b.detector.Questions()
	due := b.detector.Freshness()
	asked := b.sleep(due - b.clock)
	for round := 2; round <= q.Count; round++ {
		if b.role != Candidate {
			t.Fatalf("in round %d of %d the board is a %v", round, q.Count, b.role)
		}
		asked = append(asked, b.sleep(q.Spacing)...)
	}
	// One more goes to the address, and one to the leader.
	if got, want := sent(asked, wire.TypeElection), 1+2+3+(q.Count-3)+1+1; got != want {
		t.Errorf("%d questions in %d rounds, want %d", got, q.Count, want)
	}
	if b.sleep(q.Within - time.Nanosecond); b.role != Candidate {
		t.Errorf("the last question was given less than %v", q.Within)
	}
	if b.sleep(time.Nanosecond); b.role != Leader {
		t.Errorf("after %v the board is a %v", q.Duration(), b.role)
	}
	assert.Is(t, q.Duration(), b.clock-due, "asking has taken")
}

// TestWokenLate: a candidate that wakes up late, as all of its board may have done, does
// not claim before it has looked for an answer that is waiting to be read. It does so once
// for its question, and once for that to the address.
func TestWokenLate(t *testing.T) {
	b := followerOf3(t, 200)
	b.sleep(b.detector.Freshness() - b.clock)
	q := b.detector.Questions()
	b.sleep(time.Duration(q.Count-1) * q.Spacing)
	late := func() {
		at, _ := b.Deadline()
		b.clock = at + 2*time.Millisecond
		b.Wake(b.clock)
	}
	if late(); b.role != Candidate {
		t.Fatalf("woken 2 ms late, the board is a %v at once", b.role)
	}
	wakes := 1
	for ; b.role != Leader && wakes < 10; wakes++ {
		late()
	}
	if wakes != 3 {
		t.Errorf("woken 2 ms late %d times, the board is a %v", wakes, b.role)
	}
}

// measuring lets a follower run until it measures the round trip to its leader.
func measuring(t *testing.T) *board {
	t.Helper()
	b := followerOf3(t, 1)
	for range 100 {
		at, _ := b.Deadline()
		if effects := b.sleep(at - b.clock); slices.ContainsFunc(effects, func(e Effect) bool {
			return e.Kind == EffectSend && e.Message.Type == wire.TypeQuery && e.To == 3
		}) {
			return b
		}
	}
	t.Fatal("the board does not measure the round trip to its leader")
	return nil
}

// answer is what a leader sends to a single board: the number of the beat before.
func answer(beat uint8) func(*wire.Message) {
	return func(m *wire.Message) { reply(m); m.Heartbeat.Number = beat }
}

// TestMeasuresTheRoundTrip: only the answer to its own question tells a board how far away its
// leader is. What others are answered says nothing, nor does what comes very late: the own
// question or its answer was lost then.
func TestMeasuresTheRoundTrip(t *testing.T) {
	trip := func(b *board) time.Duration { return b.detector.Quality().RoundTrip }

	b := measuring(t)
	b.sleep(700 * time.Microsecond)
	b.hear(3, wire.TypeHeartbeat, answer(b.lastLeader.lastNumber))
	if got := trip(b); got != 700*time.Microsecond {
		t.Errorf("answered after 0.7 ms, the round trip is taken for %v", got)
	}

	b = measuring(t)
	b.sleep(700 * time.Microsecond)
	b.hear(3, wire.TypeHeartbeat, reply) // to another one, by multicast: a new beat
	if got := trip(b); got != 0 {
		t.Errorf("not answered, the round trip is taken for %v", got)
	}

	b = measuring(t)
	b.following.turn = clock.Deadline{} // else it would suspect its leader, and ask again
	b.following.measure = clock.Deadline{}
	b.sleep(testInterval + time.Millisecond)
	b.hear(3, wire.TypeHeartbeat, answer(b.lastLeader.lastNumber))
	if got := trip(b); got != 0 {
		t.Errorf("answered after more than an interval, the round trip is taken for %v", got)
	}
}

// TestStartsBesideADeafBoard: a board whose port is deaf asks for ever, and at the shortest intervals more often than others
// back off for. A board that starts meanwhile listens no longer because of that, and leads.
func TestStartsBesideADeafBoard(t *testing.T) {
	b := newBoard(t, func(c *Config) { c.Interval = MinInterval })
	for range 100 {
		b.hear(3, wire.TypeElection, func(m *wire.Message) { m.Election = wire.Election{Suspect: 1, Round: 9, NoClaim: true} })
		for _, e := range b.sleep(MinInterval) {
			if e.Kind == EffectProbe {
				b.Probed(b.clock, false)
			}
		}
	}
	assert.Is(t, Leader, b.role, "after a second the board is")
}
