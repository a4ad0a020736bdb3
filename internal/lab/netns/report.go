package netns

import (
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

	// Waited is the longest that the prober waited for an answer after it had asked,
	// plus an interval, since what went wrong may have done so right after the question
	// before. Unlike Longest it does not count the time in which it did not ask.
	Waited time.Duration

	// Unanswered is the sum of all gaps longer than two intervals.
	Unanswered time.Duration

	// Answers counts them per board.
	Answers map[int]int

	// First is the first answer at or after Since; its Board is 0 if there is none.
	First Answer

	// Pause is the longest time in which the prober itself did not get to
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
}

// Duration returns the length of the gap.
func (g Gap) Duration() time.Duration { return g.To.Sub(g.From) }

const (
	// maxAnswers bounds the memory of a Prober to about 8 MB: almost nine
	// minutes at an answer per millisecond.
	maxAnswers = 1 << 19

	// maxPauses bounds the number of pauses that are remembered.
	maxPauses = 1 << 12
)

// answer is an Answer in 16 bytes.
type answer struct {
	at     time.Duration // since probeLog.start
	board  int32
	waited uint32 // µs since the first question after the answer before
}

// pause is a time without questions.
type pause struct{ from, to time.Duration }

// probeLog is all that a Prober knows. Elements of its slices are never
// changed once they are written, so a copy of the struct is a snapshot.
type probeLog struct {
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
func (l *probeLog) add(at time.Time, board int) {
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
func (l *probeLog) ask(at time.Time) {
	if l.asked == 0 {
		l.asked = at.Sub(l.start)
	}
}

// addPause notes that nothing was asked between two points in time.
func (l *probeLog) addPause(from, to time.Time) {
	if len(l.pauses) == maxPauses {
		l.pauses = append(make([]pause, 0, maxPauses), l.pauses[maxPauses/2:]...)
	}
	l.pauses = append(l.pauses, pause{from.Sub(l.start), to.Sub(l.start)})
}

// total returns the number of answers of all time.
func (l *probeLog) total() int { return l.dropped + len(l.answers) }

// from returns the answers after the first n of all time.
func (l *probeLog) from(n int) []answer { return l.answers[max(0, n-l.dropped):] }

// report evaluates what happened between since and until.
func (l *probeLog) report(since, until time.Time, interval time.Duration) Report {
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
		r.addGap(l.start, last, a, interval)
		if a.waited > 0 {
			r.Waited = max(r.Waited, time.Duration(a.waited)*time.Microsecond+interval)
		}
		last = a
	}
	if l.asked > 0 && l.asked < to {
		r.Waited = max(r.Waited, to-max(l.asked, from)+interval)
	}
	r.addGap(l.start, last, answer{at: to}, interval)

	for _, p := range l.pauses {
		if p.to > from && p.from < to {
			r.Pause = max(r.Pause, p.to-p.from)
		}
	}
	return r
}

// addGap takes the time between two answers into account.
func (r *Report) addGap(start time.Time, a, b answer, interval time.Duration) {
	d := b.at - a.at
	if d > 2*interval {
		r.Unanswered += d
	}
	if d > r.Longest.Duration() || r.Longest == (Gap{}) {
		r.Longest = Gap{start.Add(a.at), start.Add(b.at), int(a.board), int(b.board)}
	}
}
