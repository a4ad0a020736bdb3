package demo

import (
	"fmt"
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
		g.update(func() { b.deaf, b.mute = deaf, mute })
		return g.lan.impair(b.number, deaf, mute)
	})
}

// lose has all boards lose some per cent of the packets that they receive.
func (g *group) lose(percent int) error {
	text := fmt.Sprintf("let all boards lose %d %% of the packets", percent)
	return g.act(deed{demopage.Loss, 0, text}, func() error {
		g.update(func() { g.loss = percent })
		return g.lan.lose(float64(percent) / 100)
	})
}

// split lets the LAN fall in two.
func (g *group) split(apart []int) error {
	var names []string
	side := map[int]bool{}
	for _, n := range apart {
		names = append(names, g.name(n))
		side[n] = true
	}
	return g.act(deed{demopage.Split, 0, "split " + strings.Join(names, ", ") + " from the rest"}, func() error {
		g.update(func() {
			for _, b := range g.boards {
				b.apart = side[b.number]
			}
		})
		return g.lan.split(apart)
	})
}

// heal makes the LAN one again, which loses nothing.
func (g *group) heal() error {
	return g.act(deed{demopage.Heal, 0, "healed the LAN"}, func() error { return g.repair() })
}

// repair is heal without being an act of its own.
func (g *group) repair() error {
	g.update(func() {
		g.loss = 0
		for _, b := range g.boards {
			b.apart = false
		}
	})
	if err := g.lan.lose(0); err != nil {
		return err
	}
	return g.lan.split(nil)
}

// allOn makes everything as it was in the beginning, and has every daemon run.
func (g *group) allOn() error {
	return g.act(deed{demopage.AllOn, 0, "repaired everything and switched all boards on"}, func() error {
		if err := g.repair(); err != nil {
			return err
		}
		for _, b := range g.boards {
			if err := g.restore(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// restore makes a board as it was in the beginning, and switches it on.
func (g *group) restore(b *board) error {
	g.update(func() { b.deaf, b.mute, b.frozen, b.cable = false, false, false, true })
	if err := g.lan.impair(b.number, false, false); err != nil {
		return err
	}
	if err := g.lan.cable(b.number, true); err != nil {
		return err
	}
	if b.daemon != nil {
		b.gate.open()
		return nil
	}
	if err := g.lan.power(b.number, true); err != nil {
		return err
	}
	return g.start(b)
}
