package explore

import "topdog/wire"

// window is the replay protection of package wire in a group without a key, for one sender:
// each sequence number is heard once, and of the last 64 only.
type window struct {
	lives [2]life // the present one, and the one before
}

type life struct {
	incarnation wire.Incarnation
	top         wire.Sequence
	heard       uint64
}

const windowSize = 64

func (w *window) admit(m *wire.Message) bool {
	for i := range w.lives {
		if l := &w.lives[i]; l.incarnation == m.Incarnation {
			return l.admit(m.Sequence)
		}
	}
	w.lives[1] = w.lives[0]
	w.lives[0] = life{m.Incarnation, m.Sequence, 1}
	return true
}

func (l *life) admit(s wire.Sequence) bool {
	if s > l.top {
		l.heard = l.heard<<(s-l.top) | 1
		l.top = s
		return true
	}
	lag := l.top - s
	if lag >= windowSize || l.heard&(1<<lag) != 0 {
		return false
	}
	l.heard |= 1 << lag
	return true
}
