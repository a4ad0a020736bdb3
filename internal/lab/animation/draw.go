package animation

import (
	"fmt"
	"io"
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

	cardHeight = 172
	cardGap    = 14
)

// afterTakeover is how long after the first takeover, in the picture, the moment is that is shown
// where nothing moves.
const afterTakeover = 800 * time.Millisecond

// film is a picture that is being drawn.
type film struct {
	*svg.Picture
	keyframes
	r     *demo.Recording
	clock clock
	dark  bool
}

// encode draws a recording, for light or for dark surroundings. Same recording, same bytes.
func encode(w io.Writer, r *demo.Recording, dark bool) error {
	f := &film{Picture: &svg.Picture{Width: width, Height: height, Decimals: 1}, r: r, clock: newClock(r), dark: dark}
	f.keyframes.total, f.keyframes.still = f.clock.total(), f.telling()
	f.Title = "Five boards with one address. When the leader loses its power or its cable, another board has the address, and a client gets answers again."
	f.Tag("rect", "class", "paper", "x", 0.5, "y", 0.5, "width", float64(width-1), "height", float64(height-1), "rx", 12)
	f.captions()
	f.lan()
	for i := range r.Boards {
		f.board(i)
	}
	f.address()
	f.client()
	f.strip()
	f.Tag("rect", "class", "frame", "x", 0.5, "y", 0.5, "width", float64(width-1), "height", float64(height-1), "rx", 12)
	f.Style = f.keyframes.style() + f.style()
	return f.Encode(w)
}

// telling is the moment after the first takeover.
func (f *film) telling() time.Duration {
	list := outages(f.r)
	if len(list) == 0 {
		return 0
	}
	return f.clock.at(list[0].To) + afterTakeover
}

// while draws what is seen during some spans of the recording only.
func (f *film) while(spans []span, draw func()) {
	if len(spans) == 0 {
		return
	}
	shown := make([]span, len(spans))
	for i, s := range spans {
		shown[i] = f.clock.span(s)
	}
	f.Group("", draw, "class", f.shown(shown))
}

// captions says what is done, above the boards.
func (f *film) captions() {
	for _, c := range captions(f.r) {
		class := "caption"
		if c.alarm {
			class = "caption alarm"
		}
		f.while([]span{c.span}, func() { f.Text(c.words, "class", class, "x", edge+4, "y", captionAt) })
	}
}

// client says what is below, and how fast all this goes.
func (f *film) client() {
	f.Text("a client asks every millisecond", "class", "faint", "x", edge+4, "y", clientAt)
	var real []span
	at := time.Duration(0)
	for _, s := range f.clock.slow {
		real = append(real, span{at, s.from})
		at = s.to
	}
	real = append(real, span{at, f.r.Length})
	pace := func(words, class string) {
		f.Text(words, "class", class+" e", "x", width-edge-12, "y", clientAt)
	}
	f.while(real, func() { pace(fmt.Sprintf("real time, a mark is %d ms", majorTick/time.Millisecond), "faint") })
	f.while(f.clock.slow, func() {
		f.Tag("rect", "class", "slow", "x", width-edge-paceWidth, "y", clientAt-19, "width", paceWidth, "height", 27, "rx", 13)
		pace(fmt.Sprintf("%d × slower, a mark is %d ms", slowdown, minorTick/time.Millisecond), "speed")
	})
}
