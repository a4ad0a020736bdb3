package observe

import (
	"fmt"
	"math"
	"sort"
	"time"
)

// Report is what a user at the client would tell about a stretch of time.
type Report struct {
	Since, Until time.Time // Since is later than asked for if answers were forgotten

	// Longest is the longest gap between two consecutive answers. It may
	// have begun before Since.
	Longest Gap

	// Outage is the longest of the gaps that are worth a mention: those longer than two
	// intervals, and those after which another board answered. It is zero if there is none.
	Outage Gap

	// Waited is the longest that the asker waited for an answer after it had asked,
	// plus an interval, since what went wrong may have done so right after the question
	// before. Unlike Longest it does not count the time in which it did not ask.
	Waited time.Duration

	// Unanswered is the sum of all gaps longer than two intervals.
	Unanswered time.Duration

	// Answers counts them per board.
	Answers map[int]int

	// First is the first answer at or after Since; its Board is 0 if there is none.
	First Answer

	// Pause is the longest time in which the asker itself did not get to
	// ask, because the machine was busy; zero if it was never late by more
	// than an interval. A gap that is no longer says nothing about the LAN.
	Pause time.Duration
}

// Answer is one answer.
type Answer struct {
	Board int
	At    time.Time
}

// Gap is the time between two consecutive answers.
type Gap struct {
	From, To time.Time
	Before   int // the board that answered last; 0 if none had
	After    int // the board that answered next; 0 if none has yet

	// Paused is the longest time within it in which the asker itself did not get to ask,
	// because the machine was busy. That much of it says nothing about the boards.
	Paused time.Duration
}

// Duration returns the length of the gap.
func (g Gap) Duration() time.Duration { return g.To.Sub(g.From) }

// report evaluates what happened between since and until.
func (l *askLog) report(since, until time.Time, interval time.Duration) Report {
	known := time.Duration(0) // before, nothing is known
	if l.dropped > 0 {
		known = l.answers[0].at
	}
	from, to := max(since.Sub(l.start), known), until.Sub(l.start)
	r := Report{Since: l.start.Add(from), Until: until, Answers: map[int]int{}}

	// The gap that is open at `from` began with the answer before it.
	i := sort.Search(len(l.answers), func(i int) bool { return l.answers[i].at >= from })
	last := answer{at: known}
	if i > 0 {
		last = l.answers[i-1]
	}
	for _, a := range l.answers[i:] {
		if a.at > to {
			break
		}
		if r.First.Board == 0 {
			r.First = Answer{int(a.board), l.start.Add(a.at)}
		}
		r.Answers[int(a.board)]++
		r.addGap(l, last, a, interval)
		if a.waited > 0 {
			r.Waited = max(r.Waited, time.Duration(a.waited)*time.Microsecond+interval)
		}
		last = a
	}
	if l.asked > 0 && l.asked < to {
		r.Waited = max(r.Waited, to-max(l.asked, from)+interval)
	}
	r.addGap(l, last, answer{at: to}, interval)

	r.Pause = l.pausedWithin(from, to)
	return r
}

// addGap takes the time between two answers into account.
func (r *Report) addGap(l *askLog, a, b answer, interval time.Duration) {
	d := b.at - a.at
	if d > 2*interval {
		r.Unanswered += d
	}
	if d > r.Longest.Duration() || r.Longest == (Gap{}) {
		r.Longest = l.gap(a, b)
	}
	if d > r.Outage.Duration() && worthMention(a, b, interval) {
		r.Outage = l.gap(a, b)
	}
}

// worthMention reports whether there may have been an outage between two answers. The second
// one is of board 0 if it has not come yet.
func worthMention(a, b answer, interval time.Duration) bool {
	return b.at-a.at > 2*interval || b.board != 0 && b.board != a.board
}

// gap returns the gap between two answers.
func (l *askLog) gap(a, b answer) Gap {
	return Gap{
		From: l.start.Add(a.at), To: l.start.Add(b.at),
		Before: int(a.board), After: int(b.board),
		Paused: l.pausedWithin(a.at, b.at),
	}
}

