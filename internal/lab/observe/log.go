package observe

import (
	"math"
	"time"
)

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
