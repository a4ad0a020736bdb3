package soak

import (
	"sync"
	"time"
)

// span is a stretch of time in which a board answered. It is shorter than the truth: from when
// the first answer had come until the last question that was answered was sent.
type span struct {
	board    int
	from, to time.Duration // since the record began
}

// sameSpan is how far apart two answers may come and still be of one span. An address that
// goes to another board and comes back takes longer.
const sameSpan = 10 * time.Millisecond

// record is who answered when at one place.
type record struct {
	mu    sync.Mutex
	spans []span
	last  map[int]lastAnswer // of each board
}

// lastAnswer is the newest answer of a board.
type lastAnswer struct {
	came time.Duration
	span int // its place among the spans
}

// add notes that a board has answered a question.
func (r *record) add(board int, asked, came time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, before := r.last[board]
	if !before || came-last.came > sameSpan {
		last.span = len(r.spans)
		r.spans = append(r.spans, span{board, came, came})
	}
	s := &r.spans[last.span]
	s.to = max(s.to, asked)
	last.came = max(last.came, came)
	if r.last == nil {
		r.last = map[int]lastAnswer{}
	}
	r.last[board] = last
}

// take returns what was noted since the last call.
func (r *record) take() []span {
	r.mu.Lock()
	defer r.mu.Unlock()
	spans := r.spans
	r.spans, r.last = nil, nil
	return spans
}

// overlap is a time in which two boards answered.
type overlap struct {
	boards   [2]int
	from, to time.Duration
}

func (o overlap) duration() time.Duration { return o.to - o.from }

// longestOverlap returns the longest time in which two boards answered; the zero value if there
// was none.
func longestOverlap(spans []span) (longest overlap) {
	for i, a := range spans {
		for _, b := range spans[:i] {
			o := overlap{[2]int{min(a.board, b.board), max(a.board, b.board)}, max(a.from, b.from), min(a.to, b.to)}
			if a.board != b.board && o.duration() > longest.duration() {
				longest = o
			}
		}
	}
	return longest
}
