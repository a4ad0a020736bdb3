package attack

import (
	"bytes"
	"context"
	"crypto/rand"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/frame"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/wire"
)

// listener is a LAN with two boards, on one of which the test listens, and a laptop that has recorded what it said.
type listener struct {
	lan    *netns.LAN
	laptop *Laptop
	ears   *net.UDPConn
	said   []byte
	codec  *wire.Codec
}

func newListener(t *judge.T) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Timeout)
	t.Cleanup(cancel)
	key := make([]byte, wire.KeySize)
	rand.Read(key)
	codec, err := wire.NewCodec("topdog", key)
	assert.NoError(t, err)
	b := &listener{codec: codec}
	b.lan, err = netns.New(3)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.lan.Close()) })
	board := b.lan.Board(1)
	b.laptop = NewLaptop(b.lan.Board(3), board, b.lan.Board(2))
	assert.NoError(t, b.laptop.Remember("topdog", key))

	b.ears, err = netns.Within(board, func() (*net.UDPConn, error) {
		link, err := net.InterfaceByName(board.Interface)
		if err != nil {
			return nil, err
		}
		return net.ListenMulticastUDP("udp4", link, net.UDPAddrFromAddrPort(wire.DefaultGroup))
	})
	assert.NoError(t, err)
	t.Cleanup(func() { b.ears.Close() })
	b.said, err = codec.Append(nil, &wire.Message{
		Header: wire.Header{Type: wire.TypeHeartbeat, Algorithm: wire.AlgorithmHeir, Leading: true,
			Sender: wire.IDFromAddr(board.Addr.Addr()), Incarnation: 1, Sequence: 1},
		Heartbeat: wire.Heartbeat{Interval: 100 * time.Millisecond},
	})
	assert.NoError(t, err)
	b.record(ctx, t, NewLaptop(board))
	return b
}

// record has the board say something to all until the laptop has recorded it.
func (b *listener) record(ctx context.Context, t testing.TB, board *Laptop) {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		frame := board.to(1, board.own(), b.said).Frame()
		_, err := board.Send(ctx, Stream{Frames: [][]byte{frame}, Rate: 100, For: cluster.Timeout})
		done <- err
	}()
	assert.NoError(t, b.laptop.Listen(ctx, 3))
	stop()
	assert.NoError(t, <-done)
	// What was sent until then is in the ears of the board, too.
	b.heard(t, 50*time.Millisecond)
}

// heard returns what came to the board until nothing came for a while.
func (b *listener) heard(t testing.TB, quiet time.Duration) (from []netip.AddrPort, packets [][]byte) {
	t.Helper()
	buf := make([]byte, 4<<10)
	for {
		assert.NoError(t, b.ears.SetReadDeadline(time.Now().Add(quiet)))
		n, source, err := b.ears.ReadFromUDPAddrPort(buf)
		if err != nil {
			return from, packets
		}
		from = append(from, netip.AddrPortFrom(source.Addr().Unmap(), source.Port()))
		packets = append(packets, bytes.Clone(buf[:n]))
	}
}

// What a laptop sends comes to the boards as datagrams that the kernel accepts, and with the codec of the group, each
// kind is refused for its own reason, or is a packet of the dead.
func TestFloods(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		b := newListener(t)
		laptop := b.laptop.own()
		for _, c := range []struct {
			key  string
			from netip.Addr // zero: several
			want wire.DropReason
		}{
			{"bad-tags", laptop, wire.BadTag},
			{"bad-tags-sources", netip.Addr{}, wire.BadTag},
			// The kernel of a board drops what claims to come from itself.
			{"bad-tags-board", b.lan.Board(2).Addr.Addr(), wire.BadTag},
			{"ttl", laptop, wire.Accepted}, // the codec does not see the TTL
			{"long", laptop, wire.BadTag},
			{"version", laptop, wire.BadVersion},
			{"group", laptop, wire.OtherGroup},
			{"fragments", laptop, wire.TooLong},
			{"lives", laptop, wire.Accepted},
			// The kernel drops it before the board where rp_filter is strict.
			{"lives-routed", netip.AddrFrom4([4]byte{8, 8, 8, 8}), wire.Accepted},
		} {
			t.Run(c.key, func(t *judge.T) {
				frames, err := b.laptop.Frames(c.key)
				assert.NoError(t, err)
				frames = frames[:20]
				_, err = b.laptop.Send(t.Context(), Stream{Frames: frames, Rate: 1000, For: 20 * time.Millisecond})
				assert.NoError(t, err)
				from, packets := b.heard(t, 50*time.Millisecond)
				if len(packets) == 0 && c.key != "lives-routed" {
					t.Fatal("nothing came")
				}
				sources := map[netip.Addr]bool{}
				for i, p := range packets {
					sources[from[i].Addr()] = true
					assert.Is(t, c.want, b.codec.Decode(&wire.Message{}, p).Reason, "packet %d", i)
					if c.from.IsValid() && from[i].Addr() != c.from {
						t.Errorf("packet %d came from %v, not %v", i, from[i], c.from)
					}
				}
				if !c.from.IsValid() && len(sources) < 5 {
					t.Errorf("all came from %v", sources)
				}
			})
		}
	})
}

