package netio

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// RemoveLeftovers removes what a daemon that is no longer there may have left:
// the floating addresses on whatever device they are, and the TUN device. It is
// the last line of defence (ExecStopPost=topdog cleanup); normally there is
// nothing to do. It returns what it removed, in words.
//
// Only what topdog itself can have made is touched: an address must be one of
// addresses and a /32, so that an address that a person has given to the board
// stays, and the device must be a TUN device. An empty device means DefaultDevice.
func RemoveLeftovers(ns netns.NsHandle, device string, addresses []netip.Prefix) (removed []string, err error) {
	if device == "" {
		device = DefaultDevice
	}
	handle, err := openHandle(ns)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	failed := []error{}
	present, err := listAddrs(handle)
	if err != nil {
		failed = append(failed, err)
	}
	for _, a := range present {
		p, ok := prefixOf(a.IPNet)
		isOurs := slices.ContainsFunc(addresses, func(q netip.Prefix) bool { return q.Addr() == p.Addr() })
		if !ok || !p.IsSingleIP() || !isOurs {
			continue
		}
		name := fmt.Sprintf("address %s on interface %d", p.Addr(), a.LinkIndex)
		if link, err := handle.LinkByIndex(a.LinkIndex); err == nil {
			name = fmt.Sprintf("address %s on %s", p.Addr(), link.Attrs().Name)
		}
		switch err := handle.AddrDel(nil, &netlink.Addr{LinkIndex: a.LinkIndex, IPNet: hostNet(p.Addr())}); {
		case err == nil:
			removed = append(removed, name)
		case !errors.Is(err, unix.EADDRNOTAVAIL): // it lapsed just now
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	if link, err := handle.LinkByName(device); err == nil && isTUN(link) {
		if err := handle.LinkDel(link); err != nil {
			failed = append(failed, fmt.Errorf("device %s: %w", device, err))
		} else {
			removed = append(removed, "device "+device)
		}
	}
	if len(failed) > 0 {
		return removed, fmt.Errorf("netio: remove left-overs: %w", errors.Join(failed...))
	}
	return removed, nil
}

func isTUN(link netlink.Link) bool {
	tun, ok := link.(*netlink.Tuntap)
	return ok && tun.Mode == netlink.TUNTAP_MODE_TUN
}
