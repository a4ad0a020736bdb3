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
	"topdog/wire"
)

// act does something to a board that is remembered as the cause of what follows.
func (c *Cluster) act(text string, do func() error) error {
	c.acting.Lock()
	defer c.acting.Unlock()
	c.mu.Lock()
	if len(c.deeds) == maxDeeds {
		c.deeds = append(c.deeds[:0], c.deeds[1:]...)
	}
	c.deeds = append(c.deeds, deed{time.Now(), text})
	c.mu.Unlock()
	err := do()
	c.update(func() {})
	return err
}

// SwitchOn gives a board power, or starts its daemon again.
func (c *Cluster) SwitchOn(n int) error {
	b := c.boards[n-1]
	return c.act("switched "+b.name+" on", func() error {
		if b.node != nil {
			return nil
		}
		if err := c.ground.power(n, true); err != nil {
			return err
		}
		return c.start(b)
	})
}

// start runs the node of a board.
func (c *Cluster) start(b *board) error {
	addr, iface, group := c.ground.board(b.number)
	cfg := &config.Config{
		Config: election.Config{
			ID: wire.IDFromAddr(addr), Name: b.name, Priority: priority,
			Interval: c.options.Heartbeat, Algorithm: c.options.Algorithm,
		},
		Addresses: []config.Address{{IP: c.ground.floating()}},
		Interface: iface,
		Group:     c.group,
		Key:       c.key,
		Multicast: group,
	}
	platform := c.ground.platform(b.number, cfg)
	platform.OpenLED = func(gpio.Spec) (gpio.LED, error) { return b.led, nil }
	n, err := daemon.New(cfg, platform, daemon.Options{
		Version: "demo", Observe: func(change election.Change) { c.observe(b, change) },
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", b.name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.node, b.stop, b.done, b.err = n, cancel, make(chan struct{}), nil
	c.update(func() {
		b.power, b.role, b.leader = running, election.Isolated, wire.Nobody
	})
	go c.run(ctx, b)
	return nil
}

// run runs a board's node to its end. A node that panics ends the show, and is
// reported when the terminal has been put in order.
func (c *Cluster) run(ctx context.Context, b *board) {
	defer close(b.done)
	defer func() {
		if p := recover(); p != nil {
			b.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			select {
			case c.failed <- fmt.Errorf("%s: %w", b.name, b.err):
			default: // another one was first
			}
		}
	}()
	b.err = b.node.Run(ctx)
}

// join waits until a board's node has ended.
func (b *board) join() error {
	if b.node == nil {
		return nil
	}
	<-b.done
	b.stop()
	b.node = nil
	if b.err != nil {
		return fmt.Errorf("%s: %w", b.name, b.err)
	}
	return nil
}

// CutPower ends a board as a power cut would, from one moment to the next and
// without a word to anybody.
func (c *Cluster) CutPower(n int) error {
	b := c.boards[n-1]
	return c.act("cut the power of "+b.name, func() error {
		if b.node != nil {
			b.node.Kill()
		}
		err := errors.Join(c.ground.power(n, false), b.join())
		c.update(func() { b.power, b.role, b.leader = powerOff, election.Isolated, wire.Nobody })
		return err
	})
}

// Stop ends a board's daemon in good order, as SIGTERM does.
func (c *Cluster) Stop(n int) error {
	b := c.boards[n-1]
	return c.act("stopped the daemon on "+b.name, func() error {
		if b.node == nil {
			return nil
		}
		b.stop()
		err := b.join()
		c.update(func() { b.power, b.role, b.leader = stopped, election.Isolated, wire.Nobody })
		return err
	})
}

// Cable pulls a board's cable out, or puts it back.
func (c *Cluster) Cable(n int, in bool) error {
	b := c.boards[n-1]
	text := "pulled the cable of " + b.name
	if in {
		text = "put the cable of " + b.name + " back"
	}
	return c.act(text, func() error {
		c.update(func() { b.cable = in })
		return c.ground.cable(n, in)
	})
}

// Resign has a board hand over the lead.
func (c *Cluster) Resign(ctx context.Context, n int) error {
	b := c.boards[n-1]
	return c.act("asked "+b.name+" to resign", func() error {
		if b.node == nil {
			return fmt.Errorf("%s does not run", b.name)
		}
		_, err := b.node.Resign(ctx)
		return err
	})
}
