package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"topdog/internal/lab/svg"
)

// The charts that SVG draws.
const (
	chartOutage = "outage"      // a dot for every run's outage, by event and system
	chartTwo    = "two-holders" // the same for the time with two holders
	chartLoss   = "loss"        // how often the address moved for nothing
)

// Charts are the names of all charts.
func Charts() []string { return []string{chartOutage, chartTwo, chartLoss} }

// SVG draws a chart. Same report, same bytes. The colours follow what the reader's
// screen prefers, light or dark, and colour-blind people can tell them apart.
func SVG(w io.Writer, r *Report, chart string) error {
	d := &drawing{r: r, Picture: &svg.Picture{Style: style(), Decimals: 1}}
	d.Tag("rect", "class", "b", "width", "100%", "height", "100%")
	switch chart {
	case chartOutage:
		chart := strips{drawing: d, figure: outage, limits: true}
		chart.draw("How long the address does not answer, by what happens to the leader",
			"Milliseconds without an answer for the client, one dot per run; the figures are the median and the longest.")
	case chartTwo:
		chart := strips{drawing: d, figure: two}
		chart.draw("How long two boards have the address, by what happens to the leader",
			"Milliseconds with two holders or more, one dot per run; the figures are the median and the longest.")
	case chartLoss:
		d.bars()
	default:
		return fmt.Errorf("drawing a chart: there is no chart %q; there are %s", chart, strings.Join(Charts(), ", "))
	}
	d.Width, d.Height = math.RoundToEven(d.Width), math.RoundToEven(d.Height)
	return d.Encode(w)
}

// The measures of a chart, in pixels.
const (
	edge       = 20
	rowHeight  = 19
	boldLetter = 7.6 // the mean width of one, a little generous
	nameMost   = 38  // letters of a name; the rest is shown when the mouse rests on it
	headSpace  = 84  // title, explanation and key
)

// programs in the order of the charts' colours. All others share the next colour.
var programs = []string{topdog, keepalived, ucarp}

// programColours are the classes p0, p1 and so on.
var programColours = []svg.Colour{svg.Blue, svg.Red, svg.Green, svg.Purple}

// The classes of what is drawn: b background, h head of the chart, g of a group, s small
// words, e and m words that end at or stand around their place, l grid, z the part for what
// was nothing, i the limit, d dot, k median, o hollow arrow.
func style() string {
	light := func(c svg.Colour) string { return c.Light }
	dark := func(c svg.Colour) string { return c.Dark }
	const noStroke = "text.p0,text.p1,text.p2,text.p3{stroke:none}"
	return svg.TextStyle(12, "") +
		".b{fill:" + svg.Paper.Light + "}.h{font-weight:bold;font-size:16px}.g{font-weight:bold}.s{fill:" + svg.Faint.Light + "}" +
		".e{text-anchor:end}.m{text-anchor:middle}.l{stroke:" + svg.Grid.Light + ";fill:none}.z{fill:" + svg.Band.Light + "}" +
		".i{stroke:" + svg.Ink.Light + ";stroke-width:1.3;stroke-dasharray:2 2;fill:none}" + programStyle(light) + noStroke +
		".d{fill-opacity:.45;stroke:none}.k{stroke-width:3.5;fill:none}.o{fill:none;stroke-width:1.2}" +
		svg.DarkStyle("text{fill:"+svg.Ink.Dark+"}.b{fill:"+svg.Paper.Dark+"}.s{fill:"+svg.Faint.Dark+"}"+
			".l{stroke:"+svg.Grid.Dark+"}.z{fill:"+svg.Band.Dark+"}.i{stroke:"+svg.Ink.Dark+"}"+programStyle(dark)+
			".d{fill-opacity:.6;stroke:none}.k,.o{fill:none}"+noStroke)
}

// programStyle is the CSS of the programs' classes in one shade.
func programStyle(shade func(svg.Colour) string) string {
	var b strings.Builder
	for i, c := range programColours {
		fmt.Fprintf(&b, ".p%d{fill:%[2]s;stroke:%[2]s}", i, shade(c))
	}
	return b.String()
}

// drawing is a chart. Its size is known when everything is in it.
type drawing struct {
	*svg.Picture
	r *Report
}

func (d *drawing) words(class string, x, y float64, s string) {
	d.Text(clean(s), "class", class, "x", x, "y", y)
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.Tag("path", "class", class, "d", d.Path("M", x1, " ", y1, "L", x2, " ", y2))
}

// name writes a system's name in the colour of its program, so that it ends at x.
func (d *drawing) name(y System, x, at float64) {
	d.Element("text", y.name()+" "+clean(y.Version), shorten(y.name(), nameMost), "class", d.colour(y)+" e", "x", x, "y", at)
}

// shorten cuts what has no room, and shows that it did.
func shorten(s string, most int) string {
	if letters(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "\u2026"
}

// colour is the class of a program: every program keeps its colour in all charts.
func (d *drawing) colour(y System) string {
	i := slices.Index(programs, y.Program)
	if i < 0 {
		i = len(programs)
	}
	return fmt.Sprintf("p%d", i)
}

// nameWidth is the room that the longest name takes.
func (d *drawing) nameWidth() float64 {
	longest := 8
	for _, y := range d.r.Systems {
		longest = max(longest, min(nameMost, letters(y.name())))
	}
	return float64(longest) * svg.LetterWidth
}

// head writes what is above the diagrams.
func (d *drawing) head(title, explanation string) {
	d.Title = title
	d.words("h", edge, 30, title)
	d.words("s", edge, 50, explanation)
}

// empty says that there is nothing to draw.
func (d *drawing) empty() {
	d.words("s", edge, headSpace, "Not measured.")
	d.Width, d.Height = 700, headSpace+edge
}
