package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

// Address is the floating address of every cluster, in the LAN's default subnet.
var Address = netip.MustParseAddr("10.77.0.100")

// Cluster is a LAN with a floating address. Its methods must not be called by several
// goroutines at once.
type Cluster struct {
	LAN     *netns.LAN
	Holders *observe.Holders // of Address

	began   time.Time
	daemons []*Daemon
	// cleanup is what Close does when the daemons have ended. A demo that runs its
	// boards in its own process has nothing to clean up, and no code for it either.
	cleanup []func() error
}

// New builds a LAN of so many boards. Nothing runs on them yet. Close ends it.
func New(boards int) (*Cluster, error) {
	lan, err := netns.New(boards)
	if err != nil {
		return nil, err
	}
	c := &Cluster{LAN: lan, began: time.Now()}
	if c.Holders, err = lan.WatchHolders(Address); err != nil {
		return nil, errors.Join(err, lan.Close())
	}
	return c, nil
}

// Stop ends all daemons in good order, as an administrator would, and returns when they have
// ended or the time is over.
func (c *Cluster) Stop(within time.Duration) {
	for _, d := range c.daemons {
		if d.Running() {
			_ = d.Signal(syscall.SIGCONT)
			_ = d.Signal(syscall.SIGTERM)
		}
	}
	deadline := time.Now().Add(within)
	for _, d := range c.daemons {
		d.Ended(time.Until(deadline))
	}
}

// ErrLost says that notifications of the kernel were lost, so that nothing is known about two
// holders.
var ErrLost = errors.New("notifications of the kernel were lost, so nothing is known about two holders")

// Close kills what still runs, and removes the LAN and the daemons' directories. The error is
// ErrLost if nothing else went wrong.
func (c *Cluster) Close() error {
	errs := []error{c.LAN.Close()}
	for _, remove := range c.cleanup {
		errs = append(errs, remove())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if lost := c.Holders.Lost(); lost > 0 {
		return fmt.Errorf("%w (%d of them)", ErrLost, lost)
	}
	return nil
}
