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
	observed
	late smoothed // how late heartbeats come, in ns
}

// NewAskDetector returns the detector of the algorithm heir.
func NewAskDetector(interval time.Duration) Detector {
	return &askDetector{observed: observed{interval: interval}}
}

// The constants of the detector.
const (
	// mistakeEvery is the stated quality of service: a living leader loses its
	// reign to bad luck at most this often (the mistake recurrence time of Chen,
	// Toueg and Aguilera, section 2.2).
	mistakeEvery = 24 * time.Hour
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

func (d *askDetector) Heard(now Instant, beat wire.Heartbeat) {
	due := d.last + d.interval
	if ahead, _ := d.take(now, beat, now >= d.Freshness()); ahead == 1 {
		d.late.observe(float64(max(0, now-due)))
	}
}

func (d *askDetector) Freshness() Instant { return d.last + d.interval + d.margin() }

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

func (d *askDetector) Quality() Quality { return d.quality(d.margin(), d.Questions()) }
