package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
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

// What nl80211 calls them (linux/nl80211.h). The library knows none of it.
const (
	nl80211GetPowerSave  = 0x3e
	nl80211AttrIfindex   = 3
	nl80211AttrPSState   = 0x5d
	nl80211PSEnabled     = 1
	nl80211Family        = "nl80211"
	nl80211FamilyVersion = 1
)

// PowerSave reports whether a Wi-Fi interface lets its radio sleep between the beacons of the access point. That is
// not known of other interfaces, and of drivers that do not report it.
func PowerSave(iface string, index int) (on, known bool) {
	if _, err := os.Stat(filepath.Join("/sys/class/net", iface, "phy80211")); err != nil {
		return false, false
	}
	family, err := netlink.GenlFamilyGet(nl80211Family)
	if err != nil {
		return false, false
	}
	request := nl.NewNetlinkRequest(int(family.ID), 0)
	request.AddData(&nl.Genlmsg{Command: nl80211GetPowerSave, Version: nl80211FamilyVersion})
	request.AddData(nl.NewRtAttr(nl80211AttrIfindex, nl.Uint32Attr(uint32(index))))
	answers, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil || len(answers) == 0 {
		return false, false
	}
	return powerSaveOf(answers[0])
}

// powerSaveOf reads the answer.
func powerSaveOf(answer []byte) (on, known bool) {
	if len(answer) < nl.SizeofGenlmsg {
		return false, false
	}
	attrs, err := nl.ParseRouteAttr(answer[nl.SizeofGenlmsg:])
	if err != nil {
		return false, false
	}
	for _, a := range attrs {
		if a.Attr.Type == nl80211AttrPSState && len(a.Value) >= 4 {
			return nl.NativeEndian().Uint32(a.Value) == nl80211PSEnabled, true
		}
	}
	return false, false
}
