package observe

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"topdog/internal/lab/frame"
)

// Probe is what a Prober asks, and of whom.
type Probe struct {
	Address netip.Addr               // whether they answer for this one
	Boards  map[int]net.HardwareAddr // by number; each is asked alone, not all at once
	// MAC and From are in whose name it asks: of nobody, so that no kernel cares for the answers. Without a MAC it is that
	// of the interface. A reply of ARP has no number: the address to which it comes says which question it answers, for as
	// long as it takes until the address is used again.
	MAC  net.HardwareAddr
	From []netip.Addr
	// ARP and Echo are how often it asks by ARP, or for an IPv6 address by Neighbor Discovery, and for an ICMP echo; 0 stands
	// for never.
	ARP, Echo time.Duration
}

// SolicitEvery is how often to ask a board by Neighbor Discovery. A holder of topdog answers 50 such questions a second in the
// long run, of all machines together: who asks more often takes its answers from the client. So what tells to the millisecond
// who has an IPv6 address is the echo.
const SolicitEvery = 100 * time.Millisecond

// Reply is an answer of a board: it has answered for the address at a moment between the two.
type Reply struct {
	Board        int
	Asked, Heard time.Time
}

// Prober finds out which boards answer for an address, as seen from one place of the LAN: two that do at the same time are
// two that somebody could reach. The kernels' reports don't tell: a board may have the address and not answer, and the
// other way round.
type Prober struct {
	probe   Probe
	socket  *frame.Socket
	began   time.Time
	stop    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	asked   []time.Time // by ARP, last, from each address
	replies []Reply
}

// StartProber begins to ask through a socket that hears all, and closes it in the end.
func StartProber(socket *frame.Socket, probe Probe) *Prober {
	p := &Prober{probe: probe, socket: socket, began: time.Now(), stop: make(chan struct{}), asked: make([]time.Time, len(probe.From))}
	if probe.MAC == nil {
		p.probe.MAC = socket.MAC
	}
	p.running.Go(p.receive)
	p.every(probe.ARP, p.askByARP)
	p.every(probe.Echo, p.askForEcho)
	return p
}

// every asks in an interval, until the end.
func (p *Prober) every(interval time.Duration, ask func(n int)) {
	if interval == 0 {
		return
	}
	p.running.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				ask(n)
			}
		}
	})
}

// Close ends the asking.
func (p *Prober) Close() {
	close(p.stop)
	p.socket.Close()
	p.running.Wait()
}

// Replies returns those that were heard since a moment, in the order in which they were.
func (p *Prober) Replies(since time.Time) []Reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, _ := slices.BinarySearchFunc(p.replies, since, func(r Reply, t time.Time) int { return r.Heard.Compare(t) })
	return slices.Clone(p.replies[first:])
}

// Take returns what was heard since the last call, and forgets it.
func (p *Prober) Take() (replies []Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	replies, p.replies = p.replies, nil
	return replies
}

// Since returns which boards answered from a moment until now.
func (p *Prober) Since(from time.Time) Timeline {
	if from.Before(p.began) {
		from = p.began
	}
	return Timeline{From: from, To: time.Now(), Spans: SpansOf(p.Replies(from))}
}

func (p *Prober) askByARP(n int) {
	n %= len(p.probe.From)
	p.mu.Lock()
	p.asked[n] = time.Now()
	p.mu.Unlock()
	address, from := p.probe.Address, p.probe.From[n]
	for _, mac := range p.probe.Boards {
		question := frame.ARP{MAC: p.probe.MAC, Sender: from, Target: address}.Frame(mac)
		if address.Is6() {
			question = frame.Neighbour{MAC: p.probe.MAC, Target: address}.Packet(from, frame.SolicitedNode(address), mac).Frame()
		}
		// What is not sent, as by a link that is down, is not answered.
		_ = p.socket.Send(question)
	}
}

