package silence

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// beats feeds a detector with that many heartbeats on schedule, of which a
// fraction is lost, and returns the time of the last one that was sent.
func beats(d *askDetector, from clock.Instant, n int, first uint8, loss float64) clock.Instant {
	rng := rand.New(rand.NewPCG(1, 2))
	now := from
	for i := range n {
		now = from + clock.Instant(i)*testInterval
		if rng.Float64() >= loss {
			d.Heard(now, wire.Heartbeat{Interval: testInterval, Number: first + uint8(i)})
		}
	}
	return now
}

func newAsk() *askDetector {
	d := newDetector(DetectorAsk, testInterval).(*askDetector)
	d.Follow(0, testInterval)
	return d
}

// TestQuestions holds how patient the loss makes a board. The numbers follow from
// the formula in the comment on Questions; see TestQuestionsKeepThePromise.
func TestQuestions(t *testing.T) {
	for _, test := range []struct {
		name        string
		beats       int
		loss        float64
		least, most int
	}{
		{"nothing is known", 0, 0, 5, 7},
		{"a clean wire after 20 s", 200, 0, 2, 3},
		{"a clean wire after 10 min", 6000, 0, 2, 3},
		{"one of twenty lost", 6000, 0.05, 6, 12},
		{"one of five lost", 6000, 0.2, 12, 30},
		{"two of five lost", 6000, 0.4, 25, 60},
		{"nine of ten lost", 6000, 0.9, questionsMax, questionsMax},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newAsk()
			beats(d, 0, test.beats, 0, test.loss)
			if k := d.Questions().Count; k < test.least || k > test.most {
				t.Errorf("asks %d times (loss observed %.2f, bound %.2f), want %d to %d times",
					k, d.Quality().Loss, d.lossBound(), test.least, test.most)
			}
		})
	}
}

// TestQuestionsKeepThePromise checks the arithmetic from the other end: with the
// number of questions that the detector asks, a living leader is believed dead
// less than once in mistakeRecurrence.
func TestQuestionsKeepThePromise(t *testing.T) {
	for loss := 0.0; loss < 0.6; loss += 0.05 {
		d := newAsk()
		beats(d, 0, 3000, 0, loss)
		k := d.Questions().Count
		if k == questionsMax {
			continue // nothing was promised
		}
		p := d.lossBound()
		if p < d.Quality().Loss {
			t.Errorf("loss %.2f: the cautious estimate %.3f is below what was observed", loss, p)
		}
		survives := (1 - p) * (1 - p)
		suspicion := math.Pow(p, float64(d.overlooked()+1)) // after each heartbeat
		mistakes := suspicion * float64(mistakeRecurrence) / float64(testInterval) * math.Pow(1-survives, float64(k))
		if mistakes > 1 {
			t.Errorf("loss %.2f: %d questions make %.2f mistakes in %v", loss, k, mistakes, mistakeRecurrence)
		}
	}
}

// TestQuestionsSpacing holds how far apart they are: as far as an answer takes on
// average. Only the last one is given more time, and enough of it that nobody takes
// over within the grace.
func TestQuestionsSpacing(t *testing.T) {
	for _, test := range []struct {
		name   string
		trip   time.Duration // 0 if none was timed
		every  time.Duration
		within time.Duration
	}{
		{"never timed", 0, RoundTripMin, RoundTripUnknown},
		{"a wire of 20 µs", 20 * time.Microsecond, (DefaultGrace(testInterval)*3/4 - RoundTripMin) / 2, RoundTripMin},
		{"Wi-Fi of 8 ms", 8 * time.Millisecond, 8 * time.Millisecond, 8 * time.Millisecond},
		{"a satellite", 700 * time.Millisecond, testInterval / 2, testInterval / 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newAsk()
			beats(d, 0, 300, 0, 0)
			for range 40 { // until the deviation has faded
				if test.trip > 0 {
					d.Answered(test.trip, test.trip)
				}
			}
			q := d.Questions()
			if q.Spacing < test.every || q.Spacing > test.every+test.every/4 {
				t.Errorf("asks every %v, want about %v", q.Spacing, test.every)
			}
			if q.Within < test.within || q.Within > test.within+test.within/4 {
				t.Errorf("waits %v for the last answer, want about %v", q.Within, test.within)
			}
		})
	}
}

