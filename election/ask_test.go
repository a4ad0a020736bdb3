package election

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"topdog/wire"
)

// beats feeds a detector with that many heartbeats on schedule, of which a
// fraction is lost, and returns the time of the last one that was sent.
func beats(d *askDetector, from Instant, n int, first uint8, loss float64) Instant {
	rng := rand.New(rand.NewPCG(1, 2))
	now := from
	for i := range n {
		now = from + Instant(i)*testInterval
		if rng.Float64() >= loss {
			d.Heard(now, wire.Heartbeat{Interval: testInterval, Beat: first + uint8(i)})
		}
	}
	return now
}

func newAsk() *askDetector {
	d := NewAskDetector(testInterval).(*askDetector)
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
		{"nothing is known", 0, 0, 8, 12},
		{"a clean wire after 20 s", 200, 0, 2, 6},
		{"a clean wire after 10 min", 6000, 0, 2, 6},
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
// less than once in mistakeEvery.
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
		mistakes := p * float64(mistakeEvery) / float64(testInterval) * math.Pow(1-survives, float64(k))
		if mistakes > 1 {
			t.Errorf("loss %.2f: %d questions make %.2f mistakes in %v", loss, k, mistakes, mistakeEvery)
		}
	}
}

// TestQuestionsSpacing holds how far apart they are: as far as an answer takes,
// and far enough that nobody takes over within the grace.
func TestQuestionsSpacing(t *testing.T) {
	for _, test := range []struct {
		name  string
		trip  time.Duration // 0 if none was timed
		every time.Duration
	}{
		{"never timed", 0, roundTripUnknown},
		{"a wire of 20 µs", 20 * time.Microsecond, roundTripMin},
		{"Wi-Fi of 8 ms", 8 * time.Millisecond, 8 * time.Millisecond},
		{"a satellite", 700 * time.Millisecond, testInterval / 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newAsk()
			beats(d, 0, 100, 0, 0)
			for range 40 { // until the deviation has faded
				if test.trip > 0 {
					d.Answered(test.trip)
				}
			}
			q := d.Questions()
			if q.Every < test.every || q.Every > test.every+test.every/4+time.Millisecond {
				t.Errorf("asks every %v, want about %v", q.Every, test.every)
			}
			// A nanosecond per question may be lost in the division.
			if total := d.margin() + q.Patience() + time.Duration(q.Count); total < Grace(testInterval) {
				t.Errorf("takes over %v after the heartbeat was due, want at least %v", total, Grace(testInterval))
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
		{"punctual", 0, Grace(testInterval) / 4, Grace(testInterval) / 4},
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
				d.Heard(Instant(i)*testInterval+late, wire.Heartbeat{Interval: testInterval, Beat: uint8(i)})
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

// TestBeatWraps counts across 255 and 0: no heartbeat is lost there.
func TestBeatWraps(t *testing.T) {
	d := newAsk()
	beats(d, 0, 600, 200, 0)
	if loss := d.Quality().Loss; loss != 0 {
		t.Errorf("loss %.2f on a wire that loses nothing", loss)
	}
	// Beat 32 = (200+600) mod 256 is next. Three are missing before 35.
	d.Heard(d.last+4*testInterval, wire.Heartbeat{Interval: testInterval, Beat: 35})
	if d.lost != 3 {
		t.Errorf("%v heartbeats lost, want 3", d.lost)
	}
}

// TestLongSilenceIsNoLoss: the counter has gone round, who knows how often.
func TestLongSilenceIsNoLoss(t *testing.T) {
	d := newAsk()
	now := beats(d, 0, 100, 0, 0)
	d.Heard(now+200*testInterval, wire.Heartbeat{Interval: testInterval, Beat: 12})
	if d.lost != 0 {
		t.Errorf("%v heartbeats lost, want that nothing is made of it", d.lost)
	}
}

// TestReplyKeepsTheRhythm: an answer to this board alone has the number of the
// beat before, and says nothing about when the next one is due.
func TestReplyKeepsTheRhythm(t *testing.T) {
	d := newAsk()
	now := beats(d, 0, 100, 0, 0)
	due := d.Freshness()
	d.Heard(now+60*time.Millisecond, wire.Heartbeat{Interval: testInterval, Beat: 99})
	if d.Freshness() != due {
		t.Errorf("suspicious %v later after a reply", d.Freshness()-due)
	}
	// When the leader is late already, a sign of life is one.
	late := due + time.Millisecond
	d.Heard(late, wire.Heartbeat{Interval: testInterval, Beat: 99})
	if d.Freshness() <= late {
		t.Error("a late leader answered and is still suspicious")
	}
}

// TestOvertakenBeat: a heartbeat that comes after its successor is neither 255
// lost ones, nor does it turn the clock back.
func TestOvertakenBeat(t *testing.T) {
	d := newAsk()
	now := beats(d, 0, 100, 0, 0)
	due := d.Freshness()
	d.Heard(now+time.Millisecond, wire.Heartbeat{Interval: testInterval, Beat: 98})
	if d.lost != 0 {
		t.Errorf("%v heartbeats lost, want 0", d.lost)
	}
	if got := d.Freshness(); got < due || got > due+2*time.Millisecond {
		t.Errorf("suspicious at %v, want still about %v", got, due)
	}
	d.Heard(now+testInterval, wire.Heartbeat{Interval: testInterval, Beat: 100})
	if d.lost != 0 {
		t.Errorf("%v heartbeats lost after the next one, want 0", d.lost)
	}
}

func TestEvidenceAndForgiveness(t *testing.T) {
	d := newAsk()
	now := beats(d, 0, 100, 0, 0)
	margin := d.margin()

	d.Evidence(now - time.Second)
	if got, want := d.Freshness(), now+testInterval+margin; got != want {
		t.Errorf("old evidence moved the suspicion to %v, want %v", got, want)
	}
	d.Evidence(now + 30*time.Millisecond)
	if got, want := d.Freshness(), now+30*time.Millisecond+testInterval+margin; got != want {
		t.Errorf("evidence moved the suspicion to %v, want %v", got, want)
	}
	if got, want := d.Age(now+50*time.Millisecond), 20*time.Millisecond; got != want {
		t.Errorf("the newest heartbeat known of is %v old, want %v", got, want)
	}
	d.Forgive(now + time.Minute)
	if got, want := d.Freshness(), now+time.Minute+testInterval+margin; got != want {
		t.Errorf("after forgiving suspicious at %v, want %v", got, want)
	}
}

// TestFollowKeepsTheNetwork: another leader, the same wire.
func TestFollowKeepsTheNetwork(t *testing.T) {
	d := newAsk()
	now := beats(d, 0, 500, 0, 0.3)
	before := d.Quality().Loss
	d.Follow(now, testInterval)
	d.Heard(now+testInterval, wire.Heartbeat{Interval: testInterval, Beat: 77}) // its own count
	if after := d.Quality().Loss; after != before {
		t.Errorf("the loss changed from %.3f to %.3f with the leader", before, after)
	}
}

func TestSmoothed(t *testing.T) {
	var s smoothed
	s.observe(8)
	if s.mean != 8 || s.deviation != 4 {
		t.Errorf("after the first sample: mean %v, deviation %v; want 8, 4 (RFC 6298, 2.2)", s.mean, s.deviation)
	}
	s.observe(16)
	if s.mean != 9 || s.deviation != 5 {
		t.Errorf("after the second: mean %v, deviation %v; want 9, 5 (RFC 6298, 2.3)", s.mean, s.deviation)
	}
	for range 200 {
		s.observe(10)
	}
	if math.Abs(s.mean-10) > 1e-6 || s.bound() < 10 || s.bound() > 11 {
		t.Errorf("of equal samples: mean %v, bound %v; want 10, 10", s.mean, s.bound())
	}
}
