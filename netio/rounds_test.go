package netio

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// asked plays rounds against an address, in virtual time.
type asked struct {
	rounds  rounds
	now     time.Duration
	answers []time.Duration // when those arrive that are on their way
	asks    []time.Duration // when was asked
	said    []string
	reports []WatchReport

	takes  func(at time.Duration) time.Duration // until the answer to a question arrives; less than 0 for none
	stands [2]time.Duration                     // from when to when this process does not run
	jitter func() time.Duration                 // by how much a timer is late
}

// never is an answer that does not come.
const never = -1

// run plays until a time.
func (a *asked) run(until time.Duration) {
	for {
		next, answer := a.rounds.deadline, false
		if a.jitter != nil {
			next += a.jitter()
		}
		if len(a.answers) > 0 && a.answers[0] <= next {
			next, answer = a.answers[0], true
		}
		if next >= until {
			return
		}
		a.now = max(a.now, next)
		if a.now >= a.stands[0] && a.now < a.stands[1] {
			a.now, answer = a.stands[1], false // all at once, and the timer first
		}
		if answer {
			a.answers = a.answers[1:]
			a.rounds.answer(a.now)
		} else {
			for a.rounds.waits() && len(a.answers) > 0 && a.answers[0] <= a.now {
				a.answers = a.answers[1:]
				a.rounds.answer(a.now)
			}
			if a.rounds.due(a.now) {
				a.tell()
				a.ask()
			}
		}
		a.tell()
	}
}

func (a *asked) ask() {
	a.asks = append(a.asks, a.now)
	a.rounds.sent(a.now, a.now)
	if took := a.takes(a.now); took >= 0 {
		a.answers = append(a.answers, a.now+took)
		slices.Sort(a.answers)
	}
}

func (a *asked) tell() {
	if w, news := a.rounds.report(a.now); news {
		a.reports = append(a.reports, w)
		since := ""
		if w.MissedSince != 0 {
			since = fmt.Sprintf(" since %v", w.MissedSince)
		}
		a.said = append(a.said, fmt.Sprintf("%v: %v%s, every %v", a.now.Round(100*time.Microsecond), w.Why, since, w.Every))
	}
}

const ms = time.Millisecond

// away is an address that answers after a time, but not what is asked in between.
func away(from, to, took time.Duration) func(at time.Duration) time.Duration {
	return func(at time.Duration) time.Duration {
		if at >= from && at < to {
			return never
		}
		return took
	}
}

