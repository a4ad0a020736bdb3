package silence

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"topdog/election/clock"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// detectors are all there are, with how long after the newest of many punctual
// heartbeats each of them begins to suspect. They hold what follows in common.
var detectors = []struct {
	kind   DetectorKind
	silent time.Duration // at testInterval
	// mistakes is how many heartbeats in a row must be lost to make a living leader
	// suspect; 0 if that depends on what was learned.
	mistakes int
}{
	{DetectorAsk, testInterval + testInterval/40, 0},
	{DetectorFixed, 3*testInterval + testInterval/10, 3},
	{DetectorNFDE, 2*testInterval + testInterval/4, 2},
}

// everyDetector calls f with each detector, after 300 punctual heartbeats. They
// begin with number 200 and wrap twice; last is when the newest came, and next
// is the number after it.
func everyDetector(t *testing.T, f func(t *testing.T, d Detector, silent time.Duration, last clock.Instant, next uint8)) {
	for _, of := range detectors {
		t.Run(of.kind.String(), func(t *testing.T) {
			d := newDetector(of.kind, testInterval)
			d.Follow(0, testInterval)
			var last clock.Instant
			next := uint8(200)
			for range 300 {
				last += testInterval
				d.Heard(last, heartbeat(next))
				next++
			}
			f(t, d, of.silent, last, next)
		})
	}
}

func heartbeat(number uint8) wire.Heartbeat {
	return wire.Heartbeat{Interval: testInterval, Number: number}
}

// suspects fails the test unless the leader becomes suspect at that time.
func suspects(t *testing.T, d Detector, when string, want clock.Instant) {
	t.Helper()
	assert.Is(t, want, d.Freshness(), "%s, the leader becomes suspect", when)
}

func TestDetectorSuspects(t *testing.T) {
	everyDetector(t, func(t *testing.T, d Detector, silent time.Duration, last clock.Instant, _ uint8) {
		suspects(t, d, "after punctual heartbeats", last+silent)
		if got, want := d.Age(last+time.Second), time.Second; got != want {
			t.Errorf("the newest heartbeat is %v old, want %v", got, want)
		}
		q := d.Quality()
		if q.Loss != 0 || q.RoundTrip != 0 || q.Margin != silent-testInterval || q.Questions != d.Questions() {
			t.Errorf("quality %+v of a wire without a fault, want a margin of %v", q, silent-testInterval)
		}
	})
}

// TestDetectorBegins: before the first heartbeat, a leader has the time that it
// has after one.
func TestDetectorBegins(t *testing.T) {
	for _, of := range detectors {
		d := newDetector(of.kind, testInterval)
		for _, now := range []clock.Instant{time.Hour, 2 * time.Hour} {
			d.Follow(now, testInterval)
			suspects(t, d, of.kind.String()+": unheard", now+of.silent)
			d.Heard(now+30*time.Millisecond, heartbeat(7))
			suspects(t, d, of.kind.String()+": heard once", now+30*time.Millisecond+of.silent)
		}
	}
}

func TestDetectorCountsLoss(t *testing.T) {
	everyDetector(t, func(t *testing.T, d Detector, silent time.Duration, last clock.Instant, next uint8) {
		now := last + 4*testInterval
		d.Heard(now, heartbeat(next+3)) // three are missing
		want := 3 / (100*(1-math.Pow(fade, 299))*fade + 4)
		if got := d.Quality().Loss; math.Abs(got-want) > 1e-9 {
			t.Errorf("loss %v, want %v", got, want)
		}
		suspects(t, d, "after a gap", now+silent)
	})
}

