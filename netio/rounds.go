package netio

import (
	"math"
	"time"
)

// rounds decides for an AddressWatch when to ask, and what to report. It has neither a socket nor a clock.
//
// A round is a question, and its repetitions until one is answered. ARP does not say which of them an answer belongs to. It is
// known when the next round begins: until then as many answers have come as questions have arrived, and the first of the
// answers is to the first of these questions, since what got lost was before it. So a late answer is told from a lost one.
type rounds struct {
	want time.Duration // the time between two rounds that was asked for
	pace int           // how often that was doubled; tooSlow if the watch is of no use

	trip          smoothedTime // how long answers take
	counted, lost float64      // questions, and those of them that got no answer; both fade

	first     time.Duration           // when the first question of this round was asked
	times     [mostLost]time.Duration // when the latest ones were: question n is at n % len
	questions int                     // how many of this round were asked
	answers   int                     // how many answers have come in this round
	answered  time.Duration           // when the first of them was read
	overslept bool                    // that was later than this process should have been awake to read it
	patient   bool                    // the latest question was given more time, since this process was late itself
	settled   int                     // how many rounds in a row had one question, and an answer when it was expected

	deadline time.Duration // when due is to be called
	worse    time.Duration // when a shorter time between two rounds was last known not to do
	missed   time.Duration // when a miss was reported; 0 while the address answers
	heard    bool          // something has answered
	why      WatchState

	news bool          // there is something to report
	told time.Duration // when the last report was made
}

const (
	// leastBound is the least time that an answer is given: less than that, a kernel that does something else may take.
	leastBound = time.Millisecond
	// A miss is reported after so many questions in a row without an answer, depending on how many get lost.
	fewestMisses, mostMisses = 2, 8
	// When more questions in a row have no answer, they were not lost: the address was away.
	mostLost = 2 * mostMisses
	// falseMisses is how many misses a second may come of losses: one a minute.
	falseMisses = 1.0 / 60
	// The share of questions that get lost is that of the latest ones. At first it is assumed that some were answered.
	lossFades, lossAssumed = 100, 20
	// tooSlow is the pace that nobody has: eight times as slow as was asked for.
	tooSlow = 3
	// paceStays is for how long everything must have been well until the rounds come faster.
	paceStays = 10 * time.Second
	// tellEvery is how often a report is made without news.
	tellEvery = 10 * time.Second
	// introductions is how many questions come without a pause before anything has answered.
	introductions = 3
	// askIdly is the time between two questions while nobody waits for an answer.
	askIdly = time.Second
	// After a miss, questions come one bound apart for missedQuick, as fast as was asked for until missedSlow, and then idly.
	// After missedLong, nobody is expected to answer any more.
	missedQuick, missedSlow, missedLong = 50 * time.Millisecond, 1050 * time.Millisecond, 10 * time.Second
	// oversleeps is by how much a timer may be late. If it is later, this process did not run, and what has arrived in the
	// meantime may take a moment to get through.
	oversleeps = time.Millisecond
	// settles is how many rounds smoothedTime needs to forget an exception: of its deviation, 1/300 is left.
	settles = 20
	// unsentRetry is when to ask again after a question that the kernel did not send.
	unsentRetry = 100 * time.Millisecond
)

// begin begins anew: nothing has answered yet.
func (r *rounds) begin(want, now time.Duration) {
	*r = rounds{want: want, counted: lossAssumed, deadline: now, told: r.told}
}

// waits reports whether a question was not answered yet.
func (r *rounds) waits() bool { return r.questions > 0 && r.answers == 0 }

// due says whether to ask now. What has arrived must have been read before.
func (r *rounds) due(now time.Duration) (ask bool) {
	if now < r.deadline {
		return false // the timer has expired for a former deadline
	}
	if r.waits() {
		if now > r.deadline+oversleeps && !r.patient {
			r.patient, r.deadline = true, now+r.bound()
			return false
		}
		r.miss(now)
	} else {
		r.close(now)
	}
	r.news = r.news || r.why != WatchNoAnswer && now-r.told >= tellEvery
	return true
}

// miss notes that the latest question was not answered in time.
func (r *rounds) miss(now time.Duration) {
	switch {
	case !r.heard:
		r.news = r.news || r.questions == introductions
	case r.pace == tooSlow:
		r.close(now)
	case r.missed == 0 && r.questions >= r.need():
		r.missed, r.why, r.news = now, WatchMissed, true
	case r.why == WatchMissed && now-r.missed >= missedLong:
		r.why, r.news = WatchNoAnswer, true
	}
}

// sent notes that a question was sent between two readings of the clock.
func (r *rounds) sent(before, after time.Duration) {
	if r.questions == 0 {
		r.first = before
	}
	r.times[r.questions%len(r.times)] = before
	r.questions++
	r.patient = false
	r.deadline = after + r.patience(after)
}

// unsent notes that a question could not be sent. That is no miss.
func (r *rounds) unsent(now time.Duration) {
	if r.missed == 0 {
		r.questions, r.answers = 0, 0
	}
	r.deadline = now + max(r.every(), unsentRetry)
}

// patience is how long the latest question may go unanswered.
func (r *rounds) patience(now time.Duration) time.Duration {
	since := now - r.missed
	switch {
	case !r.heard && r.questions <= introductions:
		return r.want
	case !r.heard, r.pace == tooSlow, r.missed != 0 && since >= missedSlow:
		return askIdly
	case r.missed != 0 && since >= missedQuick:
		return r.every()
	}
	return r.bound()
}

