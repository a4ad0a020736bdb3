package draw

import (
	"fmt"
	"math"
	"slices"
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/internal/lab/svg"
	"topdog/wire"
)

// All lengths are in SVG's user units, which are pixels unless somebody zooms.
const (
	timeWidth  = 74  // the column of times
	rightWidth = 130 // behind the last board, for its labels
	headHeight = 62  // title and names
	footHeight = 84  // names again, and the legend
	leastWidth = 600 // for the legend
	edge       = 8   // what stays free at the rims

	messageHeight = 24 // of a row with an arrow and its label above it
	arrowAt       = 19 // of the arrow in its row
	labelAbove    = 5  // of the label's baseline above the arrow
	stateHeight   = 18 // of a row with labels beside the boards

	labelGap = 10 // between a board's line and the labels beside it
)

// row is a line of the picture. All that is in it happened at the same time.
type row struct {
	at     election.Instant
	y      float64 // of the arrow, or the middle of the labels
	labels []label
	arrows *arrows // or nil
	across string  // a line of text over all columns, or ""
	fault  bool    // that line is about a fault
}

// label is a text beside or between boards.
type label struct {
	x, left, right float64 // the anchor, and what it covers
	anchor         string
	text, class    string
	title          string
}

// arrows are one message to one or more boards.
type arrows struct {
	from     float64
	colour   string
	heads    []head
	detail   string
	low, top float64 // the x of the outermost boards, the sender among them
}

// head is where an arrow ends.
type head struct {
	x    float64
	y    float64 // another one than the row's, if it was overtaken
	fate sim.Fate
}

// bar is a stretch of one board's line.
type bar struct {
	x, from, until float64
	state          sim.State
}

// layout is where everything goes.
type layout struct {
	r             *Recording
	boards        []*sim.Board
	x             map[*sim.Board]float64
	width, height float64
	rows          []*row
	bars          []bar
	rowOf         map[uint64]*row // of datagrams by their number
}

func newLayout(r *Recording) *layout {
	l := &layout{r: r, boards: r.lan.Boards(), x: make(map[*sim.Board]float64), rowOf: make(map[uint64]*row)}
	spacing := 128.0
	switch n := len(l.boards); {
	case n > 10:
		spacing = 92
	case n > 6:
		spacing = 112
	}
	for i, b := range l.boards {
		l.x[b] = timeWidth + 36 + spacing*float64(i)
	}
	l.width = max(timeWidth+36+spacing*float64(len(l.boards)-1)+rightWidth, leastWidth)
	entries := r.finished()
	l.placeRows(entries)
	l.placeLate(entries)
	l.placeBars(entries)
	return l
}

// placeRows gives each entry a row. Entries that go together share one.
func (l *layout) placeRows(entries []entry) {
	y := float64(headHeight)
	var last election.Instant
	next := func(at election.Instant, height, middle float64) *row {
		if len(l.rows) > 0 {
			y += pause(at - last)
		}
		last = at
		w := &row{at: at, y: y + middle}
		y += height
		l.rows = append(l.rows, w)
		return w
	}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.fold.total() > 0:
			w := next(e.At, stateHeight, stateHeight/2)
			w.across = e.fold.String()
			last = e.fold.last
		case e.Board == nil:
			w := next(e.At, stateHeight, stateHeight/2)
			w.across, w.fault = e.What, true
		case e.Message != nil:
			if l.joins(entries, i) {
				l.addHeads(l.lastRow(), e)
			} else {
				l.addMessage(next(e.At, messageHeight, arrowAt), entries[i:])
			}
			l.rowOf[e.Number] = l.lastRow()
		default:
			lab, shown := l.stateLabel(e)
			if !shown {
				continue
			}
			if w := l.lastRow(); w != nil && w.at == e.At && w.hasRoom(lab) {
				w.labels = append(w.labels, lab)
				continue
			}
			w := next(e.At, stateHeight, stateHeight/2)
			w.labels = append(w.labels, lab)
		}
	}
	if note := l.r.missedNote(); note != "" {
		next(last, stateHeight, stateHeight/2).across = note
	}
	l.height = y + footHeight
}

func (l *layout) lastRow() *row {
	if len(l.rows) == 0 {
		return nil
	}
	return l.rows[len(l.rows)-1]
}

// hasRoom reports whether a row has labels only, and none where this one goes.
func (w *row) hasRoom(n label) bool {
	if w.arrows != nil || w.across != "" {
		return false
	}
	return !slices.ContainsFunc(w.labels, func(o label) bool { return n.left < o.right+edge && o.left < n.right+edge })
}

// pause is the space that a time without events gets: enough to see that it was longer
// than another one, and never much.
func pause(d election.Instant) float64 {
	if d <= 0 {
		return 0
	}
	return math.Round(8 * math.Log10(1+float64(d)/2e5))
}

// joins reports whether a message is one of several unicasts with the same words, which are
// drawn as one: what a multicast would have said.
func (l *layout) joins(entries []entry, i int) bool {
	if i == 0 || entries[i].To == wire.Nobody {
		return false
	}
	a, b := &entries[i-1], &entries[i]
	return a.Message != nil && a.To != wire.Nobody && a.Board == b.Board && a.At == b.At && caption(a.Message) == caption(b.Message)
}

