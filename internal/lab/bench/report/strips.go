package report

import (
	"fmt"
	"math"
	"time"

	"topdog/internal/lab/svg"
)

// The measures of a strip chart, in pixels.
const (
	stripWidth  = 300 // of one diagram, without names and figures
	figureWidth = 84
	panelHead   = 28
	panelFoot   = 44
	arrowWidth  = 12 // right of the axis, for arrows that begin at its end
	zeroWidth   = 34 // left of the axis, for what was nothing: a logarithmic axis has no place for it
)

// strips is a chart with a dot for every run. With limits, a dashed stroke is the least that
// is possible.
type strips struct {
	*drawing
	figure func(Run) bound
	limits bool
	axis   svg.Axis // of milliseconds; logarithmic
}

// panel is one event: a row of dots for each system.
type panel struct {
	title string
	key   string
	rows  []Failure
}

func (d *drawing) panels() []panel {
	var list []panel
	for _, e := range d.r.Events {
		p := panel{title: d.r.title(e.Key), key: e.Key}
		for _, y := range d.r.Systems {
			if f, ok := d.r.failure(y.Key, e.Key); ok && (len(f.Runs) > 0 || f.Unable != "") {
				p.rows = append(p.rows, f)
			}
		}
		if len(p.rows) > 0 {
			list = append(list, p)
		}
	}
	return list
}

func (p panel) height() float64 { return panelHead + float64(len(p.rows))*rowHeight + panelFoot }

// draw draws one diagram per event, two beside each other, on a common axis.
func (s *strips) draw(title, explanation string) {
	s.head(title, explanation)
	panels := s.panels()
	if !s.fit(panels) {
		s.empty()
		return
	}
	names := s.nameWidth()
	column := names + 10 + zeroWidth + stripWidth + arrowWidth + figureWidth + edge
	s.Width = edge + 2*column
	s.key()
	y := float64(headSpace)
	for i := 0; i < len(panels); i += 2 {
		height := 0.0
		for n, p := range panels[i:min(i+2, len(panels))] {
			left := edge + float64(n)*column
			s.words("g", left, y+14, shorten(p.title, int((column-edge)/boldLetter)))
			s.axis.From = left + names + 10 + zeroWidth
			s.axis.To = s.axis.From + stripWidth
			s.panel(p, y, left+names)
			height = max(height, p.height())
		}
		y += height
	}
	s.Height = y + 6
}

// The lowest power of ten that an axis shows, a hundredth of a millisecond, and the highest,
// some three hours.
const (
	lowestPower  = -2
	highestPower = 7
)

// fit makes the axis so long that all times have a place. It returns false if there are none.
func (s *strips) fit(panels []panel) (ok bool) {
	least, most := math.Inf(1), 0.0
	include := func(t time.Duration) {
		if ms := float64(t) / 1e6; ms > 0 {
			least, most = min(least, ms), max(most, ms)
		}
	}
	for _, p := range panels {
		for _, f := range p.rows {
			for _, r := range f.Runs {
				ok = true
				include(s.figure(r).Time)
			}
			include(s.limit(p, f))
		}
	}
	if most == 0 {
		least, most = 1, 10
	}
	power := func(ms float64, round func(float64) float64) float64 {
		return min(max(round(math.Log10(ms)), lowestPower), highestPower)
	}
	s.axis.Log = true
	s.axis.Low = min(power(least, math.Floor), highestPower-1)
	s.axis.High = max(power(most, math.Ceil), s.axis.Low+1)
	return ok
}

// limit is the least that the median of a silent leader's outage can be, or 0.
func (s *strips) limit(p panel, f Failure) time.Duration {
	h := s.r.system(f.System).Interval
	if !s.limits || p.key != CablePulled && p.key != FramesDropped || len(f.Runs) == 0 || h <= 0 {
		return 0
	}
	return h/2 + rank(f.Runs, trip, 50).Time
}

// at is where a time stands: left of the axis if it is nothing.
func (s *strips) at(t time.Duration) float64 {
	if t <= 0 {
		return s.axis.From - zeroWidth/2 - 6
	}
	return s.axis.At(float64(t) / 1e6)
}

// panel draws one event: the grid, and a row for each system.
func (s *strips) panel(p panel, top, names float64) {
	a := s.axis
	from, foot := top+panelHead-4, top+panelHead+float64(len(p.rows))*rowHeight
	s.Tag("rect", "class", "z", "x", a.From-zeroWidth, "y", from, "width", zeroWidth-12, "height", foot-from)
	s.words("s m", s.at(0), foot+14, "0")
	for power := a.Low; power <= a.High; power++ {
		x := a.At(math.Pow(10, power))
		s.line("l", x, from, x, foot)
		s.words("s m", x, foot+14, tick(int(power)))
	}
	s.words("s m", a.From+stripWidth/2, foot+29, "milliseconds")
	for i, f := range p.rows {
		s.strip(p, f, top+panelHead+(float64(i)+0.5)*rowHeight-2, names)
	}
}

// tick writes a power of ten with blanks between thousands, as long numbers are read.
func tick(power int) string {
	if power < 0 {
		return fmt.Sprintf("%.*f", -power, math.Pow10(power))
	}
	s := fmt.Sprintf("%.0f", math.Pow10(power))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u2009" + s[i:]
	}
	return s
}

// strip draws the runs of one system.
func (s *strips) strip(p panel, f Failure, y, names float64) {
	system := s.r.system(f.System)
	s.name(system, names, y+4)
	if len(f.Runs) == 0 {
		s.Element("text", clean(f.Unable), "no such event", "class", "s", "x", s.axis.From+6, "y", y+4)
		return
	}
	colour := s.colour(system)
	for i, r := range f.Runs {
		b := s.figure(r)
		// Dots of the same time would hide each other, so they stand a little apart in height.
		s.dot(colour, s.at(b.Time), y+float64(i*3%7-3)*1.3, b)
	}
	stroke := func(class string, half float64, t time.Duration) {
		s.line(class, s.at(t), y-half, s.at(t), y+half)
	}
	if limit := s.limit(p, f); limit > 0 {
		stroke("i", 9, limit)
	}
	median, most := rank(f.Runs, s.figure, 50), rank(f.Runs, s.figure, 100)
	stroke(colour+" k", 8, median.Time)
	hint := fmt.Sprintf("median %s, longest %s, %s", median, most, count(len(f.Runs), "run", "runs"))
	s.Element("text", hint, median.cell()+" / "+most.cell(), "class", colour, "x", s.axis.To+arrowWidth+8, "y", y+4)
}

// dot is full for a time, and a hollow arrow for one that had not ended.
func (s *strips) dot(colour string, x, y float64, b bound) {
	if b.AtLeast {
		s.Tag("path", "class", colour+" o", "d", s.Path("M", x, " ", y-3.5, "l7 3.5l-7 3.5z"))
		return
	}
	s.Tag("circle", "class", colour+" d", "cx", x, "cy", y, "r", 3)
}

// key explains the marks.
func (s *strips) key() {
	x, y := float64(edge+4), 69.0
	item := func(draw func(), words string) {
		draw()
		s.words("s", x+12, y+4, words)
		x += 12 + svg.TextWidth(words) + 22
	}
	item(func() { s.dot("p0", x, y, bound{}) }, "a run")
	item(func() { s.line("p0 k", x, y-8, x, y+8) }, "median")
	item(func() { s.dot("p0", x-3, y, bound{AtLeast: true}) }, "had not ended when the bench stopped waiting")
	if s.limits {
		item(func() { s.line("i", x, y-9, x, y+9) }, "half an interval and a round trip: the limit")
	}
}
