package daemon

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// tale is what was told since the last call, in short: "role_changed leader 10.0.0.3 holding".
func (b *fakeBoard) tale() (lines []string) {
	b.get(func() {
		for _, n := range b.told {
			line := fmt.Sprintf("%s %s %s", n.Event, n.Role, n.Leader)
			if n.Holding {
				line += " holding"
			}
			lines = append(lines, line)
		}
		b.told = nil
	})
	return lines
}

func wantTale(t *testing.T, b *fakeBoard, want ...string) {
	t.Helper()
	assert.Equal(t, want, b.tale(), "board %d has told", b.number)
}

// Whoever follows a board hears of each change by itself, and never of a follower that has the address.
func TestTransitions(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three := l.three()
		want := []string{"role_changed leader 10.0.0.3 holding", "address_acquired leader 10.0.0.3 holding"}
		if got := three.tale(); len(got) < 3 || got[0] != "role_changed listener " || !cmp.Equal(got[len(got)-2:], want) {
			t.Errorf("board 3 has told %q, which does not end with %q", got, want)
		}
		one.tale()
		two.tale()

		_, err := three.Resign(t.Context())
		assert.NoError(t, err)
		pass(time.Second)
		wantTale(t, three, "role_changed follower ", "address_released follower ", "leader_changed follower 10.0.0.2")
		wantTale(t, two, "role_changed leader 10.0.0.2 holding", "address_acquired leader 10.0.0.2 holding")
		wantTale(t, one, "leader_changed follower ", "leader_changed follower 10.0.0.2")

		two.end()
		pass(time.Second)
		wantTale(t, two, "stopping leader 10.0.0.2 holding", "role_changed follower ", "address_released follower ", "leader_changed follower 10.0.0.3")

		if got, published := three.mustStatus(t).Transition, three.console.Published(); got != published || got < 5 {
			t.Errorf("the status is of transition %d, and %d were published", got, published)
		}
		var last console.Transition
		three.get(func() { last = three.told[len(three.told)-1] })
		if diff := cmp.Diff(console.Transition{
			Event: console.EventAddressAcquired, Role: "leader", Reason: "handed_over", ReasonText: "the leader handed over", Holding: true,
			Leader: "10.0.0.3", LeaderName: "pi3", Term: 3, Group: "test", Addresses: []string{"10.0.0.100/24"}, Interface: "eth0",
			Board: "10.0.0.3", BoardName: "pi3", Priority: 100, Grade: "passing",
		}, last); diff != "" {
			t.Errorf("board 3 has told at last (-want +got):\n%s", diff)
		}
	})
}

// A leader without the address does not say that it has it, and says when it has.
func TestTransitionsWithoutTheAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(_ *config.Config, b *fakeBoard) { b.acquireFails = errNoPermission })
		pass(2 * time.Second)
		got := one.tale()
		assert.Is(t, "role_changed leader 10.0.0.1", got[len(got)-1], "the last that it has told")
		one.get(func() { one.acquireFails = nil })
		pass(time.Second)
		wantTale(t, one, "address_acquired leader 10.0.0.1 holding")
		one.change(func(s *netio.Snapshot) { s.Link.Up = false })
		pass(time.Millisecond)
		wantTale(t, one, "role_changed isolated ", "address_released isolated ")
	})
}

// A leader that the fence keeps from answering does not have the address, as far as others are concerned.
func TestTransitionsOfTheFence(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three, latest := l.armedThree(func(c *config.Config) {
			c.Algorithm, c.Voters = wire.AlgorithmStrict, votersOf(1, 2, 3)
		})
		latest().get(func() { latest().closes = true })
		three.tale()
		for _, b := range []*fakeBoard{one, two} {
			b.get(func() { b.mute = true })
		}
		pass(150 * time.Millisecond)
		wantTale(t, three, "address_released leader 10.0.0.3")
		for _, b := range []*fakeBoard{one, two} {
			b.get(func() { b.mute = false })
		}
		pass(150 * time.Millisecond)
		wantTale(t, three, "address_acquired leader 10.0.0.3 holding")
	})
}

// How fit a board is to lead is told when it changes, and so is the hand-over that follows from it.
func TestTransitionsOfTheGrade(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three := l.three()
		for _, b := range []*fakeBoard{one, three} {
			b.tale()
			b.tasks.post(func() { b.carryOut(b.core.SetGrade(b.now(), wire.GradeFailing)) })
			pass(time.Second)
		}
		wantTale(t, one, "grade_changed follower 10.0.0.3", "leader_changed follower ", "leader_changed follower 10.0.0.2")
		var last console.Transition
		three.get(func() { last = three.told[len(three.told)-1] })
		assert.Is(t, console.GradeFailing, last.Grade, "board 3 has told of the grade")
		wantTale(t, three, "grade_changed leader 10.0.0.3 holding", "role_changed follower ", "address_released follower ", "leader_changed follower 10.0.0.2")
	})
}

// A board that leaves hands over, and its daemon ends, as it does if there is nothing to hand over.
func TestLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three := l.three()
		for _, tt := range []struct {
			board *fakeBoard
			want  console.Handover
		}{
			{three, console.Handover{Leader: "10.0.0.2", LeaderName: "pi2", Text: "handed over to pi2 (10.0.0.2)"}},
			{one, console.Handover{Text: "left the group"}},
			{two, console.Handover{Text: "left the group"}}, // it leads, and nobody is left
		} {
			got, err := tt.board.Leave(t.Context())
			if err != nil || got != tt.want {
				t.Errorf("board %d: %+v, %v, want %+v", tt.board.number, got, err, tt.want)
			}
			err = <-tt.board.ended
			if err != nil {
				t.Errorf("board %d ended with %v", tt.board.number, err)
			}
			tt.board.ended <- nil // for the end of the test
		}
		l.wantHolders()
		tale := two.tale()
		if n := len(tale); n < 3 || tale[n-3] != "stopping leader 10.0.0.2 holding" || tale[n-1] != "address_released follower " {
			t.Errorf("board 2 has told %q", tale)
		}
	})
}
