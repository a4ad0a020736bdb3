package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"topdog/internal/lab/cluster"
)

// programVariable names another build of topdog to measure, for a comparison.
const programVariable = "TOPDOG_BENCH_PROGRAM"

// BenchmarkLocalUser measures what an ordinary user does to the leader of three boards who share this machine's
// processors: whether the address moves, what the daemon spends, and how long root and another user wait for
// `topdog status` meanwhile, as they see it at the end of the command.
func BenchmarkLocalUser(b *testing.B) {
	const lasts = 10 * time.Second
	for _, attack := range []struct {
		name                   string
		kind                   string
		processes, connections int
	}{
		{"nobody", "hold", 0, 0},
		{"computes in 8 processes", "spin", 8, 4},
		{"asks on 32", "ask", 1, 32},
		{"asks from 8 processes", "ask", 8, 4},
		{"knocks from 8 processes", "knock", 8, 4},
		{"holds 60", "hold", 1, 60},
		{"holds 1000", "hold", 1, 1000},
	} {
		b.Run(attack.name, func(b *testing.B) {
			var c *testCluster
			if path := os.Getenv(programVariable); path != "" {
				c = newClusterOf(b, cluster.Program{Path: path}, 3, settings{"log_level": quote("info")})
			} else {
				c = newClusterOf(b, build(b), 3, settings{"log_level": quote("info")})
			}
			c.start(c.boards...)
			leader, _ := c.calm()
			leader.admitEverybody(c.program.Path)
			for b.Loop() {
				began, busy := time.Now(), leader.cpu()
				var ends []func()
				for range attack.processes {
					ends = append(ends, leader.attackedBy(strangerID, attack.kind, attack.connections))
				}
				var root, other []float64
				failed := map[uint32]float64{}
				for time.Since(began) < lasts {
					for who, took := range map[uint32]*[]float64{0: &root, otherID: &other} {
						asked := time.Now()
						if o := leader.topdogAs(who, "status"); o.status == 0 {
							*took = append(*took, ms(time.Since(asked)))
						} else {
							failed[who]++
							b.Logf("user %d: %v", who, o)
						}
					}
					c.watchFor(100 * time.Millisecond)
				}
				seen := c.Holders.Since(began)
				took := time.Since(began)
				b.ReportMetric(100*(leader.cpu()-busy).Seconds()/took.Seconds(), "leader-cpu-%")
				b.ReportMetric(float64(seen.Moves()), "moves")
				for who, all := range map[string][]float64{"root": root, "other": other} {
					slices.Sort(all)
					if len(all) > 0 {
						b.ReportMetric(all[len(all)/2], who+"-ms-median")
						b.ReportMetric(all[len(all)-1], who+"-ms-max")
					}
				}
				b.ReportMetric(failed[0], "root-failed")
				b.ReportMetric(failed[otherID], "other-failed")
				resigned := 0.0
				for _, m := range c.boards {
					if o := m.topdog("resign"); o.status == 0 {
						resigned++
					} else {
						b.Logf("%s: %v", m, o)
					}
				}
				for _, end := range ends {
					end()
				}
				b.ReportMetric(resigned, "boards-resigned")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}
