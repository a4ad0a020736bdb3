package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"topdog/internal/lab/svg"
)

// chart is a picture with a dot for every run: a diagram for each value of a label, and a row for each system.
type chart struct {
	name, bench, unit  string
	by                 string // the label
	title, explanation string
	axis               string // what the axis has
	limits             bool   // a dashed stroke is the least that is possible
}

var charts = []chart{
	{"outage", failover, "outage-ms", "event", "How long the address does not answer, by what happens to the leader",
		"Milliseconds without an answer for the client, one dot per run; the figures are the median and the longest.",
		"milliseconds", true},
	{"two-holders", failover, "two-ms", "event", "How long two boards have the address, by what happens to the leader",
		"Milliseconds with two holders or more, one dot per run; the figures are the median and the longest.",
		"milliseconds", false},
	{"loss", loss0, "moves", "loss", "How often the address moves although nobody failed",
		"Moves of the address, by how many of the packets every board loses.", "moves", false},
}

// The measures of a chart, in pixels.
const (
	edge        = 20
	rowHeight   = 19
	headSpace   = 84  // title, explanation and key
	panelHead   = 28  // its title
	panelFoot   = 44  // its axis
	panelWidth  = 300 // without names and figures
	figureWidth = 96
	zeroWidth   = 34 // left of the axis, for what was nothing: a logarithmic axis has no place for it
	nameMost    = 38 // letters of a name
)

// drawing is a chart that is being drawn.
type drawing struct {
	chart
	*svg.Picture
	axis  svg.Axis
	names float64 // the width of the names
}

// draw draws the chart. Same record, same bytes. The colours follow what the reader's
// screen prefers, light or dark, and colour-blind people can tell them apart.
func (c chart) draw(w io.Writer, r *record) error {
	d := &drawing{chart: c, Picture: &svg.Picture{Title: c.title, Style: chartStyle(), Decimals: 1}}
	d.Width, d.Height = 700, headSpace+edge
	d.Tag("rect", "class", "b", "width", "100%", "height", "100%")
	d.Text(c.title, "class", "h", "x", edge, "y", 30)
	d.Text(c.explanation, "class", "s", "x", edge, "y", 50)
	all := r.series(c.bench, labels{})
	if len(all) == 0 {
		d.Text("Not measured.", "class", "s", "x", edge, "y", headSpace)
		return d.Encode(w)
	}
	d.key()
	d.fit(all)
	column := d.names + 10 + zeroWidth + panelWidth + figureWidth + edge
	d.Width = math.RoundToEven(edge + 2*column)
	top, height := float64(headSpace), 0.0
	for i, group := range c.groups(all) {
		if i%2 == 0 {
			top, height = top+height, 0
		}
		d.panel(group, edge+float64(i%2)*column, top)
		height = max(height, panelHead+float64(len(group))*rowHeight+panelFoot)
	}
	d.Height = math.RoundToEven(top + height + 6)
	return d.Encode(w)
}

