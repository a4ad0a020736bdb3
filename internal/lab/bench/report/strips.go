package report

import (
	"fmt"
	"math"
	"time"
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
func (d *drawing) strips(title, explanation string, figure func(Run) Bound, limits bool) {
	d.head(title, explanation)
	panels := d.panels()
	scale, ok := d.scale(panels, figure, limits)
	if !ok {
		d.empty()
		return
	}
	names := d.nameWidth()
	column := names + 10 + zeroWidth + stripWidth + arrowWidth + figureWidth + edge
	d.width = edge + 2*column
	d.key(limits)
	y := float64(headSpace)
	for i := 0; i < len(panels); i += 2 {
		tall := 0.0
		for n := 0; n < 2 && i+n < len(panels); n++ {
			p := panels[i+n]
			left := edge + float64(n)*column
			d.words("g", left, y+14, shorten(p.title, int((column-edge)/boldLetter)))
			d.panel(p, scale.moved(left+names+10+zeroWidth), y, left+names, figure, limits)
			tall = max(tall, p.height())
		}
		y += tall
	}
	d.height = y + 6
}

// scale is a logarithmic axis from one power of ten of a millisecond to another.
type scale struct {
	low, high int // the powers
	from      float64
}

// The lowest power that a scale shows, a hundredth of a millisecond, and the highest, some three hours.
const (
	lowestPower  = -2
	highestPower = 7
)

// scale finds the axis on which all times have a place. It returns false if there are none.
func (d *drawing) scale(panels []panel, figure func(Run) Bound, limits bool) (scale, bool) {
	least, most, any := math.Inf(1), 0.0, false
	take := func(t time.Duration) {
		if ms := float64(t) / 1e6; ms > 0 {
			least, most = min(least, ms), max(most, ms)
		}
	}
	for _, p := range panels {
		for _, f := range p.rows {
			for _, r := range f.Runs {
				any = true
				take(figure(r).Time)
			}
			if limit, ok := d.limit(p, f); ok && limits {
				take(limit)
			}
		}
	}
	if most == 0 {
		least, most = 1, 10
	}
	power := func(ms float64, round func(float64) float64) int {
		return min(max(int(round(math.Log10(ms))), lowestPower), highestPower)
	}
	s := scale{low: power(least, math.Floor), high: power(most, math.Ceil)}
	s.low = min(s.low, highestPower-1)
	s.high = max(s.high, s.low+1)
	return s, any
}

// limit is the least that the median of a silent leader's outage can be.
func (d *drawing) limit(p panel, f Failure) (time.Duration, bool) {
	h := d.r.system(f.System).Interval
	if p.key != CablePulled && p.key != FramesDropped || len(f.Runs) == 0 || h <= 0 {
		return 0, false
	}
	return h/2 + rank(f.Runs, trip, 50).Time, true
}

func (s scale) moved(x float64) scale {
	s.from = x
	return s
}

// at is where a time stands. What is nothing stands left of the axis.
func (s scale) at(t time.Duration) float64 {
	ms := float64(t) / 1e6
	if ms <= 0 {
		return s.from - zeroWidth/2 - 6
	}
	share := (math.Log10(ms) - float64(s.low)) / float64(s.high-s.low)
	return s.from + min(max(share, 0), 1)*stripWidth
}

// panel draws one event: the grid, and a row for each system.
func (d *drawing) panel(p panel, s scale, top, names float64, figure func(Run) Bound, limits bool) {
	from, foot := top+panelHead-4, top+panelHead+float64(len(p.rows))*rowHeight
	d.put(`<rect class="z" x="%.1f" y="%.1f" width="%d" height="%.1f"/>`+"\n", s.from-zeroWidth, from, zeroWidth-12, foot-from)
	d.words("s m", s.from-zeroWidth/2-6, foot+14, "0")
	for e := s.low; e <= s.high; e++ {
		x := s.from + float64(e-s.low)/float64(s.high-s.low)*stripWidth
		d.line("l", x, from, x, foot)
		d.words("s m", x, foot+14, tick(e))
	}
	d.words("s m", s.from+stripWidth/2, foot+29, "milliseconds")
	for i, f := range p.rows {
		d.strip(p, f, s, top+panelHead+(float64(i)+0.5)*rowHeight-2, names, figure, limits)
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
func (d *drawing) strip(p panel, f Failure, s scale, y, names float64, figure func(Run) Bound, limits bool) {
	system := d.r.system(f.System)
	d.name(system, names, y+4)
	if len(f.Runs) == 0 {
		d.put(`<text class="s" x="%.1f" y="%.1f"><title>%s</title>no such event</text>`+"\n", s.from+6, y+4, esc(f.Unable))
		return
	}
	colour := d.colour(system)
	for i, r := range f.Runs {
		b := figure(r)
		// Dots of the same time would hide each other, so they stand a little apart in height.
		d.dot(colour, s.at(b.Time), y+float64(i*3%7-3)*1.3, b)
	}
	if limit, ok := d.limit(p, f); ok && limits {
		d.line("i", s.at(limit), y-9, s.at(limit), y+9)
	}
	median, most := rank(f.Runs, figure, 50), rank(f.Runs, figure, 100)
	d.line(colour+" k", s.at(median.Time), y-8, s.at(median.Time), y+8)
	d.put(`<text class="%s" x="%.1f" y="%.1f"><title>median %s, longest %s, %s</title>%s</text>`+"\n",
		colour, s.from+stripWidth+arrowWidth+8, y+4, median, most, count(len(f.Runs), "run", "runs"), esc(median.cell()+" / "+most.cell()))
}

// dot is full for a time, and a hollow arrow for one that had not ended.
func (d *drawing) dot(colour string, x, y float64, b Bound) {
	if b.AtLeast {
		d.put(`<path class="%s o" d="M%.1f %.1fl7 3.5l-7 3.5z"/>`+"\n", colour, x, y-3.5)
		return
	}
	d.put(`<circle class="%s d" cx="%.1f" cy="%.1f" r="3"/>`+"\n", colour, x, y)
}

// key explains the marks.
func (d *drawing) key(limits bool) {
	x, y := float64(edge+4), 69.0
	item := func(draw func(), words string) {
		draw()
		d.words("s", x+12, y+4, words)
		x += 12 + float64(letters(words))*letter + 22
	}
	item(func() { d.dot("p0", x, y, Bound{}) }, "a run")
	item(func() { d.line("p0 k", x, y-8, x, y+8) }, "median")
	item(func() { d.dot("p0", x-3, y, Bound{AtLeast: true}) }, "had not ended when the bench stopped waiting")
	if limits {
		item(func() { d.line("i", x, y-9, x, y+9) }, "half an interval and a round trip: the limit")
	}
}
