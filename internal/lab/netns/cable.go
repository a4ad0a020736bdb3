package netns

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/frame"
)

// linkUpTimeout bounds how long New waits for carrier on all cables. It takes
// a few milliseconds; the bound is for a machine that is overloaded.
const linkUpTimeout = 5 * time.Second

// portIndexBase is added to a host's number to make the interface index of
// its switch port. The kernel delays its report of a lost carrier by up to a
// second when both ends of a veth happen to have the same index in their
// namespaces (linkwatch_urgent_event in net/core/link_watch.c takes such a
// device for one without a peer). Indices that a host never uses rule it out.
const portIndexBase = 1 << 16

// fabric is the switch: a bridge in a namespace of its own.
type fabric struct {
	ns     netns.NsHandle
	nl     *netlink.Handle
	bridge netlink.Link

	mu   sync.Mutex
	nft  *nftables.Conn // to what drops frames; nil until something is to be dropped
	sets uint32         // counts those of nft: the library would count those of all connections, without a lock
}

func newFabric(name string) (f *fabric, err error) {
	f = &fabric{}
	if f.ns, f.nl, err = newNamespace(name); err != nil {
		return nil, err
	}
	if err = f.do(f.silence); err == nil {
		f.bridge, err = f.createBridge("br0")
	}
	if err != nil {
		f.free()
		return nil, fmt.Errorf("set up the switch: %w", err)
	}
	return f, nil
}

// createBridge makes a bridge that forwards: there is no spanning tree, so no delay before a port forwards either, and no port
// that gets less than all multicasts.
func (f *fabric) createBridge(name string) (bridge netlink.Link, err error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	// Without an address of its own a bridge takes that of a port, and
	// changes it as ports come and go.
	attrs.HardwareAddr = readableMAC(0xff, 0)
	snooping := false
	if err := f.nl.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping}); err != nil {
		return nil, fmt.Errorf("create a bridge (does the kernel have bridge support?): %w", err)
	}
	if bridge, err = f.nl.LinkByName(name); err != nil {
		return nil, err
	}
	return bridge, f.nl.LinkSetUp(bridge)
}

func (f *fabric) free() {
	if f.nft != nil {
		_ = f.nft.CloseLasting() // what it drops it drops as long as the switch is there
	}
	freeNamespace(&f.ns, f.nl)
}

// do runs fn on a thread of its own inside the switch.
func (f *fabric) do(fn func() error) error {
	return onOwnThread(func() error {
		if err := netns.Set(f.ns); err != nil {
			return fmt.Errorf("enter the namespace of the switch: %w", err)
		}
		return fn()
	})
}

// silence turns IPv6 off in the switch, which would otherwise take part in
// the LAN with router solicitations and multicast reports on every port.
// It runs inside the switch.
func (f *fabric) silence() error {
	for _, name := range []string{"all", "default"} {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
		// No IPv6 in the kernel is just as well, and a read-only
		// /proc/sys (a container) costs no more than some noise.
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("turn IPv6 off in the switch: %w", err)
		}
	}
	return nil
}

// Port is where the host's cable ends.
func (h *Host) Port() Port { return Port(fmt.Sprintf("port%d", h.number)) }

// Capture opens a socket for the frames of the host's interface, see frame.Open.
func (h *Host) Capture(etherType uint16) (*frame.Socket, error) {
	return Within(h, func() (*frame.Socket, error) { return frame.Open(h.Interface, etherType) })
}

// CaptureAtPort does so at the switch, where the host's cable ends.
func (h *Host) CaptureAtPort(etherType uint16) (s *frame.Socket, err error) {
	err = h.lan.fabric.do(func() (err error) {
		s, err = frame.Open(string(h.Port()), etherType)
		return err
	})
	return s, err
}

func (h *Host) port() netlink.Link { return linkIndex(portIndexBase + h.number) }

// createInterface makes the veth pair with one end in the host and one in the
// switch, in the state that the cable is in, and gives the host its address.
func (h *Host) createInterface() error {
	f := h.lan.fabric
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Index, attrs.HardwareAddr = string(h.Port()), portIndexBase+h.number, readableMAC(0xff, h.number)
	attrs.MasterIndex = f.bridge.Attrs().Index
	if !h.pulled {
		attrs.Flags = net.FlagUp
	}
	cable := netlink.NewVeth(attrs)
	cable.PeerName, cable.PeerHardwareAddr, cable.PeerNamespace = h.Interface, h.HardwareAddr, netlink.NsFd(h.ns)
	if err := f.nl.LinkAdd(cable); err != nil {
		return fmt.Errorf("create the cable %s-%s (does the kernel have veth?): %w", h.Interface, h.Port(), err)
	}
	h.exists = true
	if err := h.nl.AddrAdd(h.link(), kernelAddr(h.Addr)); err != nil {
		return fmt.Errorf("give %s the address %s: %w", h.Interface, h.Addr, err)
	}
	if err := h.nl.LinkSetUp(h.link()); err != nil {
		return fmt.Errorf("set %s up: %w", h.Interface, err)
	}
	if h.Addr6.IsValid() { // An interface that is not up has none.
		if err := h.nl.AddrAdd(h.link(), kernelAddr(h.Addr6)); err != nil {
			return fmt.Errorf("give %s the address %s: %w", h.Interface, h.Addr6, err)
		}
	}
	return nil
}

// Pull pulls the cable out at the switch: no frame passes any more, and the
// host loses its carrier. Both happen early in the call, and the kernel may
// take milliseconds to return: measure from before it.
func (h *Host) Pull() error {
	return h.change("pull the cable", func() error {
		h.pulled = true
		return h.ifExists(h.port(), h.lan.fabric.nl.LinkSetDown)
	})
}

// Plug puts the cable back.
func (h *Host) Plug() error {
	return h.change("plug the cable in", func() error {
		h.pulled = false
		return h.ifExists(h.port(), h.lan.fabric.nl.LinkSetUp)
	})
}

// waitUp waits until both ends of the host's cable carry frames. The bridge forwards on a port from then on.
func (h *Host) waitUp(deadline time.Time) error { return h.awaitUp(h.Interface, h.Port(), deadline) }

// awaitUp does so for the cable from an interface of the host to a port.
func (h *Host) awaitUp(iface string, port Port, deadline time.Time) error {
	for _, end := range []struct {
		nl   *netlink.Handle
		name string
	}{{h.nl, iface}, {h.lan.fabric.nl, string(port)}} {
		for ; ; time.Sleep(time.Millisecond) {
			link, err := end.nl.LinkByName(end.name)
			if err != nil {
				return err
			}
			if link.Attrs().OperState == netlink.OperUp {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s does not come up: it is %s", end.name, link.Attrs().OperState)
			}
		}
	}
	return nil
}

// DeleteInterface makes eth0 vanish with all its addresses, as a USB Ethernet
// adapter does when it is pulled out.
func (h *Host) DeleteInterface() error {
	return h.change("delete "+h.Interface, func() error {
		if !h.exists {
			return errors.New("it does not exist")
		}
		// The kernel deletes a veth pair as a whole.
		if err := h.lan.fabric.nl.LinkDel(h.port()); err != nil {
			return err
		}
		h.exists = false
		return nil
	})
}

// CreateInterface brings eth0 back after DeleteInterface: another index, the
// same name, hardware address and own address. The cable is as it was left.
func (h *Host) CreateInterface() error {
	return h.change("create "+h.Interface, func() error {
		if h.exists {
			return errors.New("it exists")
		}
		return h.createInterface()
	})
}
