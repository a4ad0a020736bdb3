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
	// find returns the interface that the address belongs to.
	find func(netip.Addr) (netio.Choice, error)
	// owner asks who has an address; "" if nobody does. It is not known if nobody could be asked.
	owner func(iface string, address netip.Addr) (who string, known bool)
	// own returns the board's own addresses on an interface.
	own func(iface string) []netip.Addr
	// main returns the interface of the way out, and its subnet with the board's own address.
	main func() (iface string, own netip.Prefix, ok bool)
}

func thisNetwork(ctx context.Context) network {
	return network{
		find: findNetwork,
		owner: func(iface string, address netip.Addr) (string, bool) {
			return ownerOf(ctx, iface, address)
		},
		own:  ownAddresses,
		main: mainNetwork,
	}
}

func findNetwork(address netip.Addr) (netio.Choice, error) {
	// This comes first, because another interface in the same network would be found for it.
	if isOwn(address) {
		return netio.Choice{}, fmt.Errorf("%s is this board's own address; the floating address is another one, which no machine has for itself", address)
	}
	found, err := netio.FindInterface(address)
	if err != nil {
		return netio.Choice{}, fmt.Errorf("%w (for `topdog init` that is --interface NAME)", err)
	}
	if subnet := found.Prefix.Masked(); netio.IsEdge(address, subnet) {
		return netio.Choice{}, fmt.Errorf("%s is not an address for a machine: it is the first or the last of %s's network %s",
			address, found.Name, subnet)
	}
	return found, nil
}

// isOwn reports whether the board has the address for itself.
func isOwn(address netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own4(addrs), func(p netip.Prefix) bool { return p.Addr() == address })
}

// ownAddresses returns the IPv4 addresses of an interface, without floating ones.
func ownAddresses(iface string) (own []netip.Addr) {
	link, err := net.InterfaceByName(iface)
	if err != nil {
		return nil
	}
	addrs, err := link.Addrs()
	if err != nil {
		return nil
	}
	for _, p := range own4(addrs) {
		own = append(own, p.Addr())
	}
	return own
}

// own4 returns the IPv4 addresses that a board has for itself. A /32 is none of them: that is the floating address of a
// daemon that runs.
func own4(addrs []net.Addr) (own []netip.Prefix) {
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.IsSingleIP() {
			own = append(own, p)
		}
	}
	return own
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

// mainNetwork finds the interface through which this board reaches the world, or its
// only one if it reaches nothing. The "connection" sends nothing: it makes the
// kernel choose a route. The address is one for documentation (RFC 5737).
func mainNetwork() (iface string, own netip.Prefix, ok bool) {
	wayOut := netip.Addr{}
	if c, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		if local, ok := c.LocalAddr().(*net.UDPAddr); ok {
			wayOut = local.AddrPort().Addr().Unmap()
		}
		c.Close()
	}
	links, err := net.Interfaces()
	if err != nil {
		return "", netip.Prefix{}, false
	}
	found := 0
	for _, link := range links {
		addrs, err := link.Addrs()
		if err != nil || link.Flags&net.FlagLoopback != 0 {
			continue
		}
		for _, p := range own4(addrs) {
			if p.Addr() == wayOut {
				return link.Name, p, true
			}
			iface, own = link.Name, p
			found++
		}
	}
	return iface, own, found == 1
}

// tries is how many addresses are asked about before there is no suggestion.
const tries = 8

// suggest returns the subnet that the boards are probably in, and a free address
// near its end: home routers hand out the middle. Either is invalid if it could not
// be found out.
func (n network) suggest() (subnet netip.Prefix, free netip.Addr) {
	iface, own, ok := n.main()
	if !ok || own.Bits() > 28 {
		return netip.Prefix{}, netip.Addr{}
	}
	subnet = own.Masked()
	// From .250 of a /24 downwards: .254 is often the router's own.
	const fromTheEnd = 5
	address := netio.LastAddr(subnet)
	for range fromTheEnd - 1 {
		address = address.Prev()
	}
	for range tries {
		address = address.Prev()
		if address == own.Addr() {
			continue
		}
		owner, known := n.owner(iface, address)
		if !known {
			return subnet, netip.Addr{}
		}
		if owner == "" {
			return subnet, address
		}
	}
	return subnet, netip.Addr{}
}
