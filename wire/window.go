package wire

// life is what the guard remembers of one life of a board: what it has heard with each key. A message
// that one key has signed changes nothing that is known by the other, so the thief of a key leaves
// nothing behind when the key is no longer accepted.
type life struct {
	incarnation Incarnation
	heard       [maxKeys]heard
}

// heard is what was heard with one key.
type heard struct {
	key    Fingerprint // 0 in a group without a key
	used   bool
	proven bool // the life has proven itself with this key
	window Window
}

// beginWith returns a life that has proven itself with that key, or needs no proof.
func beginWith(incarnation Incarnation, key Fingerprint, w Window) life {
	l := life{incarnation: incarnation}
	l.heard[0] = heard{key, true, true, w}
	return l
}

// with returns what was heard with a key, and what was heard with the other one. Each may be nil.
func (l *life) with(key Fingerprint) (its, other *heard) {
	for i := range l.heard {
		switch h := &l.heard[i]; {
		case !h.used:
		case h.key == key:
			its = h
		default:
			other = h
		}
	}
	return its, other
}

// provenWith reports whether the life has proven itself with the key.
func (l *life) provenWith(key Fingerprint) bool {
	its, _ := l.with(key)
	return its != nil && its.proven
}

// prove notes that the life has proven itself with a key, by an accepted message of that number. Messages
// that were sent before are refused from now on.
func (l *life) prove(key Fingerprint, s Sequence) {
	its, _ := l.with(key)
	its.proven = true
	its.window.floor = max(its.window.floor, s)
}

// admit accepts each number once with a key, unless it is too far below the greatest number that was
// heard with either key. The window of a key that was not heard before begins where that of the other one ends.
func (l *life) admit(key Fingerprint, s Sequence) DropReason {
	its, other := l.with(key)
	if its == nil {
		its = &l.heard[0]
		if its == other {
			its = &l.heard[1]
		}
		*its = heard{key: key, used: true, window: NewWindow(other.window.top, other.window.top)}
	}
	if other != nil && other.window.passed(s) {
		return Replayed
	}
	return its.window.Admit(s)
}

// keep forgets what was heard with other keys than these. It reports whether the life has proven
// itself with one of them.
func (l *life) keep(keys Keys) (proven bool) {
	for i := range l.heard {
		h := &l.heard[i]
		if !keys.Accept(h.key) {
			*h = heard{}
		}
		proven = proven || h.proven
	}
	return proven
}

// windowSize is how far a packet may lag behind the newest one of its sender
// and still be accepted: the default that RFC 4303 section 3.4.3 recommends. It
// is also what fits a machine word. Two paths to one board, or multicast and
// unicast, reorder by a few packets at most.
const windowSize = 64

// Window remembers which sequence numbers of one incarnation were heard (RFC
// 4303 section 3.4.3, RFC 6479).
type Window struct {
	top   Sequence // the greatest one heard
	floor Sequence // everything below it was sent before we met the sender, and is refused
	heard uint64   // bit i says that top-i was heard
}

// NewWindow returns the window of a sender whose first message has the given
// number. Numbers below floor are never accepted.
func NewWindow(first, floor Sequence) Window {
	return Window{top: first, floor: floor, heard: 1}
}

// Admit accepts a sequence number that was not heard before, once.
func (w *Window) Admit(s Sequence) DropReason {
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
func (w *Window) passed(s Sequence) bool { return s < w.top && w.top-s >= windowSize }
