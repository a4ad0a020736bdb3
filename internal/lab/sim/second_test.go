package sim_test

import (
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file hold what a second path brings, and what it must not do.

// withSecondPath returns a LAN of boards that have one, settled and with the last one leading.
func withSecondPath(t *testing.T, n int, a wire.Algorithm, answers bool) *sim.Sim {
	t.Helper()
	lan := crowd(1, quick, n, a, func(c *election.Config) {
		c.SecondPath = true
		for id := range n {
			if a == wire.AlgorithmStrict {
				c.Voters = append(c.Voters, wire.ID(id+1))
			}
		}
	})
	witness(lan, answers)
	lan.Second.Wire = sim.Wire{Delay: sim.Constant(3 * time.Millisecond)}
	lan.Run(20*time.Second + 13*time.Millisecond)
	leads(t, lan.Boards(), wire.ID(n))
	return lan
}

func TestSecondPath(t *testing.T) {
	const (
		noticed = interval + 11*time.Millisecond
		asked   = noticed + 35*time.Millisecond // and the leader has asked who hears it
	)
	for _, test := range []struct {
		name                string
		boards              int
		noWitness, noSecond bool
		steps               string
		moves               int
		vacant              time.Duration // at most
		holder              string
	}{
		{"the leader dies", 3, false, false, "crash 3; run 5s", 1, noticed, "2"},
		{"the leader dies, and the second path is dead", 3, false, true, "run 10s; crash 3; run 5s", 1, noticed, "2"},
		{"the cable of the leader is pulled", 3, false, false, "pull 3; run 5s", 1, 5 * time.Millisecond, "2"},
		{"the cable of the leader of two is pulled", 2, true, false, "pull 2; run 5s", 1, 5 * time.Millisecond, "1"},
		{"the port of the leader is silent", 3, false, false, "mute 3; run 1m", 1, asked, "2"},
		{"the port of the leader is silent, and there is no witness", 3, true, false, "mute 3; run 1m", 1, asked, "2"},
		{"the leader hears nothing", 3, false, false, "deaf 3; run 1m", 1, 1500 * time.Millisecond, "2"},
		{"nobody hears the leader", 3, false, false, "unheard 3; run 1m", 1, asked, "2"},
		{"the port of a follower is silent", 3, false, false, "mute 2; run 1m; unmute 2; run 1s", 0, 0, "3"},
		{"the port of the leader heals", 3, false, false, "mute 3; run 1m; unmute 3; run 1m", 1, asked, "2"},
		{"the LAN falls in two", 4, false, false, "partition 4,1; run 1m; heal; run 1m", 0, 0, "4"},
		{"the LAN falls in two, and then the leader dies", 4, false, false, "partition 4,3; run 20s; crash 4; run 5s", 1, noticed, "3"},
		{"the port of the leader of two is silent, and nobody can tell whose port that is", 2, true, false, "mute 2; run 10s; unmute 2; run 1s", 0, 10 * time.Second, "2"},
		{"the switch forwards nothing for a minute", 3, false, false, "mute 1 2 3; run 1m; unmute 1 2 3; run 1m", 0, time.Minute, "3"},
		{"the switch forwards nothing, and there is no witness", 2, true, false, "mute 1 2; run 1m; unmute 1 2; run 1m", 0, time.Minute, "2"},
		{"the port of the next one is silent, and then that of the leader", 3, false, false, "mute 2; run 10s; mute 3; run 1m", 1, asked, "1"},
		{"the ports of the leader and of the next one fall silent", 3, false, false, "mute 2 3; run 1m", 1, asked, "1"},
		{"nobody hears the leader of two", 2, false, false, "unheard 2; run 1m", 1, asked, "1"},
		{"nobody hears one of two, whom the other watches", 2, false, false, "unheard 1; run 1m", 0, 0, "2"},
		{"a board starts whose port is silent", 3, false, false, "stop 1; run 1s; mute 1; start 1; run 1m", 0, 0, "3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lan := withSecondPath(t, test.boards, wire.AlgorithmHeir, !test.noWitness)
			if test.noSecond {
				lan.CutSecondPath()
			}
			wantCourse(t, lan, test.steps, test.moves, test.vacant, test.holder)
		})
	}
}

