package netio

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// Frames of other hosts are counted, whatever is sent from here is not, nor are those of hosts
// to be ignored.
func TestFrameCounter(t *testing.T) {
	l := newLAN(t, 2)
	us, them := l.boards[0], l.boards[1]
	ours, theirs := openTestAnnouncer(t, us), openTestAnnouncer(t, them)
	c, err := on(us, func() (*frameCounter, error) { return openFrameCounter(us.link(t, "eth0").Index) })
	must(t, err)
	defer unix.Close(c.fd)
	count := func() uint64 {
		n, err := c.count()
		must(t, err)
		return n
	}
	announce := func() { must(t, theirs.socket.send(broadcast, announcements(them.addr)[0])) }
	eventually(t, "the bridge forwards", func() bool {
		announce()
		return count() > 0
	})
	const many = 500 // more than the buffer has room for
	before := count()
	for range many {
		announce()
	}
	if n := count() - before; n < many {
		t.Errorf("%d of %d frames were counted", n, many)
	}

	senders := c.senders()
	if len(senders) == 0 || senders[0].Addr != them.addr || senders[0].MAC.String() != them.mac(t) {
		t.Errorf("the senders are %v, want %v at %s", senders, them.addr, them.mac(t))
	}
	foreign := openForeign(t, them)
	send(t, foreign, 1, []byte("foreign"), netip.AddrPortFrom(testGroup.Addr(), 9))
	if senders := c.senders(); len(senders) != 1 || senders[0].Addr != them.addr || senders[0].MAC.String() != them.mac(t) {
		t.Errorf("the senders of IPv4 are %v, want %v at %s once", senders, them.addr, them.mac(t))
	}

	other := netip.MustParseAddr("10.77.0.9")
	sendOf := func(protocol uint16) {
		t.Helper()
		to := &unix.SockaddrLinklayer{Protocol: htons(protocol), Ifindex: theirs.index, Halen: 6}
		copy(to.Addr[:], broadcast[:])
		must(t, theirs.socket.Control(func(fd uintptr) { must(t, unix.Sendto(int(fd), make([]byte, 50), 0, to)) }))
	}
	must(t, c.begin([]netip.Addr{testVIP, them.addr}))
	assert.Is(t, 0, count(), "frames, counted from now on")
	for range 10 {
		must(t, ours.socket.send(broadcast, probe(testVIP)))
		must(t, ours.socket.send(broadcast, announcements(us.addr)[0]))
		must(t, theirs.socket.send(broadcast, probe(testVIP)))
		must(t, theirs.Announce(testVIP))
		announce()
		sendOf(unix.ETH_P_IPV6)
		sendOf(unix.ETH_P_PAUSE)
		sendOf(0x88cc) // LLDP
		send(t, foreign, 1, []byte("foreign"), netip.AddrPortFrom(testGroup.Addr(), 9))
	}
	assert.Is(t, 0, count(), "frames, without those that prove nothing")
	must(t, theirs.socket.send(broadcast, announcements(other)[0]))
	assert.Is(t, 1, count(), "frames, with that of a host that is not ignored")
}
