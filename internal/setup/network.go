package setup

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"topdog/netio"
)

// network is what `topdog init` asks about the LAN.
type network struct {
	own    []ownAddress
	wayOut netip.Addr // the own address that reaches the world; invalid if none does
	// find returns the interface that an address belongs to.
	find func(netip.Addr) (netio.Choice, error)
	// owner asks who has an address; "" if nobody does. It is not known if nobody could be asked.
	owner func(iface string, address netip.Addr) (who string, known bool)
}

// ownAddress is an IPv4 address that this board has for itself, with its subnet.
type ownAddress struct {
	iface  string
	prefix netip.Prefix
}

func thisNetwork(ctx context.Context) network {
	n := network{own: ownAddresses(), find: netio.FindInterface}
	n.owner = func(iface string, address netip.Addr) (string, bool) { return ownerOf(ctx, iface, address) }
	// This "connection" sends nothing: it makes the kernel choose a route. The address is one for documentation (RFC 5737).
	if c, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		if local, ok := c.LocalAddr().(*net.UDPAddr); ok {
			n.wayOut = local.AddrPort().Addr().Unmap()
		}
		c.Close()
	}
	return n
}

// interfaceOf returns the interface that a floating address belongs to.
func (n network) interfaceOf(address netip.Addr) (netio.Choice, error) {
	// This comes first, because another interface in the same network would be found for it.
	if slices.ContainsFunc(n.own, func(a ownAddress) bool { return a.prefix.Addr() == address }) {
		return netio.Choice{}, fmt.Errorf("%s is this board's own address; the floating address is another one, which no machine has for itself", address)
	}
	found, err := n.find(address)
	if err != nil {
		return netio.Choice{}, fmt.Errorf("%w (for `topdog init` that is --interface NAME)", err)
	}
	if subnet := found.Prefix.Masked(); netio.IsEdge(address, subnet) {
		return netio.Choice{}, fmt.Errorf("%s is not an address for a machine: it is the first or the last of %s's network %s",
			address, found.Name, subnet)
	}
	return found, nil
}

// ownAddresses returns the IPv4 addresses that a board has for itself. A /32 is none of them: that is the floating address
// of a daemon that runs.
func ownAddresses() (own []ownAddress) {
	links, _ := net.Interfaces() // without them, nothing is suggested
	for _, link := range links {
		addrs, err := link.Addrs()
		if err != nil || link.Flags&net.FlagLoopback != 0 {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.IsSingleIP() {
				own = append(own, ownAddress{link.Name, p})
			}
		}
	}
	return own
}

// main returns the address by which this board reaches the world, or its only one if it reaches nothing.
func (n network) main() (main ownAddress, ok bool) {
	for _, a := range n.own {
		if a.prefix.Addr() == n.wayOut || len(n.own) == 1 {
			return a, true
		}
	}
	return ownAddress{}, false
}

// probeSpacing is shorter than RFC 5227, section 2.1, demands: this is advice to a person who waits, and
// the daemon probes again before it acquires the address.
const probeSpacing = 200 * time.Millisecond

func ownerOf(ctx context.Context, iface string, address netip.Addr) (who string, known bool) {
	link, err := net.InterfaceByName(iface)
	if err != nil || link.Flags&net.FlagRunning == 0 {
		return "", false
	}
	a, err := netio.OpenAnnouncer(link.Index, netip.Addr{})
	if err != nil {
		return "", false // not root, or no Ethernet
	}
	defer a.Close()
	mac, found, err := a.Probe(ctx, address, netio.ProbeCount, probeSpacing)
	switch {
	case err != nil:
		return "", false
	case found:
		return mac.String(), true
	}
	return "", true
}

// tries is how many addresses are asked about before there is no suggestion.
const tries = 8

// suggest returns the subnet that the boards are probably in, and a free address
// near its end: home routers hand out the middle. Either is invalid if it could not
// be found out.
func (n network) suggest() (subnet netip.Prefix, free netip.Addr) {
	main, ok := n.main()
	if !ok || main.prefix.Bits() > 28 {
		return netip.Prefix{}, netip.Addr{}
	}
	subnet = main.prefix.Masked()
	// From .250 of a /24 downwards: .254 is often the router's own.
	const fromTheEnd = 5
	address := netio.LastAddr(subnet)
	for range fromTheEnd - 1 {
		address = address.Prev()
	}
	for range tries {
		address = address.Prev()
		if address == main.prefix.Addr() {
			continue
		}
		owner, known := n.owner(main.iface, address)
		if !known {
			return subnet, netip.Addr{}
		}
		if owner == "" {
			return subnet, address
		}
	}
	return subnet, netip.Addr{}
}
