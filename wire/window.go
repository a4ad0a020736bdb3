package wire

// windowSize is how far a packet may lag behind the newest one of its sender
// and still be accepted: the default that RFC 4303 section 3.4.3 recommends. It
// is also what fits a machine word. Two paths to one board, or multicast and
// unicast, reorder by a few packets at most.
const windowSize = 64

// window remembers which sequence numbers of one incarnation were heard (RFC
// 4303 section 3.4.3, RFC 6479).
type window struct {
	top   Sequence // the greatest one heard
	floor Sequence // everything below it was sent before we met the sender, and is refused
	heard uint64   // bit i says that top-i was heard
}

// newWindow returns the window of a sender whose first message has the given
// number. Numbers below floor are never accepted.
func newWindow(first, floor Sequence) window {
	return window{top: first, floor: floor, heard: 1}
}

// admit accepts a sequence number that was not heard before, once.
func (w *window) admit(s Sequence) DropReason {
	if s > w.top {
		// Go shifts everything out if the distance is 64 or more.
		w.heard = w.heard<<(s-w.top) | 1
		w.top = s
		return Accepted
	}
	lag := w.top - s
	if s < w.floor || lag >= windowSize {
		return Replayed
	}
	if w.heard&(1<<lag) != 0 {
		return Duplicate
	}
	w.heard |= 1 << lag
	return Accepted
}

// passed reports whether the window has moved beyond a number, heard or not.
func (w *window) passed(s Sequence) bool { return s < w.top && w.top-s >= windowSize }
