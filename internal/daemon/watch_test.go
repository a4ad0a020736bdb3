package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// TestNextInRankAsksTheWitness: the next in rank reads the table of neighbours when it finds the leader, to watch the address. A
// board whose link has just come up is reading that already, and asks its witness when it has.
func TestNextInRankAsksTheWitness(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, _ := l.three()
		pass(time.Minute)
		read := two.platform.ReadNeighbours
		two.onLoop(t, func() {
			two.platform.ReadNeighbours = func(index int) (netio.Neighbours, error) {
				time.Sleep(10 * time.Millisecond) // the leader answers sooner
				return read(index)
			}
		})
		two.unplugged(true)
		pass(time.Second)
		two.asked()
		two.unplugged(false)
		pass(time.Second)
		two.wantAsked(t, "when the link came up", router.String())
	})
}

// TestMissOfAFormerLeader: while the loop of the next in rank stands still, the leader dies, and another board takes over. That
// the address of the former leader did not answer is no reason to suspect that one. What the loop reads first is left to chance.
func TestMissOfAFormerLeader(t *testing.T) {
	for n := range 10 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				_, two, three := l.three()
				pass(time.Second)
				two.tasks.post(func() { <-time.After(500 * time.Millisecond) })
				three.unplugged(true)
				pass(2 * time.Second)
				assert.Is(t, "10.0.0.1", two.mustStatus(t).Leader, "the leader")
				two.get(func() {
					for _, c := range two.heard {
						if c.Reason == election.ReasonAddressSilent {
							t.Errorf("it suspects %v", c.NewLeader)
						}
					}
				})
			})
		})
	}
}

// TestWatchIsReported is what the daemon makes of reports, in this order.
func TestWatchIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, _ := l.three()
		pass(50 * time.Millisecond)
		const every = 10 * time.Millisecond
		two.onLoop(t, func() {
			two.Daemon.lan.setWatch(wire.Nobody, 0)
			two.Daemon.lan.setWatch(two.core.Watch())
			is := func(role election.Role, state string) {
				t.Helper()
				assert.Is(t, role, two.core.Role(), "the role")
				assert.Is(t, state, two.describeWatch().State, "the state")
			}
			is(election.Follower, "runs") // it begins
			two.watchReported(netio.WatchReport{})
			is(election.Follower, "no_answer")
			two.watchReported(netio.WatchReport{Every: every, Why: netio.WatchAnswers})
			is(election.Follower, "runs")
			two.watchReported(netio.WatchReport{Every: every, Why: netio.WatchMissed, MissedSince: two.now()})
			is(election.Candidate, "missed")
			two.watchReported(netio.WatchReport{}) // somebody else has announced the address, and does not answer
			is(election.Candidate, "no_answer")
			two.watchReported(netio.WatchReport{Every: every, Why: netio.WatchAnswers})
			is(election.Follower, "paused")
		})
	})
}

// TestUnansweredAddress: the leader lives, and its kernel does not answer for the address. People are told, and after that it answers.
func TestUnansweredAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, _ := l.three()
		pass(time.Second)
		report := func(r netio.WatchReport) {
			two.onLoop(t, func() { two.watchReported(r) })
			pass(unheardFor + lookEvery)
		}
		report(netio.WatchReport{})
		const want = "pi3 (10.0.0.3) leads, and does not answer this board's ARP requests for 10.0.0.100"
		if text := two.problem(t, console.ProblemAddressUnanswered); !strings.Contains(text, want) {
			t.Errorf("the problem is %q, want %q", text, want)
		}
		report(netio.WatchReport{Every: 10 * time.Millisecond, Why: netio.WatchAnswers})
		two.wantTold(t, console.ProblemAddressUnanswered, "")
	})
}
