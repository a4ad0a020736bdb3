package simpage

import (
	"testing"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

func TestRanges(t *testing.T) {
	for want, boards := range map[string][]wire.ID{
		"":                   nil,
		"3":                  {3},
		"2 and 3":            {3, 2},
		"1 to 3":             {2, 1, 3},
		"1 to 3 and 5":       {5, 2, 1, 3},
		"1, 3, 5 to 7 and 9": {9, 7, 6, 5, 3, 1},
	} {
		assert.Is(t, want, ranges(boards), "%v", boards)
	}
}
