package animation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// keyframes are the CSS of all animations of a picture. Equal ones are written once.
type keyframes struct {
	total time.Duration
	still time.Duration // the moment that is shown where nothing moves
	rules []rule
}

// rule is how something moves, and how it is at the moment at which everything stands still.
type rule struct{ frames, still string }

// class returns the class of what moves so.
func (k *keyframes) class(r rule) string {
	i := slices.Index(k.rules, r)
	if i < 0 {
		i = len(k.rules)
		k.rules = append(k.rules, r)
	}
	return fmt.Sprintf("a k%d", i)
}

// percent is a moment as a part of the picture, to a tenth of a millisecond or so.
func (k *keyframes) percent(at time.Duration) string {
	share := fmt.Sprintf("%.3f", 100*float64(at)/float64(k.total))
	return strings.TrimRight(strings.TrimRight(share, "0"), ".") + "%"
}

// shown is the class of what is seen in some spans of the picture only, which are in order. A
// keyframe says what is so until the next one.
func (k *keyframes) shown(spans []span) string {
	var b strings.Builder
	still := "opacity:0"
	set := func(at time.Duration, opacity int) { fmt.Fprintf(&b, "%s{opacity:%d}", k.percent(at), opacity) }
	if spans[0].from > 0 {
		set(0, 0)
	}
	for _, s := range spans {
		set(s.from, 1)
		if s.to < k.total {
			set(s.to, 0)
		}
		if s.from <= k.still && k.still < s.to {
			still = "opacity:1"
		}
	}
	return k.class(rule{b.String(), still})
}

// style is the CSS. What moves is animated only for whoever does not mind motion: others, and
// programs that know no animation, see the moment at which everything stands still.
func (k *keyframes) style() string {
	var b, moving strings.Builder
	for i, r := range k.rules {
		fmt.Fprintf(&b, ".k%d{%s}@keyframes k%d{%s}", i, r.still, i, r.frames)
		fmt.Fprintf(&moving, ".k%d{animation-name:k%d}", i, i)
	}
	fmt.Fprintf(&b, "@media(prefers-reduced-motion:no-preference){.a{animation:%.3fs step-end infinite}%s}", k.total.Seconds(), moving.String())
	return b.String()
}
