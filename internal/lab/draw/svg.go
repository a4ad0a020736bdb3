package draw

import (
	"fmt"
	"io"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/internal/lab/svg"
	"topdog/wire"
)

// The colours of lines. Those of words are among them.
var (
	grey    = "#9aa0a6"
	pale    = "#b9bec4"
	orange  = svg.Orange.Dark // a line may be as bright as it likes, also on white
	brown   = svg.Orange.Light
	green   = svg.Green.Light
	blue    = svg.Blue.Light
	purple  = svg.Purple.Light
	red     = svg.Red.Light
	address = "#a6dcc9" // the bar of who holds it
)

// colour tells messages apart by what they do in an election.
func colour(t wire.Type) string {
	switch t {
	case wire.TypeElection, wire.TypeStart, wire.TypeCollect, wire.TypeVote:
		return brown
	case wire.TypeAnswer, wire.TypeOK, wire.TypeAck, wire.TypeReport, wire.TypeSupport, wire.TypeGrant:
		return green
	case wire.TypeCoordinator, wire.TypeLeader:
		return blue
	case wire.TypeResign, wire.TypeHalt:
		return purple
	default:
		return svg.Faint.Light
	}
}

// style gives words a white rim, since they may stand upon lines.
var style = svg.TextStyle(11, `;paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round`) +
	`.t{fill:` + svg.Faint.Light + `;text-anchor:end}.h{font-weight:bold;font-size:13px}.n{font-weight:bold;text-anchor:middle}` +
	`.f{fill:` + red + `;font-weight:bold}.a{fill:` + svg.Faint.Light + `;font-style:italic}`

// SVG draws the recording: boards as columns, time downwards, not to scale. What is
// behind a label or an arrow in full shows when the mouse rests on it.
func (r *Recording) SVG(w io.Writer, title string) error {
	l := newLayout(r)
	d := &drawing{
		Picture: &svg.Picture{Title: title, Style: style, Width: l.width, Height: l.height, Decimals: svg.Exact},
		l:       l,
	}
	d.Tag("rect", "width", "100%", "height", "100%", "fill", svg.Paper.Light)
	d.Text(title, "class", "h", "x", edge, "y", 22)
	d.names(headHeight - 16)
	for _, b := range l.bars {
		d.bar(b)
	}
	d.names(l.height - footHeight + 16)
	d.lines()
	d.words()
	d.legend(l.height - 36)
	return d.Encode(w)
}

type drawing struct {
	*svg.Picture
	l *layout
}

func (d *drawing) names(y float64) {
	d.Text("ms", "class", "t", "x", timeWidth-6, "y", y)
	for _, b := range d.l.boards {
		d.Text(b.Label, "class", "n", "x", d.l.x[b], "y", y)
	}
}

// line draws a line with a pattern of dashes and gaps, or without one.
func (d *drawing) line(x1, y1, x2, y2 float64, stroke string, width float64, dashes string) {
	attributes := []any{"x1", x1, "y1", y1, "x2", x2, "y2", y2, "stroke", stroke, "stroke-width", width}
	if dashes != "" {
		attributes = append(attributes, "stroke-dasharray", dashes)
	}
	d.Tag("line", attributes...)
}

// bar draws a stretch of a board's line: the address as a wide bar behind it, and its
// role as colour and width.
func (d *drawing) bar(b bar) {
	s := b.state
	if s.Holding {
		d.Tag("rect", "x", b.x-7, "y", b.from, "width", 14, "height", b.until-b.from, "fill", address)
	}
	stroke, width, dashes := grey, 2.0, ""
	switch {
	case !s.Running:
		stroke, width, dashes = pale, 1.5, "1 5"
	case s.Role == election.Leader:
		stroke, width = blue, 5
	case s.Role == election.Candidate:
		stroke, width = orange, 5
	case s.Role == election.Barred:
		stroke, width = red, 2
	case s.Role != election.Follower: // listens, or has no link
		dashes = "6 3"
	}
	if s.Running && (s.Frozen || !s.Plugged || s.Muted) {
		dashes = "2 4"
		if s.Frozen {
			stroke = purple
		}
	}
	d.line(b.x, b.from, b.x, b.until, stroke, width, dashes)
}

