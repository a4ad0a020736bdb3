package lease

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"topdog/election/clock"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// TestMajority: a time counts when a majority of all voters reaches it. A voter that has promised nothing (-), or that is
// there twice (!), reaches none, and counts among all nevertheless.
func TestMajority(t *testing.T) {
	const now = 5
	for _, test := range []struct {
		until string // by voter
		want  clock.Instant
	}{
		{"", 0},
		{"-", 0},
		{"7", 7},
		{"!7", 0},
		{"7 -", 0},
		{"7 9", 7},
		{"7 !9", 0},
		{"7 - -", 0},
		{"7 - 9", 7},
		{"9 9 8", 9},
		{"7 8 9", 8},
		{"!7 8 9", 8},
		{"7 8 !9", 7},
		{"!7 8 !9", 0},
		{"3 4 9", 4},
		{"7 8 9 -", 7},
		{"7 8 - -", 0},
		{"6 7 8 9", 7},
		{"- 9 - 8 7", 7},
		{"!9 !9 6 7 8", 6},
		{"!9 !9 !9 7 8", 0},
	} {
		var ids []wire.ID
		for i := range strings.Fields(test.until) {
			ids = append(ids, wire.ID(i+1))
		}
		s := NewSupport(ids)
		for i, until := range strings.Fields(test.until) {
			v := &s.Voters[i]
			if strings.HasPrefix(until, "!") {
				v.Twice = clock.Due(now + 1)
			}
			if n, err := strconv.Atoi(strings.TrimPrefix(until, "!")); err == nil {
				v.Count(&Sent{At: time.Duration(n) - 1, Ends: time.Duration(n)})
			}
		}
		assert.Is(t, test.want, s.End(now), "%q: the support ends", test.until)
		assert.Is(t, max(test.want-1, 0), s.Acked(now), "%q: acknowledged", test.until)
	}
}
