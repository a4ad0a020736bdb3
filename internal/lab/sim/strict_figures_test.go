package sim_test

import (
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file hold what strict costs on a wire on which nothing is wrong, or few things are.

// usual is such a wire.
var usual = sim.Wire{Delay: sim.Uniform(latency, latency+300*time.Microsecond)}

// voters has the first n boards vote.
func voters(n int) func(*election.Config) {
	return func(c *election.Config) {
		for id := range wire.ID(n) {
			c.Voters = append(c.Voters, id+1)
		}
	}
}

// strictGroup starts boards that all vote, and gives them ten seconds.
func strictGroup(seed uint64, boards int, change ...func(*election.Config)) *sim.Sim {
	lan := crowd(seed, usual, boards, wire.AlgorithmStrict, append([]func(*election.Config){voters(boards)}, change...)...)
	lan.Run(10 * time.Second)
	return lan
}

// TestStrictIsAsFast: what a board or the network does to the leader costs strict no more than heir and
// a round trip, and where heir has two holders strict has one.
func TestStrictIsAsFast(t *testing.T) {
	const roundTrip = 1200 * time.Microsecond // both ways at the longest delay, and the voter's answer at the same time
	for order, silent := range map[string]bool{"pull": true, "stop": false, "resign": false} {
		for seed := range uint64(10) {
			outage := func(lan *sim.Sim) time.Duration {
				lan.Run(time.Duration(seed) * interval / 10)
				at := lan.Now()
				play(t, lan, order+" "+holder(t, lan).Label+"; run 1s")
				sum := lan.Summarise(at)
				if sum.Moves != 1 || sum.Doubled > 0 {
					t.Errorf("%s: %d moves, two holders for %v", order, sum.Moves, sum.Doubled)
				}
				return sum.Vacant
			}
			plain := crowd(seed, usual, 3, wire.AlgorithmHeir)
			plain.Run(10 * time.Second)
			heir, strict := outage(plain), outage(strictGroup(seed, 3))
			// The phase of the heartbeats differs by when the first leader was elected, if the leader is silent.
			if limit := heir + roundTrip; !silent && strict > limit {
				t.Errorf("%s: %v, with heir %v", order, strict, heir)
			}
			if strict > interval+15*time.Millisecond {
				t.Errorf("%s: nobody held the address for %v", order, strict)
			}
		}
	}
}

// TestStrictIsNotMoved: lost packets, short or long, and pauses of the leader hardly move the address, and nobody answers
// only while the majority is not heard. A leader that stands still now and then loses the lead once, and then the group
// has learned how patient it must be.
func TestStrictIsNotMoved(t *testing.T) {
	lossy := func(loss float64) func(*sim.Sim) {
		return func(lan *sim.Sim) {
			w := usual
			w.Loss = loss
			lan.Wire = w
			lan.Run(10 * time.Minute)
		}
	}
	// now and then disturbs the group eighty times, at all phases of the heartbeat.
	nowAndThen := func(disturb func(lan *sim.Sim, i int)) func(*sim.Sim) {
		return func(lan *sim.Sim) {
			for i := range 80 {
				lan.Run(time.Second + time.Duration(i)*interval*7/100)
				disturb(lan, i)
			}
			lan.Run(time.Second)
		}
	}
	bursts := func(d time.Duration) func(*sim.Sim) {
		return nowAndThen(func(lan *sim.Sim, _ int) { burst(lan, lan.Boards(), d) })
	}
	pauses := nowAndThen(func(lan *sim.Sim, i int) {
		pause(lan, []*sim.Board{holder(t, lan)}, time.Duration(5+i*5%30)*time.Millisecond)
		lan.Run(interval)
	})
	const ms = time.Millisecond
	for _, test := range []struct {
		name            string
		disturb         func(*sim.Sim)
		moves           int
		vacant, longest time.Duration // at most
	}{
		{"5 % lost for ten minutes", lossy(0.05), 0, time.Second, time.Second},
		{"20 % lost for ten minutes", lossy(0.2), 0, time.Second, time.Second},
		{"bursts of 20 ms", bursts(20 * ms), 0, 80 * 20 * ms, 20 * ms},
		{"bursts of 40 ms", bursts(40 * ms), 0, 80 * 40 * ms, 40 * ms},
		{"bursts of 60 ms", bursts(60 * ms), 0, 80 * 60 * ms, 60 * ms},
		{"pauses of 5 to 30 ms", pauses, 1, interval, interval},
	} {
		lan := strictGroup(1, 3)
		at := lan.Now()
		test.disturb(lan)
		sum := lan.Summarise(at)
		t.Logf("%s: %d moves, nobody answers for %v, at most for %v", test.name, sum.Moves, sum.Vacant, sum.LongestVacancy)
		if sum.Moves > test.moves || sum.Doubled > 0 || sum.Vacant > test.vacant || sum.LongestVacancy > test.longest {
			t.Errorf("%s: %+v", test.name, sum)
		}
	}
}

// TestStrictSplit: of a LAN in two pieces the one with the majority has the address, and the
// other one nobody; a LAN in three has nobody. When it is whole again there is no second move. A
// leader that is heard and does not hear lets go.
func TestStrictSplit(t *testing.T) {
	const noticed = interval + 15*time.Millisecond
	for _, test := range []struct {
		name, cut string
		want      []string // who holds the address meanwhile
		moves     int
		vacant    time.Duration // at most
	}{
		{"the leader alone", "partition 5 1,2,3,4; run 5s", []string{"4"}, 1, noticed},
		{"the leader in the minority", "partition 4,5 1,2,3; run 5s", []string{"3"}, 1, noticed},
		{"the leader in the majority", "partition 1,2 3,4,5; run 5s", []string{"5"}, 0, 0},
		{"in three", "partition 1,2 3,4 5; run 5s", nil, 0, 5*time.Second + noticed},
		{"the leader is deaf", "deafen 5 1; deafen 5 2; deafen 5 3; deafen 5 4; run 3s", []string{"4"}, 1, 1500 * time.Millisecond},
	} {
		lan := strictGroup(1, 5)
		at := lan.Now()
		leads(t, lan.Boards(), 5)
		play(t, lan, test.cut)
		assert.Equal(t, test.want, labels(lan.Summarise(at).Holders), "%s: the holders", test.name)
		play(t, lan, "heal; undeafen 5 1; undeafen 5 2; undeafen 5 3; undeafen 5 4; run 3s")
		sum := lan.Summarise(at)
		if _, err := leader(lan.Boards()); err != nil || sum.Doubled > 0 || sum.Moves != test.moves || sum.Vacant > test.vacant {
			t.Errorf("%s: %v, %+v", test.name, err, sum)
		}
	}
}

// TestStrictMistakes: mistakes in the configuration of one board are reported, and never make a
// second holder.
func TestStrictMistakes(t *testing.T) {
	for _, test := range []struct {
		name   string
		board  wire.ID
		voters []wire.ID
		want   election.NoticeKind
	}{
		{"another list on one board", 2, []wire.ID{1, 2, 3, 4}, election.NoticeOtherVoters},
		{"a fourth board with a list of its own", 4, []wire.ID{4}, election.NoticeOtherVoters},
		{"a fourth board in its own list", 4, []wire.ID{1, 2, 3, 4}, election.NoticeOtherVoters},
		{"a voter twice", 1, []wire.ID{1, 2, 3}, election.NoticeVoterTwice},
	} {
		t.Run(test.name, func(t *testing.T) {
			lan := strictGroup(1, 3)
			reported := map[string]bool{}
			lan.Trace = func(e sim.Event) {
				if e.Kind == sim.EventNotice && e.Notice.Kind == test.want {
					reported[e.Board.Label] = true
				}
			}
			cfg := config(test.board, wire.AlgorithmStrict)
			cfg.Voters = test.voters
			if b := lan.Board(test.board.String()); b != nil && test.want != election.NoticeVoterTwice {
				b.Crash()
				b.Config = cfg
				b.Start()
			} else {
				b := lan.Add(cfg)
				b.Label = "new"
				b.Start()
			}
			at := lan.Now()
			lan.Run(20 * time.Second)
			holder(t, lan).Crash()
			lan.Run(20 * time.Second)
			assert.Is(t, 0, lan.Summarise(at).Doubled, "two holders")
			for _, b := range lan.Boards() {
				if b.Running() && !reported[b.Label] {
					t.Errorf("%v does not report it", b)
				}
			}
		})
	}
}

// TestStrictWitness: two boards and a witness are a cluster, and to lose the witness changes nothing.
func TestStrictWitness(t *testing.T) {
	lan := strictGroup(1, 3, func(c *election.Config) {
		if c.ID == 3 {
			c.Priority = 0
		}
	})
	at := lan.Now()
	play(t, lan, "crash 3; run 5s")
	if sum := lan.Summarise(at); sum.Moves > 0 || sum.Vacant > 0 {
		t.Errorf("without the witness: %+v", sum)
	}
	play(t, lan, "start 3; run 10s")
	at = lan.Now()
	play(t, lan, "pull "+holder(t, lan).Label+"; run 1s")
	if sum := lan.Summarise(at); sum.Moves != 1 || sum.Vacant > interval+15*time.Millisecond || holder(t, lan).Config.ID == 3 {
		t.Errorf("without the leader: %+v", sum)
	}
}
