package animation

import (
	"slices"
	"time"

	"topdog/internal/lab/demo"
)

// words are the roles as they stand in the picture.
var words = map[string]string{
	"leader": "leader", "heir": "next", "follower": "follower", "candidate": "asks",
	"listener": "listens", "isolated": "no cable", "no power": "no power", "barred": "stays out",
}

// The measures of a card, from its upper left corner.
const (
	lightY   = 46
	lightR   = 14
	nameY    = 93
	roleY    = 118
	pillY    = 131
	pillEdge = 5
	pillHigh = 30
)

// firstLook is how long the recording may take to look at the boards for the first time.
const firstLook = 5 * time.Millisecond

// cardWidth is that of one board.
func (f *film) cardWidth() float64 {
	n := float64(len(f.r.Boards))
	return (width - 2*edge - (n-1)*cardGap) / n
}

// cardX is the left side of a board's card.
func (f *film) cardX(i int) float64 { return edge + float64(i)*(f.cardWidth()+cardGap) }

// slot is a board's number in the picture, from its name.
func (f *film) slot(name string) int { return slices.Index(f.r.Boards, name) }

// when returns when a board is in a state that satisfies a condition.
func (f *film) when(name string, is func(demo.RecordedState) bool) (list []span) {
	open := false
	for _, s := range f.r.States {
		if s.Board != name {
			continue
		}
		switch now := is(s); {
		case now && !open:
			list = append(list, span{s.At, f.r.Length})
		case !now && open:
			list[len(list)-1].to = s.At
		}
		open = is(s)
	}
	if len(list) > 0 && list[0].from < firstLook {
		list[0].from = 0 // that was so when the recording began
	}
	return list
}

// lan is the switch, to which all cables lead.
func (f *film) lan() {
	f.Tag("rect", "class", "lan", "x", edge, "y", lanAt, "width", width-2*edge, "height", 8, "rx", 4)
}

// board draws one board: its card, its light, its role and its cable.
func (f *film) board(i int) {
	name := f.r.Boards[i]
	x, wide := f.cardX(i), f.cardWidth()
	middle := x + wide/2
	card := func(class string) {
		f.Tag("rect", "class", class, "x", x, "y", cardsAt, "width", wide, "height", cardHeight, "rx", 10)
	}
	f.cable(name, middle)
	card("card")
	leads := f.when(name, func(s demo.RecordedState) bool { return s.Role == "leader" })
	f.while(leads, func() { card("leads") })
	f.Tag("path", "class", "pins", "d", f.Path("M", x+14, " ", cardsAt+11, "h", wide-28))
	f.light(name, middle, leads)
	f.Text(name, "class", "name m", "x", middle, "y", cardsAt+nameY)
	for _, role := range f.roles(name) {
		spans := f.when(name, func(s demo.RecordedState) bool { return s.Role == role })
		f.while(spans, func() {
			f.Text(words[role], "class", "role m "+roleClass(role), "x", middle, "y", cardsAt+roleY)
		})
	}
	f.while(f.when(name, func(s demo.RecordedState) bool { return !s.Running }), func() { card("off") })
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

// roles are those that a board has at one time or another.
func (f *film) roles(name string) (list []string) {
	for _, s := range f.r.States {
		if s.Board == name && !slices.Contains(list, s.Role) {
			list = append(list, s.Role)
		}
	}
	return list
}

func roleClass(role string) string {
	switch role {
	case "leader":
		return "green"
	case "candidate":
		return "orange"
	case "isolated", "no power":
		return "alarm"
	default:
		return "faint"
	}
}

// lit returns when a board's light is on. Without power it is dark at once, although the
// program that was the board has yet to put it out.
func (f *film) lit(name string) (list []span) {
	on := false
	for _, e := range f.r.Lights {
		switch {
		case e.Board != name || e.On == on:
			continue
		case e.On:
			list = append(list, span{e.At, f.r.Length})
		default:
			list[len(list)-1].to = e.At
		}
		on = e.On
	}
	return common(list, f.when(name, func(s demo.RecordedState) bool { return s.Running }))
}

// common returns the times that are in both lists.
func common(a, b []span) (list []span) {
	for _, x := range a {
		for _, y := range b {
			if s := (span{max(x.from, y.from), min(x.to, y.to)}); s.from < s.to {
				list = append(list, s)
			}
		}
	}
	return list
}

// cable draws the cable of a board, in or out.
func (f *film) cable(name string, x float64) {
	const top = cardsAt + cardHeight
	f.while(f.when(name, func(s demo.RecordedState) bool { return s.Plugged }), func() {
		f.Tag("path", "class", "cable", "d", f.Path("M", x, " ", top, "V", lanAt))
	})
	f.while(f.when(name, func(s demo.RecordedState) bool { return !s.Plugged }), func() {
		f.Tag("path", "class", "cable out", "d", f.Path("M", x, " ", lanAt, "v-7m0-5l14-10"))
	})
}
