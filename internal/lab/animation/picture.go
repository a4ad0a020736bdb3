// Package animation draws the moving picture of the README from a recording of the demo.
//
// Nothing in the picture is made up. Roles, lights, cables, the address and the client's answers
// are those of the recording, at their times. Around each outage the picture goes slower, by a
// factor that stands in it: see [slowdown].
//
// The picture is an SVG with CSS animations, which need no script and work in an <img>. All of
// them last as long as the picture and begin together, so any moment of it is one negative
// animation-delay away. Where nothing is to move, it shows the moment after the first takeover.
package animation

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"topdog/internal/lab/demo"
	"topdog/internal/lab/svg"
)

// The measures of the picture, in pixels. It is read on a telephone at half its size, so its
// letters are large.
const (
	width  = 760
	height = 404
	edge   = 12

	captionAt = 38 // baselines and tops
	cardsAt   = 58
	lanAt     = 256
	clientAt  = 300
	stripAt   = 314
	countAt   = 392

	paceWidth = 326 // of the words that say how fast all goes

	// A card, from its upper left corner.
	cardHeight = 172
	cardGap    = 14
	lightY     = 46
	lightR     = 14
	nameY      = 93
	roleY      = 118
	pillY      = 131
	pillEdge   = 5
	pillHigh   = 30

	stripHeight = 46
	nowAt       = width - edge - 96 // where the present is
	speed       = 80                // pixels of the strip for each second of the picture
	// labelsApart is how far the names of a board that answers for long are from each other.
	labelsApart = 260.0
	// silenceWidth is what a gap needs to have words in it.
	silenceWidth = 105.0
)

const (
	// slide is how long the address is on its way to another card, in the picture.
	slide = 350 * time.Millisecond

	minorTick = 10 * time.Millisecond // in the slow parts
	majorTick = 100 * time.Millisecond
	countStep = 10 * time.Millisecond
	// notable is how long a gap must be to get a number, unless another board answers next.
	notable = 20 * time.Millisecond
)

// role is how one stands in the picture: its words, and their class.
type role struct{ words, class string }

var roles = map[string]role{
	"leader": {"leader", "green"}, "heir": {"next", "faint"}, "follower": {"follower", "faint"},
	"candidate": {"asks", "orange"}, "listener": {"listens", "faint"}, "isolated": {"no cable", "alarm"},
	"no power": {"no power", "alarm"}, "barred": {"stays out", "faint"},
}

// film is a picture that is being drawn.
type film struct {
	*svg.Picture
	*timeline
}

// encode draws a recording, for light or for dark surroundings. Same recording, same bytes.
func encode(r *demo.Recording, dark bool) []byte {
	f := &film{&svg.Picture{Width: width, Height: height, Decimals: 1}, newTimeline(r)}
	f.Title = "Five boards with one address. When the leader loses its power or its cable, " +
		"another board has the address, and a client gets answers again."
	whole := func(class string) { f.rect(class, 0.5, 0.5, width-1.0, height-1.0, "rx", 12) }
	whole("paper")
	for _, c := range f.captions() {
		class := "caption"
		if c.alarm {
			class = "caption alarm"
		}
		f.while([]span{c.span}, func() { f.Text(c.words, "class", class, "x", edge+4, "y", captionAt) })
	}
	f.rect("lan", edge, lanAt, width-2*edge, 8, "rx", 4)
	for i := range r.Boards {
		f.board(i)
	}
	f.address()
	f.pace()
	f.strip()
	whole("frame")
	f.Style = f.timeline.style() + style(dark)
	var b bytes.Buffer
	_ = f.Encode(&b) // memory refuses nothing
	return b.Bytes()
}

//go:embed picture.css
var css string

// style is the CSS of what does not move. Besides the colours of all pictures, it has tints of what is green or red.
func style(dark bool) string {
	colours := map[string]svg.Colour{
		"ink": svg.Ink, "faint": svg.Faint, "grid": svg.Grid, "paper": svg.Paper,
		"green": svg.Green, "orange": svg.Orange, "red": svg.Red,
		"leads": {Light: "#e8f6f1", Dark: "#12302a"}, "lit": {Light: "#00b37e", Dark: "#3df0b4"},
		"card": {Light: "#fafbfc", Dark: "#1b2026"}, "pill": {Light: "#0072b2", Dark: "#1d6fa5"},
	}
	return strings.ReplaceAll(os.Expand(css, func(name string) string {
		if dark {
			return colours[name].Dark
		}
		return colours[name].Light
	}), "\n", "")
}

