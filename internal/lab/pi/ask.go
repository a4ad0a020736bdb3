package pi

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/frame"
	"topdog/internal/lab/observe"
)

// askerNumbers and firstAsker are the last octets of the addresses from which boards are asked. A reply says only to which
// address it goes: at an interval of 20 ms, one that takes longer than 2 s would be taken for that to a later question.
const (
	askerNumbers = 100
	firstAsker   = 100
)

// Ask begins to ask all boards for an address, once every interval.
func (l *Lab) Ask(addr netip.Addr, interval time.Duration) (*observe.Prober, error) {
	probe := observe.Probe{Address: addr, Boards: make(map[int]net.HardwareAddr), ARP: interval}
	for n := 1; n <= l.Natives(); n++ {
		probe.Boards[n] = l.Native(n).HardwareAddr
	}
	for _, b := range l.Boards {
		probe.Boards[b.N] = b.hardwareAddr()
	}
	for n := range askerNumbers {
		probe.From = append(probe.From, address(firstAsker+n).Addr())
	}
	var socket *frame.Socket
	err := l.Segment.Do(func() (err error) {
		socket, err = frame.Open("br0", unix.ETH_P_ARP)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask who has %s: %w", addr, err)
	}
	return observe.StartProber(socket, probe), nil
}

// Holders returns the numbers of the boards that have answered to what was asked in the next d, in ascending order. More than
// one is a fault of topdog, unless the address moved meanwhile.
func Holders(ctx context.Context, p *observe.Prober, d time.Duration) (boards []int, err error) {
	began := time.Now()
	if err := Sleep(ctx, d); err != nil {
		return nil, err
	}
	for _, r := range p.Replies(began) {
		if !r.Asked.Before(began) && !slices.Contains(boards, r.Board) {
			boards = append(boards, r.Board)
		}
	}
	slices.Sort(boards)
	return boards, nil
}

// Sleep waits for so long, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

const (
	// pingInterval is how often Ping asks. Emulated boards pause for longer.
	pingInterval = 50 * time.Millisecond

	// pingID marks the echo requests of this package.
	pingID = 0x7d09

	// anyBoard stands for the board that answers a ping, which does not tell which one it is.
	anyBoard = -1
)

// Ping keeps sending echo requests to an address from this machine, as a user
// of the cluster would notice it. Boards are of number -1 in its reports.
func (l *Lab) Ping(addr netip.Addr) (*observe.Asker, error) {
	p := &pings{to: &net.IPAddr{IP: addr.AsSlice()}}
	err := l.Segment.Do(func() (err error) {
		p.conn, err = icmp.ListenPacket("ip4:icmp", address(hostNumber).Addr().String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start to ping %s: %w", addr, err)
	}
	return observe.StartAsker(p, pingInterval), nil
}

// pings asks by ICMP echo (RFC 792), which every board answers whatever runs on it.
type pings struct {
	conn *icmp.PacketConn
	to   *net.IPAddr
	buf  [256]byte
}

func (p *pings) Ask(number uint32) error {
	m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: pingID, Seq: int(uint16(number))}}
	request, err := m.Marshal(nil)
	if err == nil {
		_, err = p.conn.WriteTo(request, p.to)
	}
	return err
}

func (p *pings) Answer() (board int, err error) {
	for {
		n, from, err := p.conn.ReadFrom(p.buf[:])
		if err != nil {
			return 0, err
		}
		m, err := icmp.ParseMessage(ipv4.ICMPTypeEchoReply.Protocol(), p.buf[:n])
		if err == nil && m.Type == ipv4.ICMPTypeEchoReply && from.String() == p.to.String() {
			return anyBoard, nil
		}
	}
}

func (p *pings) Close() error { return p.conn.Close() }
