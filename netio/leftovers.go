package netio

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// RemoveLeftovers removes what a daemon that is no longer there may have left:
// the floating addresses on whatever device they are, and its TUN device. It is
// the last line of defence (ExecStopPost=topdog cleanup); normally there is
// nothing to do. It returns what it removed, in words.
//
// Only what topdog itself can have made is touched: an address must be one of
// addresses and a /32, so that an address that a person has given to the board
// stays, and the device must be a TUN device with a name of ours. Another daemon
// of this board may have one as well, so it must carry one of addresses, or else
// none at all and belong to no process.
func RemoveLeftovers(addresses []netip.Prefix) (removed []string, err error) {
	handle, err := openHandle()
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	removed, err = removeLeftovers(handle, addresses)
	if err != nil {
		err = fmt.Errorf("netio: remove left-overs: %w", err)
	}
	return removed, err
}

func removeLeftovers(handle *netlink.Handle, addresses []netip.Prefix) (removed []string, err error) {
	// What a device carried says whose it is, so it is listed before anything goes.
	present, err := listAddrs(handle)
	if err != nil {
		return nil, err
	}
	links, err := dump(handle.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var failed []error
	for _, link := range links {
		carries := slices.DeleteFunc(slices.Clone(present), func(a netlink.Addr) bool { return a.LinkIndex != link.Attrs().Index })
		ours := slices.DeleteFunc(slices.Clone(carries), func(a netlink.Addr) bool {
			p, ok := prefixOf(a.IPNet)
			return !ok || !p.IsSingleIP() || !slices.ContainsFunc(addresses, func(q netip.Prefix) bool { return q.Addr() == p.Addr() })
		})
		for _, a := range ours {
			what := fmt.Sprintf("address %s on %s", a.IP, link.Attrs().Name)
			switch err := handle.AddrDel(nil, &netlink.Addr{LinkIndex: a.LinkIndex, IPNet: a.IPNet}); {
			case err == nil:
				removed = append(removed, what)
			case !errors.Is(err, unix.EADDRNOTAVAIL): // it lapsed just now
				failed = append(failed, fmt.Errorf("%s: %w", what, err))
			}
		}
		if !isTUN(link) || !isDeviceName(link.Attrs().Name) || len(carries) > 0 && len(ours) == 0 {
			continue
		}
		what := "device " + link.Attrs().Name
		switch err := removeDevice(handle, link, len(ours) > 0); {
		case err == nil:
			removed = append(removed, what)
		case !errors.Is(err, unix.EBUSY): // another daemon, which does not lead, has it
			failed = append(failed, fmt.Errorf("%s: %w", what, err))
		}
	}
	return removed, errors.Join(failed...)
}

// removeDevice removes a TUN device, and unless it is ours says EBUSY if a process
// has it. To take it and let go of it is the only way to find that out that leaves
// no gap in which a process might take it.
func removeDevice(handle *netlink.Handle, link netlink.Link, ours bool) error {
	if ours {
		return handle.LinkDel(link)
	}
	file, _, err := openTUN(link.Attrs().Name)
	if err != nil {
		return err
	}
	return file.Close()
}

func isTUN(link netlink.Link) bool {
	tun, ok := link.(*netlink.Tuntap)
	return ok && tun.Mode == netlink.TUNTAP_MODE_TUN
}

// isDeviceName tells whether the kernel may have made the name from devicePattern.
func isDeviceName(name string) bool {
	number, ok := strings.CutPrefix(name, devicePrefix)
	n, err := strconv.Atoi(number)
	return ok && err == nil && strconv.Itoa(n) == number && n >= 0
}
