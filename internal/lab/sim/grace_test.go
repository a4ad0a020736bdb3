package sim_test

import (
	"fmt"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/wire"
)

// TestLateLeader holds the bargain that election.Grace describes, from outside: a
// leader whose process stands still when a heartbeat is due loses nothing if it is
// late by less than the grace; and however late it is, it does not go on leading next
// to a board that has taken over meanwhile, although it has the higher rank. (If both act
// within the time that a packet takes, the higher rank gets the address back.)
func TestLateLeader(t *testing.T) {
	for _, h := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		grace := silence.DefaultGrace(h)
		for _, late := range []time.Duration{
			grace / 2, grace - 100*time.Microsecond, // kept
			grace + 1500*time.Microsecond, grace + 2500*time.Microsecond, 2 * grace, 3 * grace, h - time.Millisecond, 2 * h,
		} {
			t.Run(fmt.Sprintf("H=%v/late=%v", h, late), func(t *testing.T) {
				lan := crowd(1, quick, 3, wire.AlgorithmHeir, every(h))
				lan.Run(30*time.Second + 20*h)
				leads(t, lan.Boards(), 3)
				leader := lan.Board("3")
				since := lan.Now()
				var thawed election.Instant
				leader.AfterHeartbeat(func() { // it has reached the others
					due := h - latency
					lan.At(due-100*time.Microsecond, leader.Freeze)
					lan.At(due+late, func() { thawed = lan.Now(); leader.Thaw() })
				})
				lan.Run(10 * h)
				sum := lan.Summarise(since)
				switch {
				case late < grace && sum.Moves != 0:
					t.Errorf("the address moved %d times", sum.Moves)
				case late < grace:
				case sum.Moves > 1:
					t.Errorf("the address moved %d times, want that it is taken from board 3 and stays", sum.Moves)
				case lan.Summarise(thawed).Doubled > 4*latency:
					t.Errorf("after it had woken up board 3 held the address for %v more, next to another board", lan.Summarise(thawed).Doubled)
				}
			})
		}
	}
}

// TestBusyKernels lets all boards stand still for up to one tick of the kernel now and
// then, for an hour, while nobody fails.
func TestBusyKernels(t *testing.T) {
	for _, h := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		t.Run(h.String(), func(t *testing.T) {
			t.Parallel()
			lan := crowd(1, lanWire(0), 3, wire.AlgorithmHeir, every(h))
			lan.Run(10 * time.Second)
			since := lan.Now()
			stalls(lan, 4*time.Millisecond)
			lan.Run(time.Hour)
			if sum := lan.Summarise(since); sum.Moves != 0 || sum.Doubled != 0 {
				t.Errorf("the address moved %d times, and had two holders for %v", sum.Moves, sum.Doubled)
			}
		})
	}
}

// TestSuddenLoss lets a good wire become a very bad one from one moment to the next. A
// board that has learned that few questions are enough must not depose its leader.
func TestSuddenLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this computes for seconds")
	}
	for _, h := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		for _, loss := range []float64{0.2, 0.4} {
			t.Run(fmt.Sprintf("H=%v/loss=%v", h, loss), func(t *testing.T) {
				t.Parallel()
				groups := sweep(400)
				moved := 0
				for seed := range uint64(groups) {
					lan := crowd(seed, lanWire(0), 3, wire.AlgorithmHeir, every(h))
					lan.Run(30 * time.Second)
					since := lan.Now()
					lan.Wire = lanWire(loss)
					lan.Run(100 * h)
					if lan.Summarise(since).Moves > 0 {
						moved++
					}
				}
				t.Logf("the address moved in %d of %d groups", moved, groups)
				// Three rounds of questions that nobody hears are less likely than that.
				if most := groups / 200; moved > most {
					t.Errorf("in %d of %d groups the address moved, want at most %d", moved, groups, most)
				}
			})
		}
	}
}

// TestQuiet holds that a group sends one heartbeat per interval and ten packets a second
// besides, whatever its size, and that lost heartbeats do not make it much more talkative.
func TestQuiet(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this computes for seconds")
	}
	for _, h := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		for _, loss := range []float64{0, 0.05, 0.2, 0.4} {
			for _, boards := range []int{3, 10, 50} {
				t.Run(fmt.Sprintf("H=%v/loss=%v/boards=%d", h, loss, boards), func(t *testing.T) {
					t.Parallel()
					lan := crowd(1, lanWire(loss), boards, wire.AlgorithmHeir, every(h))
					counted := min(3000*h, time.Minute)
					lan.Run(30 * time.Second)
					lan.ResetCounts()
					lan.Run(counted)
					most := float64(time.Second)/float64(h) + 10
					if loss > 0 {
						most += 3
					}
					if got := float64(packets(lan)) / counted.Seconds(); got > most {
						t.Errorf("%.1f packets a second, want at most %.0f", got, most)
					}
				})
			}
		}
	}
}
