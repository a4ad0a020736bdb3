package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A floating IP usually lies in the subnet of the interface, and the board
// reaches its neighbours through its own address there. If it lies in another
// subnet, the /32 alone would leave the board without a way to answer. Then a
// route to that subnet is added with the floating IP as its source. The kernel
// removes such a route together with the address, so it cannot be left over.

// findRoutes works out which routes the addresses need on the interface as it is now.
func (f *FloatingIP) findRoutes() error {
	f.routes = nil
	if !slices.ContainsFunc(f.options.Addresses, func(p netip.Prefix) bool { return !p.IsSingleIP() }) {
		return nil
	}
	index, err := f.interfaceIndex()
	if err != nil {
		return err
	}
	addrs, err := listAddrs(f.handle)
	if err != nil {
		return err
	}
	var own []netip.Prefix
	for _, a := range addrs {
		if p, ok := prefixOf(a.IPNet); ok && a.LinkIndex == index {
			own = append(own, p)
		}
	}
	for _, p := range missingSubnets(f.options.Addresses, own) {
		f.routes = append(f.routes, &netlink.Route{
			LinkIndex: index,
			Scope:     netlink.SCOPE_LINK,
			Protocol:  unix.RTPROT_STATIC,
			Dst:       &net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)},
			Src:       p.Addr().AsSlice(),
		})
	}
	return nil
}

// missingSubnets returns those of the floating addresses, one for each subnet,
// whose subnet none of the interface's own addresses covers. The floating
// addresses themselves do not count as own: they are /32.
func missingSubnets(floating, own []netip.Prefix) []netip.Prefix {
	var missing []netip.Prefix
	for _, p := range floating {
		covers := func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }
		if !p.IsSingleIP() && !slices.ContainsFunc(own, covers) && !slices.ContainsFunc(missing, covers) {
			missing = append(missing, p)
		}
	}
	return missing
}

// ensureRoutes makes every route present and tells whether one had to be
// added: the kernel drops routes when the interface is switched off.
func (f *FloatingIP) ensureRoutes() (added bool, err error) {
	var failed []error
	for _, route := range f.routes {
		switch err := f.handle.RouteAdd(route); {
		case err == nil:
			added = true
		case !errors.Is(err, unix.EEXIST):
			failed = append(failed, fmt.Errorf("add route %s on %s: %w", route.Dst, f.options.Interface, withLinkDown(err)))
		}
	}
	return added, errors.Join(failed...)
}
