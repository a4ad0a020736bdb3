package daemon

import (
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// TestMajorityUnheard: where a fence ends what a leader answers, a daemon that runs and does not
// hear the majority goes on leading, and its dead man's switch says nothing. It acts if the
// daemon stands still.
func TestMajorityUnheard(t *testing.T) {
	const outage = 60 * time.Millisecond
	for _, test := range []struct {
		name   string
		happen func(l *fakeLAN, three *fakeBoard)
		fires  bool
	}{
		{"nothing passes", func(l *fakeLAN, three *fakeBoard) {
			set := func(deaf bool) {
				for _, b := range l.boards {
					b.get(func() { b.deaf = deaf })
				}
			}
			for range 5 { // at different moments of an interval
				set(true)
				pass(outage)
				set(false)
				pass(330 * time.Millisecond)
			}
		}, false},
		{"it stands still", func(l *fakeLAN, three *fakeBoard) {
			three.freeze(outage + 200*time.Millisecond)
			pass(time.Second)
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				one, _, three, latest := l.armedThree(func(c *config.Config) {
					c.Algorithm, c.Voters = wire.AlgorithmStrict, votersOf(1, 2, 3)
				})
				d := latest()
				d.get(func() { d.closes = true })
				test.happen(l, three)
				var fired bool
				d.get(func() { fired = d.firedAt > 0 })
				assert.Is(t, test.fires, fired, "the switch has fired")
				if leads := three.mustStatus(t).Role == console.RoleLeader; leads == test.fires {
					t.Errorf("the board leads: %t; board 1 follows %v", leads, one.mustStatus(t).Leader)
				}
			})
		})
	}
}

// TestSwitchBeforeFenced: without a fence, the end of the lease is the same moment for the daemon and
// its dead man's switch. If the switch comes first, others have heard a RESIGN, which has released what
// the voters had promised: the board leads no more, whatever they have acknowledged before.
func TestSwitchBeforeFenced(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three, latest := l.armedThree(func(c *config.Config) {
			c.Algorithm, c.Voters = wire.AlgorithmStrict, votersOf(1, 2, 3)
		})
		three.onLoop(t, func() {
			latest().fire()
			three.carryOut([]election.Effect{{Kind: election.EffectFenced}})
			assert.Is(t, election.Follower, three.core.Role(), "the role after its RESIGN")
		})
		pass(time.Second)
		l.wantHolders(2)
	})
}

// TestSwitchBeforeResign has the lease end just when a leader hands over. Board 1 has got a higher priority since the
// RESIGN was signed beforehand, so that one names board 2, and the core would name board 1. Both would claim, also if board
// 2 is so busy that the RESIGN is repeated.
func TestSwitchBeforeResign(t *testing.T) {
	for _, busy := range []time.Duration{0, 2 * time.Millisecond, 8 * time.Millisecond, 12 * time.Millisecond} {
		t.Run(busy.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				one, two, three, latest := l.armedThree(nil)
				said := three.says(t)
				for len(said()) == 0 { // until a heartbeat has left
					pass(100 * time.Microsecond)
				}
				one.reload(func(c *config.Config) { c.Priority = 200 })
				pass(5 * time.Millisecond)
				acquired := make(map[int]int)
				for _, b := range []*fakeBoard{one, two} {
					b.get(func() { b.onAcquire = func() { acquired[b.number]++ } })
				}
				if busy > 0 {
					two.freeze(busy)
				}
				before := len(said())
				three.onLoop(t, func() {
					if heir, _ := three.core.Successor(three.now()); heir != one.group.self {
						t.Errorf("the core would name %v", heir)
					}
					effects, err := three.core.Resign(three.now())
					if err != nil {
						t.Error(err)
					}
					latest().fire()
					three.carryOut(effects)
				})
				pass(100 * time.Millisecond)
				for _, m := range said()[before:] {
					if m.Type == wire.TypeResign && m.Resign.Successor != two.group.self {
						t.Errorf("it names %v after its dead man's switch has named another board", m.Resign.Successor)
					}
				}
				one.get(func() {}) // acquired is written by the boards
				if two.get(func() {}); acquired[1] > 0 || acquired[2] == 0 {
					t.Errorf("acquired: %v", acquired)
				}
			})
		})
	}
}

