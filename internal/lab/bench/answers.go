package bench

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

const (
	// probeInterval is how often each board is asked by ARP whether it answers for the address.
	probeInterval = 2 * time.Millisecond
	// probeGap is from when on a board that has not answered does not. It is several intervals,
	// so that a moment without processor does not divide the time for which two answer.
	probeGap = 5 * probeInterval
)

// prober finds out which boards answer ARP for the floating address, as seen from the client's
// place: two that do at the same time are two holders that somebody could reach. The kernels'
// reports don't tell: a board may have the address and not answer, and the other way round.
//
// It asks each board by its hardware address, in the name of a host that does not exist, so that
// no kernel learns from the answers: the client knows of a new holder what it is told, as always.
type prober struct {
	listener
	stop   chan struct{}
	asking sync.WaitGroup

	mu    sync.Mutex
	began time.Time
	spans []observe.Span // finished ones
	open  map[int]observe.Span
}

// probe begins to ask.
func (r *rig) probe() (*prober, error) {
	p := &prober{stop: make(chan struct{}), began: time.Now(), open: make(map[int]observe.Span)}
	client := r.LAN.Client()
	nobody := append(net.HardwareAddr(nil), client.HardwareAddr...)
	nobody[len(nobody)-1]++
	boards, questions := make(map[int]net.HardwareAddr), make([][]byte, 0, len(r.boards))
	for _, b := range r.boards {
		boards[b.Number] = b.HardwareAddr
		questions = append(questions, arpQuestion(nobody, client.Addr.Addr().Next().AsSlice(), b.HardwareAddr))
	}
	if err := p.add(client, unix.ETH_P_ARP, func(f frame) (more bool) {
		if !f.outgoing && f.answers(nobody) {
			for number, mac := range boards {
				if f.from(mac) {
					p.answered(f.at, number)
				}
			}
		}
		return true
	}); err != nil {
		return nil, err
	}
	out := p.captures[0]
	p.asking.Go(func() { p.ask(out, questions) })
	return p, nil
}

// ask sends the questions until it is told to stop.
func (p *prober) ask(out *capture, questions [][]byte) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		for _, q := range questions {
			_ = out.send(q) // What is not sent is not answered.
		}
	}
}

// answered notes an answer of a board.
func (p *prober) answered(at time.Time, board int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	span, ok := p.open[board]
	if ok && at.Sub(span.To) > probeGap {
		p.spans = append(p.spans, span)
		ok = false
	}
	if !ok {
		span = observe.Span{Board: board, From: at}
	}
	span.To = at
	p.open[board] = span
}

// since returns which boards answered from a moment until now.
func (p *prober) since(from time.Time) observe.Timeline {
	p.mu.Lock()
	defer p.mu.Unlock()
	tl := observe.Timeline{From: later(from, p.began), To: time.Now()}
	add := func(s observe.Span) {
		if s.From = later(s.From, tl.From); s.From.Before(s.To) {
			tl.Spans = append(tl.Spans, s)
		}
	}
	for _, s := range p.spans {
		add(s)
	}
	for _, s := range p.open {
		add(s)
	}
	return tl
}

// close ends the asking.
func (p *prober) close() {
	close(p.stop)
	p.asking.Wait()
	p.listener.close()
}

// arpQuestion is a frame that asks who has the floating address (RFC 826), for one board alone.
func arpQuestion(mac net.HardwareAddr, ip net.IP, to net.HardwareAddr) []byte {
	const ethernet, ipv4, request = 1, 0x0800, 1
	f := append(append(net.HardwareAddr(nil), to...), mac...)
	f = append(f, unix.ETH_P_ARP>>8, unix.ETH_P_ARP&0xff, 0, ethernet, ipv4>>8, ipv4&0xff, 6, 4, 0, request)
	f = append(append(f, mac...), ip...)
	f = append(f, make([]byte, 6)...) // whom it looks for, which it does not know
	return append(f, vip.AsSlice()...)
}

// answers reports whether the frame tells somebody by ARP who has the floating address.
func (f frame) answers(to net.HardwareAddr) bool {
	return f.etherType() == unix.ETH_P_ARP && len(f.bytes) >= offsetTargetIP && bytes.Equal(f.bytes[:6], to) &&
		bytes.Equal(f.bytes[offsetSenderIP:offsetSenderIP+4], vip.AsSlice())
}

// send sends a frame from the captured interface.
func (c *capture) send(bytes []byte) (err error) {
	controlErr := c.raw.Control(func(fd uintptr) { err = unix.Sendto(int(fd), bytes, 0, c.out) })
	if controlErr != nil {
		return controlErr
	}
	if err != nil {
		return fmt.Errorf("send a frame: %w", err)
	}
	return nil
}

// firstBetween waits for the first frame that gets from one side to the other.
// What the client or the prober hears proves nothing to the boards.
func (r *rig) firstBetween(one, other []*board) (*firstFrame, error) {
	traffic := r.sys.traffic()
	wants := make(map[*netns.Host]func(frame) bool)
	side := func(here, there []*board) {
		for _, b := range here {
			wants[b.Host] = func(f frame) bool {
				if f.outgoing {
					return false
				}
				for _, o := range there {
					if f.from(o.HardwareAddr) {
						return true
					}
				}
				// In CARP all boards have one hardware address. A board alone hears no
				// others of its side.
				return len(here) == 1 && traffic.Protocol == protocolVRRP && f.carries(traffic)
			}
		}
	}
	side(one, other)
	side(other, one)
	return firstOf(wants)
}
