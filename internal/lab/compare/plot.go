package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"topdog/internal/lab/svg"
)

// point is one of a curve.
type point struct{ X, Y float64 }

// curve is what one contestant took.
type curve struct {
	Name   string
	Points []point
}

// panel is one diagram of a plot.
type panel struct {
	Title  string
	XAxis  string
	YAxis  string
	Log    bool // both axes
	Curves []curve
}

// panels draws rows as three diagrams: messages, packets and time by the number of boards.
func panels(rows []Row) []panel {
	panels := []panel{
		{Title: "Messages, process to process", YAxis: "messages", Log: true},
		{Title: "Packets on a wire that can multicast", YAxis: "packets", Log: true},
		{Title: "Time from the failure to the next leader", YAxis: "ms", Log: true},
	}
	values := []func(Row) float64{
		func(r Row) float64 { return float64(r.Messages) },
		func(r Row) float64 { return float64(r.Packets) },
		func(r Row) float64 { return float64(r.Time) / float64(time.Millisecond) },
	}
	for i := range panels {
		panels[i].XAxis = "boards"
		for _, r := range rows {
			panels[i].add(r.Name, point{float64(r.Boards), values[i](r)})
		}
	}
	return panels
}

func (p *panel) add(name string, at point) {
	i := slices.IndexFunc(p.Curves, func(c curve) bool { return c.Name == name })
	if i < 0 {
		i = len(p.Curves)
		p.Curves = append(p.Curves, curve{Name: name})
	}
	p.Curves[i].Points = append(p.Curves[i].Points, at)
}

// The measures of a plot, in pixels.
const (
	panelWidth  = 520
	panelHeight = 380
	marginLeft  = 70
	marginRight = 110 // names stand beside the ends of the curves
	marginTop   = 44
	marginFoot  = 48
	nameHeight  = 14
)

// palette has a colour for every contestant, which keeps it in all diagrams: those that
// all pictures have, and some more.
var palette = []string{
	svg.Blue.Light, svg.Red.Light, svg.Green.Light, svg.Purple.Light, svg.Orange.Light, svg.Ink.Light, "#3b6fd4", "#777777", "#b5338a",
}

// drawPanels draws the diagrams, two in a row.
func drawPanels(out io.Writer, title string, panels []panel) error {
	colours := make(map[string]string)
	for _, p := range panels {
		for _, c := range p.Curves {
			if colours[c.Name] == "" {
				colours[c.Name] = palette[len(colours)%len(palette)]
			}
		}
	}
	rows := (len(panels) + 1) / 2
	width, height := 2*panelWidth, rows*panelHeight+30
	d := &drawing{colours: colours, Picture: &svg.Picture{
		Title: title, Width: float64(width), Height: float64(height), Decimals: 1,
		Style: svg.TextStyle(11, "") + ".h{font-weight:bold;font-size:13px}.e{text-anchor:end}.m{text-anchor:middle}",
	}}
	d.Tag("rect", "width", width, "height", height, "fill", svg.Paper.Light)
	d.Text(title, "class", "h", "x", 14, "y", 20)
	for i, p := range panels {
		at := fmt.Sprintf("translate(%d,%d)", i%2*panelWidth, 30+i/2*panelHeight)
		d.Group("", func() { d.panel(&p) }, "transform", at)
	}
	return d.Encode(out)
}

type drawing struct {
	*svg.Picture
	colours map[string]string // by the name of a contestant
}

func (d *drawing) panel(p *panel) {
	d.Text(p.Title, "class", "h", "x", marginLeft, "y", 24)
	x, y, ok := p.axes()
	if !ok {
		return
	}
	const left, right, top, foot = marginLeft, panelWidth - marginRight, marginTop, panelHeight - marginFoot
	for _, v := range y.Ticks() {
		d.Tag("line", "x1", left, "y1", y.At(v), "x2", right, "y2", y.At(v), "stroke", svg.Grid.Light)
		d.Text(fmt.Sprintf("%g", v), "class", "e", "x", left-6, "y", y.At(v)+4)
	}
	for _, v := range x.Ticks() {
		d.Tag("line", "x1", x.At(v), "y1", foot, "x2", x.At(v), "y2", top, "stroke", svg.Grid.Light)
		d.Text(fmt.Sprintf("%g", v), "class", "m", "x", x.At(v), "y", foot+16)
	}
	d.Text(p.XAxis, "class", "m", "x", (left+right)/2, "y", foot+34)
	d.Text(p.YAxis, "class", "m", "transform", fmt.Sprintf("translate(16,%d) rotate(-90)", (top+foot)/2))
	d.curves(p, x, y)
}

// axes are those on which all points have a place. It returns false if there are no points.
func (p *panel) axes() (x, y svg.Axis, ok bool) {
	var xs, ys []float64
	for _, c := range p.Curves {
		for _, q := range c.Points {
			xs, ys = append(xs, q.X), append(ys, q.Y)
		}
	}
	if len(xs) == 0 {
		return x, y, false
	}
	x, y = newAxis(xs, p.Log), newAxis(ys, p.Log)
	x.From, x.To = marginLeft, panelWidth-marginRight
	y.From, y.To = panelHeight-marginFoot, marginTop
	if p.Log {
		x.Low = math.Log10(slices.Min(xs))
	}
	return x, y, true
}

// newAxis begins at 0, or on a logarithmic axis at a power of ten.
func newAxis(values []float64, log bool) svg.Axis {
	if !log {
		return svg.Axis{High: max(1, slices.Max(values))}
	}
	return svg.Axis{
		Low:  math.Floor(math.Log10(max(1, slices.Min(values)))),
		High: math.Log10(max(10, slices.Max(values))),
		Log:  true,
	}
}

// curves draws the curves, and their names beside their ends.
func (d *drawing) curves(p *panel, x, y svg.Axis) {
	end := func(c curve) float64 { return y.At(c.Points[len(c.Points)-1].Y) }
	curves := slices.Clone(p.Curves)
	sort.SliceStable(curves, func(i, j int) bool { return end(curves[i]) < end(curves[j]) })
	var ends []float64
	for _, c := range curves {
		ends = append(ends, end(c))
	}
	names := apart(ends, y.From)
	for i, c := range curves {
		colour := d.colours[c.Name]
		var line strings.Builder
		for _, q := range c.Points {
			line.WriteString(d.Path(x.At(q.X), ",", y.At(q.Y), " "))
		}
		d.Tag("polyline", "fill", "none", "stroke", colour, "stroke-width", 2, "points", line.String())
		for _, q := range c.Points {
			hint := fmt.Sprintf("%s: %g %s, %.4g %s", c.Name, q.X, p.XAxis, q.Y, p.YAxis)
			d.Element("circle", hint, "", "cx", x.At(q.X), "cy", y.At(q.Y), "r", 2.5, "fill", colour)
		}
		const right = panelWidth - marginRight
		d.Tag("line", "x1", right+3, "y1", ends[i], "x2", right+12, "y2", names[i], "stroke", colour, "stroke-width", 0.7)
		d.Text(c.Name, "x", right+15, "y", names[i]+4, "style", "fill:"+colour)
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
