package animation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"topdog/internal/lab/demo"
)

const (
	// slowdown is how much slower the picture goes around an outage. A takeover of 70 ms then
	// lasts 1.4 s, which one can follow.
	slowdown = 20
	// slowBefore and slowAfter are how much before and after an outage is slow as well.
	slowBefore = 12 * time.Millisecond
	slowAfter  = 18 * time.Millisecond
	// firstLook is how long the recording may take to look at the boards for the first time.
	firstLook = 5 * time.Millisecond
)

// span is a time of the recording, or of the picture.
type span struct{ from, to time.Duration }

// appendSpan puts a span behind others, which it may touch or overlap.
func appendSpan(list []span, s span) []span {
	if n := len(list); n > 0 && s.from <= list[n-1].to {
		list[n-1].to = max(list[n-1].to, s.to)
		return list
	}
	return append(list, s)
}

// between returns the times before, between and after some spans.
func between(list []span, length time.Duration) (others []span) {
	at := time.Duration(0)
	for _, s := range append(slices.Clone(list), span{length, length}) {
		if s.from > at {
			others = append(others, span{at, s.from})
		}
		at = s.to
	}
	return others
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

// timeline is when what is in a recording, and in the picture, and the CSS of all that changes.
type timeline struct {
	*demo.Recording
	first   string             // the board that leads in the beginning
	outages []demo.RecordedGap // the gaps that a takeover or a handover made
	slow    []span
	rules   []rule // equal ones are once in it
}

// rule is how something moves, and how it is at the moment at which everything stands still.
type rule struct{ frames, still string }

func newTimeline(r *demo.Recording) *timeline {
	t := &timeline{Recording: r}
	if len(r.Holders) > 0 {
		t.first = r.Holders[0].Board
	}
	for _, g := range r.Gaps {
		if g.Before != g.After {
			t.outages = append(t.outages, g)
			t.slow = appendSpan(t.slow, span{max(0, g.From-slowBefore), min(r.Length, g.To+slowAfter)})
		}
	}
	return t
}

// at returns when something of the recording is in the picture.
func (t *timeline) at(recorded time.Duration) time.Duration {
	shown := recorded
	for _, s := range t.slow {
		if recorded > s.from {
			shown += (slowdown - 1) * (min(recorded, s.to) - s.from)
		}
	}
	return shown
}

// total is how long the picture lasts.
func (t *timeline) total() time.Duration { return t.at(t.Length) }

// still is the moment that is shown where nothing moves: after the first takeover.
func (t *timeline) still() time.Duration {
	if len(t.outages) == 0 {
		return 0
	}
	return t.at(t.outages[0].To) + 800*time.Millisecond
}

// change says whether something is so from a moment of the recording on.
type change struct {
	at time.Duration
	is bool
}

// spans returns when something is so, of changes in their order.
func (t *timeline) spans(changes []change) (list []span) {
	for i, c := range changes {
		until := t.Length
		if i+1 < len(changes) {
			until = changes[i+1].at
		}
		if c.at < firstLook {
			c.at = 0 // that was so when the recording began
		}
		if c.is {
			list = appendSpan(list, span{c.at, until})
		}
	}
	return list
}

// when returns when a board is in a state that satisfies a condition.
func (t *timeline) when(name string, is func(demo.RecordedState) bool) []span {
	var changes []change
	for _, s := range t.States {
		if s.Board == name {
			changes = append(changes, change{s.At, is(s)})
		}
	}
	return t.spans(changes)
}

// lit returns when a board's light is on. Without power it is dark at once, although the
// program that was the board has yet to put it out.
func (t *timeline) lit(name string) []span {
	var changes []change
	for _, e := range t.Lights {
		if e.Board == name {
			changes = append(changes, change{e.At, e.On})
		}
	}
	return common(t.spans(changes), t.when(name, func(s demo.RecordedState) bool { return s.Running }))
}

// class returns the class of what moves so.
func (t *timeline) class(r rule) string {
	i := slices.Index(t.rules, r)
	if i < 0 {
		i = len(t.rules)
		t.rules = append(t.rules, r)
	}
	return fmt.Sprintf("a k%d", i)
}

// keyframe is how something is from a moment of the picture on.
type keyframe struct {
	at     time.Duration
	is     string
	easing string // how it becomes what the next keyframe says; "" for at once
}

// keyframes is the class of what is as the keyframes say.
func (t *timeline) keyframes(frames []keyframe) string {
	r := rule{still: frames[0].is}
	for _, k := range frames {
		share := fmt.Sprintf("%.3f", 100*float64(k.at)/float64(t.total())) // a tenth of a millisecond or so
		r.frames += strings.TrimRight(strings.TrimRight(share, "0"), ".") + "%{" + k.is + k.easing + "}"
		if k.at <= t.still() {
			r.still = k.is
		}
	}
	return t.class(r)
}

// shown is the class of what is seen in some spans of the recording only, which are in order.
func (t *timeline) shown(spans []span) string {
	var frames []keyframe
	if spans[0].from > 0 {
		frames = append(frames, keyframe{is: "opacity:0"})
	}
	for _, s := range spans {
		frames = append(frames, keyframe{at: t.at(s.from), is: "opacity:1"})
		if s.to < t.Length {
			frames = append(frames, keyframe{at: t.at(s.to), is: "opacity:0"})
		}
	}
	return t.keyframes(frames)
}

// style is the CSS. What moves is animated only for whoever does not mind motion: others, and
// programs that know no animation, see the moment at which everything stands still.
func (t *timeline) style() string {
	var b, moving strings.Builder
	for i, r := range t.rules {
		fmt.Fprintf(&b, ".k%d{%s}@keyframes k%d{%s}", i, r.still, i, r.frames)
		fmt.Fprintf(&moving, ".k%d{animation-name:k%d}", i, i)
	}
	return b.String() + fmt.Sprintf("@media(prefers-reduced-motion:no-preference){.a{animation:%.3fs step-end infinite}%s}",
		t.total().Seconds(), moving.String())
}

// caption is what is said above the boards for a while.
type caption struct {
	span
	words string
	alarm bool // nobody answers meanwhile
}

// captions say what is done, and what follows from it. Times are of the recording.
func (t *timeline) captions() []caption {
	list := []caption{{words: t.first + " leads: it has the address, and its light is on"}}
	add := func(at time.Duration, alarm bool, words string) {
		list[len(list)-1].to = at
		list = append(list, caption{span{from: at}, words, alarm})
	}
	for _, a := range t.Acts {
		add(a.At, a.Moves, a.Text)
		next := slices.IndexFunc(t.outages, func(g demo.RecordedGap) bool { return g.To > a.At })
		switch {
		case a.Moves && next >= 0:
			g := t.outages[next]
			add(g.To, false, fmt.Sprintf("%s has the address: no answer for %s", g.After, milliseconds(g)))
		case !a.Moves:
			list[len(list)-1].words += ": nothing moves"
		}
	}
	list[len(list)-1].to = t.Length
	return list
}

// milliseconds is how long a gap is, in words.
func milliseconds(g demo.RecordedGap) string {
	ms := float64(g.To-g.From) / float64(time.Millisecond)
	if ms < 9.95 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
