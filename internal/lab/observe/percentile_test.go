package observe

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

func TestPercentile(t *testing.T) {
	for _, c := range []struct{ times, p, want int }{
		{0, 50, 0},
		{1, 1, 1}, {1, 50, 1}, {1, 100, 1},
		{2, 50, 1}, {2, 51, 2},
		{3, 50, 2}, {3, 95, 3},
		{19, 95, 19},
		{20, 95, 19}, {20, 96, 20}, {20, 50, 10}, {20, 100, 20},
		{100, 95, 95}, {101, 95, 96},
	} {
		var times []time.Duration
		for n := range c.times {
			times = append(times, time.Duration(n+1))
		}
		assert.Is(t, time.Duration(c.want), Percentile(times, c.p), "percentile %d of the first %d numbers", c.p, c.times)
	}
}
