package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Host is a machine on the LAN: a board or the client.
type Host struct {
	Name         string           // "board1", "client"
	Addr         netip.Prefix     // its own address; SetAddress changes it
	Addr6        netip.Prefix     // its own IPv6 address, if the LAN has IPv6
	HardwareAddr net.HardwareAddr // of Interface, also after CreateInterface
	Interface    string           // "eth0"

	lan    *LAN
	number int // board number, or clientNumber
	ns     netns.NsHandle
	nl     *netlink.Handle // rtnetlink inside ns

	// mu serialises what changes the cable, the interface or Addr.
	mu     sync.Mutex
	pulled bool // the cable; it survives the interface at its end
	exists bool // eth0 exists (with port<n> at the other end)
}

func newHost(l *LAN, name string, number int) *Host {
	return &Host{
		Name:         name,
		Addr:         nthAddress(Subnet, number),
		HardwareAddr: readableMAC(0, number),
		Interface:    "eth0",
		lan:          l,
		number:       number,
		ns:           netns.None(),
	}
}

// boot makes the host's namespace and plugs it into the switch.
func (h *Host) boot() (err error) {
	if h.ns, h.nl, err = newNamespace(""); err != nil {
		return err
	}
	// By this id the switch's netlink sockets can tell the host's notifications from others (see holderWatch).
	if err := h.lan.fabric.nl.SetNetNsIdByFd(int(h.ns), h.number); err != nil {
		return fmt.Errorf("give the namespace the id %d: %w", h.number, err)
	}
	return h.createInterface()
}

func (h *Host) free() { freeNamespace(&h.ns, h.nl) }

// Do runs fn on an OS thread of its own inside the host's namespace, and
// waits for it. Sockets that fn opens stay in the namespace wherever they are
// used later. Goroutines that fn starts run outside of it.
func (h *Host) Do(fn func() error) error {
	return onOwnThread(func() error {
		if err := h.lan.whileOpen(h.enter); err != nil {
			return err
		}
		// There is no way back to the old namespace, on purpose: the
		// thread ends with fn, so it can't return to the wrong one.
		return fn()
	})
}

// Within returns what open opens, with the calling thread in the host's namespace as Do has it.
func Within[T any](h *Host, open func() (T, error)) (v T, err error) {
	err = h.Do(func() (err error) {
		v, err = open()
		return err
	})
	return v, err
}

// Dial connects from this host to an address, a number, as net.Dialer.DialContext does. The
// connection stays in the host's network.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return Within(h, func() (net.Conn, error) { return new(net.Dialer).DialContext(ctx, network, address) })
}

// enter moves the calling thread into the host's namespace.
func (h *Host) enter() error {
	if err := netns.Set(h.ns); err != nil {
		return fmt.Errorf("netns: enter the namespace of %s: %w", h.Name, err)
	}
	return nil
}

// SetAddress replaces the host's own address, as a new DHCP lease would: the
// old one is removed first. Reading Addr meanwhile is a data race.
func (h *Host) SetAddress(prefix netip.Prefix) error {
	return h.change("set address "+prefix.String(), func() error {
		old := h.Addr
		h.Addr = prefix
		return h.ifExists(h.link(), func(eth0 netlink.Link) error {
			// It is all right if somebody else removed the old address already.
			if err := h.nl.AddrDel(eth0, kernelAddr(old)); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return fmt.Errorf("remove %s: %w", old, err)
			}
			return h.nl.AddrAdd(eth0, kernelAddr(prefix))
		})
	})
}

// SetHardwareAddr gives the host's interface another Ethernet address, as a bond that fails over does. The kernel
// announces nothing. Reading HardwareAddr meanwhile is a data race.
func (h *Host) SetHardwareAddr(mac net.HardwareAddr) error {
	return h.change("set the Ethernet address "+mac.String(), func() error {
		h.HardwareAddr = mac
		return h.ifExists(h.link(), func(eth0 netlink.Link) error { return h.nl.LinkSetHardwareAddr(eth0, mac) })
	})
}