// TestDetectorStoodStill: heartbeats that are missing because this board stood still are no loss, and
// no more of them than were due meanwhile.
func TestDetectorStoodStill(t *testing.T) {
	const h = testInterval
	for _, test := range []struct {
		name  string
		still time.Duration // by how much the board was late; 0 if it was not
		after time.Duration // when the first heartbeat is read after that
		reads []uint8       // which ones are read then, by how much they are ahead of the last one
		lost  float64
	}{
		{"it did not", 0, 0, []uint8{4}, 3},
		{"nothing is missing", 3 * h, 0, []uint8{1, 2, 3, 4}, 0},
		{"the newest one was read first", 3 * h, 0, []uint8{4}, 0},
		{"not at once", 3 * h, h / 2, []uint8{4}, 0},
		{"the second one was read too late", 3 * h, 0, []uint8{1, 4}, 0},
		{"more are missing", 3 * h, 0, []uint8{8}, 3},
		{"they are missing later", 3 * h, h, []uint8{4}, 3},
		{"less than an interval", h / 5, 0, []uint8{2}, 0},
		{"less than an interval, and more are missing", h / 5, 0, []uint8{4}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			everyDetector(t, func(t *testing.T, d Detector, _ time.Duration, last clock.Instant, next uint8) {
				woken := last + 5*h
				if test.still > 0 {
					d.StoodStill(woken, test.still)
				}
				for _, ahead := range test.reads {
					d.Heard(woken+test.after, heartbeat(next+ahead-1))
				}
				q := d.Quality()
				if got := q.Loss * 100; math.Abs(got-test.lost) > 0.3 {
					t.Errorf("%.1f of about a hundred are lost, want %v", got, test.lost)
				}
			})
		})
	}
}

// TestDetectorLongSilence: the counter has gone round once, unless it was twice.
func TestDetectorLongSilence(t *testing.T) {
	everyDetector(t, func(t *testing.T, d Detector, silent time.Duration, last clock.Instant, next uint8) {
		const missed = 256 + 44
		now := last + (missed+1)*testInterval
		d.Heard(now, heartbeat(next+missed%256))
		if loss := d.Quality().Loss; loss != 0 {
			t.Errorf("loss %v, want that nothing is made of it", loss)
		}
		suspects(t, d, "after a long silence", now+silent)
	})
}

// TestDetectorWithoutNews: an answer to this board alone has the number of the beat
// before, and says nothing about when the next one is due; nor does a copy of a
// heartbeat or one that was overtaken.
func TestDetectorWithoutNews(t *testing.T) {
	for _, test := range []struct {
		name   string
		after  time.Duration
		behind uint8
	}{
		{"an answer", 60 * time.Millisecond, 0},
		{"a copy", 0, 0},
		{"overtaken by one", time.Millisecond, 1},
		{"overtaken by many", 90 * time.Millisecond, 127},
	} {
		t.Run(test.name, func(t *testing.T) {
			everyDetector(t, func(t *testing.T, d Detector, silent time.Duration, last clock.Instant, next uint8) {
				d.Heard(last+test.after, heartbeat(next-1-test.behind))
				suspects(t, d, "after no news", last+silent)
				d.Heard(last+testInterval, heartbeat(next))
				suspects(t, d, "after the next one", last+testInterval+silent)
				assert.Is(t, 0, d.Quality().Loss, "loss")
			})
		})
	}
}

// TestDetectorDeafForLong: a number that is ahead by half of the range looks like one that
// is behind. It is none if it comes long after the newest one. A board that took it for one
// would suspect a living leader before each heartbeat until the number has wrapped.
func TestDetectorDeafForLong(t *testing.T) {
	everyDetector(t, func(t *testing.T, d Detector, silent time.Duration, last clock.Instant, next uint8) {
		now := last + 130*testInterval
		d.Evidence(now - time.Millisecond) // from another board, so that nobody suspects the leader
		d.Heard(now, heartbeat(next+129))
		suspects(t, d, "after the first heartbeat since", now+silent)
		if loss := d.Quality().Loss; loss != 0 {
			t.Errorf("loss %v, want that nothing is made of it", loss)
		}
	})
}

