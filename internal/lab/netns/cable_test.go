package netns

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// links are the notifications of the links of a host.
type links struct {
	t       *testing.T
	updates chan netlink.LinkUpdate
}

func watchLinks(t *testing.T, h *Host) links {
	t.Helper()
	ls := links{t, make(chan netlink.LinkUpdate)}
	done := make(chan struct{})
	must(t, netlink.LinkSubscribeAt(h.ns, ls.updates, done))
	t.Cleanup(func() { close(done) })
	return ls
}

// waitRunning waits until IFF_RUNNING of the host's eth0 is as wanted. That is
// how a program learns of its carrier.
func (ls links) waitRunning(want bool) time.Duration {
	ls.t.Helper()
	start := time.Now()
	for late := time.After(timeout); ; {
		select {
		case u := <-ls.updates:
			if u.Header.Type == unix.RTM_NEWLINK && u.Attrs().Name == "eth0" && (u.Flags&unix.IFF_RUNNING != 0) == want {
				return time.Since(start)
			}
		case <-late:
			ls.t.Fatalf("eth0 does not become running: %t", want)
		}
	}
}

// running reads the present IFF_RUNNING of a host.
func running(t testing.TB, h *Host) bool {
	t.Helper()
	eth0, err := h.nl.LinkByName(h.Interface)
	must(t, err)
	return eth0.Attrs().RawFlags&unix.IFF_RUNNING != 0
}

// checkTalk checks that a frame gets from one board to another.
func checkTalk(t *testing.T, from, to *Host) {
	t.Helper()
	conn := listen(t, to)
	defer conn.Close()
	say(t, from, to.Addr.Addr(), "still there?")
	if text, _ := hear(t, conn); text != "still there?" {
		t.Errorf("heard %q", text)
	}
}

func TestPullAndPlug(t *testing.T) {
	l := newLAN(t, 2)
	b := l.Board(1)
	ls := watchLinks(t, b)
	for range 3 {
		must(t, b.Pull())
		ls.waitRunning(false)
		if running(t, b) || !running(t, l.Board(2)) {
			t.Error("the wrong board lost its carrier")
		}
		must(t, b.Pull()) // Once more changes nothing.
		must(t, b.Plug())
		ls.waitRunning(true)
		checkTalk(t, b, l.Board(2))
	}
}

// The kernel reports a lost carrier at once or, if it takes the device for one
// without a peer (see portIndexBase), once a second. Each new eth0 has another
// index, and none may make that happen.
func TestLostCarrierIsReportedAtOnce(t *testing.T) {
	l := newLAN(t, 1)
	b := l.Board(1)
	for range 3 {
		ls := watchLinks(t, b)
		var late []time.Duration // once may be the machine
		for range 3 {
			must(t, b.Pull())
			if d := ls.waitRunning(false); d > 500*time.Millisecond {
				late = append(late, d)
			}
			must(t, b.Plug())
			ls.waitRunning(true)
		}
		if len(late) > 1 {
			t.Errorf("the board learned only after %v that its cable was pulled", late)
		}
		must(t, b.DeleteInterface())
		must(t, b.CreateInterface())
	}
}

func TestInterfaceDeletedAndCreated(t *testing.T) {
	l := newLAN(t, 2)
	b := l.Board(1)
	before, err := b.nl.LinkByName(b.Interface)
	must(t, err)

	must(t, b.DeleteInterface())
	if _, err := b.nl.LinkByName(b.Interface); err == nil {
		t.Error("eth0 is still there")
	}
	if addrs, err := b.Addresses(); err != nil || len(addrs) > 0 {
		t.Errorf("addresses without an interface: %v, %v", addrs, err)
	}
	if b.DeleteInterface() == nil {
		t.Error("eth0 could be deleted twice")
	}
	must(t, b.CreateInterface())
	if b.CreateInterface() == nil {
		t.Error("eth0 could be created twice")
	}
	after, err := b.nl.LinkByName(b.Interface)
	must(t, err)
	if before.Attrs().Index == after.Attrs().Index {
		t.Errorf("index is %d as before", after.Attrs().Index)
	}
	if !slices.Equal(after.Attrs().HardwareAddr, b.HardwareAddr) {
		t.Errorf("hardware address is %s, want %s", after.Attrs().HardwareAddr, b.HardwareAddr)
	}
	checkTalk(t, b, l.Board(2))
	checkTalk(t, l.Board(2), b)
}

// The cable and the interface are different things: pulling the cable of a
// missing adapter counts once the adapter is back.
func TestCableOutlivesInterface(t *testing.T) {
	l := newLAN(t, 2)
	b := l.Board(1)
	must(t, b.DeleteInterface())
	must(t, b.Pull())
	must(t, l.Filter(Cut(b.Port())...))
	must(t, b.CreateInterface())
	if running(t, b) {
		t.Error("carrier on a pulled cable")
	}
	ls := watchLinks(t, b)
	must(t, b.Plug())
	ls.waitRunning(true)
	must(t, l.Filter())
	checkTalk(t, b, l.Board(2))
}

func TestAddresses(t *testing.T) {
	l := newLAN(t, 1)
	b := l.Board(1)
	expect := func(want ...string) {
		t.Helper()
		addrs, err := b.Addresses()
		must(t, err)
		var got []string
		for _, a := range addrs {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("addresses %v, want %v", got, want)
		}
	}
	must(t, b.AddAddress(vip32))
	expect("10.77.0.1/24", "10.77.0.100/32")
	must(t, b.SetAddress(netip.MustParsePrefix("10.77.0.51/24")))
	expect("10.77.0.51/24", "10.77.0.100/32")
	must(t, b.DeleteAddress(vip32))
	expect("10.77.0.51/24")
	if err := b.DeleteAddress(vip32); err == nil {
		t.Error("an absent address could be deleted")
	}
	// The new address comes back with the interface, the old one doesn't.
	must(t, b.DeleteInterface())
	must(t, b.CreateInterface())
	expect("10.77.0.51/24")
	// Also when somebody has deleted it, and when there is no interface.
	must(t, b.DeleteAddress(b.Addr))
	must(t, b.SetAddress(netip.MustParsePrefix("10.77.0.52/24")))
	expect("10.77.0.52/24")
	must(t, b.DeleteInterface())
	must(t, b.SetAddress(netip.MustParsePrefix("10.77.0.53/24")))
	must(t, b.CreateInterface())
	expect("10.77.0.53/24")
}

// TestDeleteAddressOfAnInterfaceThatGoes has the interface go while its address is looked for, as a TUN
// device does whose process was killed: then the address is not there, and nothing has failed.
func TestDeleteAddressOfAnInterfaceThatGoes(t *testing.T) {
	l := newLAN(t, 1)
	b := l.Board(1)
	other, err := Within(b, func() (*netlink.Handle, error) { return netlink.NewHandle(unix.NETLINK_ROUTE) })
	must(t, err)
	defer other.Close()
	inTime := 0
	for range 30 {
		must(t, other.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "goes0"}, PeerName: "goes1"}))
		link, err := other.LinkByName("goes0")
		must(t, err)
		must(t, other.AddrAdd(link, kernelAddr(vip32)))
		must(t, other.LinkSetUp(link))
		gone := make(chan error)
		go func() { gone <- other.LinkDel(link) }()
		err = b.DeleteAddress(vip32)
		must(t, <-gone)
		switch {
		case err == nil:
			inTime++
		case !errors.Is(err, unix.EADDRNOTAVAIL):
			t.Fatal(err)
		}
	}
	t.Logf("removed the address before its interface had gone %d times", inTime)
}
