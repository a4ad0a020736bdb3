package netio

import (
	"testing"
	"time"
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
		if got != test.want {
			t.Errorf("%s: %d claims were answered, want %d", test.name, got, test.want)
		}
	}
}
