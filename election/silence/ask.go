package silence

import (
	"math"
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// askDetector suspects early, and asks before it takes the leader for dead. It expects the next
// heartbeat one interval after the last one plus a margin that it learns from
// the lateness it sees, and it learns from lost heartbeats how often a living
// leader could fail to answer.
type askDetector struct {
	observed
	// heard is when this board heard the newest heartbeat itself: unlike last, which
	// others move as well, the rhythm counts from it.
	heard clock.Instant
	late  Smoothed // how late heartbeats come, in ns
	peak  float64  // how late the latest one came, in ns; fades within peakFor
	own   Smoothed // how late this board is itself for what is due, in ns

	// recentLost and recentSeen count like lost and seen, but about the last ten.
	recentLost, recentSeen float64
}

// The constants of the detector.
const (
	// mistakeRecurrence is the stated quality of service: a living leader loses its
	// lead to lost packets at most this often (the mistake recurrence time of Chen,
	// Toueg and Aguilera, section 2.2).
	mistakeRecurrence = 24 * time.Hour
	// suspicionRecurrence bounds how often a living leader is suspected in vain. Each time
	// costs some packets, and a group in which nothing happens should send few.
	suspicionRecurrence = time.Second
	// missRecurrence is the same for suspicions because an address does not answer: whoever watches it sees to that.
	missRecurrence = time.Minute
	// overlookMax bounds for how long lost heartbeats are overlooked to keep that.
	overlookMax = time.Second
	// questionsMin keeps a clean wire from trusting few datagrams. With the copies of
	// heir, three rounds in vain happen once in a hundred times on a wire that has
	// begun to lose 40 % an instant ago, and less if a follower has heard the leader.
	questionsMin = 3
	// questionsMax bounds the questions on a wire that loses nearly everything.
	questionsMax = 100
	// peakFor is how long the latest of all heartbeats is remembered. What is rare,
	// like a card that blocks its board, is forgotten by mean and deviation within
	// twenty heartbeats, and would cost the lead when it comes again.
	peakFor = time.Hour
	// recentFade makes about the last 1/(1-recentFade) = 10 heartbeats count for
	// whether the wire has just become bad.
	recentFade = 0.9
)

func (d *askDetector) Heard(now clock.Instant, heartbeat wire.Heartbeat) {
	due := d.heard + d.interval
	ahead, lost, news := d.count(now, heartbeat, now >= d.Freshness())
	if news {
		d.heard = now
	}
	if ahead == 0 {
		return
	}
	d.recentSeen = d.recentSeen*recentFade + float64(lost+1)
	d.recentLost = d.recentLost*recentFade + float64(lost)
	d.peak *= 1 - float64(min(d.interval, peakFor))/float64(peakFor)
	// A heartbeat that comes much earlier is an answer to another board.
	if early := due - now; ahead == 1 && early < d.interval/2 {
		late := float64(max(0, -early))
		d.late.Observe(late)
		// The peak fades by a factor of e within peakFor. So e times a tenth of the interval,
		// the most that the margin uses, is enough to remember.
		d.peak = max(d.peak, min(late, math.E*float64(d.interval/10)))
	}
}

// Forgive makes nothing of how late the next heartbeat is read.
func (d *askDetector) Forgive(now clock.Instant) {
	d.observed.Forgive(now)
	d.heard = max(d.heard, now)
}

// Woke counts no more than a tick: a board that was late by much more is handled as
// suspended, and one long pause shall not make it slow for long.
func (d *askDetector) Woke(late time.Duration) {
	d.own.Observe(float64(min(max(late, 0), Tick)))
}

// Freshness has come when the leader's address was missed: whoever asked for it has waited long enough.
func (d *askDetector) Freshness() clock.Instant {
	return d.missed.Before(d.last + d.interval + d.overdue()).At
}

// overdue is how much later than expected a heartbeat must be to be asked for.
func (d *askDetector) overdue() time.Duration {
	return time.Duration(d.overlooked())*d.interval + d.margin()
}

// margin is how late a heartbeat may be because nobody is quite punctual.
// Four deviations are what TCP allows (RFC 6298, section 2). To ask too early
// costs two packets; to ask too late costs outage.
//
// What has happened once within peakFor is allowed for as well, up to a tenth of the
// interval: the mean forgets, and a leader that stands still is not saved by
// questions. And a board whose own timers are late by some time, up to a tick,
// allows others the same. Lateness that never varies, such as that of a slow clock, must not
// be cut to the nanosecond either (RFC 6298 adds the granularity of the clock).
func (d *askDetector) margin() time.Duration {
	m := max(d.late.Bound(), min(time.Duration(d.peak), d.interval/10), min(d.own.Bound(), Tick)) + Tick/8
	return min(max(m, d.Grace()/4), d.interval/2)
}

// overlooked is how many heartbeats in a row may be lost before somebody asks. On
// a good wire there is none. If p of the heartbeats are lost, a living leader is
// suspected p^(n+1)/H times a second, and n is the least number that makes this rarer
// than once in suspicionRecurrence: to wait for the next heartbeat costs no packets.
func (d *askDetector) overlooked() (n int) {
	if d.seen == 0 {
		return 0
	}
	p := min(d.lost/d.seen, lossMax)
	suspicions := p * float64(suspicionRecurrence) / float64(d.interval)
	for most := int(overlookMax / d.interval); suspicions > 1 && n < most; n++ {
		suspicions *= p
	}
	return n
}

// lossMax bounds the estimates of the loss.
const lossMax = 0.95

// lossBound is a cautious estimate of the loss: two standard deviations above
// what was observed, and never quite zero. If the last heartbeats were lost more
// often than that, the wire has become worse, and they alone count: the first
// losses on a wire that was good must not have to outweigh all its past.
func (d *askDetector) lossBound() float64 {
	// One heartbeat of fifty is assumed lost to begin with; it fades like the others.
	const priorLost, priorSeen = 1, 50
	weight := math.Max(0, 1-d.seen*(1-fade))
	long := cautious(d.lost+priorLost*weight+0.25, d.seen+priorSeen*weight+1)
	if d.recentLost <= long*d.recentSeen {
		return long
	}
	return cautious(d.recentLost, d.recentSeen)
}

func cautious(lost, seen float64) float64 {
	p := lost / seen
	return min(p+2*math.Sqrt(p*(1-p)/seen), lossMax)
}

// Questions follows from the loss p. A living leader is suspected wrongly p^(n+1)/H
// times a second (see overlooked), and survives a question with the probability
// (1-p)²: the question and the answer must both arrive. k questions in vain are a
// mistake with the probability q^k, q = 1-(1-p)². So mistakes are rarer than one per
// mistakeRecurrence when mistakeRecurrence·p^(n+1)/H·q^k < 1. What other followers know is not
// counted, and neither are the further copies of later answers; they come on top. An address that
// is watched is missed in vain once in missRecurrence at most.
//
// Questions follow each other as fast as answers come on average: then most of
// what is sent is needed. Only the last one is given the time that few answers exceed.
func (d *askDetector) Questions() Questions {
	p := d.lossBound()
	q := 1 - (1-p)*(1-p)
	suspicions := math.Pow(p, float64(d.overlooked()+1)) * float64(mistakeRecurrence) / float64(d.interval)
	if d.missed.Set {
		suspicions = max(suspicions, float64(mistakeRecurrence/missRecurrence))
	}
	k := int(math.Ceil(math.Log(suspicions) / -math.Log(q)))
	k = min(max(k, questionsMin), questionsMax)

	every, within := RoundTripMin, RoundTripUnknown
	if d.trip.Known {
		every, within = time.Duration(d.trip.mean), d.trip.Bound()
	}
	longest := max(d.interval/2, RoundTripMin)
	every = min(max(every, RoundTripMin), longest)
	within = min(max(within, every), longest)
	return d.spread(Questions{Count: k, Spacing: every, Within: within})
}

// spread spreads questions over the grace, since nobody takes over before it is spent:
// what loses packets rarely loses one alone.
func (d *askDetector) spread(q Questions) Questions {
	// A grace that was learned is for leaders that are silent for so long. The more questions it
	// has, the sooner one of them is heard when the silence ends.
	apart := max(q.Spacing, DefaultGrace(d.interval))
	for q.Count < questionsMax && d.margin()+time.Duration(q.Count-1)*apart+q.Within < d.Grace() {
		q.Count++
	}
	if spare := d.Grace() - d.margin() - q.Duration(); spare > 0 {
		share := spare / time.Duration(q.Count-1)
		q.Spacing += share
		q.Within += spare - time.Duration(q.Count-1)*share
	}
	return q
}

func (d *askDetector) Quality() Quality { return d.quality(d.overdue(), d.Questions()) }