// answer notes that an answer was read, and reports whether one was awaited.
func (r *rounds) answer(now time.Duration) (awaited bool) {
	if r.answers >= r.questions {
		return false
	}
	r.answers++
	if r.answers > 1 {
		return true
	}
	r.answered, r.overslept = now, now > r.deadline+oversleeps || r.patient
	pause := r.every()
	if !r.trip.known {
		// Answers may take longer than the time between two questions. Those to the other questions are waited for.
		pause = max(pause, min(2*(now-r.first), r.want<<(tooSlow-1)))
	}
	r.deadline = r.times[(r.questions-1)%len(r.times)] + pause
	r.heard = true
	if r.missed != 0 {
		r.missed, r.why, r.news = 0, WatchAnswers, true
	}
	return true
}

// hears reports whether the round before has had an answer, as far as is known.
func (r *rounds) hears() bool { return r.questions == 0 && r.heard }

// alive notes that the machine that is asked was heard otherwise. If that happens as often as it would be asked, give or take a
// bound, it is asked once per askIdly only, since a machine that lives may have lost the address. As long as there is
// something to learn about losses and round trips, or it is in doubt, it is asked every time.
func (r *rounds) alive(now time.Duration) {
	if r.why == WatchAnswers && !r.waits() && now-r.answered < askIdly && r.settled >= settles && r.need() == fewestMisses {
		r.deadline = max(r.deadline, now+r.every()+r.bound())
	}
}

// doubt has the machine asked every time for a while.
func (r *rounds) doubt() { r.settled = 0 }

// close ends a round, and learns from it.
func (r *rounds) close(now time.Duration) {
	if r.questions == 0 {
		return
	}
	lost := r.questions - r.answers
	if lost <= mostLost {
		r.count(lost)
	}
	r.settled++
	if lost > 0 {
		r.settled = 0
	}
	if r.answers > 0 && !r.overslept && r.answers <= len(r.times) {
		took := r.answered - r.times[lost%len(r.times)]
		if took > r.bound() {
			r.settled = 0
		}
		if r.trip.known {
			took = min(took, 2*r.bound()) // a kernel that stood still once says nothing about the time after
		}
		r.trip.observe(took)
	}
	r.questions, r.answers = 0, 0
	r.adjust(now)
}

// count counts the questions of a round.
func (r *rounds) count(lost int) {
	for n := range lost + r.answers {
		r.counted -= r.counted / lossFades
		r.lost -= r.lost / lossFades
		r.counted++
		if n < lost {
			r.lost++
		}
	}
}

// adjust finds the least time between two rounds that does.
func (r *rounds) adjust(now time.Duration) {
	fits := 0
	for fits < tooSlow && !(r.quick(fits) && r.reliable(fits)) {
		fits++
	}
	before, why := r.pace, WatchAnswers
	switch {
	case fits > r.pace:
		r.pace = fits
	case fits < r.pace && now-r.worse >= paceStays:
		r.pace--
		r.worse = now
	}
	if fits >= r.pace {
		r.worse = now
	}
	if r.pace == tooSlow {
		why = WatchLossy
		if !r.quick(tooSlow - 1) {
			why = WatchLate
		}
		if before == tooSlow && fits < tooSlow {
			why = r.why // it has become better, but not for long enough
		}
	}
	if before != r.pace || why != r.why {
		r.why, r.news = why, true
	}
}

// quick reports whether answers come soon enough for a pace: another question after the bound is to find out sooner than the
// next round.
func (r *rounds) quick(pace int) bool { return r.trip.bound() <= r.want<<pace/2 }

// reliable reports whether so few questions get lost that a miss means something at a pace.
func (r *rounds) reliable(pace int) bool { return r.falseRate(pace, mostMisses) <= falseMisses }

// falseRate is how many misses a second come of losses if so many in a row are one.
func (r *rounds) falseRate(pace, misses int) float64 {
	return math.Pow(r.share(), float64(misses)) / (r.want << pace).Seconds()
}

// need is how many questions in a row without an answer are a miss.
func (r *rounds) need() int {
	n := fewestMisses
	for n < mostMisses && r.falseRate(r.pace, n) > falseMisses {
		n++
	}
	return n
}

// share is the share of questions that got no answer of late.
func (r *rounds) share() float64 { return r.lost / r.counted }

// every is the time between two rounds.
func (r *rounds) every() time.Duration {
	if r.pace == tooSlow {
		return askIdly
	}
	return r.want << r.pace
}

// bound is how long an answer may take.
func (r *rounds) bound() time.Duration {
	if !r.trip.known {
		return r.every()
	}
	return min(max(r.trip.bound(), leastBound), r.every())
}

// report returns what is to be told, if there is news.
func (r *rounds) report(now time.Duration) (w WatchReport, news bool) {
	if !r.news {
		return w, false
	}
	r.news, r.told = false, now
	w = WatchReport{RoundTrip: r.trip.mean, Lost: r.share(), Why: r.why}
	if r.missed != 0 {
		w.MissedSince = r.first
	}
	if r.why == WatchAnswers || r.why == WatchMissed {
		w.Every = r.every()
	}
	return w, true
}

// smoothedTime is a running mean of times, and of how far they are from it (RFC 6298, section 2).
type smoothedTime struct {
	mean, deviation time.Duration
	known           bool
}

func (s *smoothedTime) observe(d time.Duration) {
	if !s.known {
		*s = smoothedTime{mean: d, deviation: d / 2, known: true}
		return
	}
	s.deviation += ((d - s.mean).Abs() - s.deviation) / 4
	s.mean += (d - s.mean) / 8
}

// bound is what few times exceed.
func (s *smoothedTime) bound() time.Duration { return s.mean + 4*s.deviation }