// pausedWithin returns the longest pause of which a part lies between two points in time.
func (l *askLog) pausedWithin(from, to time.Duration) (longest time.Duration) {
	for _, p := range l.pauses {
		if p.to > from && p.from < to {
			longest = max(longest, p.to-p.from)
		}
	}
	return longest
}

// gaps returns the gaps after the first n answers of all time that are worth a mention.
func (l *askLog) gaps(n int, interval time.Duration) (gaps []Gap) {
	next := max(0, n-l.dropped)
	if next == 0 && l.dropped > 0 {
		next = 1 // what was before the first is forgotten
	}
	var last answer // at the start, by nobody
	if next > 0 {
		last = l.answers[next-1]
	}
	for _, a := range l.answers[next:] {
		if worthMention(last, a, interval) {
			gaps = append(gaps, l.gap(last, a))
		}
		last = a
	}
	return gaps
}

// Percentile returns the nearest-rank percentile of times in ascending order: the smallest of them that at least p percent of
// all are not above. With p = 50 it is the median (of an even number the lower of the two in the middle), with p = 100 the
// longest. p is from 1 to 100. Of no times, it is 0.
func Percentile(ascending []time.Duration, p int) time.Duration {
	if len(ascending) == 0 {
		return 0
	}
	return ascending[(p*len(ascending)+99)/100-1]
}

const (
	// maxAnswers bounds the memory of an Asker to about 8 MB: almost nine
	// minutes at an answer per millisecond.
	maxAnswers = 1 << 19

	// maxPauses bounds the number of pauses that are remembered.
	maxPauses = 1 << 12
)

// answer is an Answer in 16 bytes.
type answer struct {
	at     time.Duration // since askLog.start
	board  int32
	waited uint32 // µs since the first question after the answer before
}

// pause is a time without questions.
type pause struct{ from, to time.Duration }

// askLog is all that an Asker knows. Elements of its slices are never
// changed once they are written, so a copy of the struct is a snapshot.
type askLog struct {
	start   time.Time
	end     time.Time // zero while the asking goes on
	answers []answer
	dropped int // answers that were forgotten
	pauses  []pause
	// asked is when the first question since the newest answer was asked, since start; 0
	// for none.
	asked time.Duration
}

// add notes an answer, and forgets the older half when there are too many.
func (l *askLog) add(at time.Time, board int) {
	if len(l.answers) == maxAnswers {
		l.answers = append(make([]answer, 0, maxAnswers), l.answers[maxAnswers/2:]...)
		l.dropped += maxAnswers / 2
	}
	a := answer{at: at.Sub(l.start), board: int32(board)}
	if l.asked > 0 {
		a.waited = uint32(min((a.at - l.asked).Microseconds(), math.MaxUint32))
		l.asked = 0
	}
	l.answers = append(l.answers, a)
}

// ask notes a question.
func (l *askLog) ask(at time.Time) {
	if l.asked == 0 {
		l.asked = at.Sub(l.start)
	}
}

// addPause notes that nothing was asked between two points in time.
func (l *askLog) addPause(from, to time.Time) {
	if len(l.pauses) == maxPauses {
		l.pauses = append(make([]pause, 0, maxPauses), l.pauses[maxPauses/2:]...)
	}
	l.pauses = append(l.pauses, pause{from.Sub(l.start), to.Sub(l.start)})
}

// until returns when the log ends, which is now while the asking goes on.
func (l *askLog) until() time.Time {
	if l.end.IsZero() {
		return time.Now()
	}
	return l.end
}

// total returns the number of answers of all time.
func (l *askLog) total() int { return l.dropped + len(l.answers) }

// from returns the answers after the first n of all time.
func (l *askLog) from(n int) []answer { return l.answers[max(0, n-l.dropped):] }

// Millis writes a time in milliseconds, as people read it.
func Millis(d time.Duration) string {
	if ms := float64(d) / float64(time.Millisecond); ms < 9.95 && d != 0 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
