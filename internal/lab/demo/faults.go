package demo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"topdog/internal/lab/demopage"
)

// kill ends a board's daemon as SIGKILL does: it does nothing more, and what watches over it sees to
// the rest. The board keeps its power.
func (g *group) kill(n int) error {
	b := g.boards[n-1]
	return g.act(deed{demopage.Kill, n, "killed the daemon on " + b.name}, func() error {
		b.gate.shut()
		g.update(func() { b.gone(killed) })
		g.lan.killed(n)
		return b.end()
	})
}

// freeze has a board's daemon stand still, as SIGSTOP does, or go on.
func (g *group) freeze(n int, still bool) error {
	b := g.boards[n-1]
	done := deed{demopage.Thaw, n, "let the daemon on " + b.name + " go on"}
	if still {
		done = deed{demopage.Freeze, n, "froze the daemon on " + b.name}
	}
	return g.act(done, func() error {
		g.update(func() { b.frozen = still })
		if still {
			b.gate.shut()
		} else {
			b.gate.open()
		}
		return nil
	})
}

// impair makes a board deaf, mute, both or neither.
func (g *group) impair(done deed, deaf, mute bool) error {
	b := g.boards[done.board-1]
	return g.act(done, func() error {
		if err := g.lan.impair(b.number, deaf, mute); err != nil {
			return err
		}
		g.update(func() { b.deaf, b.mute = deaf, mute })
		return nil
	})
}

// lose has all boards lose some per cent of the packets that they receive.
func (g *group) lose(percent int) error {
	text := fmt.Sprintf("let all boards lose %d %% of the packets", percent)
	return g.act(deed{demopage.Loss, 0, text}, func() error { return g.setLoss(percent) })
}

// split lets the LAN fall in two.
func (g *group) split(apart []int) error {
	var names []string
	for _, n := range apart {
		names = append(names, g.name(n))
	}
	return g.act(deed{demopage.Split, 0, "split " + strings.Join(names, ", ") + " from the rest"}, func() error {
		return g.setApart(apart)
	})
}

// setLoss has all boards lose some per cent of the packets.
func (g *group) setLoss(percent int) error {
	if err := g.lan.lose(float64(percent) / 100); err != nil {
		return err
	}
	g.update(func() { g.loss = percent })
	return nil
}

// setApart has these boards be on the other part of the LAN than the client; none for one LAN.
func (g *group) setApart(apart []int) error {
	if err := g.lan.split(apart); err != nil {
		return err
	}
	g.update(func() {
		for _, b := range g.boards {
			b.apart = slices.Contains(apart, b.number)
		}
	})
	return nil
}

// heal makes the LAN one again, which loses nothing.
func (g *group) heal() error {
	return g.act(deed{demopage.Heal, 0, "healed the LAN"}, func() error { return g.repair() })
}

// repair is heal without being an act of its own.
func (g *group) repair() error { return errors.Join(g.setLoss(0), g.setApart(nil)) }

// allOn makes everything as it was in the beginning, and has every daemon run. What fails keeps nothing else from being done.
func (g *group) allOn() error {
	return g.act(deed{demopage.AllOn, 0, "repaired everything and switched all boards on"}, func() error {
		failed := []error{g.repair()}
		for _, b := range g.boards {
			failed = append(failed, g.restore(b))
		}
		return errors.Join(failed...)
	})
}

// restore makes a board as it was in the beginning, and switches it on.
func (g *group) restore(b *board) error {
	failed := []error{g.lan.impair(b.number, false, false), g.lan.cable(b.number, true)}
	g.update(func() {
		if failed[0] == nil {
			b.deaf, b.mute = false, false
		}
		b.cable = b.cable || failed[1] == nil
	})
	g.reap(b)
	if b.daemon != nil {
		g.update(func() { b.frozen = false })
		b.gate.open()
		return errors.Join(failed...)
	}
	err := g.lan.power(b.number, true)
	if err == nil {
		err = g.start(b)
	}
	return errors.Join(append(failed, err)...)
}
