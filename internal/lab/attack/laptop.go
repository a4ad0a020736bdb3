package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/frame"
	"topdog/internal/lab/netns"
	"topdog/wire"
)

// Laptop is a machine on the LAN that knows what everybody there can know.
type Laptop struct {
	host   *netns.Host
	group  netip.AddrPort
	boards []*netns.Host
	tape   [][]byte // what the boards said to all, in the order in which it came
	lives  [][]byte // one packet of each board that is no more
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
		n, err := conn.Read(buf)
		if err != nil {
			return fmt.Errorf("attack: record %d packets of %v: %w", packets, l.group, errors.Join(ctx.Err(), err))
		}
		l.tape = append(l.tape, bytes.Clone(buf[:n]))
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
		l.lives = append(l.lives, data)
	}
	return nil
}

// answer answers for the floating address until ctx ends, and returns how many times a second.
func (l *Laptop) answer(ctx context.Context) (rate float64, err error) {
	began := time.Now()
	n, err := l.answerARP(ctx, cluster.Address)
	return float64(n) / time.Since(began).Seconds(), err
}

// answerARP answers for an address whenever somebody asks who has it, until ctx ends.
func (l *Laptop) answerARP(ctx context.Context, address netip.Addr) (answers int, err error) {
	socket, err := l.host.Capture(unix.ETH_P_ARP)
	if err == nil {
		defer socket.Close()
		defer context.AfterFunc(ctx, func() { socket.Close() })()
		answers, err = l.answerUntilClosed(socket, address)
	}
	if err != nil {
		return answers, fmt.Errorf("attack: answer for %v: %w", address, err)
	}
	return answers, nil
}

func (l *Laptop) answerUntilClosed(socket *frame.Socket, address netip.Addr) (answers int, err error) {
	for {
		f, err := socket.Read()
		if err == nil {
			question, ok := f.ARP()
			if !ok || question.Reply || question.Target != address || bytes.Equal(question.MAC, l.host.HardwareAddr) {
				continue
			}
			err = socket.Send(arp(true, l.host.HardwareAddr, address, address))
		}
		switch {
		case errors.Is(err, os.ErrClosed):
			return answers, nil
		case err != nil:
			return answers, err
		}
		answers++
	}
}
