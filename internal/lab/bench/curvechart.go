package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"topdog/internal/lab/svg"
)

// curveChart is a picture of the curves: a panel for each thing amid which they were measured, all with the same axes.
type curveChart struct {
	name          string
	columns       int
	width, height float64 // of a panel without its axes
	labelled      bool    // each point has its setting beside it
}

var curveCharts = []curveChart{
	{"curve", 1, 780, 250, true},
	{"curve-small", 4, 150, 150, false},
}

// The measures of such a picture, in pixels.
const (
	curveLeft = 46 // the figures of the axis at the left
	curveHead = 64 // title and key
	zeroHigh  = 26 // below the axis, for what never moved: a logarithmic axis has no place for it
	labelHigh = 13
	labelFar  = 7 // labels may stand so many lines away from their points
)

// curvePlot is one that is being drawn.
type curvePlot struct {
	curveChart
	*svg.Picture
	r    *record
	x, y svg.Axis
	zero float64 // the height of what never moved
	// The places of a panel that have something on them.
	taken []box
}

type box struct{ left, top, right, bottom float64 }

func (b box) meets(other box) bool {
	return b.left < other.right && other.left < b.right && b.top < other.bottom && other.top < b.bottom
}

// curvePoint is where a system stands in a panel.
type curvePoint struct {
	system        *system
	outage, moves float64
	hint          string
	x, y          float64
}

// draw draws the picture, in the style of the charts.
func (c curveChart) draw(w io.Writer, r *record) error {
	const title = "Outage of a pulled cable, against moves in a minute in which nobody fails"
	d := &curvePlot{curveChart: c, r: r, Picture: &svg.Picture{Title: title, Style: curveStyle(), Decimals: 1}}
	panels := make([][]curvePoint, len(amids))
	for i, a := range amids {
		panels[i] = r.curvePoints(a.key)
	}
	all := slices.Concat(panels...)
	d.fit(all)
	column, row := curveLeft+c.width+edge, panelHead+c.height+zeroHigh+panelFoot
	rows := math.Ceil(float64(len(amids)) / float64(c.columns))
	d.Width = edge + float64(c.columns)*column
	d.Height = math.RoundToEven(curveHead + rows*row + 4)
	d.Tag("rect", "class", "b", "width", "100%", "height", "100%")
	d.Text(title, "class", "h", "x", edge, "y", 28)
	if len(all) == 0 {
		d.Text("Not measured.", "class", "s", "x", edge, "y", curveHead)
		return d.Encode(w)
	}
	d.key(all)
	for i, a := range amids {
		left := edge + float64(i%c.columns)*column + curveLeft
		d.panel(a, panels[i], left, curveHead+float64(i/c.columns)*row+panelHead)
	}
	return d.Encode(w)
}

// curveStyle is that of the charts with the classes w, the line of a curve, and y, words on a rim that keeps lines off.
func curveStyle() string {
	rim := func(shade string) string { return "text.y{stroke:" + shade + "}" }
	return chartStyle() + ".w{fill:none;stroke-width:1.5}.y{stroke-width:4;paint-order:stroke}" + rim(svg.Paper.Light) +
		svg.DarkStyle(rim(svg.Paper.Dark))
}

// curvePoints are the systems of which both figures were measured, in the order of the curves.
func (r *record) curvePoints(amid string) (all []curvePoint) {
	for _, s := range r.series(curve, labels{"amid": amid}) {
		pulled := r.point(curvePull, s.system, amid)
		if pulled == nil {
			continue
		}
		moves, _ := s.rank("moves/min", 50)
		outage, _ := pulled.rank("outage-ms", 50)
		most, _ := pulled.rank("outage-ms", 95)
		all = append(all, curvePoint{system: s.system, outage: outage.value, moves: moves.value,
			hint: fmt.Sprintf("%s: %s ms without an answer, p95 %s; %s moves a minute", s.system.title(),
				cell("outage-ms", outage), cell("outage-ms", most), cell("moves/min", moves))})
	}
	return all
}

// fit makes the axes so long that all points have a place.
func (d *curvePlot) fit(all []curvePoint) {
	least, most, moves := math.Inf(1), 0.0, 10.0
	for _, p := range all {
		least, most, moves = min(least, p.outage), max(most, p.outage), max(moves, p.moves)
	}
	d.x = svg.Axis{Log: true, Low: math.Log10(max(least, 1) * 0.8), High: math.Log10(max(most, 10) * 1.3)}
	d.y = svg.Axis{Log: true, High: math.Log10(moves * 1.3)} // from one move
}

