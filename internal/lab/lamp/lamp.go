// Package lamp has a light that exists only in memory, for tests and for the demo's picture of the boards.
package lamp

import (
	"sync"
	"time"
)

// Edge is a change of the light.
type Edge struct {
	At time.Time // with a monotonic reading
	On bool
}

// Recorder is a gpio.LED that remembers when it was switched. Unlike other LEDs it may be used from several goroutines.
type Recorder struct {
	mu    sync.Mutex
	name  string
	limit int
	on    bool
	edges []Edge
}

// NewRecorder returns a dark light with a name for String. It remembers the last limit edges, and at least one.
func NewRecorder(name string, limit int) *Recorder {
	return &Recorder{name: name, limit: max(1, limit)}
}

// Set remembers a change of the light.
func (r *Recorder) Set(on bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on == r.on {
		return nil
	}
	r.on = on
	if len(r.edges) >= r.limit {
		r.edges = append(r.edges[:0], r.edges[len(r.edges)-r.limit+1:]...)
	}
	r.edges = append(r.edges, Edge{At: time.Now(), On: on})
	return nil
}

// Close switches the light off. A closed Recorder can be used again, so a function that opens LEDs may return the same
// one each time.
func (r *Recorder) Close() error { return r.Set(false) }

func (r *Recorder) String() string { return r.name }

// On reports whether the light is on now.
func (r *Recorder) On() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.on
}

// Edges returns a copy of the remembered changes, oldest first.
func (r *Recorder) Edges() []Edge {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Edge(nil), r.edges...)
}
