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

// strips draws one diagram per event, two beside each other, on a common logarithmic
// axis of milliseconds. With limits, a dashed stroke is the least that is possible.
func (d *drawing) strips(title, explanation string, figure func(Run) bound, limits bool) {
	d.head(title, explanation)
	panels := d.panels()
	axis, ok := d.axis(panels, figure, limits)
	if !ok {
		d.empty()
		return
	}
	names := d.nameWidth()
	column := names + 10 + zeroWidth + stripWidth + arrowWidth + figureWidth + edge
	d.Width = edge + 2*column
	d.key(limits)
	y := float64(headSpace)
	for i := 0; i < len(panels); i += 2 {
		tall := 0.0
		for n := 0; n < 2 && i+n < len(panels); n++ {
			p := panels[i+n]
			left := edge + float64(n)*column
			d.words("g", left, y+14, shorten(p.title, int((column-edge)/boldLetter)))
			axis.From = left + names + 10 + zeroWidth
			axis.To = axis.From + stripWidth
			d.panel(p, axis, y, left+names, figure, limits)
			tall = max(tall, p.height())
		}
		y += tall
	}
	d.Height = y + 6
}

// The lowest power that an axis shows, a hundredth of a millisecond, and the highest, some three hours.
const (
	lowestPower  = -2
	highestPower = 7
)

// axis finds the logarithmic axis of milliseconds, from a power of ten to another, on which
// all times have a place. It returns false if there are none.
func (d *drawing) axis(panels []panel, figure func(Run) bound, limits bool) (a axis, ok bool) {
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
				include(figure(r).Time)
			}
			if limit, ok := d.limit(p, f); ok && limits {
				include(limit)
			}
		}
	}
	if most == 0 {
		least, most = 1, 10
	}
	power := func(ms float64, round func(float64) float64) float64 {
		return min(max(round(math.Log10(ms)), lowestPower), highestPower)
	}
	a.Log = true
	a.Low = min(power(least, math.Floor), highestPower-1)
	a.High = max(power(most, math.Ceil), a.Low+1)
	return a, ok
}

// limit is the least that the median of a silent leader's outage can be.
func (d *drawing) limit(p panel, f Failure) (time.Duration, bool) {
	h := d.r.system(f.System).Interval
	if p.key != CablePulled && p.key != FramesDropped || len(f.Runs) == 0 || h <= 0 {
		return 0, false
	}
	return h/2 + rank(f.Runs, trip, 50).Time, true
}

// axis has a place for nothing as well, left of its beginning.
type axis struct{ svg.Axis }

// at is where a time stands.
func (a axis) at(t time.Duration) float64 {
	ms := float64(t) / 1e6
	if ms <= 0 {
		return a.From - zeroWidth/2 - 6
	}
	return a.At(ms)
}

// panel draws one event: the grid, and a row for each system.
func (d *drawing) panel(p panel, a axis, top, names float64, figure func(Run) bound, limits bool) {
	from, foot := top+panelHead-4, top+panelHead+float64(len(p.rows))*rowHeight
	d.Tag("rect", "class", "z", "x", a.From-zeroWidth, "y", from, "width", zeroWidth-12, "height", foot-from)
	d.words("s m", a.at(0), foot+14, "0")
	for power := a.Low; power <= a.High; power++ {
		x := a.At(math.Pow(10, power))
		d.line("l", x, from, x, foot)
		d.words("s m", x, foot+14, tick(int(power)))
	}
	d.words("s m", a.From+stripWidth/2, foot+29, "milliseconds")
	for i, f := range p.rows {
		d.strip(p, f, a, top+panelHead+(float64(i)+0.5)*rowHeight-2, names, figure, limits)
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
func (d *drawing) strip(p panel, f Failure, a axis, y, names float64, figure func(Run) bound, limits bool) {
	system := d.r.system(f.System)
	d.name(system, names, y+4)
	if len(f.Runs) == 0 {
		d.Element("text", clean(f.Unable), "no such event", "class", "s", "x", a.From+6, "y", y+4)
		return
	}
	colour := d.colour(system)
	for i, r := range f.Runs {
		b := figure(r)
		// Dots of the same time would hide each other, so they stand a little apart in height.
		d.dot(colour, a.at(b.Time), y+float64(i*3%7-3)*1.3, b)
	}
	if limit, ok := d.limit(p, f); ok && limits {
		d.line("i", a.at(limit), y-9, a.at(limit), y+9)
	}
	median, most := rank(f.Runs, figure, 50), rank(f.Runs, figure, 100)
	d.line(colour+" k", a.at(median.Time), y-8, a.at(median.Time), y+8)
	hint := fmt.Sprintf("median %s, longest %s, %s", median, most, count(len(f.Runs), "run", "runs"))
	d.Element("text", hint, median.cell()+" / "+most.cell(), "class", colour, "x", a.To+arrowWidth+8, "y", y+4)
}

// dot is full for a time, and a hollow arrow for one that had not ended.
func (d *drawing) dot(colour string, x, y float64, b bound) {
	if b.AtLeast {
		d.Tag("path", "class", colour+" o", "d", d.Path("M", x, " ", y-3.5, "l7 3.5l-7 3.5z"))
		return
	}
	d.Tag("circle", "class", colour+" d", "cx", x, "cy", y, "r", 3)
}

// key explains the marks.
func (d *drawing) key(limits bool) {
	x, y := float64(edge+4), 69.0
	item := func(draw func(), words string) {
		draw()
		d.words("s", x+12, y+4, words)
		x += 12 + svg.TextWidth(words) + 22
	}
	item(func() { d.dot("p0", x, y, bound{}) }, "a run")
	item(func() { d.line("p0 k", x, y-8, x, y+8) }, "median")
	item(func() { d.dot("p0", x-3, y, bound{AtLeast: true}) }, "had not ended when the bench stopped waiting")
	if limits {
		item(func() { d.line("i", x, y-9, x, y+9) }, "half an interval and a round trip: the limit")
	}
}