func TestMargin(t *testing.T) {
	for _, test := range []struct {
		name        string
		late        time.Duration // up to so much
		least, most time.Duration
	}{
		{"punctual", 0, DefaultGrace(testInterval) / 4, DefaultGrace(testInterval) / 4},
		{"within 4 ms", 4 * time.Millisecond, 4 * time.Millisecond, 15 * time.Millisecond},
		{"within 90 ms", 90 * time.Millisecond, testInterval / 2, testInterval / 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newAsk()
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range 300 {
				var late time.Duration
				if test.late > 0 {
					late = time.Duration(rng.Int64N(int64(test.late)))
				}
				d.Heard(clock.Instant(i)*testInterval+late, wire.Heartbeat{Interval: testInterval, Number: uint8(i)})
			}
			if m := d.margin(); m < test.least || m > test.most {
				t.Errorf("the margin is %v, want %v to %v", m, test.least, test.most)
			}
			if got, want := d.Freshness(), d.last+testInterval+d.margin(); got != want {
				t.Errorf("suspicious at %v, want %v", got, want)
			}
		})
	}
}

func TestSmoothed(t *testing.T) {
	var s Smoothed
	s.Observe(8)
	if s.mean != 8 || s.deviation != 4 {
		t.Errorf("after the first sample: mean %v, deviation %v; want 8, 4 (RFC 6298, 2.2)", s.mean, s.deviation)
	}
	s.Observe(16)
	if s.mean != 9 || s.deviation != 5 {
		t.Errorf("after the second: mean %v, deviation %v; want 9, 5 (RFC 6298, 2.3)", s.mean, s.deviation)
	}
	for range 200 {
		s.Observe(10)
	}
	if math.Abs(s.mean-10) > 1e-6 || s.Bound() < 10 || s.Bound() > 11 {
		t.Errorf("of equal samples: mean %v, bound %v; want 10, 10", s.mean, s.Bound())
	}
}

// TestTakeoverKeepsTheGrace lets a detector learn all kinds of things, at all kinds of
// intervals. Whatever it has learned, nobody takes over before a leader that is late
// doubts itself: this is the bargain that Grace describes.
func TestTakeoverKeepsTheGrace(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for run := range 2000 {
		interval := time.Duration(10+rng.IntN(200)) * time.Millisecond
		if rng.IntN(10) == 0 {
			interval = 10 * time.Second
		}
		d := newDetector(DetectorAsk, interval).(*askDetector)
		d.Follow(0, interval)
		late := time.Duration(rng.ExpFloat64() * float64(2*time.Millisecond))
		trip := time.Duration(rng.ExpFloat64() * float64(3*time.Millisecond))
		loss := max(0, rng.Float64()-0.5)
		upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d) + 1)) }
		for i := range rng.IntN(200) {
			if rng.Float64() < loss {
				continue
			}
			now := clock.Instant(i)*interval + upTo(late)
			d.Heard(now, wire.Heartbeat{Interval: interval, Number: uint8(i)})
			if rng.IntN(10) == 0 {
				first := upTo(trip)
				d.Answered(upTo(first), first)
				d.Woke(upTo(late))
			}
			due := d.last + interval
			if claims := d.Freshness() + d.Questions().Duration(); claims < due+DefaultGrace(interval) {
				t.Fatalf("run %d, interval %v, %+v: claims %v after the heartbeat was due, want at least %v",
					run, interval, d.Quality(), claims-due, DefaultGrace(interval))
			}
		}
	}
}