// key names the programs, with their versions.
func (d *curvePlot) key(all []curvePoint) {
	x, seen := float64(edge+4), []string{}
	for _, p := range all {
		name := p.system.programName()
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		words := name
		if p.system.program != topdog {
			words = p.system.name + " " + upstream(d.r.facts["version "+p.system.key])
		}
		d.Tag("circle", "class", programClass(p.system), "cx", x, "cy", 46, "r", 4)
		d.Text(words, "class", "s", "x", x+10, "y", 50)
		x += 10 + svg.TextWidth(words) + 22
	}
}

// upstream is a version of Debian without what Debian has added.
func upstream(version string) string {
	if _, after, found := strings.Cut(version, ":"); found {
		version = after
	}
	return version[:max(strings.IndexAny(version+"-", "-+"), 0)]
}

// panel draws one panel: what stands at its left edge and its top is without the axes.
func (d *curvePlot) panel(a amid, points []curvePoint, left, top float64) {
	d.x.From, d.x.To = left+6, left+d.width-6
	d.y.From, d.y.To = top+d.height, top
	d.zero = top + d.height + zeroHigh/2 + 6
	foot := top + d.height + zeroHigh
	title := "amid " + a.key + ": " + a.title
	if !d.labelled {
		title = a.key
	}
	d.Text(title, "class", "g", "x", left, "y", top-12)
	d.Tag("rect", "class", "z", "x", left, "y", top+d.height+12, "width", d.width, "height", zeroHigh-12)
	for _, v := range d.x.Ticks() {
		if power := math.Log10(v); !d.labelled && power != math.Trunc(power) {
			continue // There is no room for it.
		}
		x := d.x.At(v)
		d.Tag("path", "class", "l", "d", d.Path("M", x, " ", top, "V", foot))
		d.Text(fmt.Sprint(v), "class", "s m", "x", x, "y", foot+14)
	}
	for power := 0.0; power <= d.y.High; power++ {
		y := d.y.At(math.Pow(10, power))
		d.Tag("path", "class", "l", "d", d.Path("M", left, " ", y, "H", left+d.width))
		d.Text(fmt.Sprintf("%.0f", math.Pow(10, power)), "class", "s e", "x", left-6, "y", y+4)
	}
	d.Text("0", "class", "s e", "x", left-6, "y", d.zero+4)
	axis := "milliseconds without an answer, median; upwards: moves in a minute"
	if !d.labelled {
		axis = "ms without an answer"
	}
	d.Text(axis, "class", "s m", "x", left+d.width/2, "y", foot+30)

	d.taken = nil
	for i := range points {
		p := &points[i]
		p.x, p.y = d.x.At(p.outage), d.zero
		if p.moves > 0 {
			p.y = d.y.At(p.moves)
		}
		d.taken = append(d.taken, box{p.x - 4, p.y - 4, p.x + 4, p.y + 4})
	}
	d.lines(points)
	for _, p := range points {
		d.Element("circle", p.hint, "", "class", programClass(p.system), "cx", p.x, "cy", p.y, "r", 4)
	}
	if !d.labelled {
		return
	}
	// Another build is written last, since it stands near the first one.
	order := slices.Clone(points)
	slices.SortStableFunc(order, func(a, b curvePoint) int {
		return map[bool]int{true: 1}[a.system.other] - map[bool]int{true: 1}[b.system.other]
	})
	for _, p := range order {
		d.label(p, box{left, top - 8, left + d.width + edge, foot + 2})
	}
}

// lines joins the points of each curve, from the largest margin to the least.
func (d *curvePlot) lines(points []curvePoint) {
	var seen []string
	for i, from := range points {
		name := from.system.programName() + from.system.curve
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		path := d.Path("M", from.x, " ", from.y)
		for _, to := range points[i+1:] {
			if to.system.programName()+to.system.curve == name {
				path += d.Path("L", to.x, " ", to.y)
			}
		}
		d.Tag("path", "class", programClass(from.system)+" w", "d", path)
	}
}

// label writes what a point is called at the nearest place that is free. If there is none, the hint has to do.
func (d *curvePlot) label(p curvePoint, within box) {
	width := svg.TextWidth(p.system.point)
	for far := range 2*labelFar + 1 {
		up := float64((far+1)/2) * labelHigh
		if far%2 == 0 {
			up = -up
		}
		for _, left := range []float64{p.x + 8, p.x - 8 - width} {
			at := box{left, p.y - up - labelHigh/2, left + width, p.y - up + labelHigh/2}
			if at.left < within.left || at.right > within.right || at.top < within.top || at.bottom > within.bottom ||
				slices.ContainsFunc(d.taken, at.meets) {
				continue
			}
			d.taken = append(d.taken, at)
			if up != 0 {
				end := left - 2
				if left < p.x {
					end = left + width + 2
				}
				d.Tag("path", "class", "l", "d", d.Path("M", p.x, " ", p.y, "L", end, " ", p.y-up))
			}
			d.Element("text", p.hint, p.system.point, "class", programClass(p.system)+" y", "x", left, "y", p.y-up+4)
			return
		}
	}
}