// TestDetectorSignOfLife: what says nothing of a leader that is well says that a
// suspect lives. It does not shift the rhythm of the heartbeats that follow.
func TestDetectorSignOfLife(t *testing.T) {
	everyDetector(t, func(t *testing.T, d Detector, silent time.Duration, last clock.Instant, next uint8) {
		now := d.Freshness()
		d.Heard(now, heartbeat(next-1))
		suspects(t, d, "after an answer to a suspicion", now+silent)
		lost := uint8(4) // enough for each of the detectors
		now = last + clock.Instant(lost+1)*testInterval
		d.Heard(now, heartbeat(next+lost))
		suspects(t, d, "after a heartbeat", now+silent)
	})
}

func TestDetectorEvidence(t *testing.T) {
	everyDetector(t, func(t *testing.T, d Detector, silent time.Duration, last clock.Instant, next uint8) {
		d.Evidence(last - time.Second)
		suspects(t, d, "after old evidence", last+silent)
		d.Evidence(last + 130*time.Millisecond)
		suspects(t, d, "after evidence", last+130*time.Millisecond+silent)
		if got, want := d.Age(last+150*time.Millisecond), 20*time.Millisecond; got != want {
			t.Errorf("the newest heartbeat is %v old, want %v", got, want)
		}
		d.Forgive(last + 140*time.Millisecond)
		suspects(t, d, "after forgiving", last+140*time.Millisecond+silent)
		d.Forgive(last)
		suspects(t, d, "after forgiving the past", last+140*time.Millisecond+silent)
		now := last + 2*testInterval // what was heard by others was lost here
		d.Heard(now, heartbeat(next+1))
		if got := d.Freshness() - now; got != silent {
			t.Errorf("the leader becomes suspect %v after the next heartbeat, want %v", got, silent)
		}
	})
}

// TestDetectorFollow: another leader has its own count and rhythm, on the same wire.
func TestDetectorFollow(t *testing.T) {
	everyDetector(t, func(t *testing.T, d Detector, silent time.Duration, last clock.Instant, next uint8) {
		d.Heard(last+3*testInterval, heartbeat(next+2))
		d.Answered(8*time.Millisecond, 8*time.Millisecond)
		before := d.Quality()
		now := last + 3*testInterval + 40*time.Millisecond
		d.Follow(now, testInterval)
		assert.Is(t, before.Margin+testInterval, d.Freshness()-now, "a new leader becomes suspect after")
		for i := range uint8(3) {
			now += testInterval
			d.Heard(now, heartbeat(77+i))
		}
		after := d.Quality()
		if after.Loss >= before.Loss || after.Loss < before.Loss*fade*fade*fade || after.RoundTrip != 8*time.Millisecond {
			t.Errorf("quality %+v after another leader, %+v before: want the same wire", after, before)
		}
		suspects(t, d, "another leader", now+testInterval+after.Margin)
	})
}

// TestDetectorInterval: what counts is the interval of the leader. At twice the pace all
// detectors suspect in half of the time, but for a margin that is as short as it may be.
func TestDetectorInterval(t *testing.T) {
	everyDetector(t, func(t *testing.T, d Detector, silent time.Duration, last clock.Instant, next uint8) {
		faster := silent / 2
		if _, ok := d.(*askDetector); ok {
			faster = testInterval/2 + DefaultGrace(testInterval/2)/4
		}
		now := last + testInterval
		fast := func() wire.Heartbeat { next++; return wire.Heartbeat{Interval: testInterval / 2, Number: next - 1} }
		d.Heard(now, fast())
		for range 5 {
			suspects(t, d, "at twice the pace", now+faster)
			now += testInterval / 2
			d.Heard(now, fast())
		}
		d.Follow(now, 10*testInterval)
		suspects(t, d, "unheard at another interval", now+10*testInterval+d.Quality().Margin)
	})
}