// lines draws the lines of all rows. Words are on top of them, so those come later.
func (d *drawing) lines() {
	for _, w := range d.l.rows {
		if w.arrows != nil {
			d.Group(w.arrows.detail, func() { d.arrows(w) })
		}
		if w.fault {
			d.line(timeWidth, w.y, d.l.width-edge, w.y, red, 1, "4 3")
		}
	}
}

// words writes the times and the labels of all rows.
func (d *drawing) words() {
	said := ""
	for _, w := range d.l.rows {
		if t := fmt.Sprintf("%.1f", float64(w.at)/1e6); t != said && (w.across == "" || w.fault) {
			d.Text(t, "class", "t", "x", timeWidth-6, "y", w.y+4)
			said = t
		}
		if w.across != "" {
			class := "a"
			if w.fault {
				class = "f"
			}
			d.Text(w.across, "class", class, "x", timeWidth+4, "y", w.y+4)
		}
		for _, n := range w.labels {
			d.label(w, n)
		}
	}
}

func (d *drawing) label(w *row, n label) {
	attributes := []any{"class", n.class, "x", n.x, "y", w.y + 4, "text-anchor", n.anchor}
	if w.arrows != nil {
		attributes = []any{"class", n.class, "x", n.x, "y", w.y - labelAbove, "text-anchor", n.anchor, "style", "fill:" + w.arrows.colour}
	}
	d.Element("text", n.title, n.text, attributes...)
}

// arrows draws a message: a line past all whom it concerns, with a head at each.
func (d *drawing) arrows(w *row) {
	a := w.arrows
	low, top := a.from, a.from
	for _, h := range a.heads {
		if h.y == w.y {
			low, top = min(low, h.x), max(top, h.x)
		}
	}
	if top > low {
		d.line(low, w.y, top, w.y, a.colour, 1.3, "")
	}
	d.Tag("circle", "cx", a.from, "cy", w.y, "r", 3, "fill", a.colour)
	for _, h := range a.heads {
		if h.y != w.y {
			d.line(a.from, w.y, h.x, h.y, a.colour, 1.3, "5 3")
		}
		d.head(a, h)
	}
}

func (d *drawing) head(a *arrows, h head) {
	back := -9.0 // towards the sender
	if h.x < a.from {
		back = 9
	}
	tip := d.Path("M", h.x, " ", h.y, "l", back, " -4v8z")
	switch h.fate {
	case sim.FateArrived:
		d.Tag("path", "d", tip, "fill", a.colour)
	case sim.FateWaits: // hollow: it has not been received
		d.Tag("path", "d", tip, "fill", svg.Paper.Light, "stroke", a.colour)
	default:
		stroke := red
		if h.fate == sim.FateDead {
			stroke = grey
		}
		cross := d.Path("M", h.x+back/2-4, " ", h.y-4, "l8 8m0 -8l-8 8")
		d.Tag("path", "d", cross, "stroke", stroke, "stroke-width", 2, "fill", "none")
	}
}

// legend explains the lines, as far as there is room.
func (d *drawing) legend(y float64) {
	x := float64(edge + 8)
	item := func(text string, draw func(x, y float64)) {
		if width := 26 + svg.TextWidth(text); x+width > d.l.width {
			x, y = edge+8, y+stateHeight
		}
		draw(x, y)
		d.Text(text, "class", "a", "x", x+12, "y", y+4)
		x += 34 + svg.TextWidth(text)
	}
	stretch := func(s sim.State) func(x, y float64) {
		return func(x, y float64) { d.bar(bar{x: x, from: y - 8, until: y + 8, state: s}) }
	}
	up := sim.State{Running: true, Plugged: true, Role: election.Follower}
	leader, candidate, listener, frozen := up, up, up, up
	leader.Role, leader.Holding, candidate.Role, listener.Role, frozen.Frozen = election.Leader, true, election.Candidate, election.Listener, true
	item("leader with the address", stretch(leader))
	item("candidate", stretch(candidate))
	item("follower", stretch(up))
	item("listens, or no link", stretch(listener))
	item("frozen", stretch(frozen))
	item("off", stretch(sim.State{}))
	item("lost, or cut off", func(x, y float64) { d.head(&arrows{from: x - 9}, head{x: x + 4, y: y, fate: sim.FateLost}) })
	item("nobody there", func(x, y float64) { d.head(&arrows{from: x - 9}, head{x: x + 4, y: y, fate: sim.FateDead}) })
}
