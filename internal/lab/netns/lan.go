// Package netns builds a small LAN out of real Linux network namespaces: one
// switch, N boards with a cable each, and one client that behaves like a
// user's machine.
//
// It is for everything that must meet the real kernel rather than a fake of
// it: the namespace tests, "topdog demo --netns" and benchmarks. Nothing but
// netlink is used, no external tool, and root is needed (see [Available]).
//
// The parts and what stands for what:
//
//	switch   a namespace with a bridge; STP off, IGMP snooping off
//	cable    a veth pair; eth0 in the board, port<n> on the bridge
//	board    a namespace with eth0 and 10.77.0.<n>/24
//	client   a namespace with eth0 and 10.77.0.200/24
//
// With [LAN.AddIPv6] each of them has fd00:1::<n>/64 as well.
//
// The namespaces have no names. They live as long as a file descriptor, a
// thread or a process refers to them, so nothing is left behind when the
// program crashes. Any number of LANs can exist at the same time.
//
// Namespaces inherit the IPv4 sysctls of the machine (rp_filter, arp_ignore,
// promote_secondaries and so on) where the kernel is so configured; the lab
// changes none of them. /sys is the machine's as well: a process in a board
// must use netlink, not /sys/class/net, to see its own interfaces.
package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

const (
	// maxBoards is the greatest number of boards on one LAN: the addresses
	// below that of the client.
	maxBoards = clientNumber - 1

	// clientNumber is the last octet of the client's addresses.
	clientNumber = 200
)

// Subnet is that of every LAN, and Subnet6 that of those which have IPv6. LANs do not see each other.
var (
	Subnet  = netip.MustParsePrefix("10.77.0.0/24")
	Subnet6 = netip.MustParsePrefix("fd00:1::/64")
)

// errClosed is returned by operations on a LAN, or a part of it, after Close.
var errClosed = errors.New("the lab is closed")

// LAN is a running lab. Its methods may be called from several goroutines.
type LAN struct {
	boards []*Host
	client *Host
	hosts  []*Host // all of them
	fabric *fabric
	apart  bool // the second path of the boards has a switch of its own

	// mu is held for reading by whoever is about to use a namespace's file
	// descriptor, and for writing by Close. It is never held while waiting
	// for something that the caller or a child process decides.
	mu     sync.RWMutex
	closed bool

	closeOnce  func() error
	answerOnce func() error

	startedMu sync.Mutex
	ends      []func() // of all that observes
	processes []*Process
}

// New builds a LAN of so many boards, and returns when all its cables carry frames.
func New(boards int) (*LAN, error) {
	if boards < 1 || boards > maxBoards {
		return nil, fmt.Errorf("netns: %d boards: must be 1 to %d", boards, maxBoards)
	}
	l := &LAN{}
	l.closeOnce, l.answerOnce = sync.OnceValue(l.close), sync.OnceValue(l.answer)
	if err := l.build(boards); err != nil {
		l.Close() // Frees what exists so far; the first error is the one that explains.
		return nil, fmt.Errorf("netns: %w", err)
	}
	return l, nil
}

// build makes the switch and everything that is plugged into it.
func (l *LAN) build(boards int) error {
	f, err := newFabric("")
	if err != nil {
		return err
	}
	l.fabric = f

	for n := 1; n <= boards; n++ {
		l.hosts = append(l.hosts, newHost(l, fmt.Sprintf("board%d", n), n))
	}
	l.boards, l.client = l.hosts[:boards:boards], newHost(l, "client", clientNumber)
	l.hosts = append(l.hosts, l.client)
	for _, h := range l.hosts {
		if err := h.boot(); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	deadline := time.Now().Add(linkUpTimeout)
	for _, h := range l.hosts {
		if err := h.waitUp(deadline); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	return nil
}

// Available returns nil if a LAN can be built on this machine by this
// process, or else the reason why not, which is meant for testing.T.Skip.
// It finds out by building one (a few tens of milliseconds), once per process.
func Available() error { return available() }

var available = sync.OnceValue(func() error {
	if err := needsRoot(); err != nil {
		return err
	}
	l, err := New(1)
	if err != nil {
		return err
	}
	return l.Close()
})

func needsRoot() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("netns: network namespaces need root, but the effective user id is %d", uid)
	}
	return nil
}

