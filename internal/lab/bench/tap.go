package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/frame"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

// tap keeps what some hosts send and get of the frames that are wanted there, until it is closed.
type tap struct {
	sockets []*frame.Socket
	wg      sync.WaitGroup
	first   chan struct{} // closed when there is one

	mu   sync.Mutex
	kept []kept
}

// kept is what matters of a frame.
type kept struct {
	at     time.Time
	from   net.HardwareAddr
	length int
}

// hear begins to hear frames of a type on some hosts.
func hear(etherType uint16, wants map[*netns.Host]func(frame.Frame) bool) (*tap, error) {
	t := &tap{first: make(chan struct{})}
	for host, wanted := range wants {
		if err := t.hearOn(host.Capture, etherType, wanted); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

// hearOn begins to hear frames of a type on one more interface.
func (t *tap) hearOn(capture func(etherType uint16) (*frame.Socket, error), etherType uint16, wanted func(frame.Frame) bool) error {
	s, err := capture(etherType)
	if err != nil {
		return err
	}
	t.sockets = append(t.sockets, s)
	t.wg.Go(func() {
		for f, err := s.Read(); err == nil; f, err = s.Read() {
			if wanted(f) {
				t.keep(kept{f.At, slices.Clone(f.From()), f.Length})
			}
		}
	})
	return nil
}

func (t *tap) keep(k kept) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept = append(t.kept, k); len(t.kept) == 1 {
		close(t.first)
	}
}

// since returns what came since a moment.
func (t *tap) since(from time.Time) []kept {
	t.mu.Lock()
	defer t.mu.Unlock()
	return without(t.kept, func(k kept) bool { return k.at.Before(from) })
}

// wait returns when the first frame came.
func (t *tap) wait(ctx context.Context, most time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("no frame got through within %v", most))
	defer cancel()
	select {
	case <-t.first:
		return t.since(time.Time{})[0].at, nil
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

func (t *tap) close() {
	for _, s := range t.sockets {
		s.Close()
	}
	t.wg.Wait()
}

// carries reports whether a frame is of the program's own traffic, to or from its port.
func (p *program) carries(f frame.Frame) bool {
	packet, ok := f.Packet()
	if !ok || packet.Protocol != p.traffic.Protocol {
		return false
	}
	port := func(at int) uint16 { return binary.BigEndian.Uint16(packet.Payload[at:]) }
	return p.traffic.Port == 0 || len(packet.Payload) >= 4 && (port(0) == p.traffic.Port || port(2) == p.traffic.Port)
}

// isFrom reports whether one of some hosts has sent a frame.
func isFrom(f frame.Frame, hosts ...*netns.Host) bool {
	return slices.ContainsFunc(hosts, func(h *netns.Host) bool { return f.IsFrom(h.HardwareAddr) })
}

// hearLeader hears the leader's messages to all, as the client gets them. In CARP
// all messages come from one hardware address, and in VRRP and CARP none but a leader's.
func (g *Group) hearLeader(leader *board) (*tap, error) {
	return hear(unix.ETH_P_ALL, map[*netns.Host]func(frame.Frame) bool{
		g.LAN.Client(): func(f frame.Frame) bool {
			return g.sys.carries(f) && (g.sys.program != topdog || isFrom(f, leader.Host))
		},
	})
}

// hearBetween hears the frames that get from one side to the other. What the client or the prober hears proves
// nothing to boards, unless the client is on a side. In CARP all boards have one hardware address; a board alone hears no
// others of its side.
func (g *Group) hearBetween(one, other []*netns.Host) (*tap, error) {
	wants := make(map[*netns.Host]func(frame.Frame) bool)
	for _, sides := range [][2][]*netns.Host{{one, other}, {other, one}} {
		here, there := sides[0], sides[1]
		for _, h := range here {
			wants[h] = func(f frame.Frame) bool {
				return !f.Outgoing && (isFrom(f, there...) || len(here) == 1 && g.sys.program != topdog && g.sys.carries(f))
			}
		}
	}
	return hear(unix.ETH_P_ALL, wants)
}

// hearAnnouncements hears those that the client gets by ARP: who sends one claims to have the address, and asks for no
// other.
func (g *Group) hearAnnouncements() (*tap, error) {
	return hear(unix.ETH_P_ARP, map[*netns.Host]func(frame.Frame) bool{
		g.LAN.Client(): func(f frame.Frame) bool {
			a, ok := f.ARP()
			return ok && !f.Outgoing && a.Sender == vip && a.Target == vip
		},
	})
}

// hearTraffic hears the system's packets, and ARP. Every board's packets are heard where they
// leave it, so that each counts once, wherever it goes and by whichever path.
func (g *Group) hearTraffic() (*tap, error) {
	wanted := func(f frame.Frame) bool {
		return f.Outgoing && (g.sys.carries(f) || f.EtherType() == unix.ETH_P_ARP)
	}
	wants := make(map[*netns.Host]func(frame.Frame) bool)
	for _, b := range g.boards {
		wants[b.Host] = wanted
	}
	t, err := hear(unix.ETH_P_ALL, wants)
	if err != nil || !g.sys.SecondPath {
		return t, err
	}
	if err := each(g.boards, func(b *board) error { return t.hearOn(b.CaptureSecond, unix.ETH_P_ALL, wanted) }); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

const (
	// probeInterval is how often each board is asked whether it answers for an address, and probeRing from how many
	// addresses in turn.
	probeInterval = 2 * time.Millisecond
	probeRing     = 8
)

// probe begins to find out which boards answer ARP for a floating address, as seen from the client's place, or Neighbour
// Discovery. It asks in the name of a host that does not exist, so that no kernel learns from the answers: the client knows of
// a new holder what it is told, as always. In a group with IPv6 it asks for an ICMP echo too: a board whose daemon answers
// Neighbor Discovery may have an address and say so to nobody.
func (g *Group) probe(address netip.Addr) (*observe.Prober, error) {
	client := g.LAN.Client()
	own, etherType := client.Addr.Addr(), uint16(unix.ETH_P_ARP)
	if g.sys.IPv6 {
		etherType = unix.ETH_P_ALL
	}
	if address.Is6() {
		own = client.Addr6.Addr()
	}
	socket, err := client.Capture(etherType)
	if err != nil {
		return nil, err
	}
	nobody := slices.Clone(client.HardwareAddr)
	nobody[len(nobody)-1]++
	probe := observe.Probe{Address: address, Boards: map[int]net.HardwareAddr{}, MAC: nobody, ARP: probeInterval}
	if g.sys.IPv6 {
		probe.Echo = probeInterval
	}
	if address.Is6() {
		probe.ARP = observe.SolicitEvery
	}
	for a := own.Next(); len(probe.From) < probeRing; a = a.Next() {
		probe.From = append(probe.From, a)
	}
	for _, b := range g.boards {
		probe.Boards[b.Number] = b.HardwareAddr
	}
	return observe.StartProber(socket, probe), nil
}
