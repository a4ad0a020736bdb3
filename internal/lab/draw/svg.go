package draw

import (
	"bufio"
	"fmt"
	"html"
	"io"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The colours are those of Okabe and Ito, which colour-blind people can tell apart,
// some of them darker so that words in them are legible on white.
const (
	black   = "#222222"
	grey    = "#9aa0a6"
	pale    = "#b9bec4"
	orange  = "#e69f00"
	brown   = "#a85b00"
	green   = "#00795a"
	blue    = "#0072b2"
	purple  = "#8a3d73"
	red     = "#c03a00"
	address = "#a6dcc9" // the bar of who holds it
)

// colour tells messages apart by what they do in an election.
func colour(t wire.Type) string {
	switch t {
	case wire.TypeElection, wire.TypeStart, wire.TypeCollect:
		return brown
	case wire.TypeAnswer, wire.TypeOK, wire.TypeAck, wire.TypeReport:
		return green
	case wire.TypeCoordinator, wire.TypeLeader:
		return blue
	case wire.TypeResign, wire.TypeHalt:
		return purple
	default:
		return "#5f6368"
	}
}

const style = `text{font:11px "DejaVu Sans",Verdana,sans-serif;fill:#222222;paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}` +
	`.t{fill:#5f6368;text-anchor:end}.h{font-weight:bold;font-size:13px}.n{font-weight:bold;text-anchor:middle}` +
	`.f{fill:#c03a00;font-weight:bold}.a{fill:#5f6368;font-style:italic}`

// SVG draws the recording: boards as columns, time downwards, not to scale. What is
// behind a label or an arrow in full shows when the mouse rests on it.
func (r *Recording) SVG(w io.Writer, title string) error {
	l := lay(r)
	d := &drawing{Writer: bufio.NewWriter(w), l: l}
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" role="img">`+"\n",
		l.width, l.height, l.width, l.height)
	d.put("<title>%s</title>\n<style>%s</style>\n", esc(title), style)
	d.put(`<rect width="100%%" height="100%%" fill="#ffffff"/>` + "\n")
	d.put(`<text class="h" x="%d" y="22">%s</text>`+"\n", edge, esc(title))
	d.names(headHeight - 16)
	for _, b := range l.bars {
		d.bar(b)
	}
	d.names(l.height - footHeight + 16)
	d.rows()
	d.legend(l.height - 36)
	d.put("</svg>\n")
	return d.Flush()
}

type drawing struct {
	*bufio.Writer
	l *layout
}

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// esc is enough for XML as well: html writes quotes as numbers.
func esc(s string) string { return html.EscapeString(s) }

func (d *drawing) names(y float64) {
	d.put(`<text class="t" x="%d" y="%g">ms</text>`+"\n", timeWidth-6, y)
	for _, b := range d.l.boards {
		d.put(`<text class="n" x="%g" y="%g">%s</text>`+"\n", d.l.x[b], y, esc(b.Label))
	}
}

func (d *drawing) line(x1, y1, x2, y2 float64, stroke string, width float64, more string) {
	d.put(`<line x1="%g" y1="%g" x2="%g" y2="%g" stroke="%s" stroke-width="%g"%s/>`+"\n", x1, y1, x2, y2, stroke, width, more)
}

// bar draws a stretch of a board's line: the address as a wide bar behind it, and its
// role as colour and width.
func (d *drawing) bar(b bar) {
	s := b.state
	if s.Holding {
		d.put(`<rect x="%g" y="%g" width="14" height="%g" fill="%s"/>`+"\n", b.x-7, b.from, b.until-b.from, address)
	}
	stroke, width, more := grey, 2.0, ""
	switch {
	case !s.Running:
		stroke, width, more = pale, 1.5, ` stroke-dasharray="1 5"`
	case s.Role == election.Leader:
		stroke, width = blue, 5
	case s.Role == election.Candidate:
		stroke, width = orange, 5
	case s.Role == election.Barred:
		stroke, width = red, 2
	case s.Role != election.Follower: // listens, or has no link
		more = ` stroke-dasharray="6 3"`
	}
	if s.Running && (s.Frozen || !s.Plugged || s.Muted) {
		more = ` stroke-dasharray="2 4"`
		if s.Frozen {
			stroke = purple
		}
	}
	d.line(b.x, b.from, b.x, b.until, stroke, width, more)
}

