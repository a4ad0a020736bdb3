package silence

import (
	"math"
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// Detector is a failure detector: it watches one leader and says when its
// silence becomes suspicious. It keeps no clock.
type Detector interface {
	// Follow begins to watch another leader. What was learned of the network stays.
	Follow(now clock.Instant, interval time.Duration)
	// Heard receives a heartbeat of the watched leader.
	Heard(now clock.Instant, heartbeat wire.Heartbeat)
	// Evidence says that somebody else heard a heartbeat at that time.
	Evidence(at clock.Instant)
	// Missed says that the leader's address has not answered since then, although it did before. It reports whether that
	// is news: nobody has heard the leader after that.
	Missed(since clock.Instant) (news bool)
	// Returned says that the address answers again.
	Returned()
	// StoodStill learns that this board itself was not running until now, and was so late for what was due.
	StoodStill(now clock.Instant, late time.Duration)
	// Forgive gives the leader a fresh interval, because this board was not running itself.
	Forgive(now clock.Instant)
	// Answered receives an answer of the leader, and how long ago the last and the first
	// of the questions were sent of which it may answer any.
	Answered(sinceLast, sinceFirst time.Duration)
	// Woke learns by how much this board was late for something that was due.
	Woke(late time.Duration)
	// Freshness is when the leader becomes suspect unless it is heard before:
	// the freshness point of Chen, Toueg and Aguilera.
	Freshness() clock.Instant
	// Due is when a sign of life was due, or is: the next heartbeat, or the answer that was missed.
	Due() clock.Instant
	// Earliest is when the grace of that ends, see DefaultGrace.
	Earliest() clock.Instant
	// Grace is how late the next heartbeat may be. It is never less than the default of the leader's interval.
	Grace() time.Duration
	// Age is the time since the newest heartbeat that is known of.
	Age(now clock.Instant) time.Duration
	// Questions says how often, and how far apart, a suspect must be asked in
	// vain before it is taken for dead.
	Questions() Questions
	// RoundTripBound is what few answers of the leader exceed.
	RoundTripBound() time.Duration
	// Quality is for people.
	Quality() Quality
}

// Questions is how a suspect is asked: Count times, Spacing apart, and the last
// question has the time Within to be answered.
type Questions struct {
	Count   int
	Spacing time.Duration
	Within  time.Duration
}

// Duration is how long asking takes when nobody answers.
func (q Questions) Duration() time.Duration {
	return time.Duration(q.Count-1)*q.Spacing + q.Within
}

// Quality is what a detector has learned of the network.
type Quality struct {
	Loss      float64       // of heartbeats, 0…1, as observed
	Margin    time.Duration // how late a heartbeat may be
	RoundTrip time.Duration // smoothed; 0 if never measured
	Questions Questions
}

// observed is what every detector keeps of the leader that it watches, and what
// it learns of the network in between by counting. Detectors embed it, and
// differ in when they find a silence suspicious.
type observed struct {
	interval time.Duration // of the leader

	group    *Grace         // what the group allows the leader
	last     clock.Instant  // when the newest heartbeat that is known of came
	missed   clock.Deadline // when the first question to the leader's address was asked that has gone unanswered
	number   uint8          // its number, if this board heard it itself
	counted  bool           // number is known, so that the next one tells the loss
	numberAt clock.Instant  // when it came

	trip Smoothed // how long answers take, in ns

	// lost and seen count heartbeats; both fade, so that about the last hundred count.
	lost, seen float64

	// excused is how many of the heartbeats that are missing until then are no loss: they came while
	// this board stood still. Of what has piled up, a later one may be read first.
	excused      int
	excusedUntil clock.Instant
}

const (
	// numberWindow is half of the range of Heartbeat.Number: whether a number that is further
	// ahead than this is behind instead, only the time tells.
	numberWindow = 128
	// fade makes about the last 1/(1-fade) = 100 heartbeats count for the loss.
	fade = 0.99
	// RoundTripUnknown is what an answer may take until one has been timed: a Wi-Fi
	// hop and back.
	RoundTripUnknown = 5 * time.Millisecond
	// RoundTripMin is the least time between two questions; less would only ask
	// a wire that has not had time to answer.
	RoundTripMin = time.Millisecond
)

func (o *observed) Follow(now clock.Instant, interval time.Duration) {
	o.interval = interval
	o.last = now
	o.counted = false
	o.missed = clock.Deadline{}
}

// count enters a heartbeat that came before or after the leader became suspect.
// It returns how many numbers the heartbeat is ahead of the newest one, modulo
// 256, or 0 if that cannot be told: then it may be an answer to this board
// alone, which says that the leader lives, but not when its next heartbeat is due. And it returns
// how many of those in between were lost.
//
// A heartbeat without news, of a leader that nobody suspects, changes nothing.
func (o *observed) count(now clock.Instant, heartbeat wire.Heartbeat, suspect bool) (ahead, lost int, news bool) {
	if o.counted {
		gap := heartbeat.Number - o.number // modulo 256
		behind := gap >= numberWindow
		// A heartbeat that was overtaken by the newest one comes soon after it. One that
		// comes later is ahead by half of the range or more: this board was deaf for long.
		overtaken := behind && now-o.numberAt < o.interval
		if (gap == 0 || overtaken) && !suspect {
			return 0, 0, false // an answer to this board alone, or an old one; the rhythm is unchanged
		}
		// The counter says nothing after a silence that is long enough to wrap it.
		if gap > 0 && !behind && now-o.numberAt < numberWindow*o.interval {
			ahead = int(gap)
			lost = ahead - 1 - o.excuse(now, ahead-1)
			o.seen = o.seen*fade + float64(lost+1)
			o.lost = o.lost*fade + float64(lost)
		}
	}
	o.interval = heartbeat.Interval
	o.number, o.counted, o.numberAt = heartbeat.Number, true, now
	o.alive(now)
	return ahead, lost, true
}

// StoodStill excuses the heartbeats that were due meanwhile, or so shortly before that this board
// did not miss them yet. What has piled up is read within an interval.
func (o *observed) StoodStill(now clock.Instant, late time.Duration) {
	if now >= o.excusedUntil {
		o.excused = 0
	}
	due := func(at clock.Instant) int { return int(max(0, at-o.numberAt) / o.interval) }
	o.excused = max(o.excused, due(now)-due(now-late-o.Grace()))
	o.excusedUntil = now + o.interval
}

// excuse returns how many of the missing heartbeats are no loss.
func (o *observed) excuse(now clock.Instant, missing int) (n int) {
	if now < o.excusedUntil {
		n = min(missing, o.excused)
		o.excused -= n
	}
	return n
}

func (o *observed) Due() clock.Instant { return o.missed.Before(o.last + o.interval).At }

func (o *observed) Earliest() clock.Instant { return o.Due() + o.Grace() }

func (o *observed) Missed(since clock.Instant) (news bool) {
	if news = since > o.last; news {
		o.missed = clock.Due(since)
	}
	return news
}

func (o *observed) Returned() { o.missed = clock.Deadline{} }

// alive takes in that the leader lived at that time.
func (o *observed) alive(at clock.Instant) {
	o.last = max(o.last, at)
	if o.missed.Reached(o.last) {
		o.missed = clock.Deadline{}
	}
}

func (o *observed) Grace() time.Duration { return max(o.group.allowed(), DefaultGrace(o.interval)) }

func (o *observed) Evidence(at clock.Instant) { o.alive(at) }

func (o *observed) Forgive(now clock.Instant) { o.alive(now) }

// Answered learns the round trip. If there was one question, both times are the
// same and it is measured. Of several nobody can tell which one was answered; TCP
// makes nothing of such an answer (Karn's rule; RFC 6298, section 3). But a round trip
// that is not between the two times was learned wrongly, and is moved to where it can
// have been: else a board that asks too soon would never find out.
func (o *observed) Answered(sinceLast, sinceFirst time.Duration) {
	switch known := time.Duration(o.trip.mean); {
	case sinceLast == sinceFirst, !o.trip.Known, known > sinceFirst:
		o.trip.Observe(float64(sinceFirst))
	case known < sinceLast:
		o.trip.Observe(float64(sinceLast))
	}
}

func (o *observed) RoundTripBound() time.Duration {
	if !o.trip.Known {
		return min(RoundTripUnknown, max(o.interval/2, RoundTripMin))
	}
	return min(max(o.trip.Bound(), RoundTripMin), max(o.interval/2, RoundTripMin))
}

// Questions is one, and an interval is the limit T for its answer: a time that
// the group considers long enough for a heartbeat is so for a question. The papers know no other.
func (o *observed) Questions() Questions {
	limit := max(o.interval, RoundTripMin)
	return Questions{Count: 1, Spacing: limit, Within: limit}
}

// Woke is of no use to a detector that learns nothing of lateness.
func (o *observed) Woke(time.Duration) {}

func (o *observed) Age(now clock.Instant) time.Duration { return now - o.last }

// quality completes what the detector itself knows.
func (o *observed) quality(margin time.Duration, questions Questions) Quality {
	q := Quality{Margin: margin, RoundTrip: time.Duration(o.trip.mean), Questions: questions}
	if o.seen > 0 {
		q.Loss = o.lost / o.seen
	}
	return q
}

// Smoothed is a running mean and mean deviation (RFC 6298, section 2).
type Smoothed struct {
	mean, deviation float64
	Known           bool
}

func (s *Smoothed) Observe(x float64) {
	if !s.Known {
		*s = Smoothed{mean: x, deviation: x / 2, Known: true}
		return
	}
	s.deviation += (math.Abs(x-s.mean) - s.deviation) / 4
	s.mean += (x - s.mean) / 8
}

// Bound is what few samples exceed.
func (s *Smoothed) Bound() time.Duration { return time.Duration(s.mean + 4*s.deviation) }