// TestCleanWireIsFast holds the other side: where everything is punctual and near,
// no more goes by from when the heartbeat was due than the grace, or a tick and a question.
func TestCleanWireIsFast(t *testing.T) {
	for _, interval := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		d := newDetector(DetectorAsk, interval).(*askDetector)
		d.Follow(0, interval)
		for i := range 300 {
			jitter := time.Duration(i%3) * 100 * time.Microsecond
			d.Heard(clock.Instant(i)*interval+jitter, wire.Heartbeat{Interval: interval, Number: uint8(i)})
			if i%30 == 0 {
				d.Answered(200*time.Microsecond+jitter, 200*time.Microsecond+jitter)
				d.Woke(100*time.Microsecond + jitter)
			}
		}
		most := max(DefaultGrace(interval), Tick+RoundTripMin)
		if took := d.Freshness() - d.last - interval + d.Questions().Duration(); took > most {
			t.Errorf("interval %v, %+v: claims %v after the heartbeat was due, want at most %v", interval, d.Quality(), took, most)
		}
	}
}

// TestSlowAnswer: one answer that is late by 20 times the usual is paid for once, and
// not with every question.
func TestSlowAnswer(t *testing.T) {
	d := newAsk()
	beats(d, 0, 300, 0, 0)
	for range 10 {
		d.Answered(200*time.Microsecond, 200*time.Microsecond)
	}
	before := d.Questions().Duration()
	d.Answered(4*time.Millisecond, 4*time.Millisecond)
	q := d.Questions()
	if after := q.Duration(); q.Within < 4*time.Millisecond || after > before+5*time.Millisecond {
		t.Errorf("the duration of the questions has grown from %v to %v (%+v), want by 5ms at most", before, after, q)
	}
}

// TestAmbiguousAnswer: of several questions nobody knows which one was answered.
func TestAmbiguousAnswer(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name        string
		known       time.Duration // 0 if nothing is
		last, first time.Duration
		least, most time.Duration
	}{
		{"the first one that is timed", 0, 1 * ms, 5 * ms, 5 * ms, 5 * ms},
		{"as long as is known already", 3 * ms, 1 * ms, 5 * ms, 3 * ms, 3 * ms},
		{"shorter than is known", 9 * ms, 1 * ms, 5 * ms, 5 * ms, 8500 * time.Microsecond},
		{"longer than is known", 1 * ms, 3 * ms, 5 * ms, 1200 * time.Microsecond, 3 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newAsk()
			if test.known > 0 {
				d.Answered(test.known, test.known)
			}
			d.Answered(test.last, test.first)
			if got := d.Quality().RoundTrip; got < test.least || got > test.most {
				t.Errorf("the round trip is taken for %v, want %v to %v", got, test.least, test.most)
			}
		})
	}
}

// TestMarginRemembers: mean and deviation forget a heartbeat that was very late, the
// margin does not, within limits and for a limited time. Then it is as short as before.
func TestMarginRemembers(t *testing.T) {
	d := newAsk()
	now := beats(d, 0, 100, 0, 0)
	punctual := func(n int) {
		for range n {
			now += testInterval
			d.Heard(now, wire.Heartbeat{Interval: testInterval, Number: d.number + 1})
		}
	}
	now += 8 * time.Millisecond
	punctual(1)
	punctual(600) // a minute
	if m := d.margin(); m < 8*time.Millisecond || m > 8500*time.Microsecond {
		t.Errorf("a minute after a heartbeat came 8 ms late the margin is %v, want nearly as much", m)
	}
	now += 40 * time.Millisecond
	punctual(1)
	punctual(600)
	if got, want := d.margin(), testInterval/10+Tick/8; got != want {
		t.Errorf("a minute after a heartbeat came 40 ms late the margin is %v, want %v", got, want)
	}
	punctual(int(5 * time.Hour / testInterval))
	if got, want := d.margin(), DefaultGrace(testInterval)/4; got != want {
		t.Errorf("five hours later the margin is %v, want %v", got, want)
	}
}

