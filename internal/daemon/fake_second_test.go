package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// The second path of all boards that have one.
const fakeSecondInterface = "wlan0"

// secondAddress is that of a board on it.
func secondAddress(number int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 0, byte(number)}) }

// fakeSecond is the second path of a fake board.
type fakeSecond struct {
	snapshots chan netio.Snapshot
	state     netio.Snapshot
	transport *fakeSecondTransport
	noSockets error
	sent      int
}

// withSecondPath gives a board a second path.
func withSecondPath(c *config.Config, b *fakeBoard) {
	c.SecondInterface, c.SecondPath = fakeSecondInterface, true
	b.second = &fakeSecond{snapshots: make(chan netio.Snapshot, 16)}
	b.second.state = netio.Snapshot{Present: true, Link: netio.Link{
		Name: fakeSecondInterface, Index: 3, Up: true, Addrs: []netip.Prefix{netip.PrefixFrom(secondAddress(b.number), 24)},
		HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 1, byte(b.number)},
	}}
	b.second.snapshots <- b.second.state
}

// changeSecond alters the state of the interface of the second path.
func (b *fakeBoard) changeSecond(alter func(*netio.Snapshot)) {
	b.get(func() { alter(&b.second.state) })
	b.second.snapshots <- b.second.state
}

// watchSecond is Platform.Watch for it.
func (b *fakeBoard) watchSecond(ctx context.Context, notify func(netio.Snapshot)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-b.second.snapshots:
			notify(s)
		}
	}
}

func (b *fakeBoard) openSecond(iface string, local netip.Addr) (Transport, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.second.noSockets != nil {
		return nil, b.second.noSockets
	}
	b.second.transport = &fakeSecondTransport{
		fakeTransport: &fakeTransport{board: b, local: local, inbox: make(chan netio.Datagram, 1000), closed: make(chan struct{})},
	}
	return b.second.transport, nil
}

// fakeSecondTransport hands datagrams to the other boards on the second path.
type fakeSecondTransport struct{ *fakeTransport }

func (t *fakeSecondTransport) Multicast(b []byte) error { return t.send(b, netip.Addr{}) }
func (t *fakeSecondTransport) Broadcast(b []byte) error { return t.send(b, netio.LimitedBroadcast) }
func (t *fakeSecondTransport) Unicast(b []byte, to netip.AddrPort) error {
	return t.send(b, to.Addr())
}

func (t *fakeSecondTransport) send(b []byte, to netip.Addr) error {
	var up bool
	t.board.get(func() {
		up = t.board.second.state.Link.Up
		t.board.second.sent++
	})
	if !up {
		return fmt.Errorf("fake: %w", netio.ErrLinkDown)
	}
	d := netio.Datagram{Data: append([]byte(nil), b...), Path: pathTo(to), From: netip.AddrPortFrom(t.local, wire.DefaultGroup.Port())}
	time.AfterFunc(fakeLatency, func() {
		t.board.lan.mu.Lock()
		defer t.board.lan.mu.Unlock()
		for _, other := range t.board.lan.boards {
			if other == t.board || other.second == nil {
				continue
			}
			other.get(func() {
				s := other.second
				if s.transport == nil || !s.state.Link.Up || to.IsValid() && d.Path == netio.PathUnicast && s.transport.local != to {
					return
				}
				select {
				case s.transport.inbox <- d:
				default:
				}
			})
		}
	})
	return nil
}

// textOfSecond is what a status says of the second path.
func textOfSecond(s console.Status) string {
	if s.SecondPath == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s %s %s", s.SecondPath.Interface, s.SecondPath.Address, s.SecondPath.State, s.SecondPath.Text)
}
