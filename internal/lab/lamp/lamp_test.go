package lamp

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
)

func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := NewRecorder("lamp", 3)
		for i := range 10 {
			time.Sleep(time.Second)
			assert.NoError(t, errors.Join(r.Set(i%2 == 0), r.Set(i%2 == 0)))
		}
		want := []Edge{{start.Add(8 * time.Second), false}, {start.Add(9 * time.Second), true}, {start.Add(10 * time.Second), false}}
		assert.Equal(t, want, r.Edges(), "the last three edges")
		if cap(r.edges) > 8 {
			t.Errorf("the Recorder grew to %d", cap(r.edges))
		}
	})
}
