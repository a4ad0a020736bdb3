package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// openHandle opens a netlink socket that is kept open: a fresh one for each request costs three
// times as much.
func openHandle() (*netlink.Handle, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netio: open a netlink socket: %w", err)
	}
	return handle, nil
}

// removeAddress removes a floating address from a device. The error is unix.EADDRNOTAVAIL if the address
// is not there, and unix.ENODEV if the device is not.
func removeAddress(handle *netlink.Handle, link int, addr netip.Addr) error {
	return handle.AddrDel(nil, &netlink.Addr{LinkIndex: link, IPNet: hostNet(addr)})
}

// isGone reports whether an address could not be removed because it, or its device, is not there.
func isGone(err error) bool {
	return errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ENODEV)
}

// hostNet is the /32 of addr.
func hostNet(addr netip.Addr) *net.IPNet {
	return &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(32, 32)}
}

// listAddrs lists the IPv4 addresses of the host.
func listAddrs(handle *netlink.Handle) ([]netlink.Addr, error) {
	addrs, err := dump(func() ([]netlink.Addr, error) { return handle.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	return addrs, nil
}

// dump calls a listing again when something changed in the middle of it, which
// makes its result unreliable.
func dump[T any](list func() ([]T, error)) (all []T, err error) {
	for range 5 {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return all, err
}

// prefixOf converts netlink's form of an address; it is not ok for anything but IPv4.
func prefixOf(n *net.IPNet) (prefix netip.Prefix, ok bool) {
	if n == nil || n.IP.To4() == nil {
		return netip.Prefix{}, false
	}
	addr, _ := netip.AddrFromSlice(n.IP.To4())
	ones, bits := n.Mask.Size()
	if bits != 32 {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, ones), true
}