// addMessage draws the first of some entries, and labels it.
func (l *layout) addMessage(w *row, entries []entry) {
	e := &entries[0]
	x := l.x[e.Board]
	w.arrows = &arrows{from: x, colour: colour(e.Message.Type), low: x, top: x, detail: e.Text() + e.losses()}
	l.addHeads(w, e)
	text, n := caption(e.Message), 1
	for n < len(entries) && l.joins(entries, n) {
		n++
	}
	low, top := w.arrows.low, w.arrows.top
	if n > 1 {
		text += fmt.Sprintf(" ×%d", n)
		for i := range entries[:n] {
			for _, b := range l.boards {
				if entries[i].concerns(b) {
					low, top = min(low, l.x[b]), max(top, l.x[b])
				}
			}
		}
	}
	lab := label{text: text, class: "m", anchor: "start", x: x + labelGap}
	if top-x < x-low {
		lab.anchor, lab.x = "end", x-labelGap
	}
	w.labels = append(w.labels, l.fit(lab))
}

// addHeads adds the ends of a message's arrows.
func (l *layout) addHeads(w *row, e *entry) {
	for _, b := range l.boards {
		if !e.concerns(b) {
			continue
		}
		h := head{x: l.x[b], y: w.y, fate: e.fate(b)}
		w.arrows.heads = append(w.arrows.heads, h)
		w.arrows.low, w.arrows.top = min(w.arrows.low, h.x), max(w.arrows.top, h.x)
	}
}

// fate is the best that became of a board's copies.
func (e *entry) fate(b *sim.Board) sim.Fate {
	best := sim.FateLost
	for _, c := range e.copies {
		if c.To == b && c.Fate != sim.FateReplay {
			if c.Fate == sim.FateArrived || c.Fate == sim.FateWaits {
				return c.Fate
			}
			best = c.Fate
		}
	}
	return best
}

// stateLabel is what is written beside a board. A dead board's address is gone, which
// goes without saying.
func (l *layout) stateLabel(e *entry) (label, bool) {
	if e.Kind == sim.EventAddress && !e.State.Running {
		return label{}, false
	}
	class := "s"
	if e.Kind == sim.EventFault {
		class = "f"
	}
	x := l.x[e.Board]
	return l.fit(label{text: e.brief(), class: class, anchor: "start", x: x + labelGap, title: e.Text()}), true
}

// fit turns a label to the other side if it would leave the picture, and computes what it covers.
func (l *layout) fit(n label) label {
	w := svg.TextWidth(n.text)
	if n.anchor == "start" && n.x+w > l.width-edge {
		n.anchor, n.x = "end", n.x-2*labelGap
	}
	if n.anchor == "end" && n.x-w < timeWidth {
		n.anchor, n.x = "start", timeWidth
	}
	n.left, n.right = n.x, n.x+w
	if n.anchor == "end" {
		n.left, n.right = n.x-w, n.x
	}
	return n
}

// placeLate bends the arrows of copies for which the time on the way matters: a
// later message of the same board overtook them, or they took far longer than most.
func (l *layout) placeLate(entries []entry) {
	type way struct{ from, to *sim.Board }
	earliest := make(map[way]election.Instant)
	long := 4 * medianFlight(entries)
	for i := len(entries) - 1; i >= 0; i-- {
		for _, c := range entries[i].copies {
			if c.Fate != sim.FateArrived {
				continue
			}
			key := way{c.From, c.To}
			first, later := earliest[key]
			if overtaken := later && first < c.At; overtaken || c.At-c.Sent > long {
				l.rowOf[c.Number].bend(l.x[c.To], l.yAt(c.At))
			}
			if !later || c.At < first {
				earliest[key] = c.At
			}
		}
	}
}

// medianFlight is how long a copy is on the way, as a rule.
func medianFlight(entries []entry) time.Duration {
	var flights []time.Duration
	for i := range entries {
		for _, c := range entries[i].copies {
			if c.Fate == sim.FateArrived {
				flights = append(flights, c.At-c.Sent)
			}
		}
	}
	if len(flights) == 0 {
		return 0
	}
	slices.Sort(flights)
	return flights[len(flights)/2]
}

func (w *row) bend(x, y float64) {
	for i := range w.arrows.heads {
		if w.arrows.heads[i].x == x {
			w.arrows.heads[i].y = max(y, w.y)
		}
	}
}

// yAt is where the first row is that is not earlier.
func (l *layout) yAt(at election.Instant) float64 {
	for _, w := range l.rows {
		if w.at >= at {
			return w.y
		}
	}
	return l.height - footHeight
}

// drawn leaves out of a state what has no colour.
func drawn(s sim.State) sim.State {
	s.Leader = wire.Nobody
	return s
}

// placeBars draws the boards' lines: what each was when.
func (l *layout) placeBars(entries []entry) {
	bottom := l.height - footHeight
	open := make(map[*sim.Board]bar)
	for _, b := range l.boards {
		open[b] = bar{x: l.x[b], from: headHeight - 8, state: drawn(l.r.initial[b])}
	}
	turn := func(b *sim.Board, state sim.State, y float64) {
		old := open[b]
		if old.state == state {
			return
		}
		old.until = y
		if old.until > old.from {
			l.bars = append(l.bars, old)
		}
		open[b] = bar{x: old.x, from: y, state: state}
	}
	for i := range entries {
		if e := &entries[i]; e.Board != nil {
			turn(e.Board, drawn(e.State), l.yAt(e.At))
		}
	}
	for _, b := range l.boards {
		last := open[b]
		last.until = bottom
		l.bars = append(l.bars, last)
	}
}