func (f *film) rect(class string, x, y, wide, high any, more ...any) {
	f.Tag("rect", append([]any{"class", class, "x", x, "y", y, "width", wide, "height", high}, more...)...)
}

// while draws what is seen during some spans of the recording only.
func (f *film) while(spans []span, draw func()) {
	if len(spans) > 0 {
		f.Group("", draw, "class", f.shown(spans))
	}
}

// cardWidth is that of one board.
func (f *film) cardWidth() float64 {
	n := float64(len(f.Boards))
	return (width - 2*edge - (n-1)*cardGap) / n
}

// cardX is the left side of a board's card.
func (f *film) cardX(i int) float64 { return edge + float64(i)*(f.cardWidth()+cardGap) }

// board draws one board: its card, its light, its role and its cable.
func (f *film) board(i int) {
	name, x, wide := f.Boards[i], f.cardX(i), f.cardWidth()
	middle := x + wide/2
	card := func(class string) func() { return func() { f.rect(class, x, cardsAt, wide, cardHeight, "rx", 10) } }
	f.while(f.when(name, func(s demo.RecordedState) bool { return s.Plugged }), func() {
		f.Tag("path", "class", "cable", "d", f.Path("M", middle, " ", cardsAt+cardHeight, "V", lanAt))
	})
	f.while(f.when(name, func(s demo.RecordedState) bool { return !s.Plugged }), func() {
		f.Tag("path", "class", "cable out", "d", f.Path("M", middle, " ", lanAt, "v-7m0-5l14-10"))
	})
	card("card")()
	leads := f.when(name, func(s demo.RecordedState) bool { return s.Role == "leader" })
	f.while(leads, card("leads"))
	f.Tag("path", "class", "pins", "d", f.Path("M", x+14, " ", cardsAt+11, "h", wide-28))
	f.light(name, middle, leads)
	f.Text(name, "class", "name m", "x", middle, "y", cardsAt+nameY)
	var seen []string
	for _, s := range f.States {
		if s.Board != name || slices.Contains(seen, s.Role) {
			continue
		}
		seen = append(seen, s.Role)
		f.while(f.when(name, func(o demo.RecordedState) bool { return o.Role == s.Role }), func() {
			f.Text(roles[s.Role].words, "class", "role m "+roles[s.Role].class, "x", middle, "y", cardsAt+roleY)
		})
	}
	f.while(f.when(name, func(s demo.RecordedState) bool { return !s.Running }), card("off"))
}

// light draws a board's light. Only the leader's has a halo. The others flash for 50 ms every two
// seconds and when they get another leader, which is a second where the picture is slow.
func (f *film) light(name string, x float64, leads []span) {
	circle := func(class string, r float64) {
		f.Tag("circle", "class", class, "cx", x, "cy", cardsAt+lightY, "r", r)
	}
	lit := f.lit(name)
	circle("dark", lightR)
	f.while(common(lit, leads), func() {
		circle("glow", 1.4*lightR)
		circle("glow", 1.9*lightR)
	})
	f.while(lit, func() { circle("lit", lightR) })
}

// address draws the floating address on the board that has it, and an empty frame where it was
// while nobody has it. It slides when another board gets it.
func (f *film) address() {
	var held []span
	var frames []keyframe
	place := func(at time.Duration, board, easing string) {
		position := fmt.Sprintf("transform:translateX(%.1fpx)", f.cardX(slices.Index(f.Boards, board))-edge)
		frames = append(frames, keyframe{at, position, easing})
	}
	where := f.first
	place(0, where, "")
	for _, h := range f.Holders {
		held = appendSpan(held, span{h.From, h.To})
		if h.Board != where {
			place(f.at(h.From), where, ";animation-timing-function:ease-in-out")
			place(min(f.at(h.From)+slide, f.total()), h.Board, "")
		}
		where = h.Board
	}
	place(f.total(), where, "")
	pill := func(class string) {
		f.rect(class, edge+pillEdge, cardsAt+pillY, f.cardWidth()-2*pillEdge, pillHigh, "rx", pillHigh/2)
	}
	f.Group("", func() {
		f.while(between(held, f.Length), func() { pill("gone") })
		f.while(held, func() {
			pill("address")
			f.Text(f.Recording.Address, "class", "number m", "x", edge+f.cardWidth()/2, "y", cardsAt+pillY+21)
		})
	}, "class", f.keyframes(frames))
}

