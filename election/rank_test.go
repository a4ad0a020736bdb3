package election

import (
	"testing"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

func TestRank(t *testing.T) {
	for _, test := range []struct {
		a, b  Rank
		above bool
	}{
		{Rank{Priority: 100, ID: 2}, Rank{Priority: 100, ID: 1}, true},
		{Rank{Priority: 100, ID: 1}, Rank{Priority: 100, ID: 2}, false},
		{Rank{Priority: 101, ID: 1}, Rank{Priority: 100, ID: 2}, true}, // the priority comes first
		{Rank{Priority: 100, ID: 2}, Rank{Priority: 101, ID: 1}, false},
		{Rank{Priority: 100, ID: 1}, Rank{Priority: 100, ID: 1}, false}, // not above itself
		{Rank{Priority: 1, ID: 1}, Rank{Priority: 0, ID: 1 << 31}, true},
		{Rank{Priority: 100, ID: 1 << 31}, Rank{Priority: 100, ID: 1}, true}, // ids are not signed
		// The grade comes before the priority.
		{Rank{Priority: 100, ID: 1}, Rank{Grade: wire.GradeProbation, Priority: 200, ID: 2}, true},
		{Rank{Grade: wire.GradeProbation, Priority: 100, ID: 1}, Rank{Grade: wire.GradeDrained, Priority: 200, ID: 2}, true},
		{Rank{Grade: wire.GradeDrained, Priority: 100, ID: 1}, Rank{Grade: wire.GradeFailing, Priority: 200, ID: 2}, true},
		{Rank{Grade: wire.GradeFailing, Priority: 200, ID: 1}, Rank{Grade: wire.GradeFailing, Priority: 100, ID: 2}, true},
		// Who may lead at all comes before the grade.
		{Rank{Grade: wire.GradeFailing, Priority: 1, ID: 1}, Rank{Priority: 0, ID: 2}, true},
		{Rank{Priority: 0, ID: 2}, Rank{Grade: wire.GradeFailing, Priority: 1, ID: 1}, false},
	} {
		assert.Is(t, test.above, (&Core{}).above(test.a, test.b), "%v above %v", test.a, test.b)
	}
	if (Rank{Priority: 0, ID: 9}).Eligible() {
		t.Error("a board of priority 0 may lead")
	}
	if !(Rank{Priority: 1, ID: 9}).Eligible() {
		t.Error("a board of priority 1 must not lead")
	}
	if got, want := (Rank{Priority: 100, ID: 0x0a000005}).String(), "100/10.0.0.5"; got != want {
		t.Errorf("a rank is written %q, want %q", got, want)
	}
}