// Forged ARP turns a client to the laptop, and ordinary ARP is a request of the laptop for another one.
func TestARP(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		b := newListener(t)
		for key, reads := range map[string]func(frame []byte) bool{
			"garp": func(f []byte) bool {
				return bytes.Equal(f[28:32], cluster.Address.AsSlice()) && bytes.Equal(f[38:42], cluster.Address.AsSlice())
			},
			"arp": func(f []byte) bool {
				return bytes.Equal(f[28:32], b.laptop.own().AsSlice()) && f[21] == 1 && bytes.Equal(f[22:28], b.laptop.host.HardwareAddr)
			},
		} {
			frames, err := b.laptop.Frames(key)
			assert.NoError(t, err)
			for _, f := range frames {
				if len(f) != frame.EthernetLen+28 || !reads(f) {
					t.Errorf("%s: % x", key, f)
				}
			}
		}
	})
}

// A stream has its rate, its end, and the processors that it is given.
func TestStream(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		b := newListener(t)
		frames, err := b.laptop.Frames("ttl")
		assert.NoError(t, err)
		const rate, lasts = 2000, 200 * time.Millisecond
		var set unix.CPUSet
		assert.NoError(t, unix.SchedGetaffinity(0, &set))
		first := 0
		for !set.IsSet(first) {
			first++
		}
		sent, err := b.laptop.Send(t.Context(), Stream{Frames: frames, Rate: rate, For: lasts, Cores: []int{first}})
		assert.NoError(t, err)
		// A busy machine sends less, and never more.
		if want := int(rate * lasts.Seconds()); sent.Frames > want+1 || sent.Frames < want/4 || sent.Took < lasts {
			t.Errorf("%d frames in %v, not about %d", sent.Frames, sent.Took, want)
		}
		most, err := b.laptop.Send(t.Context(), Stream{Frames: frames, For: lasts})
		assert.NoError(t, err)
		if most.Rate() < 2*rate {
			t.Errorf("without a rate, %.0f frames a second", most.Rate())
		}
		t.Logf("with a rate %.0f, without %.0f frames a second", sent.Rate(), most.Rate())

		for name, lacks := range map[string]struct {
			laptop *Laptop
			key    string
		}{
			"no tape":  {NewLaptop(b.lan.Board(2)), "bad-tags"},
			"no parts": {NewLaptop(b.lan.Board(2)), "fragments"},
			"no lives": {NewLaptop(b.lan.Board(2)), "lives"},
			"no flood": {b.laptop, "no-such"},
		} {
			if frames, err := lacks.laptop.Frames(lacks.key); err == nil {
				t.Errorf("%s: %d frames", name, len(frames))
			}
		}
		if _, err := b.laptop.Send(t.Context(), Stream{}); err == nil {
			t.Error("nothing was sent, and that is no error")
		}
	})
}

// Somebody who answers for an address answers whoever asks for it, and for no other.
func TestAnswerARP(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		b := newListener(t)
		ctx, stop := context.WithCancel(t.Context())
		answered := make(chan int, 1)
		go func() {
			n, err := b.laptop.answerARP(ctx, cluster.Address)
			assert.ErrorIs(t, err, nil, "")
			answered <- n
		}()
		asks := NewLaptop(b.lan.Board(2))
		other := b.lan.Board(1).Addr.Addr()
		frames := [][]byte{
			arp(false, asks.host.HardwareAddr, asks.own(), cluster.Address),
			arp(false, asks.host.HardwareAddr, asks.own(), other),
		}
		sent, err := asks.Send(t.Context(), Stream{Frames: frames, Rate: 100, For: 500 * time.Millisecond})
		assert.NoError(t, err)
		stop()
		if n := <-answered; n == 0 || n > (sent.Frames+1)/2 {
			t.Errorf("%d answers to %d questions, of which every other one was for the address", n, sent.Frames)
		}
	})
}
