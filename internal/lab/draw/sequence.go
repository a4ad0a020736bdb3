package draw

import (
	"fmt"
	"io"
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

// sequence is a sequence diagram: each board has a column, and time runs downwards, not to scale.
type sequence struct {
	*svg.Picture
	r       *Recording
	boards  []*sim.Board
	x       map[*sim.Board]float64
	entries []*entry
	rows    []*row
	foot    float64 // where the boards' lines end
	// late is how far down the copies of messages come for which the time on the way matters.
	late map[copied]float64
}

// copied is the copy of the datagram with a number that is for one board.
type copied struct {
	number uint64
	to     *sim.Board
}

// row is a line of the picture. All that is in it happened at the same time.
type row struct {
	at     election.Instant
	y      float64 // of the arrow, or the middle of the labels
	labels []label
	sent   []*entry // one message, or the same to one board after the other
	across string   // a line of text over all columns, or ""
	fault  bool     // that line is about a fault
}

// label is a text beside or between boards.
type label struct {
	x, left, right float64 // the anchor, and what it covers
	anchor         string
	text, class    string
	title          string
}

// SVG draws the recording. What is behind a label or an arrow in full shows when the mouse rests on it.
func (r *Recording) SVG(w io.Writer, title string) error {
	s := &sequence{
		Picture: &svg.Picture{Title: title, Style: style, Decimals: svg.Exact},
		r:       r, boards: r.lan.Boards(), x: make(map[*sim.Board]float64), entries: r.finished(), late: make(map[copied]float64),
	}
	s.placeBoards()
	s.placeRows()
	s.placeLate()
	s.Tag("rect", "width", "100%", "height", "100%", "fill", svg.Paper.Light)
	s.Text(title, "class", "h", "x", edge, "y", 22)
	s.names(headHeight - 16)
	s.bars()
	s.names(s.foot + 16)
	for _, w := range s.rows {
		if w.sent != nil {
			s.Group(w.sent[0].Text()+w.sent[0].losses(), func() { s.arrows(w) })
		}
		if w.fault {
			s.line(timeWidth, w.y, s.Width-edge, w.y, red, 1, "4 3")
		}
	}
	s.words() // upon the lines of all rows
	s.legend(s.Height - 36)
	return s.Encode(w)
}

func (s *sequence) placeBoards() {
	spacing := 128.0
	switch n := len(s.boards); {
	case n > 10:
		spacing = 92
	case n > 6:
		spacing = 112
	}
	for i, b := range s.boards {
		s.x[b] = timeWidth + 36 + spacing*float64(i)
	}
	s.Width = max(timeWidth+36+spacing*float64(len(s.boards)-1)+rightWidth, leastWidth)
}

// placeRows gives each entry a row. Entries that go together share one.
func (s *sequence) placeRows() {
	y := float64(headHeight)
	var last election.Instant
	next := func(at election.Instant, height, middle float64) *row {
		if len(s.rows) > 0 {
			y += pause(at - last)
		}
		last = at
		w := &row{at: at, y: y + middle}
		y += height
		s.rows = append(s.rows, w)
		return w
	}
	for i := 0; i < len(s.entries); i++ {
		e := s.entries[i]
		switch {
		case e.folded != nil:
			next(e.At, stateHeight, stateHeight/2).across = e.foldedWords()
			last = e.last
		case e.Board == nil:
			w := next(e.At, stateHeight, stateHeight/2)
			w.across, w.fault = e.What, true
		case e.Message != nil:
			w, n := next(e.At, messageHeight, arrowAt), 1
			for i+n < len(s.entries) && s.entries[i+n].joins(s.entries[i+n-1]) {
				n++
			}
			w.sent = s.entries[i : i+n]
			w.labels = []label{s.messageLabel(w.sent)}
			i += n - 1
		case e.Kind == sim.EventAddress && !e.State.Running: // a dead board's address is gone, which goes without saying
		default:
			lab := s.stateLabel(e)
			if n := len(s.rows); n == 0 || s.rows[n-1].at != e.At || !s.rows[n-1].hasRoom(lab) {
				next(e.At, stateHeight, stateHeight/2)
			}
			w := s.rows[len(s.rows)-1]
			w.labels = append(w.labels, lab)
		}
	}
	if note := s.r.missedNote(); note != "" {
		next(last, stateHeight, stateHeight/2).across = note
	}
	s.foot, s.Height = y, y+footHeight
}

// joins reports whether an entry is one of several unicasts with the same words as the one before, which are
// drawn as one: what a multicast would have said.
func (e *entry) joins(before *entry) bool {
	return e.Message != nil && e.To != wire.Nobody && before.To != wire.Nobody && before.Board == e.Board && before.At == e.At &&
		caption(before.Message) == caption(e.Message)
}

// hasRoom reports whether a row has labels only, and none where this one goes.
func (w *row) hasRoom(n label) bool {
	overlaps := func(o label) bool { return n.left < o.right+edge && o.left < n.right+edge }
	return w.sent == nil && w.across == "" && !slices.ContainsFunc(w.labels, overlaps)
}

// pause is the space that a time without events gets: enough to see that it was longer
// than another one, and never much.
func pause(d election.Instant) float64 {
	if d <= 0 {
		return 0
	}
	return math.Round(8 * math.Log10(1+float64(d)/2e5))
}

// messageLabel is what is written above an arrow, on the side to which most of it goes.
func (s *sequence) messageLabel(sent []*entry) label {
	x := s.x[sent[0].Board]
	low, high := x, x
	for _, e := range sent {
		for _, b := range e.Concerned {
			low, high = min(low, s.x[b]), max(high, s.x[b])
		}
	}
	n := label{text: caption(sent[0].Message), class: "m", anchor: "start", x: x + labelGap}
	if len(sent) > 1 {
		n.text += fmt.Sprintf(" ×%d", len(sent))
	}
	if high-x < x-low {
		n.anchor, n.x = "end", x-labelGap
	}
	return s.fit(n)
}

// stateLabel is what is written beside a board.
func (s *sequence) stateLabel(e *entry) label {
	n := label{text: e.brief(), class: "s", anchor: "start", x: s.x[e.Board] + labelGap, title: e.Text()}
	if e.Kind == sim.EventFault {
		n.class = "f"
	}
	return s.fit(n)
}

// fit turns a label to the other side if it would leave the picture, and computes what it covers.
func (s *sequence) fit(n label) label {
	w := svg.TextWidth(n.text)
	if n.anchor == "start" && n.x+w > s.Width-edge {
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

// placeLate finds the copies for which the time on the way matters: a later message of the same board
// overtook them, or they took far longer than most.
func (s *sequence) placeLate() {
	type way struct{ from, to *sim.Board }
	earliest := make(map[way]election.Instant)
	var flights []time.Duration
	each := func(do func(sim.Arrival)) {
		for i := len(s.entries) - 1; i >= 0; i-- {
			for _, c := range s.entries[i].Copies {
				if c.Fate == sim.FateArrived {
					do(c)
				}
			}
		}
	}
	each(func(c sim.Arrival) { flights = append(flights, c.At-c.Sent) })
	slices.Sort(flights)
	each(func(c sim.Arrival) {
		key := way{c.From, c.To}
		first, later := earliest[key]
		if overtaken := later && first < c.At; overtaken || c.At-c.Sent > 4*flights[len(flights)/2] {
			s.late[copied{c.Number, c.To}] = s.yAt(c.At)
		}
		if !later || c.At < first {
			earliest[key] = c.At
		}
	})
}

// yAt is where the first row is that is not earlier.
func (s *sequence) yAt(at election.Instant) float64 {
	for _, w := range s.rows {
		if w.at >= at {
			return w.y
		}
	}
	return s.foot
}

func (s *sequence) names(y float64) {
	s.Text("ms", "class", "t", "x", timeWidth-6, "y", y)
	for _, b := range s.boards {
		s.Text(b.Label, "class", "n", "x", s.x[b], "y", y)
	}
}

// bars draws the boards' lines: what each was when.
func (s *sequence) bars() {
	type begun struct {
		state sim.State
		y     float64
	}
	open := make(map[*sim.Board]begun)
	turn := func(b *sim.Board, state sim.State, y float64) {
		state.Leader = wire.Nobody // it has no colour
		old, drawn := open[b]
		if drawn && old.state == state {
			return
		}
		if drawn && y > old.y {
			s.bar(s.x[b], old.y, y, old.state)
		}
		open[b] = begun{state, y}
	}
	for _, b := range s.boards {
		turn(b, s.r.initial[b], headHeight-8)
	}
	for _, e := range s.entries {
		if e.Board != nil {
			turn(e.Board, e.State, s.yAt(e.At))
		}
	}
	for _, b := range s.boards {
		s.bar(s.x[b], open[b].y, s.foot, open[b].state)
	}
}

// arrows draws a message: a line past all whom it concerns, with a head at each.
func (s *sequence) arrows(w *row) {
	from, stroke := s.x[w.sent[0].Board], colour(w.sent[0].Message.Type)
	each := func(do func(x, y float64, fate sim.Fate)) {
		for _, e := range w.sent {
			for _, b := range e.Concerned {
				do(s.x[b], max(w.y, s.late[copied{e.Number, b}]), e.fate(b))
			}
		}
	}
	low, high := from, from
	each(func(x, y float64, _ sim.Fate) {
		if y == w.y {
			low, high = min(low, x), max(high, x)
		}
	})
	if high > low {
		s.line(low, w.y, high, w.y, stroke, 1.3, "")
	}
	s.Tag("circle", "cx", from, "cy", w.y, "r", 3, "fill", stroke)
	each(func(x, y float64, fate sim.Fate) {
		if y != w.y {
			s.line(from, w.y, x, y, stroke, 1.3, "5 3")
		}
		s.head(from, x, y, stroke, fate)
	})
}

// words writes the times and the labels of all rows.
func (s *sequence) words() {
	said := ""
	for _, w := range s.rows {
		if t := fmt.Sprintf("%.1f", float64(w.at)/1e6); t != said && (w.across == "" || w.fault) {
			s.Text(t, "class", "t", "x", timeWidth-6, "y", w.y+4)
			said = t
		}
		if w.across != "" {
			class := "a"
			if w.fault {
				class = "f"
			}
			s.Text(w.across, "class", class, "x", timeWidth+4, "y", w.y+4)
		}
		for _, n := range w.labels {
			y, style := w.y+4, ""
			if w.sent != nil {
				y, style = w.y-labelAbove, "fill:"+colour(w.sent[0].Message.Type)
			}
			s.Element("text", n.title, n.text, "class", n.class, "x", n.x, "y", y, "text-anchor", n.anchor, "style", style)
		}
	}
}

// legend explains the lines, as far as there is room.
func (s *sequence) legend(y float64) {
	up := sim.State{Running: true, Plugged: true, Role: election.Follower}
	leader, candidate, listener, frozen := up, up, up, up
	leader.Role, candidate.Role, listener.Role = election.Leader, election.Candidate, election.Listener
	leader.Holding, frozen.Frozen = true, true
	stretch := func(state sim.State) func(x, y float64) { return func(x, y float64) { s.bar(x, y-8, y+8, state) } }
	ending := func(fate sim.Fate) func(x, y float64) { return func(x, y float64) { s.head(x-9, x+4, y, "", fate) } }
	x := float64(edge + 8)
	for _, item := range []struct {
		text string
		draw func(x, y float64)
	}{
		{"leader with the address", stretch(leader)},
		{"candidate", stretch(candidate)},
		{"follower", stretch(up)},
		{"listens, or no link", stretch(listener)},
		{"frozen", stretch(frozen)},
		{"off", stretch(sim.State{})},
		{"lost, or cut off", ending(sim.FateLost)},
		{"nobody there", ending(sim.FateDead)},
	} {
		width := 26 + svg.TextWidth(item.text)
		if x+width > s.Width {
			x, y = edge+8, y+stateHeight
		}
		item.draw(x, y)
		s.Text(item.text, "class", "a", "x", x+12, "y", y+4)
		x += 8 + width
	}
}
