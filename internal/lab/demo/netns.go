package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/demopage"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/scene"
	"topdog/netio"
	"topdog/wire"
)

// namespaces is a LAN of network namespaces with a cable each. Its daemons run in this process, and not as those of the stage.
type namespaces struct {
	*cluster.Stage
	filters filters
}

func newNamespaces(boards int) (*namespaces, error) {
	if err := netns.Available(); err != nil {
		return nil, fmt.Errorf("--netns: %w (topdog demo without --netns needs no root)", err)
	}
	built, err := cluster.New(boards)
	if err != nil {
		return nil, err
	}
	s := &namespaces{Stage: &cluster.Stage{Cluster: built, Boards: make([]*cluster.Topdog, boards)}}
	for n := 1; n <= boards; n++ {
		if err := s.link(n, false, true); err != nil { // no board has power yet
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s *namespaces) about() string             { return "real veth cables" }
func (s *namespaces) floating() netip.Addr      { return cluster.Address }
func (s *namespaces) holders() *observe.Holders { return s.Cluster.Holders }
func (s *namespaces) close() error              { return s.Close() }

// board names topdog's default group: the LAN is this demo's alone, so no other demo can be on it.
func (s *namespaces) board(n int) (netip.Addr, string, netip.AddrPort) {
	b := s.LAN.Board(n)
	return b.Addr.Addr(), b.Interface, wire.DefaultGroup
}

func (s *namespaces) platform(n int, cfg *config.Config) daemon.Platform {
	p := within(s.LAN.Board(n), daemon.Real(cfg, daemon.RealOptions{}))
	open := p.OpenTransport
	p.OpenTransport = func(iface string, local netip.Addr) (daemon.Transport, error) {
		t, err := open(iface, local)
		return passing{t, func(netip.Addr) bool { return !s.filters.draw() }, func() bool { return true }}, err
	}
	return p
}

// link is up if both are: a board without power has no carrier either.
func (s *namespaces) link(n int, powered, plugged bool) error { return s.Cable(n, powered && plugged) }

func (s *namespaces) ask(interval time.Duration) (*observe.Asker, error) {
	return s.LAN.Ask(cluster.Address, interval)
}

// filter has the switch lose what it loses for certain. The daemons lose a share of the packets when they read them: not every
// kernel can lose some.
func (s *namespaces) filter(all []scene.Filter) error {
	s.filters.set(all)
	certain, _ := sharesApart(all)
	return s.Filter(certain)
}

// killed has nothing to do: nothing watches over the daemons.
func (s *namespaces) killed(int) {}

// cannot says what cannot be done with --netns.
func (s *namespaces) cannot(verb demopage.Verb) string {
	switch verb {
	case demopage.Kill, demopage.Freeze, demopage.Thaw:
		return "with --netns the daemons have no dead man's switch, since all of them are in one process; the demo without --netns plays it"
	}
	return ""
}

// within returns the platform of a daemon that is on a host: whatever opens something does it in
// the host's namespace. What is open stays there, wherever it is used.
func within(host *netns.Host, machine daemon.Platform) daemon.Platform {
	p := machine
	// It subscribes again after a failure, so all of it happens there.
	p.Watch = func(ctx context.Context, o netio.WatchOptions, notify func(netio.Snapshot)) error {
		return host.Do(func() error { return machine.Watch(ctx, o, notify) })
	}
	p.OpenTransport = func(iface string, local netip.Addr) (daemon.Transport, error) {
		return netns.Within(host, func() (daemon.Transport, error) { return machine.OpenTransport(iface, local) })
	}
	p.OpenAddresses = func(iface string, addresses []netip.Prefix) (daemon.Addresses, error) {
		h, err := netns.Within(host, func() (daemon.Addresses, error) { return machine.OpenAddresses(iface, addresses) })
		return hostAddresses{h, host}, err
	}
	p.OpenAnnouncer = func(index int, local netip.Addr) (daemon.Announcer, error) {
		a, err := netns.Within(host, func() (daemon.Announcer, error) { return machine.OpenAnnouncer(index, local) })
		if err != nil {
			return nil, err // the daemon would close one that there is
		}
		return hostAnnouncer{a, host}, nil
	}
	p.ReadNeighbours = func(index int) (netio.Neighbours, error) {
		return netns.Within(host, func() (netio.Neighbours, error) { return machine.ReadNeighbours(index) })
	}
	// The interfaces that a fence covers are named by their indexes, which mean others elsewhere.
	p.OpenFence = nil
	return p
}

// hostAddresses are Addresses on a host: it opens another device where the first one has gone.
type hostAddresses struct {
	daemon.Addresses
	host *netns.Host
}

func (h hostAddresses) Acquire() error { return h.host.Do(h.Addresses.Acquire) }

func (h hostAddresses) Renew() (restored bool, err error) {
	return netns.Within(h.host, h.Addresses.Renew)
}

// hostAnnouncer is an Announcer on a host: it opens the socket that counts frames when a doubt begins.
type hostAnnouncer struct {
	daemon.Announcer
	host *netns.Host
}

func (a hostAnnouncer) Doubt(d netio.Doubt) error {
	return a.host.Do(func() error { return a.Announcer.Doubt(d) })
}
