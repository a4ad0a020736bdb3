package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/frame"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

// tap hears what some hosts send and get, until it is closed.
type tap struct {
	sockets []*frame.Socket
	wg      sync.WaitGroup
}

// add begins to hear a host. Its frames go to hear, one after the other, as long as that wants more.
func (t *tap) add(host *netns.Host, etherType uint16, hear func(frame.Frame) (more bool)) error {
	s, err := host.Capture(etherType)
	if err != nil {
		return err
	}
	t.sockets = append(t.sockets, s)
	t.wg.Go(func() {
		for {
			f, err := s.Read()
			if err != nil || !hear(f) {
				return
			}
		}
	})
	return nil
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

// firstFrame waits for the first frame that is looked for.
type firstFrame struct {
	tap
	seen chan time.Time
}

// firstOf waits for the first frame on any of the hosts that is wanted there.
func firstOf(wants map[*netns.Host]func(frame.Frame) bool) (*firstFrame, error) {
	w := &firstFrame{seen: make(chan time.Time, len(wants))}
	for host, wanted := range wants {
		err := w.add(host, unix.ETH_P_ALL, func(f frame.Frame) (more bool) {
			if wanted(f) {
				w.seen <- f.At
				return false
			}
			return true
		})
		if err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// hearLeader waits for the leader's next message to all, as the client gets it. In CARP
// all messages come from one hardware address, and in VRRP and CARP none but a leader's.
func (g *Group) hearLeader(leader *board) (*firstFrame, error) {
	return firstOf(map[*netns.Host]func(frame.Frame) bool{
		g.LAN.Client(): func(f frame.Frame) bool {
			return g.sys.carries(f) && (g.sys.program != topdog || isFrom(f, leader.Host))
		},
	})
}

// firstBetween waits for the first frame that gets from one side to the other. What the client or the prober hears proves
// nothing to boards, unless the client is on a side. In CARP all boards have one hardware address; a board alone hears no
// others of its side.
func (g *Group) firstBetween(one, other []*netns.Host) (*firstFrame, error) {
	wants := make(map[*netns.Host]func(frame.Frame) bool)
	for _, sides := range [][2][]*netns.Host{{one, other}, {other, one}} {
		here, there := sides[0], sides[1]
		for _, h := range here {
			wants[h] = func(f frame.Frame) bool {
				return !f.Outgoing && (isFrom(f, there...) || len(here) == 1 && g.sys.program != topdog && g.sys.carries(f))
			}
		}
	}
	return firstOf(wants)
}

// wait returns when the first frame came.
func (w *firstFrame) wait(ctx context.Context, most time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("no frame got through within %v", most))
	defer cancel()
	select {
	case at := <-w.seen:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

const (
	// probeInterval is how often each board is asked by ARP whether it answers for the address, and probeRing from how many
	// addresses in turn.
	probeInterval = 2 * time.Millisecond
	probeRing     = 8
	// maxAnnouncements bounds what is kept; a failover has a few.
	maxAnnouncements = 1 << 10
)

// probe begins to find out which boards answer ARP for the floating address, as seen from the client's place. It asks in the
// name of a host that does not exist, so that no kernel learns from the answers: the client knows of a new holder what it is
// told, as always.
func (g *Group) probe() (*observe.Prober, error) {
	client := g.LAN.Client()
	socket, err := client.Capture(unix.ETH_P_ARP)
	if err != nil {
		return nil, err
	}
	nobody := slices.Clone(client.HardwareAddr)
	nobody[len(nobody)-1]++
	probe := observe.Probe{Address: vip, Boards: map[int]net.HardwareAddr{}, MAC: nobody, ARP: probeInterval}
	for a := client.Addr.Addr().Next(); len(probe.From) < probeRing; a = a.Next() {
		probe.From = append(probe.From, a)
	}
	for _, b := range g.boards {
		probe.Boards[b.Number] = b.HardwareAddr
	}
	return observe.StartProber(socket, probe), nil
}

// announcement is one that the client heard.
type announcement struct {
	at   time.Time
	from net.HardwareAddr
}

// announcements collects those that the client hears by ARP: who sends one claims to have the address, and asks for no
// other.
type announcements struct {
	tap
	mu    sync.Mutex
	heard []announcement
}

func (g *Group) hearAnnouncements() (*announcements, error) {
	all := &announcements{}
	err := all.add(g.LAN.Client(), unix.ETH_P_ARP, func(f frame.Frame) (more bool) {
		a, ok := f.ARP()
		if !ok || f.Outgoing || a.Sender != vip || a.Target != vip {
			return true
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		all.heard = append(all.heard, announcement{f.At, slices.Clone(f.From())})
		return len(all.heard) < maxAnnouncements
	})
	return all, err
}

// since returns those since a moment.
func (all *announcements) since(from time.Time) []announcement {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(all.heard), func(a announcement) bool { return a.at.Before(from) })
}

// packetCount counts a system's packets, and ARP.
type packetCount struct {
	tap
	mu             sync.Mutex
	packets, bytes int
}

// countPackets begins to count. Every board's packets are counted where they
// leave it, so that each counts once, wherever it goes.
func (g *Group) countPackets() (*packetCount, error) {
	p := &packetCount{}
	err := each(g.boards, func(b *board) error {
		return p.add(b.Host, unix.ETH_P_ALL, func(f frame.Frame) (more bool) {
			if f.Outgoing && (g.sys.carries(f) || f.EtherType() == unix.ETH_P_ARP) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.packets++
				p.bytes += f.Length
			}
			return true
		})
	})
	return p, err
}

func (p *packetCount) total() (packets, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.packets, p.bytes
}
