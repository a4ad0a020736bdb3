package compare

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"sort"
	"time"
)

// Point is one of a curve.
type Point struct{ X, Y float64 }

// Curve is what one contestant took.
type Curve struct {
	Name   string
	Points []Point
}

// Panel is one diagram of a plot.
type Panel struct {
	Title string
	XAxis string
	YAxis string
	Log   bool // both axes
	Curve []Curve
}

// Panels draws rows as three diagrams: messages, packets and time by the number of boards.
func Panels(rows []Row) []Panel {
	panels := []Panel{
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
			panels[i].add(r.Name, Point{float64(r.Boards), values[i](r)})
		}
	}
	return panels
}

func (p *Panel) add(name string, at Point) {
	i := slices.IndexFunc(p.Curve, func(c Curve) bool { return c.Name == name })
	if i < 0 {
		i = len(p.Curve)
		p.Curve = append(p.Curve, Curve{Name: name})
	}
	p.Curve[i].Points = append(p.Curve[i].Points, at)
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

// palette is that of Okabe and Ito, darker where words in it must be legible on
// white; every contestant keeps its colour in all diagrams.
var palette = []string{"#0072b2", "#c03a00", "#00795a", "#8a3d73", "#a85b00", "#222222", "#3b6fd4", "#777777", "#b5338a"}

// SVG draws the diagrams, two in a row.
func SVG(out io.Writer, title string, panels []Panel) error {
	w := bufio.NewWriter(out)
	colours := make(map[string]string)
	for _, p := range panels {
		for _, c := range p.Curve {
			if colours[c.Name] == "" {
				colours[c.Name] = palette[len(colours)%len(palette)]
			}
		}
	}
	rows := (len(panels) + 1) / 2
	width, height := 2*panelWidth, rows*panelHeight+30
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(w, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprint(w, `<style>text{font:11px "DejaVu Sans",Verdana,sans-serif;fill:#222222}.h{font-weight:bold;font-size:13px}.e{text-anchor:end}.m{text-anchor:middle}</style>`+"\n")
	fmt.Fprintf(w, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(w, `<text class="h" x="14" y="20">%s</text>`+"\n", html.EscapeString(title))
	for i, p := range panels {
		fmt.Fprintf(w, `<g transform="translate(%d,%d)">`+"\n", i%2*panelWidth, 30+i/2*panelHeight)
		p.draw(w, colours)
		fmt.Fprint(w, "</g>\n")
	}
	fmt.Fprint(w, "</svg>\n")
	return w.Flush()
}

// axis maps values to pixels.
type axis struct {
	low, high float64 // of the values, or of their logarithms
	from, to  float64 // pixels
	log       bool
}

func newAxis(values []float64, from, to float64, log bool) axis {
	a := axis{from: from, to: to, log: log}
	if !log {
		a.high = max(1, slices.Max(values))
		return a
	}
	a.low = math.Floor(math.Log10(max(1, slices.Min(values))))
	a.high = math.Log10(max(10, slices.Max(values)))
	return a
}

func (a axis) at(v float64) float64 {
	if a.log {
		v = math.Log10(max(1, v))
	}
	return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from)
}

// ticks are round values that the axis shows.
func (a axis) ticks() []float64 {
	var list []float64
	if a.log {
		for e := math.Floor(a.low); e <= a.high; e++ {
			for _, m := range []float64{1, 2, 5} {
				if v := m * math.Round(math.Pow(10, e)); math.Log10(v) >= a.low-1e-9 && math.Log10(v) <= a.high+1e-9 && (m == 1 || a.high-a.low < 3) {
					list = append(list, v)
				}
			}
		}
		return list
	}
	step := math.Pow(10, math.Floor(math.Log10(a.high)))
	for a.high/step < 4 {
		step /= 2
	}
	for v := 0.0; v <= a.high; v += step {
		list = append(list, v)
	}
	return list
}

func (p *Panel) draw(w io.Writer, colours map[string]string) {
	var xs, ys []float64
	for _, c := range p.Curve {
		for _, q := range c.Points {
			xs, ys = append(xs, q.X), append(ys, q.Y)
		}
	}
	fmt.Fprintf(w, `<text class="h" x="%d" y="24">%s</text>`+"\n", marginLeft, html.EscapeString(p.Title))
	if len(xs) == 0 {
		return
	}
	left, right := float64(marginLeft), float64(panelWidth-marginRight)
	top, foot := float64(marginTop), float64(panelHeight-marginFoot)
	x, y := newAxis(xs, left, right, p.Log), newAxis(ys, foot, top, p.Log)
	if p.Log {
		x.low = math.Log10(slices.Min(xs))
	}
	for _, v := range y.ticks() {
		fmt.Fprintf(w, `<line x1="%g" y1="%.1f" x2="%g" y2="%.1f" stroke="#e3e5e8"/>`+"\n", left, y.at(v), right, y.at(v))
		fmt.Fprintf(w, `<text class="e" x="%g" y="%.1f">%g</text>`+"\n", left-6, y.at(v)+4, v)
	}
	for _, v := range x.ticks() {
		fmt.Fprintf(w, `<line x1="%.1f" y1="%g" x2="%.1f" y2="%g" stroke="#e3e5e8"/>`+"\n", x.at(v), foot, x.at(v), top)
		fmt.Fprintf(w, `<text class="m" x="%.1f" y="%g">%g</text>`+"\n", x.at(v), foot+16, v)
	}
	fmt.Fprintf(w, `<text class="m" x="%g" y="%g">%s</text>`+"\n", (left+right)/2, foot+34, html.EscapeString(p.XAxis))
	fmt.Fprintf(w, `<text class="m" transform="translate(16,%g) rotate(-90)">%s</text>`+"\n", (top+foot)/2, html.EscapeString(p.YAxis))
	p.curves(w, x, y, right, colours)
}

// curves draws the curves, and their names beside their ends, moved apart where
// they would stand upon each other.
func (p *Panel) curves(w io.Writer, x, y axis, right float64, colours map[string]string) {
	curves := slices.Clone(p.Curve)
	end := func(c Curve) float64 { return y.at(c.Points[len(c.Points)-1].Y) }
	sort.SliceStable(curves, func(i, j int) bool { return end(curves[i]) < end(curves[j]) })
	names := make([]float64, len(curves))
	for i, c := range curves {
		names[i] = end(c)
		if i > 0 {
			names[i] = max(names[i], names[i-1]+nameHeight)
		}
	}
	// The lowest must not fall out of the diagram, and pushes the others up.
	for i, limit := len(names)-1, y.from; i >= 0; i, limit = i-1, limit-nameHeight {
		names[i] = min(names[i], limit)
	}
	for i, c := range curves {
		colour := colours[c.Name]
		fmt.Fprintf(w, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colour)
		for _, q := range c.Points {
			fmt.Fprintf(w, "%.1f,%.1f ", x.at(q.X), y.at(q.Y))
		}
		fmt.Fprint(w, `"/>`+"\n")
		for _, q := range c.Points {
			fmt.Fprintf(w, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"><title>%s: %g %s, %.4g %s</title></circle>`+"\n",
				x.at(q.X), y.at(q.Y), colour, html.EscapeString(c.Name), q.X, html.EscapeString(p.XAxis), q.Y, html.EscapeString(p.YAxis))
		}
		fmt.Fprintf(w, `<line x1="%g" y1="%.1f" x2="%g" y2="%.1f" stroke="%s" stroke-width="0.7"/>`+"\n", right+3, end(c), right+12, names[i], colour)
		fmt.Fprintf(w, `<text x="%g" y="%.1f" style="fill:%s">%s</text>`+"\n", right+15, names[i]+4, colour, html.EscapeString(c.Name))
	}
}
