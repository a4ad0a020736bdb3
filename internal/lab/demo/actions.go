package demo

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"topdog/election"
	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/internal/lab/demopage"
	"topdog/wire"
)

// act does something that is remembered as the cause of what follows.
func (g *group) act(d deed, do func() error) error {
	g.acting.Lock()
	defer g.acting.Unlock()
	g.mu.Lock()
	if len(g.actions) == maxActions {
		g.actions = append(g.actions[:0], g.actions[1:]...)
	}
	g.acted++
	g.actions = append(g.actions, action{g.acted, time.Now(), d})
	g.mu.Unlock()
	err := do()
	g.update(func() {})
	return err
}

// switchOn gives a board power, or starts its daemon again.
func (g *group) switchOn(n int) error {
	b := g.boards[n-1]
	done := deed{demopage.PowerOn, n, "switched " + b.name + " on"}
	if s := g.state(n).power; s == stopped || s == killed || s == ended {
		done = deed{demopage.Start, n, "started the daemon on " + b.name}
	}
	return g.act(done, func() error {
		g.reap(b)
		if b.daemon != nil {
			return nil
		}
		if err := g.lan.power(n, true); err != nil {
			return err
		}
		return g.start(b)
	})
}

// start runs the daemon of a board.
func (g *group) start(b *board) error {
	addr, iface, group := g.lan.board(b.number)
	cfg := &config.Config{
		Config: election.Config{
			ID: wire.IDFromAddr(addr), Name: b.name, Priority: priority,
			Interval: g.options.Heartbeat, Algorithm: g.options.Algorithm,
		},
		Addresses: []config.Address{{IP: g.lan.floating()}},
		Interface: iface,
		Group:     g.groupName,
		Keys:      config.Keyring{Signs: g.key},
		Multicast: group,
	}
	platform := g.lan.platform(b.number, cfg)
	platform.OpenLED = func(gpio.Spec) (gpio.LED, error) { return b.led, nil }
	b.gate = &gate{}
	n, err := daemon.New(cfg, gated(platform, b.gate), daemon.Options{
		Version: "demo", Observe: func(change election.Change) { g.observe(b, change) },
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", b.name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.daemon, b.stop, b.done, b.err = n, cancel, make(chan struct{}), nil
	g.update(func() {
		b.asked, b.power, b.role, b.leader, b.why = n, running, election.Isolated, wire.Nobody, ""
	})
	go g.run(ctx, b)
	return nil
}

// run runs a board's daemon to its end. A daemon that panics ends the show, and is
// reported when the terminal has been put in order.
func (g *group) run(ctx context.Context, b *board) {
	defer close(b.done)
	defer func() {
		if p := recover(); p != nil {
			b.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			select {
			case g.failed <- fmt.Errorf("%s: %w", b.name, b.err):
			default: // another one was first
			}
		}
	}()
	b.err = b.daemon.Run(ctx)
	g.noteEnd(ctx, b)
}

// noteEnd notes that a daemon has ended, if nobody made it end.
func (g *group) noteEnd(ctx context.Context, b *board) {
	g.update(func() {
		if b.power != running || ctx.Err() != nil {
			return
		}
		b.gone(ended)
		b.why = "it ended by itself, without an error"
		if b.err != nil {
			b.why = b.err.Error()
		}
	})
}

// reap makes room for the next daemon of a board whose daemon has ended by itself. Its error is told when the show ends.
func (g *group) reap(b *board) {
	if g.state(b.number).power == ended {
		g.errs = append(g.errs, b.join())
	}
}

// join waits until a board's daemon has ended.
func (b *board) join() error {
	if b.daemon == nil {
		return nil
	}
	<-b.done
	b.stop()
	b.daemon = nil
	if b.err != nil {
		return fmt.Errorf("%s: %w", b.name, b.err)
	}
	return nil
}

// end ends a board's daemon of which nothing is to be seen or heard any more.
func (b *board) end() error {
	if b.daemon == nil {
		return nil
	}
	b.daemon.Kill()
	b.gate.end()
	return b.join()
}

// gone notes that the board's daemon is no more. The group's mu is held.
func (b *board) gone(why power) {
	b.asked, b.power, b.frozen, b.role, b.leader, b.why = nil, why, false, election.Isolated, wire.Nobody, ""
}

// cutPower ends a board as a power cut would, from one moment to the next and
// without a word to anybody.
func (g *group) cutPower(n int) error {
	b := g.boards[n-1]
	return g.act(deed{demopage.PowerOff, n, "cut the power of " + b.name}, func() error {
		g.reap(b)
		g.update(func() { b.gone(powerOff) }) // first: it does not end by itself
		if b.daemon != nil {
			b.daemon.Kill()
		}
		err := g.lan.power(n, false)
		return errors.Join(err, b.end())
	})
}

// stop ends a board's daemon in good order, as SIGTERM does.
func (g *group) stop(n int) error {
	b := g.boards[n-1]
	return g.act(deed{demopage.Stop, n, "stopped the daemon on " + b.name}, func() error {
		if b.daemon == nil {
			return nil
		}
		b.stop()
		err := b.join()
		g.update(func() { b.gone(stopped) })
		return err
	})
}

// cable pulls a board's cable out, or puts it back.
func (g *group) cable(n int, in bool) error {
	b := g.boards[n-1]
	done := deed{demopage.CableOut, n, "pulled the cable of " + b.name}
	if in {
		done = deed{demopage.CableIn, n, "put the cable of " + b.name + " back"}
	}
	return g.act(done, func() error {
		if err := g.lan.cable(n, in); err != nil {
			return err
		}
		g.update(func() { b.cable = in })
		return nil
	})
}

// resign has a board hand over the lead.
func (g *group) resign(ctx context.Context, n int) error {
	b := g.boards[n-1]
	return g.act(deed{demopage.Resign, n, "asked " + b.name + " to resign"}, func() error {
		if b.daemon == nil {
			return fmt.Errorf("%s does not run", b.name)
		}
		_, err := b.daemon.Resign(ctx)
		return err
	})
}