// TestRounds is what a watch every 10 ms says of an address.
func TestRounds(t *testing.T) {
	for name, test := range map[string]struct {
		takes  func(at time.Duration) time.Duration
		stands [2]time.Duration
		until  time.Duration
		want   []string
	}{
		"it answers": {takes: away(0, 0, ms/5), until: 25 * time.Second, want: []string{
			"10ms: answers, every 10ms", "10.01s: answers, every 10ms", "20.01s: answers, every 10ms",
		}},
		"nothing answers": {takes: away(0, time.Hour, 0), until: time.Minute, want: []string{"30ms: no_answer, every 0s"}},
		"an answer in the end": {takes: away(0, 3*time.Second, ms/5), until: 5 * time.Second, want: []string{
			"30ms: no_answer, every 0s", "3.07s: answers, every 10ms",
		}},
		"the address goes, and comes back": {takes: away(1005*ms, 1200*ms, ms/5), until: 2 * time.Second, want: []string{
			"10ms: answers, every 10ms", "1.012s: missed since 1.01s, every 10ms", "1.2022s: answers, every 10ms",
		}},
		"it goes for less than a bound": {takes: away(1005*ms, 1011*ms-1, ms/5), until: 2 * time.Second, want: []string{"10ms: answers, every 10ms"}},
		"it goes for good": {takes: away(1005*ms, time.Hour, ms/5), until: time.Minute, want: []string{
			"10ms: answers, every 10ms", "1.012s: missed since 1.01s, every 10ms", "11.062s: no_answer since 1.01s, every 0s",
		}},
		"its kernel stands still": {
			takes: func(at time.Duration) time.Duration {
				if at >= 1000*ms && at < 1100*ms {
					return 1100*ms - at
				}
				return ms / 5
			}, until: 3 * time.Second, want: []string{
				"10ms: answers, every 10ms", "1.002s: missed since 1s, every 10ms", "1.1s: answers, every 10ms",
			},
		},
		"this process stands still after a question":  {takes: away(0, 0, ms/5), stands: [2]time.Duration{1010*ms + 1, 1110 * ms}, until: 2 * time.Second, want: []string{"10ms: answers, every 10ms"}},
		"this process stands still before a question": {takes: away(0, 0, ms/5), stands: [2]time.Duration{1009 * ms, 1110 * ms}, until: 2 * time.Second, want: []string{"10ms: answers, every 10ms"}},
		"this process stands still as the address goes": {
			takes: away(1005*ms, time.Hour, ms/5), stands: [2]time.Duration{1010*ms + 1, 1110 * ms}, until: 2 * time.Second, want: []string{
				"10ms: answers, every 10ms", "1.112s: missed since 1.01s, every 10ms",
			},
		},
		"answers that take 3 ms": {takes: away(0, 0, 3*ms), until: 15 * time.Second, want: []string{
			"10ms: answers, every 20ms", "10.01s: answers, every 20ms", "10.07s: answers, every 10ms",
		}},
		// Longer than the time between two questions, so that an answer comes when the next question was asked.
		"answers that take 15 ms": {takes: away(0, 0, 15*ms), until: 19 * time.Second, want: []string{
			"40ms: late, every 0s", "10.04s: late, every 0s", "16.04s: answers, every 40ms",
		}},
		"answers that take 50 ms": {takes: away(0, 0, 50*ms), until: 15 * time.Second, want: []string{
			"30ms: no_answer, every 0s", "70ms: late, every 0s", "10.07s: late, every 0s",
		}},
		// The bound doubles with each round, until the watch knows that it is of no use.
		"answers that take much longer from now on": {
			takes: func(at time.Duration) time.Duration {
				if at < time.Second {
					return ms / 5
				}
				return 17 * ms
			}, until: 5 * time.Second, want: []string{
				"10ms: answers, every 10ms", "1.002s: missed since 1s, every 10ms", "1.017s: answers, every 10ms",
				"1.0755s: answers, every 20ms",
				"1.1269s: answers, every 40ms",
				"1.183s: late, every 0s",
			},
		},
		"answers that take longer from now on": {
			takes: func(at time.Duration) time.Duration {
				if at < time.Second {
					return ms / 5
				}
				return 5 * ms / 2
			}, until: 5 * time.Second, want: []string{
				"10ms: answers, every 10ms", "1.002s: missed since 1s, every 10ms", "1.0025s: answers, every 10ms",
				"1.0342s: answers, every 20ms",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asked{takes: test.takes, stands: test.stands}
			a.rounds.begin(10*ms, 0)
			a.run(test.until)
			assert.Equal(t, test.want, a.said, "said")
		})
	}
}

// TestRoundsAskLess: who does not answer is asked for less and less.
func TestRoundsAskLess(t *testing.T) {
	a := &asked{takes: away(1005*ms, time.Hour, ms/5)}
	a.rounds.begin(10*ms, 0)
	count := func(until time.Duration) int {
		before := len(a.asks)
		a.run(until)
		return len(a.asks) - before
	}
	for _, phase := range []struct {
		until       time.Duration
		least, most int
	}{{1005 * ms, 99, 101}, {1060 * ms, 48, 54}, {2060 * ms, 95, 102}, {12 * time.Second, 9, 11}} {
		if n := count(phase.until); n < phase.least || n > phase.most {
			t.Errorf("%d questions until %v, want %d to %d", n, phase.until, phase.least, phase.most)
		}
	}
}

