package loss

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

const (
	port    = 9254
	packets = 3000
	// timeout is for a machine in trouble; everything here takes milliseconds.
	timeout = 10 * time.Second
)

func newLAN(t *testing.T) *netns.LAN {
	t.Helper()
	netns.ReserveTogether(t)
	l, err := netns.New(3)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

// receiver counts which numbers arrive at a port of a board.
type receiver struct {
	conn *net.UDPConn
	seen map[uint32]bool
}

func newReceiver(t *testing.T, h *netns.Host, port uint16) *receiver {
	t.Helper()
	r := &receiver{seen: make(map[uint32]bool)}
	assert.NoError(t, h.Do(func() (err error) {
		r.conn, err = net.ListenUDP("udp4", &net.UDPAddr{Port: int(port)})
		if err == nil {
			err = r.conn.SetReadBuffer(1 << 22)
		}
		return err
	}))
	t.Cleanup(func() { r.conn.Close() })
	return r
}

// read notes all numbers until last has arrived, which is not counted, or
// reports that it has not.
func (r *receiver) read(t *testing.T, last uint32, wait time.Duration) (arrived bool) {
	t.Helper()
	assert.NoError(t, r.conn.SetReadDeadline(time.Now().Add(wait)))
	var buf [4]byte
	for {
		_, err := r.conn.Read(buf[:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		assert.NoError(t, err)
		n := binary.BigEndian.Uint32(buf[:])
		if n == last {
			return true
		}
		r.seen[n] = true
	}
}

func send(t *testing.T, from *netns.Host, to netip.AddrPort, first, count uint32) {
	t.Helper()
	assert.NoError(t, from.Do(func() error {
		conn, err := net.ListenUDP("udp4", nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		for n := first; n < first+count; n++ {
			if _, err := conn.WriteToUDPAddrPort(binary.BigEndian.AppendUint32(nil, n), to); err != nil {
				return err
			}
		}
		return nil
	}))
}

// measure sends packets and returns the share that got lost on the way to each
// of two boards, and how often both agreed on whether one got through.
func measure(t *testing.T, l *netns.LAN, rs []*receiver, first uint32) (lost [2]float64, same float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for i, r := range rs {
		to := netip.AddrPortFrom(l.Board(i+2).Addr.Addr(), port)
		send(t, l.Board(1), to, first, packets)
		// The end is sent again until it gets through.
		end := first + packets + uint32(i)
		for arrived := false; !arrived; {
			assert.NoError(t, ctx.Err())
			send(t, l.Board(1), to, end, 1)
			arrived = r.read(t, end, 50*time.Millisecond)
		}
	}
	var agree int
	for n := first; n < first+packets; n++ {
		for i, r := range rs {
			if !r.seen[n] {
				lost[i] += 1. / packets
			}
		}
		if rs[0].seen[n] == rs[1].seen[n] {
			agree++
		}
	}
	return lost, float64(agree) / packets
}

func TestLoss(t *testing.T) {
	l := newLAN(t)
	rs := []*receiver{newReceiver(t, l.Board(2), port), newReceiver(t, l.Board(3), port)}
	udp := Traffic{Protocol: unix.IPPROTO_UDP, Port: port}
	first := uint32(0)
	for _, share := range []float64{0.4, 0.05, 0, 0.2} {
		for n := 2; n <= 3; n++ {
			assert.NoError(t, Set(l.Board(n), udp, share))
		}
		lost, same := measure(t, l, rs, first)
		first += packets + 2
		for i, got := range lost {
			// Four and a half standard deviations of 3000 draws are 4 %.
			if got < share-0.04 || got > share+0.04 || share == 0 && got > 0 {
				t.Errorf("board %d lost %.1f %%, not %.0f %%", i+2, 100*got, 100*share)
			}
		}
		// Independent receivers agree on what arrives as chance has it.
		if want := share*share + (1-share)*(1-share); same < want-0.05 || same > want+0.05 {
			t.Errorf("with a loss of %.0f %% both agree on %.1f %% of the packets, not on %.1f %%", 100*share, 100*same, 100*want)
		}
	}
}

// What is not asked for does not get lost.
func TestOtherTraffic(t *testing.T) {
	l := newLAN(t)
	other := newReceiver(t, l.Board(2), port+1)
	assert.NoError(t, Set(l.Board(2), Traffic{Protocol: unix.IPPROTO_UDP, Port: port}, 1))
	assert.NoError(t, Set(l.Board(3), Traffic{Protocol: 112}, 1))
	to := netip.AddrPortFrom(l.Board(2).Addr.Addr(), port+1)
	send(t, l.Board(1), to, 0, 101)
	if !other.read(t, 100, timeout) || len(other.seen) != 100 {
		t.Errorf("%d of 100 packets to another port arrived", len(other.seen))
	}
	third := newReceiver(t, l.Board(3), port)
	send(t, l.Board(1), netip.AddrPortFrom(l.Board(3).Addr.Addr(), port), 0, 101)
	if !third.read(t, 100, timeout) || len(third.seen) != 100 {
		t.Errorf("%d of 100 packets of another protocol arrived", len(third.seen))
	}
}

func TestMistakes(t *testing.T) {
	l := newLAN(t)
	for _, share := range []float64{-0.1, 1.1} {
		if Set(l.Board(1), Traffic{Protocol: 112}, share) == nil {
			t.Errorf("a share of %v was accepted", share)
		}
	}
	if Set(l.Board(1), Traffic{Protocol: 112, Port: 1}, 0.5) == nil {
		t.Error("a port of a protocol without ports was accepted")
	}
}
