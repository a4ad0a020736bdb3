package sim

import (
	"slices"

	"topdog/wire"
)

// SecondPath is the second path of all boards whose configuration has one. The address is not on it.
type SecondPath struct {
	Wire Wire // Duplicate and Reorder are not heeded
	// Cut says between which boards nothing passes; nil for none.
	Cut func(from, to *Board) bool
}

// transmitBySecondPath puts a copy of a datagram on the second path.
func (b *Board) transmitBySecondPath(d *datagram) {
	s := b.sim
	p := &s.Second
	for _, to := range s.boards {
		if to == b || !to.Config.SecondPath || d.to != wire.Nobody && d.to != to.Config.ID || p.Cut != nil && p.Cut(b, to) ||
			p.Wire.Loss > 0 && s.rng.Float64() < p.Wire.Loss {
			continue
		}
		s.At(p.Wire.Delay.sample(s.rng), func() { to.receiveBySecondPath(d) })
	}
}

// receiveBySecondPath is where a copy reaches a board. The second path has a replay guard of its own.
func (b *Board) receiveBySecondPath(d *datagram) {
	if b.core == nil || !fresh(&b.heardBySecondPath, len(b.sim.boards), d) {
		return
	}
	b.run(func() { b.act(b.core.StepBySecondPath(b.local(), &d.m)) })
}

// fresh does the replay guard's work, without the proofs: nobody lies here.
func fresh(heard *[]seen, boards int, d *datagram) bool {
	if more := boards + 1 - len(*heard); more > 0 {
		*heard = append(*heard, make([]seen, more)...)
	}
	h, m := &(*heard)[d.from.peer], &d.m
	if h.incarnation != m.Incarnation {
		*h = seen{m.Incarnation, wire.NewWindow(m.Sequence, 0)}
		return true
	}
	return h.window.Admit(m.Sequence) == wire.Accepted
}

// CutSecondPath cuts the second path of some boards, or of all if none is named. Nil ends that.
func (s *Sim) CutSecondPath(of ...*Board) {
	s.Second.Cut = func(from, to *Board) bool {
		return len(of) == 0 || slices.Contains(of, from) || slices.Contains(of, to)
	}
}