// pace says what is below, and how fast all this goes.
func (f *film) pace() {
	f.Text("a client asks every millisecond", "class", "faint", "x", edge+4, "y", clientAt)
	pace := func(class, format string, args ...any) {
		f.Text(fmt.Sprintf(format, args...), "class", class+" e", "x", width-edge-12, "y", clientAt)
	}
	f.while(between(f.slow, f.Length), func() { pace("faint", "real time, a mark is %d ms", majorTick/time.Millisecond) })
	f.while(f.slow, func() {
		f.rect("slow", width-edge-paceWidth, clientAt-19, paceWidth, 27, "rx", 13)
		pace("speed", "%d × slower, a mark is %d ms", slowdown, minorTick/time.Millisecond)
	})
}

// x is where a moment of the recording is on the strip.
func (f *film) x(at time.Duration) float64 { return speed * f.at(at).Seconds() }

// strip draws the answers. It runs to the left, and what is right of the present is covered.
// The picture begins again where it ends, so left of its beginning the strip has its end.
func (f *film) strip() {
	long := speed * f.total().Seconds()
	position := func(at time.Duration) string {
		return fmt.Sprintf("transform:translateX(%.1fpx)", nowAt-speed*at.Seconds())
	}
	frames := rule{fmt.Sprintf("0%%{%s}to{%s}", position(0), position(f.total())), position(f.still())}
	numbered := slices.DeleteFunc(slices.Clone(f.Gaps), func(g demo.RecordedGap) bool {
		return g.Before == g.After && g.To-g.From < notable
	})
	count := func(words string, x any) { f.Text(words, "class", "count e", "x", x, "y", countAt) }
	f.Group("", func() {
		f.Group("", f.period, "id", "period")
		f.Tag("use", "href", "#period", "x", -long)
		for _, g := range numbered {
			count(milliseconds(g), f.x(g.To)-long)
			f.while([]span{{g.To, f.Length}}, func() { count(milliseconds(g), f.x(g.To)) })
		}
	}, "class", f.class(frames)+" run")
	f.rect("paper", nowAt, stripAt-2, width-nowAt, height-stripAt-10)
	f.Tag("path", "class", "now", "d", fmt.Sprintf("M%d %dv%d", nowAt, stripAt-6, stripHeight+22))
	f.Text("now", "class", "faint", "x", nowAt+10, "y", stripAt+30)
	for _, g := range numbered { // how long there has been no answer, while there is none
		for n := countStep; g.From+n < g.To; n += countStep {
			f.while([]span{{g.From + n, min(g.From+n+countStep, g.To)}}, func() {
				count(fmt.Sprintf("%d ms", n/time.Millisecond), nowAt)
			})
		}
	}
}

// period draws the whole strip once: the answers, who gives them, the gaps between them, and a mark for each tenth of
// a second, in the slow parts for each hundredth.
func (f *film) period() {
	piece := func(class string, s span) {
		f.rect(class, f.x(s.from), stripAt, f.x(s.to)-f.x(s.from), stripHeight)
	}
	var gaps, silent []span
	for _, g := range f.Gaps {
		gaps = append(gaps, span{g.From, g.To})
	}
	for _, s := range between(gaps, f.Length) {
		piece("answers", s)
	}
	for _, g := range f.outages {
		silent = append(silent, span{g.From, g.To})
	}
	for i, s := range between(silent, f.Length) {
		board := f.first
		if i > 0 {
			board = f.outages[i-1].After
		}
		for x := f.x(s.from) + 14; x < f.x(s.to)-40; x += labelsApart {
			f.Text(board, "class", "who", "x", x, "y", stripAt+31)
		}
	}
	for _, g := range gaps {
		piece("gap", g)
		if f.x(g.to)-f.x(g.from) > silenceWidth {
			f.Text("no answer", "class", "silence m", "x", (f.x(g.from)+f.x(g.to))/2, "y", stripAt+29)
		}
	}
	var marks []any
	mark := func(from, to, every time.Duration, high string) {
		for at := from.Truncate(every) + every; at < to; at += every {
			marks = append(marks, "M", f.x(at), " ", stripAt+stripHeight+3, high)
		}
	}
	mark(0, f.Length, majorTick, "v9")
	for _, s := range f.slow {
		mark(s.from, s.to, minorTick, "v5")
	}
	f.Tag("path", "class", "tick", "d", f.Path(marks...))
}
