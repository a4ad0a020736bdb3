package election

import (
	"math"
	"time"

	"topdog/wire"
)

// askDetector suspects early and asks before it believes. It expects the next
// heartbeat one interval after the last one plus a margin that it learns from
// the lateness it sees, and it learns from lost heartbeats how often a living
// leader could fail to answer.
type askDetector struct {
	interval time.Duration

	last    Instant // when the newest heartbeat came
	beat    uint8
	counted bool // beat is known, so that the next one tells the loss

	late smoothed // how late heartbeats come, in ns
	trip smoothed // how long answers take, in ns

	// lost and seen count heartbeats; both fade, so that about the last hundred count.
	lost, seen float64
}

// NewAskDetector returns the detector of the algorithm heir.
func NewAskDetector(interval time.Duration) Detector {
	return &askDetector{interval: interval}
}

// The constants of the detector.
const (
	// beatWindow is half of the range of Heartbeat.Beat: a number that is further
	// ahead than this is taken for one that is behind.
	beatWindow = 128
	// mistakeEvery is the stated quality of service: a living leader loses its
	// reign to bad luck at most this often (the mistake recurrence time of Chen,
	// Toueg and Aguilera, section 2.2).
	mistakeEvery = 24 * time.Hour
	// fade makes about the last 1/(1-fade) = 100 heartbeats count for the loss.
	fade = 0.99
	// questionsMin keeps a clean wire from trusting a single datagram.
	questionsMin = 2
	// questionsMax bounds the patience on a wire that loses nearly everything.
	questionsMax = 100
	// roundTripUnknown is assumed until an answer has been timed: a Wi-Fi hop and back.
	roundTripUnknown = 5 * time.Millisecond
	// roundTripMin is the least time between two questions; less would only ask
	// a wire that has not had time to answer.
	roundTripMin = time.Millisecond
)

func (d *askDetector) Follow(now Instant, interval time.Duration) {
	d.interval = interval
	d.last = now
	d.counted = false
}

func (d *askDetector) Heard(now Instant, beat wire.Heartbeat) {
	if d.counted {
		gap := beat.Beat - d.beat      // modulo 256
		overtaken := gap >= beatWindow // by the one that is known already
		if (gap == 0 || overtaken) && now < d.Freshness() {
			return // an answer to this board alone, or an old one; the rhythm is unchanged
		}
		// The counter says nothing after a silence that is long enough to wrap it.
		if gap > 0 && !overtaken && now-d.last < beatWindow*d.interval {
			d.seen = d.seen*fade + float64(gap)
			d.lost = d.lost*fade + float64(gap-1)
		}
		if gap == 1 {
			d.late.observe(float64(max(0, now-d.last-d.interval)))
		}
	}
	d.interval = beat.Interval
	d.beat, d.counted = beat.Beat, true
	d.last = now
}

func (d *askDetector) Evidence(at Instant) { d.last = max(d.last, at) }

func (d *askDetector) Forgive(now Instant) { d.last = max(d.last, now) }

func (d *askDetector) Answered(roundTrip time.Duration) {
	d.trip.observe(float64(roundTrip))
}

func (d *askDetector) Freshness() Instant { return d.last + d.interval + d.margin() }

func (d *askDetector) Age(now Instant) time.Duration { return now - d.last }

// margin is how much later than expected a heartbeat may come before somebody asks.
// Four deviations are what TCP allows (RFC 6298, section 2). To ask too early
// costs two packets; to ask too late costs outage.
func (d *askDetector) margin() time.Duration {
	return min(max(d.late.bound(), Grace(d.interval)/4), d.interval/2)
}

// lossBound is a cautious estimate of the loss: two standard deviations above
// what was observed, and never quite zero.
func (d *askDetector) lossBound() float64 {
	// One heartbeat of twenty is assumed lost to begin with; it fades like the others.
	const priorLost, priorSeen = 1, 20
	weight := math.Max(0, 1-d.seen*(1-fade))
	lost, seen := d.lost+priorLost*weight+0.25, d.seen+priorSeen*weight+1
	p := lost / seen
	return math.Min(p+2*math.Sqrt(p*(1-p)/seen), 0.95)
}

// Questions follows from the loss p. A living leader is suspected wrongly p/H
// times a second, and survives a question with the probability (1-p)²: the
// question and the answer must both arrive. k questions in vain are a mistake
// with the probability q^k, q = 1-(1-p)². So mistakes are rarer than one per
// mistakeEvery when mistakeEvery·p/H·q^k < 1. What other followers know is not
// counted, it comes on top.
func (d *askDetector) Questions() Questions {
	p := d.lossBound()
	q := 1 - (1-p)*(1-p)
	suspicions := p * float64(mistakeEvery) / float64(d.interval)
	k := int(math.Ceil(math.Log(suspicions) / -math.Log(q)))
	k = min(max(k, questionsMin), questionsMax)

	every := roundTripUnknown
	if d.trip.known {
		every = d.trip.bound()
	}
	every = min(max(every, roundTripMin), max(d.interval/2, roundTripMin))
	// Nobody takes over before the grace is spent.
	every = max(every, (Grace(d.interval)-d.margin())/time.Duration(k))
	return Questions{Count: k, Every: every}
}

func (d *askDetector) Quality() Quality {
	q := Quality{Margin: d.margin(), RoundTrip: time.Duration(d.trip.mean), Questions: d.Questions()}
	if d.seen > 0 {
		q.Loss = d.lost / d.seen
	}
	return q
}

// smoothed is a running mean and mean deviation (RFC 6298, section 2).
type smoothed struct {
	mean, deviation float64
	known           bool
}

func (s *smoothed) observe(x float64) {
	if !s.known {
		*s = smoothed{mean: x, deviation: x / 2, known: true}
		return
	}
	s.deviation += (math.Abs(x-s.mean) - s.deviation) / 4
	s.mean += (x - s.mean) / 8
}

// bound is what few samples exceed.
func (s *smoothed) bound() time.Duration { return time.Duration(s.mean + 4*s.deviation) }
