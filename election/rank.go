package election

import (
	"fmt"

	"topdog/wire"
)

// Rank orders boards: first by priority, then by id. Higher wins.
type Rank struct {
	Priority uint8
	ID       wire.ID
}

// Above reports whether r outranks other.
func (r Rank) Above(other Rank) bool {
	if r.Priority != other.Priority {
		return r.Priority > other.Priority
	}
	return r.ID > other.ID
}

// Eligible reports whether a board of this rank may lead: priority 0 says never.
func (r Rank) Eligible() bool { return r.Priority > 0 }

func (r Rank) String() string { return fmt.Sprintf("%d/%s", r.Priority, r.ID) }

func rankOf(h *wire.Header) Rank { return Rank{Priority: h.Priority, ID: h.Sender} }