// askForEcho has the echo bring back when it was asked for.
func (p *Prober) askForEcho(int) {
	for _, mac := range p.probe.Boards {
		packet := frame.Packet{FromMAC: p.probe.MAC, ToMAC: mac, From: p.probe.From[0], To: p.probe.Address, TTL: 64}
		asked := binary.BigEndian.AppendUint64(nil, uint64(time.Since(p.began)))
		_ = p.socket.Send(packet.WithEcho(p.id(), asked).Frame())
	}
}

// id tells the echoes of one prober from those of another.
func (p *Prober) id() uint16 { return uint16(p.socket.Index) }

// receive takes the answers, until the socket is closed.
func (p *Prober) receive() {
	for {
		f, err := p.socket.Read()
		if err != nil {
			return
		}
		if f.Outgoing {
			continue
		}
		p.tellWhere(f)
		asked, ok := p.asks(f)
		if !ok {
			continue
		}
		for board, mac := range p.probe.Boards {
			if f.IsFrom(mac) {
				p.mu.Lock()
				p.replies = append(p.replies, Reply{board, asked, f.At})
				p.mu.Unlock()
			}
		}
	}
}

// tellWhere answers a board that asks where one of the addresses is in whose name it was asked. Otherwise it would have no way
// to answer until it is asked by Neighbor Discovery again. By ARP it is asked so often that it need not ask.
func (p *Prober) tellWhere(f frame.Frame) {
	packet, _ := f.Packet()
	n, ok := packet.Neighbour()
	if !ok || n.Advertises || packet.From.IsUnspecified() || !slices.Contains(p.probe.From, n.Target) {
		return
	}
	here := frame.Neighbour{Advertises: true, Flags: frame.NeighbourSolicited | frame.NeighbourOverride, Target: n.Target, MAC: p.probe.MAC}
	_ = p.socket.Send(here.Packet(n.Target, packet.From, slices.Clone(f.From())).Frame())
}

// asks returns when it has asked for a frame that answers for the address.
func (p *Prober) asks(f frame.Frame) (asked time.Time, ok bool) {
	packet, _ := f.Packet()
	if id, data, ok := packet.EchoReply(); ok {
		if packet.From != p.probe.Address || id != p.id() || len(data) < 8 {
			return asked, false
		}
		return p.began.Add(time.Duration(binary.BigEndian.Uint64(data))), true
	}
	var has, told netip.Addr
	if reply, ok := f.ARP(); ok && reply.Reply && bytes.Equal(reply.TargetMAC, p.probe.MAC) {
		has, told = reply.Sender, reply.Target
	} else if n, ok := packet.Neighbour(); ok && n.Advertises && bytes.Equal(packet.ToMAC, p.probe.MAC) {
		has, told = n.Target, packet.To
	}
	from := slices.Index(p.probe.From, told)
	if has != p.probe.Address || from < 0 {
		return asked, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[from], true
}

// sameSpan is how far apart two answers may come and still be of one span: several questions, so that a moment without a
// processor does not divide it. An address that goes to another board and comes back takes longer.
const sameSpan = 10 * time.Millisecond

// SpansOf returns for which times each board has answered. They are shorter than the truth: from when the first answer had
// come until the last question that was answered was sent.
func SpansOf(replies []Reply) (spans []Span) {
	type last struct {
		heard time.Time
		span  int
	}
	open := map[int]last{}
	for _, r := range replies {
		l, ok := open[r.Board]
		if !ok || r.Heard.Sub(l.heard) > sameSpan {
			l.span = len(spans)
			spans = append(spans, Span{r.Board, r.Heard, r.Heard})
		}
		if s := &spans[l.span]; r.Asked.After(s.To) {
			s.To = r.Asked
		}
		if r.Heard.After(l.heard) {
			l.heard = r.Heard
		}
		open[r.Board] = l
	}
	return slices.DeleteFunc(spans, func(s Span) bool { return !s.To.After(s.From) })
}
