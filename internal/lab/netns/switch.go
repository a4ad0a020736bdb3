package netns

import (
	"errors"
	"fmt"
)

// Halt lets the switch forward nothing, as one does that starts anew: the hosts keep their
// carriers, and it forgets which host is where. It takes a tenth of a millisecond.
func (l *LAN) Halt() error {
	return l.inSwitch("halt", func(f *fabric) error { return f.nl.LinkSetDown(f.bridge) })
}

// Resume lets the switch forward again, on all ports at once.
func (l *LAN) Resume() error {
	return l.inSwitch("resume", func(f *fabric) error { return f.nl.LinkSetUp(f.bridge) })
}

// Split lets the LAN fall in two: the given hosts reach only each other from now on, and so do
// all the rest, with the carrier of all cables as it was.
func (l *LAN) Split(apart ...*Host) error {
	return l.inSwitch("split", func(f *fabric) error {
		if err := f.divide(); err != nil {
			return err
		}
		for _, h := range apart {
			if err := h.join(true); err != nil {
				return err
			}
		}
		return nil
	})
}

// Join ends a split.
func (l *LAN) Join() error {
	return l.inSwitch("join", func(*fabric) (err error) {
		for _, h := range append(l.boards[:len(l.boards):len(l.boards)], l.client) {
			err = errors.Join(err, h.join(false))
		}
		return err
	})
}

// join brings the host's cable to one part of the switch or the other.
func (h *Host) join(apart bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cable.apart == apart {
		return nil
	}
	h.cable.apart = apart
	if !h.exists || h.cable.muted {
		return nil // CreateInterface or Unmute will do it.
	}
	if err := h.lan.fabric.nl.LinkSetMasterByIndex(h.port(), h.bridge().Attrs().Index); err != nil {
		return fmt.Errorf("move %s: %w", h.portName(), err)
	}
	return nil
}

// inSwitch runs one alteration of the switch, and says in its error what was attempted.
func (l *LAN) inSwitch(what string, fn func(*fabric) error) error {
	if err := l.whileOpen(func() error { return fn(l.fabric) }); err != nil {
		return fmt.Errorf("netns: %s the switch: %w", what, err)
	}
	return nil
}
