package netio

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// TestDefence counts which claims are answered within a minute.
func TestDefence(t *testing.T) {
	for _, test := range []struct {
		name  string
		every time.Duration
		want  int
	}{
		{"one a second", time.Second, 60},
		{"two a second", 500 * time.Millisecond, 120},
		{"ten a second", 100 * time.Millisecond, 124}, // five, and then two a second
		{"a flood", time.Millisecond, 124},
	} {
		var d Defence
		got := 0
		for at := time.Duration(0); at < time.Minute; at += test.every {
			if d.Answer(time.Hour + at) {
				got++
			}
		}
		assert.Is(t, test.want, got, "%s: claims that were answered", test.name)
	}
}
