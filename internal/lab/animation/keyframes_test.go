package animation

import (
	"testing"
	"time"
)

// TestShown holds that what is shown for a while is hidden before and after, since each keyframe
// says what is so until the next one, and that it is seen in the still picture if it is its time.
func TestShown(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name          string
		spans         []span
		frames, still string
	}{
		{"in the middle", []span{{2 * s, 5 * s}}, "0%{opacity:0}20%{opacity:1}50%{opacity:0}", "opacity:1"},
		{"from the beginning", []span{{0, 4 * s}}, "0%{opacity:1}40%{opacity:0}", "opacity:0"},
		{"to the end", []span{{2500 * ms, 10 * s}}, "0%{opacity:0}25%{opacity:1}", "opacity:1"},
		{"twice", []span{{s, 2 * s}, {3 * s, 4 * s}}, "0%{opacity:0}10%{opacity:1}20%{opacity:0}30%{opacity:1}40%{opacity:0}", "opacity:0"},
		{"always", []span{{0, 10 * s}}, "0%{opacity:1}", "opacity:1"},
	} {
		k := &keyframes{total: 10 * s, still: 4 * s}
		class := k.shown(c.spans)
		if want := (rule{c.frames, c.still}); class != "a k0" || k.rules[0] != want {
			t.Errorf("%s: %s: %+v, want %+v", c.name, class, k.rules[0], want)
		}
	}
}
