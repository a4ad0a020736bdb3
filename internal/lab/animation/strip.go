package animation

import (
	"fmt"
	"time"

	"topdog/internal/lab/demo"
)

const (
	stripHeight = 46
	nowAt       = width - edge - 96 // where the present is
	speed       = 80                // pixels for each second of the picture

	minorTick = 10 * time.Millisecond // in the slow parts
	majorTick = 100 * time.Millisecond
	countStep = 10 * time.Millisecond
	// labelsApart is how far the names of a board that answers for long are from each other.
	labelsApart = 260.0
	// silenceWidth is what a gap needs to have words in it.
	silenceWidth = 105.0
	// notable is how long a gap must be to get a number, unless another board answers next.
	notable = 20 * time.Millisecond
)

// x is where a moment of the recording is on the strip.
func (f *film) x(at time.Duration) float64 { return speed * f.clock.at(at).Seconds() }

// strip draws the answers. It runs to the left, and what is right of the present is covered.
// The picture begins again where it ends, so left of its beginning the strip has its end.
func (f *film) strip() {
	long := speed * f.total.Seconds()
	position := func(at time.Duration) string {
		return fmt.Sprintf("transform:translateX(%.1fpx)", nowAt-speed*at.Seconds())
	}
	frames := rule{fmt.Sprintf("0%%{%s}to{%s}", position(0), position(f.total)), position(f.still)}
	f.Group("", func() {
		f.Group("", f.period, "id", "period")
		f.Tag("use", "href", "#period", "x", -long)
		for _, g := range f.numbered() {
			number := func(x float64) { f.Text(milliseconds(g), "class", "count e", "x", x, "y", countAt) }
			number(f.x(g.To) - long)
			f.while([]span{{g.To, f.r.Length}}, func() { number(f.x(g.To)) })
		}
	}, "class", f.class(frames)+" run")
	f.Tag("rect", "class", "paper", "x", nowAt, "y", stripAt-2, "width", width-nowAt, "height", height-stripAt-10)
	f.Tag("path", "class", "now", "d", fmt.Sprintf("M%d %dv%d", nowAt, stripAt-6, stripHeight+22))
	f.Text("now", "class", "faint", "x", nowAt+10, "y", stripAt+30)
	for _, g := range f.numbered() {
		f.count(g)
	}
}

// period draws the whole strip once.
func (f *film) period() {
	from := time.Duration(0)
	for _, g := range f.r.Gaps {
		f.answers(from, g.From)
		from = g.To
	}
	f.answers(from, f.r.Length)
	f.names()
	for _, g := range f.r.Gaps {
		f.Tag("rect", "class", "gap", "x", f.x(g.From), "y", stripAt, "width", f.x(g.To)-f.x(g.From), "height", stripHeight)
		if f.x(g.To)-f.x(g.From) > silenceWidth {
			f.Text("no answer", "class", "silence m", "x", (f.x(g.From)+f.x(g.To))/2, "y", stripAt+29)
		}
	}
	f.ticks()
}

// numbered are the gaps that get a number.
func (f *film) numbered() (list []demo.RecordedGap) {
	for _, g := range f.r.Gaps {
		if g.Before != g.After || g.To-g.From >= notable {
			list = append(list, g)
		}
	}
	return list
}

// answers draws a time in which each question was answered.
func (f *film) answers(from, to time.Duration) {
	f.Tag("rect", "class", "answers", "x", f.x(from), "y", stripAt, "width", f.x(to)-f.x(from), "height", stripHeight)
}

// names says who answers.
func (f *film) names() {
	at := time.Duration(0)
	list := append(outages(f.r), demo.RecordedGap{From: f.r.Length})
	for i, g := range list {
		board := g.Before
		if i == len(list)-1 && i > 0 {
			board = list[i-1].After
		}
		for x := f.x(at) + 14; x < f.x(g.From)-40; x += labelsApart {
			f.Text(board, "class", "who", "x", x, "y", stripAt+31)
		}
		at = g.To
	}
}

// ticks draws a mark for each tenth of a second, and in the slow parts for each hundredth.
func (f *film) ticks() {
	const top = stripAt + stripHeight + 3
	var parts []any
	for at := majorTick; at < f.r.Length; at += majorTick {
		parts = append(parts, "M", f.x(at), " ", top, "v9")
	}
	for _, s := range f.clock.slow {
		for at := s.from.Truncate(minorTick) + minorTick; at < s.to; at += minorTick {
			parts = append(parts, "M", f.x(at), " ", top, "v5")
		}
	}
	f.Tag("path", "class", "tick", "d", f.Path(parts...))
}

// count shows how long there has been no answer, while there is none.
func (f *film) count(g demo.RecordedGap) {
	for n := countStep; g.From+n < g.To; n += countStep {
		f.while([]span{{g.From + n, min(g.From+n+countStep, g.To)}}, func() {
			f.Text(fmt.Sprintf("%d ms", n/time.Millisecond), "class", "count e", "x", nowAt, "y", countAt)
		})
	}
}