// TestDetectorQuestions: the detectors of the papers ask once, within a fixed time.
func TestDetectorQuestions(t *testing.T) {
	for _, kind := range []DetectorKind{DetectorFixed, DetectorNFDE} {
		d := newDetector(kind, testInterval)
		for range 50 {
			d.Answered(time.Millisecond, time.Millisecond)
		}
		if got, want := d.Questions(), (Questions{Count: 1, Spacing: testInterval, Within: testInterval}); got != want {
			t.Errorf("%T asks %+v, want %+v", d, got, want)
		}
		if got := d.Quality().RoundTrip; got != time.Millisecond {
			t.Errorf("%T has a round trip of %v, want 1ms", d, got)
		}
	}
}

// TestDetectorMistakes counts how often each detector suspects a living leader on
// a wire that loses one heartbeat of ten, and delays the others by up to 5 ms. A
// detector that k losses in a row mislead is misled by (1-p)·p^k of the heartbeats.
func TestDetectorMistakes(t *testing.T) {
	const beats, loss = 100_000, 0.1
	for _, of := range detectors {
		if of.mistakes == 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(1, 2))
		d := newDetector(of.kind, testInterval)
		d.Follow(0, testInterval)
		got := 0
		for i := range beats {
			if rng.Float64() < loss {
				continue
			}
			now := clock.Instant(i)*testInterval + time.Duration(rng.Int64N(int64(5*time.Millisecond)))
			if now >= d.Freshness() {
				got++
			}
			d.Heard(now, heartbeat(uint8(i)))
		}
		want := beats * (1 - loss) * math.Pow(loss, float64(of.mistakes))
		if math.Abs(float64(got)-want) > 3*math.Sqrt(want) {
			t.Errorf("%s has suspected a living leader %d times, want about %.0f", of.kind, got, want)
		}
		if q := d.Quality(); q.Loss < 0.01 || q.Loss > 0.25 {
			t.Errorf("%s has observed a loss of %v, want about %v", of.kind, q.Loss, loss)
		}
	}
}

// TestDetectorAnything lets anything happen: a leader that was just heard of is
// trusted, and not for much longer than usual.
func TestDetectorAnything(t *testing.T) {
	for _, of := range detectors {
		rng := rand.New(rand.NewPCG(3, 4))
		d := newDetector(of.kind, testInterval)
		interval := testInterval
		var now clock.Instant
		var number, newest uint8
		heard := false // anything of this leader, so that newest is known
		var newestAt clock.Instant
		var newestInterval time.Duration
		hear := func() (news bool) {
			ahead := number - newest
			overtaken := ahead >= numberWindow && now-newestAt < newestInterval
			news = !heard || now >= d.Freshness() || ahead > 0 && !overtaken
			d.Heard(now, wire.Heartbeat{Interval: interval, Number: number})
			if news {
				newest, heard = number, true
				newestAt, newestInterval = now, interval
			}
			return news
		}
		for step := range 200_000 {
			switch rng.IntN(8) {
			case 0:
				now += time.Duration(rng.Int64N(int64(300 * testInterval)))
			case 1:
				now += time.Duration(rng.Int64N(int64(testInterval)))
			default:
				now += interval
			}
			trusted := true
			switch rng.IntN(64) {
			case 0:
				interval = time.Duration(10+rng.IntN(1000)) * time.Millisecond
				d.Follow(now, interval)
				heard = false
			case 1:
				d.Evidence(now)
			case 2:
				d.Forgive(now)
			case 3:
				interval = time.Duration(10+rng.IntN(1000)) * time.Millisecond
				fallthrough
			case 4:
				number += uint8(rng.Uint32())
				fallthrough
			case 5: // no news, perhaps
				trusted = hear()
			default:
				number += uint8(1 + rng.IntN(3)*rng.IntN(3))
				trusted = hear()
			}
			if !trusted {
				continue
			}
			fresh := d.Freshness() - now
			if fresh <= 0 || fresh > 4*max(interval, time.Second) || d.Age(now) != 0 {
				t.Fatalf("%s, step %d: suspect in %v, newest heartbeat %v old", of.kind, step, fresh, d.Age(now))
			}
		}
	}
}
