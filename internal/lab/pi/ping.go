package pi

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"

	"topdog/internal/lab/observe"
)

// pingInterval is how often Ping asks. Emulated boards pause for longer.
const pingInterval = 50 * time.Millisecond

// pingID marks the echo requests of this package.
const pingID = 0x7d09

// anyBoard stands for the board that answers a ping, which does not tell which one it is.
const anyBoard = -1

// Ping keeps sending echo requests to an address from this machine, as a user
// of the cluster would notice it. Boards are of number -1 in its reports.
func (l *Lab) Ping(addr netip.Addr) (*observe.Asker, error) {
	p := &pings{to: &net.IPAddr{IP: addr.AsSlice()}}
	err := l.segment.Do(func() (err error) {
		p.conn, err = icmp.ListenPacket("ip4:icmp", l.host().String())
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
	if err != nil {
		return err
	}
	_, err = p.conn.WriteTo(request, p.to)
	return err
}

func (p *pings) Answer() (board int, err error) {
	for {
		n, from, err := p.conn.ReadFrom(p.buf[:])
		if err != nil {
			return 0, err
		}
		if ip, ok := from.(*net.IPAddr); !ok || !ip.IP.Equal(p.to.IP) {
			continue
		}
		m, err := icmp.ParseMessage(ipv4.ICMPTypeEchoReply.Protocol(), p.buf[:n])
		if err == nil && m.Type == ipv4.ICMPTypeEchoReply {
			return anyBoard, nil
		}
	}
}

func (p *pings) Close() error { return p.conn.Close() }