// TestRoundsSpared: who is heard otherwise is asked once a second, and is missed as soon as that ends. With losses it is asked.
func TestRoundsSpared(t *testing.T) {
	for _, test := range []struct {
		name        string
		losesEach   int // of so many questions one gets lost
		least, most int // questions in 3 s
	}{{"nothing gets lost", 1000, 2, 4}, {"one of 15 gets lost", 15, 300, 350}} {
		t.Run(test.name, func(t *testing.T) {
			const gone = 8 * time.Second
			questions := 0
			a := &asked{takes: func(at time.Duration) time.Duration {
				if questions++; at >= gone || questions%test.losesEach == 0 {
					return never
				}
				return ms / 5
			}}
			a.rounds.begin(10*ms, 0)
			before := 0
			for at := time.Duration(0); at < gone; at += 10 * ms {
				if at == 5*time.Second {
					before = len(a.asks)
				}
				a.run(at)
				a.rounds.alive(at)
			}
			if n := len(a.asks) - before; n < test.least || n > test.most {
				t.Errorf("%d questions in 3 s, want %d to %d", n, test.least, test.most)
			}
			a.reports = nil
			a.run(gone + 20*ms)
			if len(a.reports) == 0 || a.reports[0].Why != WatchMissed {
				t.Errorf("reported %+v, want a miss", a.reports)
			}
		})
	}
}

// TestRoundsWithLosses: whatever share of the questions gets lost, it is missed by mistake about once a second at most, and
// an address that goes is found out, unless the watch says that it is of no use.
func TestRoundsWithLosses(t *testing.T) {
	for _, test := range []struct {
		lost  float64
		why   WatchState
		every time.Duration
	}{
		{0, WatchAnswers, 10 * ms}, {0.02, WatchAnswers, 10 * ms}, {0.1, WatchAnswers, 10 * ms}, {0.2, WatchAnswers, 10 * ms},
		{0.3, WatchAnswers, 40 * ms}, {0.42, WatchLossy, 0}, {0.7, WatchLossy, 0}, {0.95, WatchLossy, 0},
	} {
		t.Run(fmt.Sprint(test.lost), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			gone := false
			a := &asked{takes: func(time.Duration) time.Duration {
				if gone || random.Float64() < test.lost {
					return never
				}
				return ms/10 + time.Duration(random.Int64N(int64(ms/5)))
			}}
			a.rounds.begin(10*ms, 0)
			a.run(10 * time.Second)
			a.reports = nil
			a.run(130 * time.Second)
			missed, states := 0, map[string]int{}
			for _, w := range a.reports {
				states[fmt.Sprint(w.Why, " ", w.Every)]++
				if w.Why == WatchMissed {
					missed++
				}
			}
			t.Logf("missed %d times in 120 s, %v, lost %.2f", missed, states, a.rounds.share())
			if missed > 4 {
				t.Errorf("missed %d times in 120 s", missed)
			}
			if states[fmt.Sprint(test.why, " ", test.every)] == 0 {
				t.Errorf("reported %v, want %v every %v", states, test.why, test.every)
			}
			if a.rounds.pace != tooSlow {
				gone, a.reports = true, nil
				a.run(a.now + 100*ms)
				assert.Is(t, true, a.rounds.missed != 0, "an address that goes is missed")
			}
		})
	}
}

// TestRoundsOfALateProcess: a process that stands still again and again, and whose timers are late, misses nothing.
func TestRoundsOfALateProcess(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		upTo := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
		a := &asked{takes: func(time.Duration) time.Duration { return ms/20 + upTo(ms/2) }, jitter: func() time.Duration { return upTo(ms) }}
		a.rounds.begin(10*ms, 0)
		for a.now < 20*time.Second {
			a.stands[0] = a.now + upTo(200*ms)
			a.stands[1] = a.stands[0] + upTo(150*ms)
			a.run(a.stands[1] + upTo(50*ms))
		}
		for _, w := range a.reports {
			if w.Why != WatchAnswers {
				t.Fatalf("seed %d: reported %v", seed, a.said)
			}
		}
	}
}
