package report

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// The charts that SVG draws.
const (
	ChartOutage = "outage"      // a dot for every run's outage, by event and system
	ChartTwo    = "two-holders" // the same for the time with two holders
	ChartLoss   = "loss"        // how often the address moved for nothing
)

// Charts are the names of all charts.
func Charts() []string { return []string{ChartOutage, ChartTwo, ChartLoss} }

// SVG draws a chart. Same report, same bytes. The colours follow what the reader's
// screen prefers, light or dark, and colour-blind people can tell them apart.
func SVG(w io.Writer, r *Report, chart string) error {
	d := &drawing{r: r}
	switch chart {
	case ChartOutage:
		d.strips("How long the address does not answer, by what happens to the leader",
			"Milliseconds without an answer for the client, one dot per run; the figures are the median and the longest.", outage, true)
	case ChartTwo:
		d.strips("How long two boards have the address, by what happens to the leader",
			"Milliseconds with two holders or more, one dot per run; the figures are the median and the longest.", two, false)
	case ChartLoss:
		d.bars()
	default:
		return fmt.Errorf("drawing a chart: there is no chart %q; there are %s", chart, strings.Join(Charts(), ", "))
	}
	_, err := io.WriteString(w, d.file())
	return err
}

// The measures of a chart, in pixels.
const (
	edge       = 20
	rowHeight  = 19
	letter     = 6.7 // the mean width of one, a little generous
	boldLetter = 7.6
	nameMost   = 38 // letters of a name; the rest is shown when the mouse rests on it
	headSpace  = 84 // title, explanation and key
)

// The colours are those of Okabe and Ito: on white some of them darker, on black
// lighter, so that words in them can be read.
const style = `text{font:12px "DejaVu Sans",Verdana,sans-serif;fill:#222222}` +
	`.b{fill:#ffffff}.h{font-weight:bold;font-size:16px}.g{font-weight:bold}.s{fill:#5f6368}.e{text-anchor:end}.m{text-anchor:middle}` +
	`.l{stroke:#e3e5e8;fill:none}.z{fill:#f4f5f7}.i{stroke:#222222;stroke-width:1.3;stroke-dasharray:2 2;fill:none}` +
	`.p0{fill:#0072b2;stroke:#0072b2}.p1{fill:#c03a00;stroke:#c03a00}.p2{fill:#00795a;stroke:#00795a}.p3{fill:#8a3d73;stroke:#8a3d73}` +
	`text.p0,text.p1,text.p2,text.p3{stroke:none}.d{fill-opacity:.45;stroke:none}.k{stroke-width:3.5;fill:none}.o{fill:none;stroke-width:1.2}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6e8eb}.b{fill:#14171b}.s{fill:#a4abb3}.l{stroke:#333a42}.z{fill:#1d2127}.i{stroke:#e6e8eb}` +
	`.p0{fill:#56b4e9;stroke:#56b4e9}.p1{fill:#ff8a5c;stroke:#ff8a5c}.p2{fill:#4fd0a8;stroke:#4fd0a8}.p3{fill:#d99ac0;stroke:#d99ac0}` +
	`.d{fill-opacity:.6;stroke:none}.k,.o{fill:none}text.p0,text.p1,text.p2,text.p3{stroke:none}}`

// drawing collects a chart. Its size is known when everything is in it.
type drawing struct {
	r             *Report
	title         string
	width, height float64
	strings.Builder
}

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(d, format, args...) }

func (d *drawing) file() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img">`+"\n"+
		"<title>%s</title>\n<style>%s</style>\n"+
		`<rect class="b" width="100%%" height="100%%"/>`+"\n%s</svg>\n",
		d.width, d.height, d.width, d.height, esc(d.title), style, d.String())
}

// esc is enough for XML as well: html writes quotes as numbers.
func esc(s string) string { return html.EscapeString(clean(s)) }

func (d *drawing) words(class string, x, y float64, s string) {
	d.put(`<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, x, y, esc(s))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.put(`<path class="%s" d="M%.1f %.1fL%.1f %.1f"/>`+"\n", class, x1, y1, x2, y2)
}

// name writes a system's name in the colour of its program, so that it ends at x.
func (d *drawing) name(y System, x, at float64) {
	short := shorten(y.name(), nameMost)
	d.put(`<text class="%s e" x="%.1f" y="%.1f"><title>%s %s</title>%s</text>`+"\n",
		d.colour(y), x, at, esc(y.name()), esc(y.Version), esc(short))
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
	programs := []string{topdog, keepalived, ucarp}
	if i := slices.Index(programs, y.Program); i >= 0 {
		return fmt.Sprintf("p%d", i)
	}
	return fmt.Sprintf("p%d", len(programs))
}

// nameWidth is the room that the longest name takes.
func (d *drawing) nameWidth() float64 {
	longest := 8
	for _, y := range d.r.Systems {
		longest = max(longest, min(nameMost, letters(y.name())))
	}
	return float64(longest) * letter
}

// head writes what is above the diagrams.
func (d *drawing) head(title, explanation string) {
	d.title = title
	d.words("h", edge, 30, title)
	d.words("s", edge, 50, explanation)
}

// empty says that there is nothing to draw.
func (d *drawing) empty() {
	d.words("s", edge, headSpace, "Not measured.")
	d.width, d.height = 700, headSpace+edge
}
