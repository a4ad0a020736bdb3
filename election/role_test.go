package election

import (
	"fmt"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

// TestImpossibleChanges: a change of role that is not in edges stops the
// program where it was made. That those in edges can be reached is what TestWalk shows.
func TestImpossibleChanges(t *testing.T) {
	for from := range roleCount {
		for to := range roleCount {
			b := newBoard(t)
			b.role = from
			got := panics(func() { b.become(to, 0, ReasonSilence) })
			assert.Is(t, edges[from][to], got == "", "%v -> %v is possible", from, to)
			if got != "" && !strings.Contains(got, fmt.Sprintf("%v -> %v (%v)", from, to, ReasonSilence)) {
				t.Errorf("%v -> %v panics with %q, which does not say what was impossible", from, to, got)
			}
		}
	}
}

// panics returns what f panicked with, or nothing.
func panics(f func()) (with string) {
	defer func() {
		if r := recover(); r != nil {
			with = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

// TestTermSaturates: the largest term stays, and does not become the smallest.
func TestTermSaturates(t *testing.T) {
	if got := nextTerm(7); got != 8 {
		t.Errorf("after term 7 comes %d", got)
	}
	if got := nextTerm(wire.MaxTerm); got != wire.MaxTerm {
		t.Errorf("after the largest term comes %d", got)
	}
}

func TestNames(t *testing.T) {
	for r := range roleCount {
		if r.String() == "" || strings.HasPrefix(r.String(), "role ") {
			t.Errorf("role %d has no name", uint8(r))
		}
	}
	for r := range reasonCount {
		if r.String() == "" {
			t.Errorf("reason %d has no text", uint8(r))
		}
	}
	if got := roleCount.String(); got != fmt.Sprintf("role %d", uint8(roleCount)) {
		t.Errorf("a role that does not exist is called %q", got)
	}
}
