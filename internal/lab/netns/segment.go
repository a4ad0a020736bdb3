package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// namedNamespaces is where ip-netns(8) looks for namespaces with a name: files on which they are mounted.
const namedNamespaces = "/run/netns"

// Segment is a LAN for machines that bring a kernel of their own: emulated
// boards. It has the switch of a [LAN], in a namespace in which this machine
// has an address too, and a tap device for the cable of each board.
//
// A Segment with a name outlives the program, as boards do that run in the
// background; Delete ends it. One without a name is gone once neither this
// program nor a board is left.
type Segment struct {
	fabric *fabric
	name   string
}

// NewSegment builds a segment on which this machine has the address of host.
// With a name, `ip netns exec NAME` leads into it.
func NewSegment(name string, host netip.Prefix) (*Segment, error) {
	if name != "" {
		if err := makeRoom(name); err != nil {
			return nil, fmt.Errorf("netns: name the namespace %s: %w", name, err)
		}
	}
	f, err := newFabric(name)
	if err != nil {
		return nil, fmt.Errorf("netns: %w", err)
	}
	s, err := f.segment(host)
	if s.name = name; err != nil {
		return nil, errors.Join(fmt.Errorf("netns: %w", err), s.Delete())
	}
	return s, nil
}

// makeRoom makes sure that there is no namespace of this name, and removes what may be left of one.
func makeRoom(name string) error {
	path := filepath.Join(namedNamespaces, name)
	err := isNamespace(path)
	if err == nil {
		return fs.ErrExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Segment returns the switch of the LAN as a segment on which this machine has the address of host: machines with a
// kernel of their own are on one LAN with the hosts then. It ends with the LAN.
func (l *LAN) Segment(host netip.Prefix) (s *Segment, err error) {
	err = l.inSwitch("plug this machine into", func(f *fabric) error {
		s, err = f.segment(host)
		return err
	})
	return s, err
}

// segment gives this machine an address at the switch.
func (f *fabric) segment(host netip.Prefix) (*Segment, error) {
	s := &Segment{fabric: f}
	if err := f.nl.AddrAdd(f.bridge, kernelAddr(host)); err != nil {
		return s, fmt.Errorf("give this machine the address %s: %w", host, err)
	}
	return s, nil
}

// OpenSegment opens a segment that NewSegment has named. If there is none of
// that name the error is fs.ErrNotExist.
func OpenSegment(name string) (*Segment, error) {
	fail := func(err error) (*Segment, error) {
		return nil, fmt.Errorf("netns: open the segment %s: %w", name, err)
	}
	if err := isNamespace(filepath.Join(namedNamespaces, name)); err != nil {
		return fail(err)
	}
	ns, err := netns.GetFromName(name)
	if err != nil {
		return fail(err)
	}
	f := &fabric{ns: ns}
	if f.nl, err = netlink.NewHandleAt(ns); err == nil {
		f.bridge, err = f.nl.LinkByName("br0")
	}
	if err != nil {
		f.free()
		return fail(err)
	}
	return &Segment{fabric: f, name: name}, nil
}

// isNamespace tells a namespace from the empty file that is left where one was
// mounted before the machine was started again or the mount was lost.
func isNamespace(path string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	if st.Type != unix.NSFS_MAGIC && st.Type != unix.PROC_SUPER_MAGIC {
		return fmt.Errorf("%s is a left-over file and no namespace: %w", path, fs.ErrNotExist)
	}
	return nil
}

// Close frees this program's hold on the segment.
func (s *Segment) Close() { s.fabric.free() }

// Delete closes the segment and takes its name away. It goes when the last
// board on it has.
func (s *Segment) Delete() error {
	s.Close()
	if s.name == "" {
		return nil
	}
	if err := netns.DeleteNamed(s.name); err != nil {
		return fmt.Errorf("netns: delete the segment %s: %w", s.name, err)
	}
	return nil
}

// Do runs fn on an OS thread of its own on the segment, as [Host.Do] does.
func (s *Segment) Do(fn func() error) error { return s.fabric.do(fn) }

// Go is like Do, but does not wait: fn has its thread until it returns, and
// done is called with its error, or with the reason why it could not run.
func (s *Segment) Go(fn func() error, done func(error)) {
	goOnOwnThread(func() {
		if err := netns.Set(s.fabric.ns); err != nil {
			done(fmt.Errorf("netns: enter the segment: %w", err))
			return
		}
		done(fn())
	})
}

// TapPort is the port of machine n.
func TapPort(n int) Port { return Port(fmt.Sprintf("tap%d", n)) }

// Plug plugs the cable of a machine, which leads to a tap device, in at the switch or pulls it out. The machine's network adapter
// keeps its carrier.
func (s *Segment) Plug(tap string, in bool) error {
	set := s.fabric.nl.LinkSetDown
	if in {
		set = s.fabric.nl.LinkSetUp
	}
	link, err := s.fabric.nl.LinkByName(tap)
	if err == nil {
		err = set(link)
	}
	if err != nil {
		return fmt.Errorf("netns: plug or pull the cable %s: %w", tap, err)
	}
	return nil
}

// Plugged reports whether such a cable is plugged in.
func (s *Segment) Plugged(tap string) bool {
	link, err := s.fabric.nl.LinkByName(tap)
	return err == nil && link.Attrs().Flags&net.FlagUp != 0
}

// Tap makes sure that there is a tap device "tap<n>" on the switch, for the
// cable of machine n, and returns its name.
func (s *Segment) Tap(n int) (name string, err error) {
	name = string(TapPort(n))
	return name, s.tap(name, s.fabric.bridge)
}

// tap makes sure that there is a tap device on a bridge.
func (s *Segment) tap(name string, bridge netlink.Link) error {
	err := s.fabric.do(func() error {
		if _, err := s.fabric.nl.LinkByName(name); err == nil {
			return nil
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MasterIndex = name, bridge.Attrs().Index
		// Frames as they are, without the kernel's header of packet information.
		tap := &netlink.Tuntap{LinkAttrs: attrs, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI}
		if err := netlink.LinkAdd(tap); err != nil {
			return err
		}
		return s.fabric.nl.LinkSetUp(tap)
	})
	if err != nil {
		return fmt.Errorf("netns: make the tap device %s (is there a /dev/net/tun?): %w", name, err)
	}
	return nil
}