// ForgetNeighbours has the host's kernel ask anew who has which address.
func (h *Host) ForgetNeighbours() error {
	return h.change("forget the neighbours", func() error {
		for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
			all, err := h.nl.NeighList(0, family)
			if err != nil {
				return err
			}
			for i := range all {
				if err := h.nl.NeighDel(&all[i]); err != nil && !errors.Is(err, unix.ENOENT) {
					return err
				}
			}
		}
		return nil
	})
}

// AddAddress adds one more address to the host's interface. The kernel
// announces nothing.
func (h *Host) AddAddress(prefix netip.Prefix) error {
	return h.change("add address "+prefix.String(), func() error { return h.nl.AddrAdd(h.link(), kernelAddr(prefix)) })
}

// DeleteAddress removes an address from whichever interface of the host has
// it, as a hand or a network manager would. If none has it the error wraps
// unix.EADDRNOTAVAIL, also if the interface that had it goes meanwhile.
func (h *Host) DeleteAddress(prefix netip.Prefix) error {
	return h.change("delete address "+prefix.String(), func() error {
		addrs, err := listAddrs(h.nl, familyOf(prefix.Addr()))
		if err != nil {
			return err
		}
		for _, a := range addrs {
			if prefixOf(a) != prefix {
				continue
			}
			// The kernel goes on listing the addresses of an interface that is being taken down, as a
			// TUN device is for milliseconds when the last process that has it open ends.
			if err := h.nl.AddrDel(linkIndex(a.LinkIndex), &a); !errors.Is(err, unix.ENODEV) {
				return err
			}
		}
		return unix.EADDRNOTAVAIL
	})
}

// Addresses returns the IPv4 addresses of all interfaces of the host, except
// 127.0.0.1, in ascending order.
func (h *Host) Addresses() ([]netip.Prefix, error) {
	var out []netip.Prefix
	err := h.lan.whileOpen(func() error {
		addrs, err := listAddrs(h.nl, unix.AF_INET)
		if err != nil {
			return fmt.Errorf("netns: %s: list addresses: %w", h.Name, err)
		}
		for _, a := range addrs {
			if p := prefixOf(a); !p.Addr().IsLoopback() {
				out = append(out, p)
			}
		}
		return nil
	})
	slices.SortFunc(out, netip.Prefix.Compare)
	return out, err
}

// link is the host's interface.
func (h *Host) link() netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: h.Interface}}
}

// ifExists changes one end of the cable, if the interface exists. Otherwise CreateInterface will use what has been changed.
func (h *Host) ifExists(end netlink.Link, change func(netlink.Link) error) error {
	if !h.exists {
		return nil
	}
	return change(end)
}

// change runs one alteration of the host at a time, and says in its error
// what was attempted where.
func (h *Host) change(what string, fn func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.lan.whileOpen(fn); err != nil {
		return fmt.Errorf("netns: %s: %s: %w", h.Name, what, err)
	}
	return nil
}

// familyOf is the kernel's number of an address's family.
func familyOf(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// listAddrs lists the addresses of a family in a namespace. The kernel marks a list
// that changed while it was being read; such a list is read again.
func listAddrs(nl *netlink.Handle, family int) ([]netlink.Addr, error) {
	const attempts = 10
	for i := 0; ; i++ {
		addrs, err := nl.AddrList(nil, family)
		if !errors.Is(err, netlink.ErrDumpInterrupted) || i == attempts {
			return addrs, err
		}
	}
}

// kernelAddr and prefixOf convert between the two ways to say "address with
// prefix length". An IPv6 address is there at once, without the second in which Linux asks whether another machine has it
// (RFC 4862, section 5.4).
func kernelAddr(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: &net.IPNet{
		IP:   p.Addr().AsSlice(),
		Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
	}}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

func prefixOf(a netlink.Addr) netip.Prefix {
	ip, _ := netip.AddrFromSlice(a.IP)
	bits, _ := a.Mask.Size()
	return netip.PrefixFrom(ip.Unmap(), bits)
}