// Board returns board n, counted from 1. It panics if there is no such
// board, as indexing a slice does.
func (l *LAN) Board(n int) *Host { return l.boards[n-1] }

// Client returns the user's machine.
func (l *LAN) Client() *Host { return l.client }

// AddIPv6 gives every board and the client an IPv6 address too, by which they can be reached at once: nobody asks whether
// another machine has it.
func (l *LAN) AddIPv6() error {
	for _, h := range l.hosts {
		err := h.change("add an IPv6 address", func() error {
			h.Addr6 = nthAddress(Subnet6, h.number)
			return h.ifExists(h.link(), func(eth0 netlink.Link) error { return h.nl.AddrAdd(eth0, kernelAddr(h.Addr6)) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends the observers and all processes that were started in the LAN,
// together with what those left behind in its namespaces, and frees
// everything. The kernel takes a namespace apart in the background.
// Calling Close again does nothing and returns the same result.
func (l *LAN) Close() error { return l.closeOnce() }

func (l *LAN) close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	// Nothing new can begin any more.
	l.startedMu.Lock()
	defer l.startedMu.Unlock()
	for _, end := range l.ends {
		end()
	}

	var errs []error
	for _, p := range l.processes {
		if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("netns: kill process %d: %w", p.PID, err))
			continue // Waiting for it might never end.
		}
		<-p.exited
	}
	// Daemons have children of their own, and a killed daemon can't end
	// them. Whoever still lives in one of our namespaces descends from us.
	errs = append(errs, endStrays(l.namespaces()))
	for _, p := range l.processes {
		p.awaitOutput()
	}

	for _, h := range l.hosts {
		h.free()
	}
	if l.fabric != nil {
		l.fabric.free()
	}
	return errors.Join(errs...)
}

// namespaces returns the handles of every namespace that exists.
func (l *LAN) namespaces() []netns.NsHandle {
	var all []netns.NsHandle
	if l.fabric != nil {
		all = append(all, l.fabric.ns)
	}
	for _, h := range l.hosts {
		if h.ns.IsOpen() {
			all = append(all, h.ns)
		}
	}
	return all
}

// whileOpen runs fn unless the LAN is closed, and keeps Close waiting
// meanwhile. Calls must not be nested.
func (l *LAN) whileOpen(fn func() error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return errClosed
	}
	return fn()
}

// inSwitch runs one alteration of the switch, and says in its error what was attempted.
func (l *LAN) inSwitch(what string, fn func(*fabric) error) error {
	if err := l.whileOpen(func() error { return fn(l.fabric) }); err != nil {
		return fmt.Errorf("netns: %s the switch: %w", what, err)
	}
	return nil
}

// readableMAC returns 02:00:00:00:<kind>:<n>: locally administered, the same
// in every run, and easy to find in a packet capture.
func readableMAC(kind, n int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0, 0, 0, byte(kind), byte(n)}
}

// nthAddress returns the n-th address of a subnet. In decimal digits it ends in n also where it is written in hexadecimal
// ones: so 200 is fd00:1::200.
func nthAddress(subnet netip.Prefix, n int) netip.Prefix {
	a := subnet.Addr().AsSlice()
	last := len(a) - 1
	if subnet.Addr().Is4() {
		a[last] = byte(n)
	} else {
		a[last-1], a[last] = byte(n/100), byte(n/10%10<<4|n%10)
	}
	addr, _ := netip.AddrFromSlice(a)
	return netip.PrefixFrom(addr, subnet.Bits())
}

// atEnd has Close end something that observes.
func (l *LAN) atEnd(end func()) {
	l.startedMu.Lock()
	defer l.startedMu.Unlock()
	l.ends = append(l.ends, end)
}

// linkIndex is shorthand for a link of which only the index matters.
func linkIndex(index int) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
}
