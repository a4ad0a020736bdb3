package cluster

import (
	"testing"

	"topdog/internal/lab/assert"
)

// TestNoSuchBoard: a scene of a file may name more boards than there are.
func TestNoSuchBoard(t *testing.T) {
	s := &Stage{Boards: make([]*Topdog, 3)}
	for _, n := range []int{0, 4} {
		assert.ErrorContains(t, s.Start(n, nil), "this stage has 3 boards", "board %d", n)
	}
}
