package check

import (
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// A result is + or -; behind each stands the state that it leads to: p or f.
func TestCounter(t *testing.T) {
	for _, test := range []struct {
		name       string
		fact       bool // of the failures
		rise, fall int
		want       string
	}{
		{"the first result decides", false, 2, 3, "+p"},
		{"also if it is bad", false, 2, 3, "-f"},
		{"three strikes", false, 2, 3, "+p-p-p-f"},
		{"in a row", false, 2, 3, "+p-p-p+p-p-p-f"},
		{"up again", false, 2, 3, "-f+f+p"},
		{"also in a row", false, 3, 1, "-f+f+f-f+f+f+p-f"},
		{"a fact", true, 2, 3, "+p-f+f-f+f+p-f"},
		{"one is enough", false, 1, 1, "+p-f+p-f"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c counter
			var got strings.Builder
			for i := 0; i < len(test.want); i += 2 {
				before := c.state
				passed := test.want[i] == '+'
				if changed := c.count(passed, test.fact && !passed, test.rise, test.fall); changed != (before != c.state) {
					t.Errorf("after %q: changed is %v", test.want[:i+1], changed)
				}
				got.WriteByte(test.want[i])
				got.WriteByte("?pf"[c.state])
			}
			assert.Is(t, test.want, got.String(), "")
		})
	}
}