// groups are the series of each diagram: in the order of the events, or of the losses.
func (c chart) groups(all []*series) (groups [][]*series) {
	var keys []string
	for _, m := range measures() {
		keys = append(keys, m.key)
	}
	for _, s := range all {
		if !slices.Contains(keys, s.of[c.by]) {
			keys = append(keys, s.of[c.by])
		}
	}
	for _, key := range keys {
		group := without(all, func(s *series) bool { return s.of[c.by] != key })
		if len(group) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// fit makes the axis so long that all figures have a place, and the room for names as wide as the longest.
func (d *drawing) fit(all []*series) {
	least, most := math.Inf(1), 0.0
	for _, s := range all {
		d.names = max(d.names, svg.TextWidth(shorten(s.system.title())))
		for _, one := range s.samples {
			for _, v := range []float64{one.values[d.unit], d.limit(s)} {
				if v > 0 {
					least, most = min(least, v), max(most, v)
				}
			}
		}
	}
	if most == 0 {
		least, most = 1, 10
	}
	d.axis = svg.Axis{Log: true, Low: math.Floor(math.Log10(max(least, 0.01)))}
	d.axis.High = max(math.Ceil(math.Log10(most)), d.axis.Low+1)
}

// limit is that of a series, or 0 if the chart shows none.
func (d *drawing) limit(s *series) float64 {
	if !d.limits {
		return 0
	}
	return s.limit()
}

// at is where a figure stands: left of the axis if it is nothing.
func (d *drawing) at(v float64) float64 {
	if v <= 0 {
		return d.axis.From - zeroWidth/2 - 6
	}
	return d.axis.At(v)
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.Tag("path", "class", class, "d", d.Path("M", x1, " ", y1, "L", x2, " ", y2))
}

// panel draws one diagram: the grid, and a row for each system.
func (d *drawing) panel(group []*series, left, top float64) {
	d.axis.From = left + d.names + 10 + zeroWidth
	d.axis.To = d.axis.From + panelWidth
	from, foot := top+panelHead-4, top+panelHead+float64(len(group))*rowHeight
	title := titleOf(group[0].of[d.by])
	if d.by == "loss" {
		title += " of the packets"
	}
	d.Text(title, "class", "g", "x", left, "y", top+14)
	d.Tag("rect", "class", "z", "x", d.axis.From-zeroWidth, "y", from, "width", zeroWidth-12, "height", foot-from)
	d.Text("0", "class", "s m", "x", d.at(0), "y", foot+14)
	for power := d.axis.Low; power <= d.axis.High; power++ {
		x := d.axis.At(math.Pow(10, power))
		d.line("l", x, from, x, foot)
		d.Text(fmt.Sprintf("%.*f", max(0, int(-power)), math.Pow(10, power)), "class", "s m", "x", x, "y", foot+14)
	}
	d.Text(d.chart.axis, "class", "s m", "x", d.axis.From+panelWidth/2, "y", foot+29)
	for i, s := range group {
		d.row(s, left+d.names, top+panelHead+(float64(i)+0.5)*rowHeight-2)
	}
}

// programClass is the class of what is drawn of a program.
func programClass(sys *system) string {
	return fmt.Sprintf("p%d", (slices.Index([]string{"topdog", "keepalived", "ucarp"}, sys.programName())+4)%4)
}

// row draws the runs of one system.
func (d *drawing) row(s *series, names, y float64) {
	colour := programClass(s.system)
	d.Element("text", s.system.title(), shorten(s.system.title()), "class", colour+" e", "x", names, "y", y+4)
	for i, one := range s.samples {
		// Dots of the same figure would hide each other, so they stand a little apart in height.
		f, _ := one.get(d.unit)
		d.dot(colour, d.at(f.value), y+float64(i*3%7-3)*1.3, f.open)
	}
	if limit := d.limit(s); limit > 0 {
		d.line("i", d.at(limit), y-9, d.at(limit), y+9)
	}
	median, _ := s.rank(d.unit, 50)
	most, _ := s.rank(d.unit, 100)
	d.line(colour+" k", d.at(median.value), y-8, d.at(median.value), y+8)
	middle, end := cell(d.unit, median), cell(d.unit, most)
	hint := fmt.Sprintf("median %s, most %s, %s", middle, end, count(len(s.samples), "run", "runs"))
	d.Element("text", hint, middle+" / "+end, "class", colour, "x", d.axis.To+20, "y", y+4)
}

// dot is full, or a hollow arrow for what had not ended.
func (d *drawing) dot(colour string, x, y float64, open bool) {
	if open {
		d.Tag("path", "class", colour+" o", "d", d.Path("M", x, " ", y-3.5, "l7 3.5l-7 3.5z"))
		return
	}
	d.Tag("circle", "class", colour+" d", "cx", x, "cy", y, "r", 3)
}

// key explains the marks.
func (d *drawing) key() {
	const y = 69.0
	x := float64(edge + 4)
	item := func(draw func(), words string) {
		draw()
		d.Text(words, "class", "s", "x", x+12, "y", y+4)
		x += 12 + svg.TextWidth(words) + 22
	}
	item(func() { d.dot("p0", x, y, false) }, "a run")
	item(func() { d.line("p0 k", x, y-8, x, y+8) }, "median")
	item(func() { d.dot("p0", x-3, y, true) }, "had not ended when the bench stopped waiting")
	if d.limits {
		item(func() { d.line("i", x, y-9, x, y+9) }, "half an interval and a round trip: the limit")
	}
}

// shorten cuts what has no room, and shows that it did.
func shorten(s string) string {
	if letters := []rune(s); len(letters) > nameMost {
		return string(letters[:nameMost-1]) + "…"
	}
	return s
}

// chartStyle has these classes: b background, h head of the chart, g of a diagram, s small
// words, e and m words that end at or stand around their place, l grid, z the part for what
// was nothing, i the limit, d dot, k median, o hollow arrow, p0 and so on for the programs.
func chartStyle() string {
	colours := func(shade func(svg.Colour) string) string {
		var b strings.Builder
		for i, c := range []svg.Colour{svg.Blue, svg.Red, svg.Green, svg.Purple} {
			fmt.Fprintf(&b, ".p%d{fill:%[2]s;stroke:%[2]s}text.p%[1]d{stroke:none}", i, shade(c))
		}
		fmt.Fprintf(&b, ".b{fill:%s}.s{fill:%s}.l{stroke:%s;fill:none}.z{fill:%s}.i{stroke:%s}",
			shade(svg.Paper), shade(svg.Faint), shade(svg.Grid), shade(svg.Band), shade(svg.Ink))
		return b.String() + ".d{fill-opacity:.5;stroke:none}.k,.o{fill:none}"
	}
	return svg.TextStyle(12, "") + ".h{font-weight:bold;font-size:16px}.g{font-weight:bold}" +
		".e{text-anchor:end}.m{text-anchor:middle}" +
		".i{stroke-width:1.3;stroke-dasharray:2 2;fill:none}.k{stroke-width:3.5}.o{stroke-width:1.2}" +
		colours(func(c svg.Colour) string { return c.Light }) +
		svg.DarkStyle("text{fill:"+svg.Ink.Dark+"}"+colours(func(c svg.Colour) string { return c.Dark }))
}
