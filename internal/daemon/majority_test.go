package daemon

import (
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
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
				if fired != test.fires {
					t.Errorf("the switch has fired: %t", fired)
				}
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
		err := three.tasks.call(t.Context(), func() {
			latest().fire()
			three.carryOut([]election.Effect{{Kind: election.EffectFenced}})
			if role := three.core.Role(); role != election.Follower {
				t.Errorf("a %v after its RESIGN", role)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		l.wantHolders(2)
	})
}