// TestPreparedAgain: without a fence a leader of strict releases the address at the end of its lease, and
// acquires it again in the same term when the majority is heard. What the holder was to send belongs to the time
// before, and it sends that no more.
func TestPreparedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three, latest := l.armedThree(func(c *config.Config) {
			c.Algorithm, c.Voters = wire.AlgorithmStrict, votersOf(1, 2, 3)
		})
		prepared := func() (n int) {
			latest().get(func() { n = len(latest().prepared) })
			return n
		}
		former := prepared()
		three.onLoop(t, func() {
			three.carryOut([]election.Effect{{Kind: election.EffectFenced}})
			three.carryOut([]election.Effect{{Kind: election.EffectAcquire}})
		})
		pass(200 * time.Millisecond)
		l.wantHolders(3)
		if now := prepared(); now <= former {
			t.Errorf("prepared %d times before, and %d times now", former, now)
		}
	})
}

// TestAnnouncesNothingAfterTheLease: a fence that drops only what comes in lets announcements out, and they
// would lead the users away from the next leader. What announces the address hears that the lease is over, and that it goes on.
func TestAnnouncesNothingAfterTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three, latest := l.armedThree(func(c *config.Config) {
			c.Algorithm, c.Voters = wire.AlgorithmStrict, votersOf(1, 2, 3)
		})
		fence := latest().fakeFence
		fence.get(func() { fence.closes = true })
		three.get(func() { three.deaf = true })
		pass(200 * time.Millisecond)
		fence.get(func() {
			if three.now() < fence.end {
				t.Fatal("the majority is not heard, and the lease goes on")
			}
		})
		three.get(func() { three.announced = 0 })
		three.claimed(net.HardwareAddr{2, 0, 0, 0, 9, 9})
		pass(110 * time.Millisecond)
		three.get(func() { assert.Is(t, 0, three.announced, "announced while the lease is over") })
		assert.Is(t, false, three.mayAnnounce(), "the address may be announced while the lease is over")

		three.get(func() { three.deaf = false })
		pass(100 * time.Millisecond)
		l.wantHolders(3)
		assert.Is(t, true, three.mayAnnounce(), "the address may be announced when the lease goes on")
		three.claimed(net.HardwareAddr{2, 0, 0, 0, 9, 9})
		pass(time.Millisecond)
		three.get(func() { assert.Is(t, 1, three.announced, "claims that were answered when the lease goes on") })
	})
}

// TestPromiseWaitsForTheRelease has the kernel not let go of the address. With votes it is not only a
// RESIGN upon which others claim: a leader that lets go votes at once for a board that has asked it.
func TestPromiseWaitsForTheRelease(t *testing.T) {
	for _, fenced := range []bool{true, false} {
		name := map[bool]string{true: "fenced", false: "unfenced"}[fenced]
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				voters := votersOf(1, 2, 3)
				_, two, three, latest := l.armedThree(func(c *config.Config) {
					c.Algorithm, c.Voters = wire.AlgorithmStrict, voters
				})
				fence := latest().fakeFence
				fence.get(func() { fence.closes = fenced })
				three.get(func() { three.releaseFails = errors.New("the kernel is busy") })
				said := three.says(t)
				var request wire.Message
				two.onLoop(t, func() {
					request = wire.Message{Header: two.core.Signature(), Vote: wire.Vote{
						Ballot: wire.BallotRequest, Number: 1 << 20, Interval: 100 * time.Millisecond, Voters: wire.VotersHash(voters),
					}}
					request.Type, request.Incarnation, request.Sequence = wire.TypeVote, two.group.incarnation, two.group.sequence+1
				})
				three.onLoop(t, func() {
					three.carryOut(three.core.Step(three.now(), &request))
					effects, err := three.core.Resign(three.now())
					if err != nil {
						t.Error(err)
					}
					three.carryOut(effects)
					// What else it may say before the kernel lets go.
					support := wire.Message{Header: three.core.Signature(), Support: wire.Support{
						Leader: request.Sender, Incarnation: request.Incarnation, Term: request.Term, Heartbeat: 1, Voters: request.Vote.Voters,
					}}
					support.Type = wire.TypeSupport
					withdrawal, request := request, request
					withdrawal.Vote.Ballot = wire.BallotWithdraw
					for _, m := range []wire.Message{support, withdrawal, request} {
						three.carryOut([]election.Effect{{Kind: election.EffectSend, To: two.group.self, Message: m}})
					}
				})
				var got []wire.Type
				for _, m := range said() {
					if m.Type != wire.TypeHeartbeat {
						got = append(got, m.Type)
					}
				}
				var want []wire.Type
				if fenced {
					want = []wire.Type{wire.TypeGrant, wire.TypeResign, wire.TypeSupport, wire.TypeVote}
				}
				if got = slices.Compact(got); !slices.Equal(got, want) {
					t.Errorf("it says %v, want %v", got, want)
				}

				three.get(func() { three.releaseFails = nil })
				pass(time.Second)
				if holders := l.holders(); len(holders) != 1 || holders[0] == 3 {
					t.Errorf("%v hold it", holders)
				}
			})
		})
	}
}
