package demo

import (
	"context"
	"net/netip"

	"topdog/internal/daemon"
	"topdog/internal/lab/netns"
	"topdog/netio"
)

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
