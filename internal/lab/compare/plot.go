package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"time"

	"topdog/internal/lab/papers"
	"topdog/internal/lab/svg"
)

// diagram is one of a plot.
type diagram struct {
	title, across, up string
	log               bool // both axes
	curves            []*curve
}

// curve is what one contestant took.
type curve struct {
	name, colour string
	x, y         []float64
}

func (c *curve) end() float64 { return c.y[len(c.y)-1] }

func (d *diagram) add(name string, x, y float64) {
	i := slices.IndexFunc(d.curves, func(c *curve) bool { return c.name == name })
	if i < 0 {
		i = len(d.curves)
		d.curves = append(d.curves, &curve{name: name})
	}
	d.curves[i].x, d.curves[i].y = append(d.curves[i].x, x), append(d.curves[i].y, y)
}

// Plot draws the report's figure 11, measured anew, and beside it the rows by the number of boards.
func Plot(out io.Writer, rows []Row) error {
	figure11 := diagram{title: "The report's figure 11: worst case, one notices", across: "processes", up: "messages"}
	for _, f := range papers.Figures() {
		if f.Source != papers.Worst001 {
			continue
		}
		counts, err := f.Counts()
		if err != nil {
			return err
		}
		figure11.add(f.Algorithm.String(), float64(f.Processes), float64(f.Count(&counts)))
	}
	messages := diagram{title: "Messages, process to process", across: "boards", up: "messages", log: true}
	packets := diagram{title: "Packets on a wire that can multicast", across: "boards", up: "packets", log: true}
	times := diagram{title: "Time from the failure to the next leader", across: "boards", up: "ms", log: true}
	for _, r := range rows {
		messages.add(r.Name, float64(r.Boards), float64(r.Messages))
		packets.add(r.Name, float64(r.Boards), float64(r.Packets))
		times.add(r.Name, float64(r.Boards), float64(r.Time)/float64(time.Millisecond))
	}
	return draw(out, "What it costs to replace a failed leader", &figure11, &messages, &packets, &times)
}

// The measures of a plot, in pixels.
const (
	panelWidth  = 520
	panelHeight = 380
	headHeight  = 30
	nameHeight  = 14

	left  = 70
	right = panelWidth - 110 // names stand beside the ends of the curves
	top   = 44
	foot  = panelHeight - 48
)

// palette has a colour for every contestant, which keeps it in all diagrams: those that
// all pictures have, and some more.
var palette = []string{
	svg.Blue.Light, svg.Red.Light, svg.Green.Light, svg.Purple.Light, svg.Orange.Light, svg.Ink.Light,
	"#3b6fd4", "#777777", "#b5338a",
}

// draw draws the diagrams, two in a row.
func draw(out io.Writer, title string, diagrams ...*diagram) error {
	width, height := 2*panelWidth, (len(diagrams)+1)/2*panelHeight+headHeight
	p := &svg.Picture{
		Title: title, Width: float64(width), Height: float64(height), Decimals: 1,
		Style: svg.TextStyle(11, "") + ".h{font-weight:bold;font-size:13px}.e{text-anchor:end}.m{text-anchor:middle}",
	}
	p.Tag("rect", "width", width, "height", height, "fill", svg.Paper.Light)
	p.Text(title, "class", "h", "x", 14, "y", 20)
	colours := make(map[string]string)
	for i, d := range diagrams {
		for _, c := range d.curves {
			if colours[c.name] == "" {
				colours[c.name] = palette[len(colours)%len(palette)]
			}
			c.colour = colours[c.name]
		}
		at := fmt.Sprintf("translate(%d,%d)", i%2*panelWidth, headHeight+i/2*panelHeight)
		p.Group("", func() { d.draw(p) }, "transform", at)
	}
	return p.Encode(out)
}

func (d *diagram) draw(p *svg.Picture) {
	p.Text(d.title, "class", "h", "x", left, "y", 24)
	if len(d.curves) == 0 {
		return
	}
	x, y := d.axes()
	for _, v := range y.Ticks() {
		p.Tag("line", "x1", left, "y1", y.At(v), "x2", right, "y2", y.At(v), "stroke", svg.Grid.Light)
		p.Text(fmt.Sprintf("%g", v), "class", "e", "x", left-6, "y", y.At(v)+4)
	}
	for _, v := range x.Ticks() {
		p.Tag("line", "x1", x.At(v), "y1", foot, "x2", x.At(v), "y2", top, "stroke", svg.Grid.Light)
		p.Text(fmt.Sprintf("%g", v), "class", "m", "x", x.At(v), "y", foot+16)
	}
	p.Text(d.across, "class", "m", "x", (left+right)/2, "y", foot+34)
	p.Text(d.up, "class", "m", "transform", fmt.Sprintf("translate(16,%d) rotate(-90)", (top+foot)/2))
	d.drawCurves(p, x, y)
}

// axes are those on which all points have a place. They begin at 0; a logarithmic one across begins with
// the first point, and one upwards at a power of ten.
func (d *diagram) axes() (x, y svg.Axis) {
	var xs, ys []float64
	for _, c := range d.curves {
		xs, ys = append(xs, c.x...), append(ys, c.y...)
	}
	x = svg.Axis{From: left, To: right, High: max(1, slices.Max(xs)), Log: d.log}
	y = svg.Axis{From: foot, To: top, High: max(1, slices.Max(ys)), Log: d.log}
	if d.log {
		x.Low, x.High = math.Log10(slices.Min(xs)), math.Log10(max(10, x.High))
		y.Low, y.High = math.Floor(math.Log10(max(1, slices.Min(ys)))), math.Log10(max(10, y.High))
	}
	return x, y
}

// drawCurves draws the curves, and their names beside their ends.
func (d *diagram) drawCurves(p *svg.Picture, x, y svg.Axis) {
	curves := slices.Clone(d.curves)
	sort.SliceStable(curves, func(i, j int) bool { return y.At(curves[i].end()) < y.At(curves[j].end()) })
	var ends []float64
	for _, c := range curves {
		ends = append(ends, y.At(c.end()))
	}
	names := apart(ends, y.From)
	for i, c := range curves {
		var line []any
		for n := range c.x {
			line = append(line, x.At(c.x[n]), ",", y.At(c.y[n]), " ")
		}
		p.Tag("polyline", "fill", "none", "stroke", c.colour, "stroke-width", 2, "points", p.Path(line...))
		for n := range c.x {
			hint := fmt.Sprintf("%s: %g %s, %.4g %s", c.name, c.x[n], d.across, c.y[n], d.up)
			p.Element("circle", hint, "", "cx", x.At(c.x[n]), "cy", y.At(c.y[n]), "r", 2.5, "fill", c.colour)
		}
		p.Tag("line", "x1", right+3, "y1", ends[i], "x2", right+12, "y2", names[i], "stroke", c.colour, "stroke-width", 0.7)
		p.Text(c.name, "x", right+15, "y", names[i]+4, "style", "fill:"+c.colour)
	}
}

// apart moves names that begin at these heights, from the top down, so that none stands
// upon another and none below the limit.
func apart(heights []float64, limit float64) []float64 {
	names := slices.Clone(heights)
	for i := 1; i < len(names); i++ {
		names[i] = max(names[i], names[i-1]+nameHeight)
	}
	for i := len(names) - 1; i >= 0; i-- {
		names[i] = min(names[i], limit)
		limit -= nameHeight
	}
	return names
}
