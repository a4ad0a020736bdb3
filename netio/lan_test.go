package netio

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	labns "topdog/internal/lab/netns"

	"topdog/internal/lab/assert"
)

// testTimeout is how long a test waits for something that ought to happen within
// milliseconds. It only matters when the test fails, or the machine is very busy.
const testTimeout = 10 * time.Second

// lan is a bridge in a namespace of its own with some boards on it, each in
// its own namespace with one interface, eth0.
type lan struct {
	t      testing.TB
	bridge *netlink.Handle
	boards []*board
}

// board is one host on a lan.
type board struct {
	ns     netns.NsHandle
	handle *netlink.Handle
	addr   netip.Addr // 10.77.0.n/24
	port   string     // the bridge's end of the cable
}

// newLAN makes a lan with n boards. It skips the test when not run as root.
func newLAN(t testing.TB, n int) *lan {
	t.Helper()
	labns.ReserveTogether(t)
	l := &lan{t: t}
	_, l.bridge = newNamespace(t)
	must(t, l.bridge.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}))
	must(t, l.bridge.LinkSetUp(l.link(l.bridge, "br0")))
	for i := range n {
		b := &board{
			addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}),
			port: fmt.Sprintf("port%d", i+1),
		}
		b.ns, b.handle = newNamespace(t)
		l.boards = append(l.boards, b)
		l.plug(b)
	}
	return l
}

// plug makes the board's interface and connects it to the bridge.
func (l *lan) plug(b *board) {
	l.t.Helper()
	must(l.t, l.bridge.LinkAdd(&netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: b.port},
		PeerName:      "eth0",
		PeerNamespace: netlink.NsFd(b.ns),
	}))
	port := l.link(l.bridge, b.port)
	must(l.t, l.bridge.LinkSetMaster(port, l.link(l.bridge, "br0")))
	must(l.t, l.bridge.LinkSetUp(port))
	b.addAddr(l.t, "eth0", netip.PrefixFrom(b.addr, 24))
	must(l.t, b.handle.LinkSetUp(l.link(b.handle, "eth0")))
}

// addSecond gives the board another interface in the same LAN.
func (l *lan) addSecond(t testing.TB, b *board, name string) {
	t.Helper()
	must(t, b.handle.LinkAdd(&netlink.Macvlan{
		LinkAttrs: netlink.LinkAttrs{Name: name, ParentIndex: b.link(t, "eth0").Index}, Mode: netlink.MACVLAN_MODE_BRIDGE,
	}))
	must(t, b.handle.LinkSetUp(l.link(b.handle, name)))
}

// setCable pulls the board's cable, or puts it back, at the bridge's end.
func (l *lan) setCable(b *board, in bool) {
	l.t.Helper()
	if port := l.link(l.bridge, b.port); in {
		must(l.t, l.bridge.LinkSetUp(port))
	} else {
		must(l.t, l.bridge.LinkSetDown(port))
	}
}

func (l *lan) link(h *netlink.Handle, name string) netlink.Link {
	l.t.Helper()
	link, err := h.LinkByName(name)
	must(l.t, err)
	return link
}

func (b *board) link(t testing.TB, name string) *netlink.LinkAttrs {
	t.Helper()
	link, err := b.handle.LinkByName(name)
	must(t, err)
	return link.Attrs()
}

func (b *board) addAddr(t testing.TB, device string, p netip.Prefix) {
	t.Helper()
	must(t, b.handle.AddrAdd(nil, netlinkAddr(b.link(t, device).Index, p)))
}

func (b *board) delAddr(t testing.TB, device string, p netip.Prefix) {
	t.Helper()
	must(t, b.handle.AddrDel(nil, netlinkAddr(b.link(t, device).Index, p)))
}

// has tells whether the board has the address, on the device or on any if "".
func (b *board) has(t testing.TB, device string, addr netip.Addr) bool {
	t.Helper()
	addrs, err := listAddrs(b.handle)
	must(t, err)
	for _, a := range addrs {
		if p, ok := prefixOf(a.IPNet); ok && p.Addr() == addr && (device == "" || a.LinkIndex == b.link(t, device).Index) {
			return true
		}
	}
	return false
}

// onOwnThread runs something in a thread that may be changed: the runtime throws it away, since its goroutine ends with the
// thread still locked.
func onOwnThread[T any](do func() (T, error)) (v T, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		v, err = do()
	}()
	<-done
	return v, err
}

// on returns what open opens with the calling thread in the board's namespace; a nil board is this machine.
func on[T any](b *board, open func() (T, error)) (v T, err error) {
	if b == nil {
		return open()
	}
	return onOwnThread(func() (v T, err error) {
		if err := unix.Setns(int(b.ns), unix.CLONE_NEWNET); err != nil {
			return v, fmt.Errorf("enter a network namespace (needs CAP_SYS_ADMIN): %w", err)
		}
		return open()
	})
}

// in runs f there, and waits for it.
func (b *board) in(f func() error) error {
	_, err := on(b, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// do runs f in the board's namespace, where it must succeed.
func (b *board) do(t testing.TB, f func() error) {
	t.Helper()
	must(t, b.in(f))
}

// options are those of the group's sockets on the board.
func (b *board) options(floating ...netip.Addr) Options {
	return Options{Interface: "eth0", Local: b.addr, Group: testGroup, Floating: floating}
}

// open opens a Conn on a board.
func (b *board) open(o Options) (*Conn, error) {
	return on(b, func() (*Conn, error) { return Open(o) })
}

// openAnnouncer opens an Announcer on a board.
func (b *board) openAnnouncer(index int) (*Announcer, error) {
	return on(b, func() (*Announcer, error) { return OpenAnnouncer(index, b.addr, testVIP) })
}

// newFloatingIP opens a FloatingIP on a board.
func (b *board) newFloatingIP(o FloatingOptions) (*FloatingIP, error) {
	return on(b, func() (*FloatingIP, error) { return NewFloatingIP(o) })
}

func netlinkAddr(index int, p netip.Prefix) *netlink.Addr {
	return &netlink.Addr{LinkIndex: index, IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
}

// newNamespace makes a network namespace with loopback up. It ends with the test.
func newNamespace(t testing.TB) (netns.NsHandle, *netlink.Handle) {
	t.Helper()
	ns, err := onOwnThread(netns.New)
	must(t, err)
	t.Cleanup(func() { ns.Close() })
	handle, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	must(t, err)
	t.Cleanup(handle.Close)
	lo, err := handle.LinkByName("lo")
	must(t, err)
	must(t, handle.LinkSetUp(lo))
	return ns, handle
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(testTimeout)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("gave up after %s waiting until %s", testTimeout, what)
		}
	}
}

// receive takes the next value from a channel.
func receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(testTimeout):
		t.Fatalf("gave up after %s waiting for %s", testTimeout, what)
		panic("unreachable")
	}
}

var must = assert.NoError
