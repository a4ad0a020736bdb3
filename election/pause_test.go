package election

import (
	"testing"
	"time"

	"topdog/election/silence"
	"topdog/wire"
)

// TestPauseWhereNumbersDiffer: others know of more pauses than this board, and not all of the same number.
func TestPauseWhereNumbersDiffer(t *testing.T) {
	b := newBoard(t)
	b.lead()
	if _, err := b.Pause(b.clock, time.Hour); err != nil {
		t.Fatal(err)
	}
	over := func(number uint32) func(*wire.Message) {
		return func(m *wire.Message) { m.Pause.Number = number }
	}
	b.hear(1, wire.TypePause, over(5))
	b.hear(3, wire.TypePause, over(7))
	if !b.paused() {
		t.Errorf("somebody has paused the group on this board a moment ago, and it is not paused: number %d", b.pause.number)
	}
}

// TestPauseIsCorrectedSeldom: where two halves of a group meet, all boards of the one hear all of the other.
func TestPauseIsCorrectedSeldom(t *testing.T) {
	b := newBoard(t)
	b.lead()
	if _, err := b.Pause(b.clock, time.Hour); err != nil {
		t.Fatal(err)
	}
	b.sleep(2 * insistFor)
	b.hear(1, wire.TypePause, func(m *wire.Message) { m.Pause.Number = 1 << 31 })
	older := func(from wire.ID) int {
		return sent(b.hear(from, wire.TypePause, func(m *wire.Message) { m.Pause.Number = 5 }), wire.TypePause)
	}
	told := 0
	for from := wire.ID(10); from < 60; from++ {
		told += older(from)
	}
	b.sleep(silence.RoundTripMin)
	if later := older(10); told != 1 || later != 1 {
		t.Errorf("of fifty boards at once %d were told, and later %d; want 1 and 1", told, later)
	}
}

// TestPausedLeaseExpires: the lease of the leader has run out, and nobody else may lead because of a pause. It asks as soon as
// its RESIGN was heard, and leads again. It listens as without a pause if others may lead by then, and does not lead if it
// must not.
func TestPausedLeaseExpires(t *testing.T) {
	const stoodStill = 2 * testInterval
	pause := func(length time.Duration) func(b *board) {
		return func(b *board) {
			b.hear(1, wire.TypePause, func(m *wire.Message) { m.Pause = wire.Pause{Number: 1, Leader: 2, Left: length} })
		}
	}
	unpaused := func(b *board) {
		b.hear(1, wire.TypePause, func(m *wire.Message) { m.Pause = wire.Pause{Number: b.pause.number + 1} })
	}
	window := newBoard(t).listenWindow()
	const never = time.Duration(0)
	for _, test := range []struct {
		name          string
		before, after func(b *board)
		wait, rounds  time.Duration // until it asks, and then until it leads
	}{
		{"paused", pause(time.Hour), nil, resignSettles, 20 * time.Millisecond},
		{"not paused", nil, nil, window, 20 * time.Millisecond},
		{"the pause ends meanwhile", pause(MinPause), func(b *board) {
			if wait := b.following.turn.At - b.clock; wait < window { // it may wake late, with its turn and the end of the pause together
				b.t.Errorf("its turn comes after %v, want %v", wait, window)
			}
		}, window, 20 * time.Millisecond},
		{"the pause was ended meanwhile", pause(time.Hour), unpaused, window, 20 * time.Millisecond},
		{"the pause is ended before it asks", pause(time.Hour), func(b *board) {
			b.sleep(resignSettles - time.Millisecond)
			unpaused(b)
		}, window + resignSettles - time.Millisecond, 20 * time.Millisecond},
		{"another board may lead alone by then", pause(time.Hour), func(b *board) {
			b.hear(1, wire.TypePause, func(m *wire.Message) {
				m.Pause = wire.Pause{Number: b.pause.number + 1, Leader: 1, Left: time.Hour}
			})
		}, never, 0},
		{"another board leads", pause(time.Hour), func(b *board) {
			b.hear(1, wire.TypeCoordinator, leading, func(m *wire.Message) { m.Term = b.term + 1 })
		}, never, 0},
		{"the link was lost meanwhile", pause(time.Hour), func(b *board) {
			b.Link(b.clock, false)
			b.Link(b.clock, true)
		}, window, 20 * time.Millisecond},
		{"its port hears nothing", pause(time.Hour), func(b *board) { b.deaf = true }, resignSettles, never},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBoard(t)
			b.lead()
			b.hear(1, wire.TypeHello, following(2))
			b.hear(3, wire.TypeHello, following(2)) // of higher rank
			if test.before != nil {
				test.before(b)
			}
			if b.pause.end.Set && b.pause.end.At < b.clock+time.Minute { // one that ends while it stands still
				b.sleep(b.pause.end.At - stoodStill/2 - b.clock)
			}
			b.clock += stoodStill
			woken := b.clock
			b.LeaseExpired(b.clock)
			if test.after != nil {
				test.after(b)
			}
			var asked, led Instant
			for b.clock < woken+time.Second {
				if b.leader == 1 {
					b.hear(1, wire.TypeHeartbeat, leading)
				}
				for _, e := range b.sleep(time.Millisecond) {
					switch {
					case e.Kind == EffectProbe:
						b.Probed(b.clock, false)
					case asked == 0 && e.Kind == EffectSend && e.Message.Type == wire.TypeElection:
						asked = b.clock - woken
					}
				}
				if led == 0 && b.role == Leader {
					led = b.clock - woken
				}
			}
			if got := asked > 0; got != (test.wait > 0) || got && (asked < test.wait || asked > test.wait+2*time.Millisecond) {
				t.Errorf("it asks after %v, want %v (0 is never)", asked, test.wait)
			}
			if got := led > 0; got != (test.rounds > 0) || got && led > asked+test.rounds {
				t.Errorf("it has asked after %v and leads after %v, want %v later at most (0 is never)", asked, led, test.rounds)
			}
		})
	}
}

// TestPausedVoterExpires: with votes the leader whose lease has run out needs them anew. A voter that has promised its support to
// another board does not give its vote, whoever may lead because of the pause.
func TestPausedVoterExpires(t *testing.T) {
	b, _ := elected(t)
	if _, err := b.Pause(b.clock, time.Hour); err != nil {
		t.Fatal(err)
	}
	b.clock += 2 * testInterval
	b.LeaseExpired(b.clock)
	effects := b.sleep(resignSettles + 20*time.Millisecond)
	if sent(effects, wire.TypeVote) == 0 || b.role != Candidate {
		t.Fatalf("a %v that does %v, want one that asks for votes", b.role, described(effects))
	}
	if b.sleep(testInterval); b.role == Leader {
		t.Fatal("it leads, and nobody has voted for it")
	}
	b.grant(1, b.votes.support.Number)
	if b.role != Leader {
		t.Errorf("a %v with the votes of a majority", b.role)
	}
}
