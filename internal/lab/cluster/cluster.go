// Package cluster runs daemons on the boards of a LAN of network namespaces, and waits for what
// they do.
//
// A [Cluster] is the LAN with a floating address and a record of who has it. A [Daemon] is a
// program on one of its boards, whatever it is; a [Topdog] is one with topdog's configuration,
// which can be asked for its status. [Cluster.Agreed] says whether several follow one leader: by
// their own words, and by what the kernels report.
//
// Everything that fails returns an error, so that tests and benchmarks can use it alike.
package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

// Address is the floating address of every cluster, in the LAN's default subnet, Address6 that of those which have IPv6 too, and
// Second that of the second group of boards which are in two.
var (
	Address  = netip.MustParseAddr("10.77.0.100")
	Address6 = netip.MustParseAddr("fd00:1::250")
	Second   = netip.MustParseAddr("10.77.0.101")
)

// Cluster is a LAN with a floating address. Its methods must not be called by several
// goroutines at once.
type Cluster struct {
	LAN      *netns.LAN
	Holders  *observe.Holders // of Address
	Holders6 *observe.Holders // of Address6; nil without IPv6

	began   time.Time
	daemons []*Daemon
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

// NewWithIPv6 is New with IPv6: a floating address of either family.
func NewWithIPv6(boards int) (*Cluster, error) {
	c, err := New(boards)
	if err != nil {
		return nil, err
	}
	if err = c.LAN.AddIPv6(); err == nil {
		c.Holders6, err = c.LAN.WatchHolders(Address6)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Addresses are the floating addresses.
func (c *Cluster) Addresses() []netip.Addr {
	if c.Holders6 == nil {
		return []netip.Addr{Address}
	}
	return []netip.Addr{Address, Address6}
}

// records are those of who has which address.
func (c *Cluster) records() []*observe.Holders {
	if c.Holders6 == nil {
		return []*observe.Holders{c.Holders}
	}
	return []*observe.Holders{c.Holders, c.Holders6}
}

// Lost is how many notifications about who has the addresses were lost, see observe.Holders.Lost.
func (c *Cluster) Lost() (lost int) {
	for _, record := range c.records() {
		lost += record.Lost()
	}
	return lost
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
	for _, d := range c.daemons {
		errs = append(errs, os.RemoveAll(d.Dir))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if lost := c.Lost(); lost > 0 {
		return fmt.Errorf("%w (%d of them)", ErrLost, lost)
	}
	return nil
}

const (
	// Timeout is how long to wait for what must happen. On a quiet machine everything
	// takes a second or two.
	Timeout = 20 * time.Second
	// pollInterval is how often Until looks. To ask a board takes a millisecond of processor, half of it the board's.
	pollInterval = 25 * time.Millisecond
)

// Until waits until nothing is missing any more. missing says what is, in words.
func Until(what string, missing func() string) error {
	for deadline := time.Now().Add(Timeout); ; time.Sleep(pollInterval) {
		lack := missing()
		if lack == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %v: %s", what, Timeout, lack)
		}
	}
}

// Agreed returns the leader that all members agree on: by their status they know each other and
// it, and by the kernels it alone has the address. Otherwise the error says what is missing.
func (c *Cluster) Agreed(members []*Topdog) (leader *Topdog, err error) {
	if len(members) == 0 {
		return nil, errors.New("there is nobody to agree")
	}
	for _, t := range members {
		s, err := t.Status()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(members, func(other *Topdog) bool { return other.String() == s.LeaderName })
		switch {
		case !s.Held():
			return nil, fmt.Errorf("%s (%s, because %s) sees no holder", t, s.Role, s.Reason)
		case i < 0:
			return nil, fmt.Errorf("%s follows %q (%s)", t, s.LeaderName, s.Leader)
		case leader != nil && members[i] != leader:
			return nil, fmt.Errorf("%s follows %s, %s follows %s", members[0], leader, t, members[i])
		}
		leader = members[i]
		if s.Holding != (leader == t) {
			return nil, fmt.Errorf("%s follows %s and Holding is %v", t, leader, s.Holding)
		}
		for _, other := range members {
			if !knows(s, other) {
				return nil, fmt.Errorf("%s does not know %s", t, other)
			}
		}
	}
	for i, record := range c.records() {
		if holders := record.Current(); !slices.Equal(holders, []int{leader.Number}) {
			return nil, fmt.Errorf("all follow %s, and %v is on %v", leader, c.Addresses()[i], holders)
		}
	}
	return leader, nil
}

// AwaitAgreed waits until the members agree on a leader, and returns it.
func (c *Cluster) AwaitAgreed(members []*Topdog) (leader *Topdog, err error) {
	err = Until("the boards agree on a leader", func() string {
		var lack error
		if leader, lack = c.Agreed(members); lack != nil {
			return lack.Error()
		}
		return ""
	})
	return leader, err
}

// knows reports whether a status shows a daemon as alive.
func knows(s console.Status, other *Topdog) bool {
	return slices.ContainsFunc(s.Boards, func(b console.Board) bool {
		return b.Name == other.String() && !b.Stale && !b.Gone
	})
}
