package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"topdog/internal/lab/sim"
	"topdog/wire"
)

// BenchmarkSchedule plays schedules of faults as the property tests do, without their
// checks: five boards, fifteen faults within some seconds, and five seconds without a fault.
func BenchmarkSchedule(b *testing.B) {
	for name, w := range map[string]sim.Wire{
		"even":   quick,
		"jitter": {Latency: 200 * time.Microsecond, Jitter: 3 * time.Millisecond, Loss: 0.1, Duplicate: 0.02},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for seed := range b.N {
				lan := crowd(uint64(seed), w, 5, wire.AlgorithmHeir)
				rng := rand.New(rand.NewPCG(uint64(seed), 1))
				boards := lan.Boards()
				for range 15 {
					lan.Run(time.Duration(rng.ExpFloat64() * float64(300*time.Millisecond)))
					board := boards[rng.IntN(len(boards))]
					switch rng.IntN(4) {
					case 0:
						board.Crash()
					case 1:
						board.Pull()
					default:
						board.Start()
						board.Plug()
					}
				}
				lan.Run(5 * time.Second)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "schedules/s")
		})
	}
}

// BenchmarkPeace is a second of a settled group: ten heartbeats to everybody, and HELLOs.
func BenchmarkPeace(b *testing.B) {
	for _, boards := range []int{5, 50, 250} {
		b.Run(fmt.Sprintf("boards=%d", boards), func(b *testing.B) {
			lan := crowd(1, quick, boards, wire.AlgorithmHeir)
			lan.Run(10 * time.Second)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				lan.Run(time.Second)
			}
		})
	}
}