// TestMarginOfALateBoard: a board whose timers are late allows others the same. That it
// stood still for a second once does not make it slow.
func TestMarginOfALateBoard(t *testing.T) {
	d := newAsk()
	beats(d, 0, 100, 0, 0)
	for range 20 {
		d.Woke(3 * time.Millisecond)
	}
	if m := d.margin(); m < 3*time.Millisecond || m > Tick+Tick/8 {
		t.Errorf("timers are 3 ms late, and the margin is %v", m)
	}
	for range 40 {
		d.Woke(0)
	}
	d.Woke(time.Second)
	if m := d.margin(); m > Tick+Tick/8 {
		t.Errorf("a timer was late by 1 s once, and the margin is %v, want at most %v", m, Tick+Tick/8)
	}
}

// TestOverlooked: on a bad wire a board waits for further heartbeats instead of asking
// ten times a second, and on a good one it does not.
func TestOverlooked(t *testing.T) {
	for _, test := range []struct {
		loss        float64
		least, most int
	}{{0, 0, 0}, {0.05, 0, 0}, {0.2, 1, 1}, {0.4, 1, 3}, {0.9, 9, 10}} {
		d := newAsk()
		beats(d, 0, 6000, 0, test.loss)
		n := d.overlooked()
		if n < test.least || n > test.most {
			t.Errorf("loss %v (observed %.2f): %d heartbeats are overlooked, want %d to %d", test.loss, d.Quality().Loss, n, test.least, test.most)
		}
		if got, want := d.Quality().Margin, time.Duration(n)*testInterval+d.margin(); got != want {
			t.Errorf("loss %v: heartbeats may be late by %v, want %v", test.loss, got, want)
		}
	}
}

// TestSuddenLoss: the first lost heartbeats after a long time without any make a board
// careful at once, and it gets over it within seconds.
func TestSuddenLoss(t *testing.T) {
	d := newAsk()
	now := beats(d, 0, 3000, 0, 0)
	calm := d.Questions().Count
	d.Heard(now+2*testInterval, wire.Heartbeat{Interval: testInterval, Number: d.number + 2})
	if k := d.Questions().Count; k < 3*calm {
		t.Errorf("after a lost heartbeat asks %d times, and %d times before; want three times as often", k, calm)
	}
	for range 30 {
		d.Heard(d.last+testInterval, wire.Heartbeat{Interval: testInterval, Number: d.number + 1})
	}
	if k := d.Questions().Count; k > 2*calm {
		t.Errorf("30 heartbeats later asks %d times, want at most twice as often as before, %d times", k, calm)
	}
}

// TestLatenessOfSuspects: a leader that is always a little late is suspected in the
// beginning, and what it answers restores the trust. Nevertheless its lateness is learned.
// Answers that come between two heartbeats are not taken for punctual ones.
func TestLatenessOfSuspects(t *testing.T) {
	d := newAsk()
	now := beats(d, 0, 100, 0, 0)
	const late = 3 * time.Millisecond
	suspicions := 0
	for range 30 {
		if at := d.Freshness(); at < now+testInterval+late {
			suspicions++
			d.Evidence(at) // a sign of life
		}
		now += testInterval + late
		d.Heard(now, wire.Heartbeat{Interval: testInterval, Number: d.number + 1})
		now += testInterval / 4
		d.Heard(now, wire.Heartbeat{Interval: testInterval, Number: d.number + 1})
	}
	if suspicions > 1 {
		t.Errorf("a leader that is always late by %v was suspected %d times, want once", late, suspicions)
	}
	if mean := time.Duration(d.late.mean); mean < late*9/10 {
		t.Errorf("a leader that is always late by %v seems to be so by %v", late, mean)
	}
}
