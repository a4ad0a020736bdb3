package animation

import (
	"fmt"
	"strings"
	"time"
)

// slide is how long the address is on its way to another card, in the picture.
const slide = 350 * time.Millisecond

// held returns when any board has the address, and vacant when none has.
func (f *film) held() (held, vacant []span) {
	at := time.Duration(0)
	for _, h := range f.r.Holders {
		if h.From > at {
			vacant = append(vacant, span{at, h.From})
		}
		if n := len(held); n > 0 && h.From <= held[n-1].to {
			held[n-1].to = max(held[n-1].to, h.To)
		} else {
			held = append(held, span{h.From, h.To})
		}
		at = max(at, h.To)
	}
	return held, vacant
}

// address draws the floating address on the board that has it, and an empty frame where it was
// while nobody has it.
func (f *film) address() {
	held, vacant := f.held()
	pill := func(class string) {
		f.Tag("rect", "class", class, "x", edge+pillEdge, "y", cardsAt+pillY, "width", f.cardWidth()-2*pillEdge, "height", pillHigh, "rx", pillHigh/2)
	}
	f.Group("", func() {
		f.while(vacant, func() { pill("gone") })
		f.while(held, func() {
			pill("address")
			f.Text(f.r.Address, "class", "number m", "x", edge+f.cardWidth()/2, "y", cardsAt+pillY+21)
		})
	}, "class", f.class(f.moves()))
}

// moves is how the address moves: it stands still, and slides when another board gets it.
func (f *film) moves() rule {
	var b strings.Builder
	still := ""
	where := 0
	set := func(at time.Duration, slot int, easing string) {
		position := fmt.Sprintf("transform:translateX(%.1fpx)", f.cardX(slot)-edge)
		fmt.Fprintf(&b, "%s{%s%s}", f.percent(at), position, easing)
		if at <= f.still {
			still = position
		}
	}
	for i, h := range f.r.Holders {
		slot := f.slot(h.Board)
		at := f.clock.at(h.From)
		switch {
		case i == 0:
			set(0, slot, "")
		case slot != where:
			set(at, where, ";animation-timing-function:ease-in-out")
			set(min(at+slide, f.total), slot, "")
		}
		where = slot
	}
	set(f.total, where, "")
	return rule{b.String(), still}
}
