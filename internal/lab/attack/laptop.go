package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"topdog/internal/lab/netns"
	"topdog/wire"
)

// Laptop is a machine on the LAN that knows what everybody there can know.
type Laptop struct {
	host   *netns.Host
	group  netip.AddrPort
	boards []*netns.Host
	tape   []recording // in the order in which it came
	lives  []recording // of boards that are no more
}

// recording is what a board once said to all.
type recording struct {
	from netip.AddrPort
	data []byte
}

// NewLaptop returns a laptop that is plugged into the LAN as a host, and knows the boards by their addresses.
func NewLaptop(host *netns.Host, boards ...*netns.Host) *Laptop {
	return &Laptop{host: host, group: wire.DefaultGroup, boards: boards}
}

// Listen records what is said to all, until there are so many packets.
func (l *Laptop) Listen(ctx context.Context, packets int) error {
	conn, err := netns.Within(l.host, l.listen)
	if err != nil {
		return fmt.Errorf("attack: listen to %v on %s of %s: %w", l.group, l.host.Interface, l.host.Name, err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer conn.Close()
	buf := make([]byte, wire.MaxPacket)
	for len(l.tape) < packets {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return fmt.Errorf("attack: record %d packets of %v: %w", packets, l.group, errors.Join(ctx.Err(), err))
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		l.tape = append(l.tape, recording{from, append([]byte(nil), buf[:n]...)})
	}
	return nil
}

func (l *Laptop) listen() (*net.UDPConn, error) {
	link, err := net.InterfaceByName(l.host.Interface)
	if err != nil {
		return nil, err
	}
	return net.ListenMulticastUDP("udp4", link, net.UDPAddrFromAddrPort(l.group))
}

// Lives is how many boards have lived and died before.
const Lives = 1000

// boardsOfLives is how many boards there were: as many as a small LAN has addresses. Those that live now are
// among them.
const boardsOfLives = 250

// Remember gives the laptop recordings of many lives of boards, as if it had been there for months. It
// takes the key of the group to make them; the laptop does not get it.
func (l *Laptop) Remember(group string, keys ...[]byte) error {
	codec, err := wire.NewCodec(group, keys...)
	if err != nil {
		return err
	}
	for n := range Lives {
		address := netns.Subnet.Addr()
		for range 1 + n%boardsOfLives {
			address = address.Next()
		}
		m := wire.Message{
			Header: wire.Header{
				Type: wire.TypeHeartbeat, Algorithm: wire.AlgorithmHeir, Leading: true, Sender: wire.IDFromAddr(address),
				Term: wire.Term(n + 1), Priority: 100, Incarnation: wire.Incarnation(n + 1), Sequence: 1000,
			},
			Heartbeat: wire.Heartbeat{Interval: 100 * time.Millisecond},
		}
		data, err := codec.Append(nil, &m)
		if err != nil {
			return fmt.Errorf("attack: write a heartbeat of board %v: %w", address, err)
		}
		l.lives = append(l.lives, recording{netip.AddrPortFrom(address, l.group.Port()), data})
	}
	return nil
}
