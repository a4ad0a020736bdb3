package gpio

import (
	"sync"
	"time"
)

// An Edge is a change of the light.
type Edge struct {
	At time.Time // with a monotonic reading
	On bool
}

// Recorder is an LED that only remembers when it was switched, for tests and for the
// demo's picture of the boards. Unlike other LEDs it may be used from several
// goroutines. The zero value is not usable; see NewRecorder.
type Recorder struct {
	mu    sync.Mutex
	name  string
	limit int
	on    bool
	edges []Edge
}

// NewRecorder makes a dark LED with a name for String. It keeps the last limit
// edges and forgets older ones; a limit below 1 counts as 1.
func NewRecorder(name string, limit int) *Recorder {
	return &Recorder{name: name, limit: max(1, limit)}
}

// Set remembers a change. Setting what is already so is no change.
func (r *Recorder) Set(on bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(on)
	return nil
}

func (r *Recorder) set(on bool) {
	if on == r.on {
		return
	}
	r.on = on
	if len(r.edges) >= r.limit {
		r.edges = append(r.edges[:0], r.edges[len(r.edges)-r.limit+1:]...)
	}
	r.edges = append(r.edges, Edge{At: time.Now(), On: on})
}

// Close switches off. A closed Recorder can be used again, so that a function
// that opens LEDs may return the same one each time.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(false)
	return nil
}

func (r *Recorder) String() string { return r.name }

// On tells whether the light is on now.
func (r *Recorder) On() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.on
}

// Edges gives a copy of the changes that are remembered, oldest first.
func (r *Recorder) Edges() []Edge {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Edge(nil), r.edges...)
}