func (d *drawing) rows() {
	// Lines first: words are to be on top of them.
	for _, w := range d.l.rows {
		if w.arrows != nil {
			d.arrows(w)
		}
		if w.fault {
			d.line(timeWidth, w.y, d.l.width-edge, w.y, red, 1, ` stroke-dasharray="4 3"`)
		}
	}
	said := ""
	for _, w := range d.l.rows {
		if t := fmt.Sprintf("%.1f", float64(w.at)/1e6); t != said && (w.across == "" || w.fault) {
			d.put(`<text class="t" x="%d" y="%g">%s</text>`+"\n", timeWidth-6, w.y+4, t)
			said = t
		}
		if w.across != "" {
			class := "a"
			if w.fault {
				class = "f"
			}
			d.put(`<text class="%s" x="%d" y="%g">%s</text>`+"\n", class, timeWidth+4, w.y+4, esc(w.across))
		}
		for _, n := range w.labels {
			d.label(w, n)
		}
	}
}

func (d *drawing) label(w *row, n label) {
	y, fill := w.y+4, ""
	if w.arrows != nil {
		y, fill = w.y-labelAbove, fmt.Sprintf(` style="fill:%s"`, w.arrows.colour)
	}
	title := ""
	if n.title != "" {
		title = "<title>" + esc(n.title) + "</title>"
	}
	d.put(`<text class="%s" x="%g" y="%g" text-anchor="%s"%s>%s%s</text>`+"\n", n.class, n.x, y, n.anchor, fill, title, esc(n.text))
}

// arrows draws a message: a line past all whom it concerns, with a head at each.
func (d *drawing) arrows(w *row) {
	a := w.arrows
	d.put("<g><title>%s</title>\n", esc(a.detail))
	low, top := a.from, a.from
	for _, h := range a.heads {
		if h.y == w.y {
			low, top = min(low, h.x), max(top, h.x)
		}
	}
	if top > low {
		d.line(low, w.y, top, w.y, a.colour, 1.3, "")
	}
	d.put(`<circle cx="%g" cy="%g" r="3" fill="%s"/>`+"\n", a.from, w.y, a.colour)
	for _, h := range a.heads {
		if h.y != w.y {
			d.line(a.from, w.y, h.x, h.y, a.colour, 1.3, ` stroke-dasharray="5 3"`)
		}
		d.head(a, h)
	}
	d.put("</g>\n")
}

func (d *drawing) head(a *arrows, h head) {
	back := -9.0 // towards the sender
	if h.x < a.from {
		back = 9
	}
	switch h.fate {
	case sim.FateArrived:
		d.put(`<path d="M%g %gl%g -4v8z" fill="%s"/>`+"\n", h.x, h.y, back, a.colour)
	case sim.FateWaits: // hollow: it has not been taken in
		d.put(`<path d="M%g %gl%g -4v8z" fill="#ffffff" stroke="%s"/>`+"\n", h.x, h.y, back, a.colour)
	default:
		stroke := red
		if h.fate == sim.FateDead {
			stroke = grey
		}
		d.put(`<path d="M%g %gl8 8m0 -8l-8 8" stroke="%s" stroke-width="2" fill="none"/>`+"\n", h.x+back/2-4, h.y-4, stroke)
	}
}

// legend explains the lines, as far as there is room.
func (d *drawing) legend(y float64) {
	x := float64(edge + 8)
	item := func(text string, draw func(x, y float64)) {
		if width := 26 + textWidth(text); x+width > d.l.width {
			x, y = edge+8, y+stateHeight
		}
		draw(x, y)
		d.put(`<text class="a" x="%g" y="%g">%s</text>`+"\n", x+12, y+4, text)
		x += 34 + textWidth(text)
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
