package netio

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Frames of other hosts are counted, whatever is sent from here is not, and neither is what
// arrives on a port that forwards nothing.
func TestFrameCounter(t *testing.T) {
	l := newLAN(t, 2)
	us, them := l.boards[0], l.boards[1]
	ours, theirs := openTestAnnouncer(t, us), openTestAnnouncer(t, them)
	eth0 := us.link(t, "eth0")
	c, err := on(us, func() (*FrameCounter, error) { return OpenFrameCounter(eth0.Index, eth0.HardwareAddr) })
	must(t, err)
	defer c.Close()
	count := func() uint64 {
		n, err := c.Frames()
		must(t, err)
		return n
	}
	eventually(t, "the bridge forwards", func() bool {
		must(t, theirs.Announce(testVIP))
		return count() > 0
	})
	// Whatever their kernel sends by itself (IPv6, IGMP) is over soon, or counted too.
	before := count()
	const many = 500 // more than the buffer has room for
	for range many {
		must(t, theirs.send(probe(theirs.own, testVIP), broadcast))
	}
	eventually(t, "all frames are counted", func() bool { return count() >= before+many })

	t.Run("own and others", func(t *testing.T) {
		send := func(protocol uint16) {
			t.Helper()
			to := &unix.SockaddrLinklayer{Protocol: htons(protocol), Ifindex: theirs.index, Halen: 6}
			copy(to.Addr[:], broadcast[:])
			must(t, theirs.socket.Control(func(fd uintptr) {
				must(t, unix.Sendto(int(fd), make([]byte, 50), 0, to))
			}))
		}
		before := count()
		for range many {
			must(t, ours.send(probe(ours.own, testVIP), broadcast))
			send(unix.ETH_P_PAUSE)
			send(0x88cc) // LLDP
		}
		if n := count() - before; n > many/10 {
			t.Errorf("%d frames were counted that prove nothing", n)
		}
		before = count()
		send(unix.ETH_P_IPV6)
		eventually(t, "IPv6 is counted", func() bool { return count() > before })
	})
}
