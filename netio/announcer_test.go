package netio

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

func openTestAnnouncer(t testing.TB, b *board) *Announcer {
	t.Helper()
	eth0 := b.link(t, "eth0")
	a, err := b.openAnnouncer(eth0.Index)
	must(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// hasOwner tells whether somebody has the address.
func (a *Announcer) hasOwner(t testing.TB, addr netip.Addr, times int, spacing time.Duration) bool {
	t.Helper()
	_, found, err := a.Probe(t.Context(), addr, times, spacing)
	must(t, err)
	return found
}

// sendAs sends a packet as it is, whoever it says that its sender is.
func (a *Announcer) sendAs(t testing.TB, destination hardwareAddr, packet arpPacket) {
	t.Helper()
	to := &unix.SockaddrLinklayer{Protocol: arpProtocol, Ifindex: a.index, Halen: 6}
	copy(to.Addr[:], destination[:])
	must(t, a.socket.Control(func(fd uintptr) { must(t, sendFrame(int(fd), packet, to)) }))
}

type rival struct {
	Addr netip.Addr
	MAC  string
}

func (b *board) mac(t testing.TB) string { return b.link(t, "eth0").HardwareAddr.String() }

func TestProbeAndRivals(t *testing.T) {
	l := newLAN(t, 3)
	us, them, client := l.boards[0], l.boards[1], l.boards[2]
	ours, theirs := openTestAnnouncer(t, us), openTestAnnouncer(t, them)
	ctx := t.Context()
	const quick = 50 * time.Millisecond
	// The very first packets may come before the bridge forwards.
	eventually(t, "the bridge forwards", func() bool {
		owner, found, err := ours.Probe(ctx, them.addr, 1, quick)
		must(t, err)
		return found && owner.String() == them.mac(t)
	})

	t.Run("free", func(t *testing.T) {
		assert.Is(t, false, ours.hasOwner(t, testVIP, 2, quick), "a free address has an owner")
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(ctx)
		reason := errors.New("no longer wanted")
		cancel(reason)
		_, _, err := ours.Probe(ctx, testVIP, 1, time.Hour)
		assert.ErrorIs(t, err, reason, "")
	})
	t.Run("both probe", func(t *testing.T) {
		// Neither has it, yet whoever probes second must step back.
		done := make(chan string, 1)
		go func() {
			owner, _, _ := ours.Probe(ctx, testVIP, 1, testTimeout)
			done <- owner.String()
		}()
		eventually(t, "we probe", func() bool { return probing(ours) })
		must(t, theirs.send(broadcast, probe(testVIP)))
		assert.Is(t, them.mac(t), receive(t, "our probe to end", done), "who was found")
	})

	rivals := make(chan rival, 10)
	ours.Rivals([]netip.Addr{testVIP}, func(addr netip.Addr, mac net.HardwareAddr) {
		rivals <- rival{addr, mac.String()}
	})
	t.Run("rival", func(t *testing.T) {
		must(t, ours.Announce(testVIP))                            // our own is none
		must(t, theirs.Announce(netip.MustParseAddr("10.77.0.9"))) // nor is another address
		must(t, theirs.Announce(testVIP))
		for range 2 { // the request and the reply
			assert.Is(t, rival{testVIP, them.mac(t)}, receive(t, "the rival", rivals), "the rival")
		}
	})
	t.Run("no longer ours", func(t *testing.T) {
		ours.Rivals(nil, nil)
		must(t, theirs.Announce(testVIP))
		ours.hasOwner(t, them.addr, 1, testTimeout) // its answer comes after the announcement
		if len(rivals) > 0 {
			t.Errorf("heard of %v although nothing is ours", <-rivals)
		}
	})

	// A neighbour that knows the old place believes the announcement at once.
	t.Run("announce", func(t *testing.T) {
		vip := netip.PrefixFrom(testVIP, 32)
		them.addAddr(t, "eth0", vip)
		ask(t, client, testVIP)
		eventually(t, "the client knows the old holder", func() bool { return neighbour(t, client, testVIP) == them.mac(t) })
		them.delAddr(t, "eth0", vip)
		us.addAddr(t, "eth0", vip)
		must(t, ours.Announce(testVIP))
		eventually(t, "the client knows the new holder", func() bool { return neighbour(t, client, testVIP) == us.mac(t) })
	})

	// After a bond has failed over, or `ip link set address`, what is sent names the address that the
	// interface has now, and what is sent to that is heard.
	t.Run("another Ethernet address", func(t *testing.T) {
		fresh := net.HardwareAddr{2, 0, 0, 0, 0, 0x99}
		must(t, us.handle.LinkSetHardwareAddr(l.link(us.handle, "eth0"), fresh))
		must(t, ours.Announce(testVIP))
		eventually(t, "the client knows the new address", func() bool { return neighbour(t, client, testVIP) == fresh.String() })
		assert.Is(t, true, ours.hasOwner(t, them.addr, 1, testTimeout), "an answer is heard")
		ours.Rivals([]netip.Addr{testVIP}, func(addr netip.Addr, mac net.HardwareAddr) { rivals <- rival{addr, mac.String()} })
		defer ours.Rivals(nil, nil)
		theirs.sendAs(t, broadcast, announcements(testVIP)[0].from(hardwareAddr(fresh))) // reflected
		must(t, theirs.Announce(testVIP))
		assert.Is(t, rival{testVIP, them.mac(t)}, receive(t, "the rival", rivals), "the first rival")
	})

	t.Run("link down and up", func(t *testing.T) {
		eth0 := l.link(us.handle, "eth0")
		must(t, us.handle.LinkSetDown(eth0))
		assert.ErrorIs(t, ours.Announce(testVIP), ErrLinkDown, "announcing")
		_, _, err := ours.Probe(ctx, testVIP, 1, quick)
		assert.ErrorIs(t, err, ErrLinkDown, "probing")
		must(t, us.handle.LinkSetUp(eth0))
		eventually(t, "we hear again", func() bool { return ours.hasOwner(t, them.addr, 1, quick) })
	})

	t.Run("close during a probe", func(t *testing.T) {
		failed := make(chan error)
		go func() {
			_, _, err := ours.Probe(ctx, netip.MustParseAddr("10.77.0.55"), 1, time.Hour)
			failed <- err
		}()
		eventually(t, "it probes", func() bool { return probing(ours) })
		must(t, ours.Close())
		assert.ErrorIs(t, receive(t, "the probe to end", failed), net.ErrClosed, "")
	})
}

func probing(a *Announcer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.probes) > 0
}

func TestOpenAnnouncerErrors(t *testing.T) {
	b := newLAN(t, 1).boards[0]
	tun := openFloating(t, b, FloatingOptions{Method: HoldTUN}).State().Device
	_, err := b.openAnnouncer(b.link(t, tun).Index)
	assert.ErrorContains(t, err, "not an Ethernet address", "a tunnel")
	_, err = b.openAnnouncer(9999)
	assert.ErrorIs(t, err, ErrLinkDown, "no such interface")
}

func TestAnnouncementDelay(t *testing.T) {
	var at time.Duration
	var times []string
	for sent := range 8 {
		at += AnnouncementDelay(sent)
		times = append(times, at.String())
	}
	want := []string{"0s", "1.1s", "2.2s", "4.4s", "10s", "1m10s", "2m10s", "3m10s"}
	assert.Equal(t, want, times, "announcements are sent at")
}

// ask makes the board resolve addr, by sending something to it.
func ask(t testing.TB, b *board, addr netip.Addr) {
	t.Helper()
	c := openForeign(t, b)
	_, err := c.WriteToUDPAddrPort([]byte("who are you"), netip.AddrPortFrom(addr, 9))
	must(t, err)
}

// neighbour is the Ethernet address that the board has for addr, "" if none.
func neighbour(t testing.TB, b *board, addr netip.Addr) string {
	t.Helper()
	all, err := dump(func() ([]netlink.Neigh, error) {
		return b.handle.NeighList(b.link(t, "eth0").Index, netlink.FAMILY_V4)
	})
	must(t, err)
	for _, n := range all {
		if n.IP.String() == addr.String() && len(n.HardwareAddr) == 6 {
			return n.HardwareAddr.String()
		}
	}
	return ""
}