// A second path that comes and goes for ten minutes moves nothing, and nor does one that is slow.
func TestSecondPathFlaps(t *testing.T) {
	for _, a := range []wire.Algorithm{wire.AlgorithmHeir, wire.AlgorithmStrict} {
		lan := withSecondPath(t, 3, a, true)
		since := lan.Now()
		for i := range 1200 {
			lan.Second.Wire.Delay = sim.Constant(time.Duration(i%7) * 40 * time.Millisecond)
			if i%2 == 0 {
				lan.CutSecondPath()
			} else {
				lan.Second.Cut = nil
			}
			lan.Run(500 * time.Millisecond)
		}
		assert.Is(t, 0, lan.Summarise(since).Moves, "moves with %v", a)
		holder(t, lan)
	}
}

// In the steady state the second path costs the leader's heartbeats, one a second, and every fifth HELLO.
func TestSecondPathCosts(t *testing.T) {
	lan := withSecondPath(t, 3, wire.AlgorithmHeir, true)
	sent := 0
	lan.Second.Cut = func(from, to *sim.Board) bool {
		sent++
		return false
	}
	lan.Run(100 * time.Second)
	if perSecond := float64(sent) / 2 / 100; perSecond > 2 { // to two boards each
		t.Errorf("%.2f packets a second go by the second path", perSecond)
	}
}

// Strict keeps the address where it is, too, and moves it as heir does.
func TestSecondPathStrict(t *testing.T) {
	for _, test := range []struct {
		steps  string
		moves  int
		vacant time.Duration
	}{
		{"partition 5,1; run 1m; heal; run 1m", 0, 2 * time.Millisecond}, // until the first answer by the second path
		{"mute 5; run 1m", 1, interval + 60*time.Millisecond},
		{"pull 5; run 1m", 1, 10 * time.Millisecond},
		{"crash 5; run 1m", 1, interval + 60*time.Millisecond},
		{"deaf 5; run 1m", 1, interval + 60*time.Millisecond},
		{"unheard 5; run 1m", 1, interval + 60*time.Millisecond},
		{"mute 1 2 3 4 5; run 1m; unmute 1 2 3 4 5; run 1m", 0, time.Minute},
	} {
		lan := withSecondPath(t, 5, wire.AlgorithmStrict, true)
		since := lan.Now()
		play(t, lan, test.steps)
		sum := lan.Summarise(since)
		if sum.Moves != test.moves || sum.Nowhere > test.vacant || sum.Twice > 0 {
			t.Errorf("%s: %d moves, want %d; nowhere for %v, want at most %v; at two boards for %v",
				strings.SplitN(test.steps, ";", 2)[0], sum.Moves, test.moves, sum.Nowhere, test.vacant, sum.Twice)
		}
	}
}

// Where only some boards have a second path yet, nothing is worse than without one: what those boards do that have none is the same.
func TestSecondPathMixed(t *testing.T) {
	for _, steps := range []string{
		"crash 4; run 5s", "mute 4; run 1m", "deaf 4; run 1m", "unheard 4; run 1m", "mute 3; run 1m; unmute 3; run 1m",
		"partition 4,1 3,2; run 1m; heal; run 1m", "partition 4,2; run 10s; crash 4; run 10s; heal; start 4; run 1m", "pull 4; run 10s; plug 4; run 1m",
	} {
		played := func(with int) sim.Summary {
			lan := crowd(1, quick, 4, wire.AlgorithmHeir, func(c *election.Config) { c.SecondPath = with>>(c.ID-1)&1 == 1 })
			lan.Second.Wire = sim.Wire{Delay: sim.Constant(3 * time.Millisecond)}
			lan.Run(20*time.Second + 13*time.Millisecond)
			since := lan.Now()
			play(t, lan, steps)
			return lan.Summarise(since)
		}
		without := played(0)
		for with := range 1 << 4 {
			sum := played(with)
			// A leader whose port is dead hands over, which takes four questions more. Where two held the address, there was no gap;
			// and when a split heals, two can be reached until one hears the other.
			longer := without.Doubled == 0 && sum.Nowhere > without.Nowhere+35*time.Millisecond
			if longer || sum.Moves > without.Moves || sum.Twice > max(without.Twice, interval) || sum.Doubled > without.Doubled {
				t.Errorf("%s, with the second paths %04b: %d moves, nowhere for %v, at two for %v; without any %d, %v and %v", steps, with,
					sum.Moves, sum.Nowhere, sum.Doubled, without.Moves, without.Nowhere, without.Doubled)
			}
		}
	}
}
