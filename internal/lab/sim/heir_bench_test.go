package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The benchmarks in this file measure what heir is worth, in virtual time: for how
// long the address is gone, how often it moves for nothing, and what that costs.
//
//	go test ./internal/lab/sim -run '^$' -bench 'Replaced|Lossy' -benchtime 20x
//
// Each is repeated with other seeds: 20x are 20 leaders that fail, or 20 times ten minutes.

// stalls makes every board stand still for up to that long, about once a second: what
// a busy kernel does to a process that has become ready.
func stalls(lan *sim.Sim, atMost time.Duration) {
	for _, b := range lan.Boards() {
		var next func()
		next = func() {
			pause := time.Duration(lan.Rand().ExpFloat64() * float64(time.Second))
			lan.At(pause, func() {
				b.Freeze()
				lan.At(time.Duration(lan.Rand().Int64N(int64(atMost))), func() { b.Thaw(); next() })
			})
		}
		next()
	}
}

// BenchmarkReplaced pulls the leader's cable at a random moment.
func BenchmarkReplaced(b *testing.B) {
	for _, h := range []time.Duration{100 * time.Millisecond, 10 * time.Millisecond} {
		for _, c := range []struct {
			loss  float64
			stall time.Duration
		}{{0, 0}, {0, 4 * time.Millisecond}, {0.05, 0}, {0.2, 0}, {0.4, 0}} {
			b.Run(fmt.Sprintf("H=%v/loss=%v/stalls=%v", h, c.loss, c.stall), func(b *testing.B) {
				var gone []time.Duration
				for seed := range b.N {
					lan := crowd(uint64(seed), lanWire(c.loss), 3, wire.AlgorithmHeir, every(h))
					lan.Run(5 * time.Second)
					if c.stall > 0 {
						stalls(lan, c.stall)
					}
					lan.Run(25*time.Second + time.Duration(lan.Rand().Int64N(int64(h))))
					lead := holder(b, lan)
					w := lan.Watch()
					lead.Pull()
					if !lan.RunUntil(func() bool { _, ok := w.Acquired(); return ok }, time.Minute) {
						b.Fatalf("seed %d: nobody took over", seed)
					}
					d, _ := w.Acquired()
					gone = append(gone, d)
				}
				report(b, gone)
			})
		}
	}
}

// report reports what a benchmark has measured.
func report(b *testing.B, took []time.Duration) {
	inMs := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(inMs(took[len(took)/2]), "median-ms")
	b.ReportMetric(inMs(took[len(took)*95/100]), "p95-ms")
	b.ReportMetric(inMs(took[len(took)-1]), "max-ms")
}

// BenchmarkLossy lets a group alone for ten minutes on a wire that loses packets,
// from the start or all of a sudden, and counts how often the address moved.
func BenchmarkLossy(b *testing.B) {
	for _, h := range []time.Duration{100 * time.Millisecond, 10 * time.Millisecond} {
		for _, loss := range []float64{0, 0.2, 0.4} {
			for _, boards := range []int{3, 10, 50, 250} {
				for _, sudden := range []bool{false, true} {
					if loss == 0 && sudden {
						continue
					}
					b.Run(fmt.Sprintf("H=%v/loss=%v/boards=%d/sudden=%v", h, loss, boards, sudden), func(b *testing.B) {
						moves, affected, sent := 0, 0, 0
						var passed time.Duration
						for seed := range b.N {
							before := loss
							if sudden {
								before = 0
							}
							lan := crowd(uint64(seed), lanWire(before), boards, wire.AlgorithmHeir, every(h))
							lan.Run(30 * time.Second)
							lan.Wire = lanWire(loss)
							since := lan.Now()
							lan.ResetCounts()
							lan.Run(10 * time.Minute)
							m := lan.Summarise(since).Moves
							moves += m
							if m > 0 {
								affected++
							}
							sent += packets(lan)
							passed += lan.Now() - since
						}
						b.ReportMetric(0, "ns/op")
						b.ReportMetric(float64(moves)/passed.Hours(), "moves/h")
						b.ReportMetric(float64(affected)/float64(b.N), "moved/run")
						b.ReportMetric(float64(sent)/passed.Seconds(), "packets/s")
					})
				}
			}
		}
	}
}
