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
// the floating addresses on whatever device they are, and its TUN device. It runs
// after the daemon has ended (ExecStopPost=topdog cleanup), and normally finds
// nothing. It returns what it removed, in words.
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
	r := removal{handle: handle, addresses: addresses}
	if err := r.all(); err != nil {
		return r.removed, fmt.Errorf("netio: remove left-overs: %w", err)
	}
	return r.removed, nil
}

// removal is one call of RemoveLeftovers.
type removal struct {
	handle    *netlink.Handle
	addresses []netip.Prefix
	removed   []string
	failed    []error
}

func (r *removal) all() error {
	// The addresses of a device tell whose it is, so they are listed before anything is removed.
	present, err := listAddrs(r.handle)
	if err != nil {
		return err
	}
	links, err := dump(r.handle.LinkList)
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	for _, link := range links {
		ours, others := 0, 0
		for _, a := range present {
			switch {
			case a.LinkIndex != link.Attrs().Index:
			case r.isOurs(a):
				ours++
				r.address(link, a)
			default:
				others++
			}
		}
		if isTUN(link) && isDeviceName(link.Attrs().Name) && (ours > 0 || others == 0) {
			r.device(link, ours > 0)
		}
	}
	return errors.Join(r.failed...)
}

func (r *removal) isOurs(a netlink.Addr) bool {
	p, ok := prefixOf(a.IPNet)
	return ok && p.IsSingleIP() && slices.ContainsFunc(r.addresses, func(q netip.Prefix) bool { return q.Addr() == p.Addr() })
}

func (r *removal) address(link netlink.Link, a netlink.Addr) {
	err := r.handle.AddrDel(nil, &netlink.Addr{LinkIndex: a.LinkIndex, IPNet: a.IPNet})
	if isGone(err) {
		return // its lifetime ended just now, or its device went
	}
	r.note(fmt.Sprintf("address %s on %s", a.IP, link.Attrs().Name), err)
}

// device removes a TUN device. If it is not known to be ours, and a process has it open, it stays. The only way to
// find that out without a race is to open and close the device. The kernel still lists the device of a process that
// was just killed until it has removed it. Such a device goes by itself, and is no left-over.
func (r *removal) device(link netlink.Link, ours bool) {
	remove := r.reopen
	if ours {
		remove = r.handle.LinkDel
	}
	err := remove(link)
	switch {
	case errors.Is(err, unix.EBUSY): // another daemon, which does not lead, has it
	case errors.Is(err, unix.ENODEV): // it went by itself
	default:
		r.note("device "+link.Attrs().Name, err)
	}
}

// reopen opens a TUN device and closes it, which removes it. It returns ENODEV if the device had
// gone, so that another one of that name was opened.
func (r *removal) reopen(link netlink.Link) error {
	file, name, err := openTUN(link.Attrs().Name)
	if err != nil {
		return err
	}
	opened, err := r.handle.LinkByName(name)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if opened.Attrs().Index != link.Attrs().Index {
		return unix.ENODEV
	}
	return nil
}

func (r *removal) note(what string, err error) {
	if err != nil {
		r.failed = append(r.failed, fmt.Errorf("%s: %w", what, err))
		return
	}
	r.removed = append(r.removed, what)
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
