package election_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// BenchmarkPatience shows what the constants of patienceRule cost, and what they save, in virtual
// time: forty disturbances of three boards of which none fails, and then forty more. With one
// group each:
//
//	go test ./election -run '^$' -bench Patience -benchtime 60x
//
// moves and again are how often the address moved, doubled is for how long two boards answered,
// grace what the leader announces in the end, and cable the time from when its cable is pulled then
// to the claim of the next leader.
func BenchmarkPatience(b *testing.B) {
	const never = 0
	for _, trouble := range []struct {
		name     string
		interval time.Duration
		do       func(lan *sim.Sim, leader *sim.Board)
	}{
		{"port-bursts", 100 * time.Millisecond, func(lan *sim.Sim, leader *sim.Board) {
			n := []int{slices.Index(lan.Boards(), leader) + 1}
			lan.Filter([]scene.Filter{{From: n}, {To: n}}, "muted")
			lan.Run(drawn(lan, 20, 60))
			lan.Filter(nil, "unmuted")
		}},
		{"pauses", 100 * time.Millisecond, func(lan *sim.Sim, leader *sim.Board) {
			leader.Freeze()
			lan.Run(drawn(lan, 5, 30))
			leader.Thaw()
		}},
		{"pauses-of-75ms", 10 * time.Millisecond, func(lan *sim.Sim, leader *sim.Board) {
			leader.Freeze()
			lan.Run(75 * time.Millisecond)
			leader.Thaw()
		}},
	} {
		for _, rule := range []struct {
			name     string
			factor   float64
			least    int
			look     float64
			patience time.Duration
		}{
			{"nothing-learned", 2, 4, 1.5, silence.DefaultGrace(trouble.interval)},
			{"factor=1.25", 1.25, 4, 1.5, 0},
			{"factor=1.5", 1.5, 4, 1.5, 0},
			{"factor=2", 2, 4, 1.5, 0},
			{"factor=3", 3, 4, 1.5, 0},
			{"factor=4", 4, 4, 1.5, 0},
			{"factor=2/least=1", 2, 1, 1.5, 0},
			{"factor=2/least=2", 2, 2, 1.5, 0},
			{"factor=2/least=8", 2, 8, 1.5, 0},
			{"factor=2/look=never", 2, 4, never, 0},
			{"factor=2/look=1.25", 2, 4, 1.25, 0},
			{"factor=2/look=2", 2, 4, 2, 0},
		} {
			b.Run(fmt.Sprintf("%s/%s", trouble.name, rule.name), func(b *testing.B) {
				former := silence.Rule
				defer func() { silence.Rule = former }()
				silence.Rule.Factor, silence.Rule.Least, silence.Rule.Look = rule.factor, rule.least, rule.look
				var moves [2]int
				var doubled, grace time.Duration
				var cable []time.Duration
				for seed := range uint64(b.N) {
					lan := group(seed, trouble.interval, rule.patience)
					since := lan.Now()
					for half := range moves {
						from := lan.Now()
						for range 40 {
							if lead := leader(lan); lead != nil {
								trouble.do(lan, lead)
							}
							lan.Run(drawn(lan, 500, 1500))
						}
						moves[half] += lan.Summarise(from).Moves
					}
					doubled += lan.Summarise(since).Doubled
					lead := leader(lan)
					if lead == nil {
						b.Fatalf("seed %d: nobody leads", seed)
					}
					s, _ := lead.Status()
					grace += s.Patience.Grace
					w := lan.Watch()
					lead.Pull()
					lan.Run(2 * time.Second)
					took, ok := w.Acquired()
					if !ok {
						b.Fatalf("seed %d: nobody has taken over", seed)
					}
					cable = append(cable, took)
				}
				slices.Sort(cable)
				n := float64(b.N)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(moves[0])/n, "moves")
				b.ReportMetric(float64(moves[1])/n, "again")
				b.ReportMetric(doubled.Seconds()*1000/n, "doubled-ms")
				b.ReportMetric(grace.Seconds()*1000/n, "grace-ms")
				b.ReportMetric(cable[len(cable)/2].Seconds()*1000, "cable-ms")
			})
		}
	}
}

// group returns three boards that have settled, with a dead man's switch each.
func group(seed uint64, interval, patience time.Duration) *sim.Sim {
	lan := sim.New(seed, sim.Wire{Delay: sim.Uniform(50*time.Microsecond, 150*time.Microsecond)})
	for id := range wire.ID(3) {
		b := lan.Add(election.Config{ID: id + 1, Priority: 100, Interval: interval, Algorithm: wire.AlgorithmHeir, Patience: patience})
		b.Switch = true
		b.Start()
	}
	lan.Run(30 * time.Second)
	return lan
}

// leader returns the board that leads, or nil.
func leader(lan *sim.Sim) *sim.Board {
	for _, b := range lan.Boards() {
		if b.Role() == election.Leader {
			return b
		}
	}
	return nil
}

// drawn is a time between two numbers of milliseconds.
func drawn(lan *sim.Sim, from, to int) time.Duration {
	return time.Duration(from)*time.Millisecond + time.Duration(lan.Rand().Int64N(int64(to-from)*int64(time.Millisecond)))
}
