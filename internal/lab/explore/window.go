package explore

import "topdog/wire"

// window is the replay protection of package wire in a group without a key, for one sender.
type window struct {
	lives [2]life // the present one, and the one before
}

type life struct {
	incarnation wire.Incarnation
	wire.Window
}

func (w *window) admit(m *wire.Message) bool {
	for i := range w.lives {
		if l := &w.lives[i]; l.incarnation == m.Incarnation {
			return l.Admit(m.Sequence) == wire.Accepted
		}
	}
	w.lives[1] = w.lives[0]
	w.lives[0] = life{m.Incarnation, wire.NewWindow(m.Sequence, 0)}
	return true
}
