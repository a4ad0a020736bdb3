package netio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// awaited is a Probe that waits for a conflict, or a reach that waits for an answer.
type awaited struct {
	addr   netip.Addr
	answer bool              // a reply to this host counts, and nothing else
	heard  chan hardwareAddr // of capacity 1; the first one is enough
}

// isFor reports whether a packet of another host is what is waited for by the host with the Ethernet address own.
func (w *awaited) isFor(packet arpPacket, own hardwareAddr) bool {
	if w.answer {
		return packet.operation == arpReply && packet.senderIP == w.addr && packet.targetMAC == own
	}
	return packet.conflictsWith(w.addr)
}

// Probe asks n times, spacing apart, whether another host on the link has addr,
// and waits spacing after the last time (RFC 5227, section 2.1). It returns
// at once when somebody answers, speaks as addr, or probes for addr as well.
// Silence is only worth something while the link is up: with the
// cable out, packets are lost without an error.
//
// A host that is frozen but has the address still answers, since its kernel does.
func (a *Announcer) Probe(ctx context.Context, addr netip.Addr, n int, spacing time.Duration) (owner net.HardwareAddr, found bool, err error) {
	addr = addr.Unmap()
	w := a.await(addr, false)
	defer a.forget(w)
	ticker := time.NewTicker(spacing)
	defer ticker.Stop()
	for range n {
		if err := a.send(broadcast, probe(addr)); err != nil {
			return nil, false, fmt.Errorf("netio: probe for %s on interface %d: %w", addr, a.index, err)
		}
		select {
		case mac := <-w.heard:
			return mac[:], true, nil
		case <-ticker.C:
		case <-a.closed:
			return nil, false, fmt.Errorf("netio: probe for %s on interface %d: %w", addr, a.index, net.ErrClosed)
		case <-ctx.Done():
			return nil, false, fmt.Errorf("netio: probe for %s on interface %d: %w", addr, a.index, context.Cause(ctx))
		}
	}
	return nil, false, nil
}

// reach asks for an address in the name of this host, and reports whether it was answered before ctx ended.
func (a *Announcer) reach(ctx context.Context, addr netip.Addr) bool {
	addr = addr.Unmap()
	w := a.await(addr, true)
	defer a.forget(w)
	if a.send(broadcast, a.question(addr)) != nil {
		return false
	}
	select {
	case <-w.heard:
		return true
	case <-a.closed:
	case <-ctx.Done():
	}
	return false
}

// await begins to wait for an address. What has arrived before is no answer.
func (a *Announcer) await(addr netip.Addr, answer bool) *awaited {
	w := &awaited{addr: addr, answer: answer, heard: make(chan hardwareAddr, 1)}
	a.reading.Lock()
	defer a.reading.Unlock()
	if answer {
		a.drain()
	}
	a.mu.Lock()
	a.waiting[w] = struct{}{}
	a.mu.Unlock()
	a.renewAwaited()
	return w
}

func (a *Announcer) forget(w *awaited) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, w)
}

// ARPQuestion asks one host whether it is there, and has an address.
type ARPQuestion struct {
	Addr netip.Addr
	// To is the Ethernet address that is asked. If it is nil, everybody is: then a proxy
	// may answer for another host.
	To net.HardwareAddr
	// ToAnnouncer asks the host that has announced the floating address last, and nobody if none has since the Announcer was opened.
	ToAnnouncer bool
}

// Doubt is what is asked when a board doubts whether it hears anything.
type Doubt struct {
	Questions []ARPQuestion
	// Port is the index of the interface at which the frames of other hosts are counted, but of those that are ignored; 0 for none.
	Port    int
	Ignored []netip.Addr
}

// ARPAnswer is the answer to an ARPQuestion.
type ARPAnswer struct {
	Addr netip.Addr
	// AskedAt is when Addr was asked last before the answer was read, on the clock of Now,
	// which was read before the question was sent. The answer may be to an earlier question:
	// ARP does not tell.
	AskedAt time.Duration
}

// Ask sends questions in the name of this host. What was received before is read before. The answers go to whom
// Answers has set. It returns when the questions were sent; the error matches ErrLinkDown when the link is away.
func (a *Announcer) Ask(questions []ARPQuestion) error {
	questions = a.addressed(questions)
	a.begin(questions)
	var failed []error
	for _, q := range questions {
		to := broadcast
		if len(q.To) == len(to) {
			to = hardwareAddr(q.To)
		}
		if err := a.send(to, a.question(q.Addr)); err != nil {
			failed = append(failed, fmt.Errorf("netio: ask %s on interface %d: %w", q.Addr, a.index, err))
		}
	}
	return errors.Join(failed...)
}

// question asks for an address in the name of this host. If that has no address of its own, it is a probe.
func (a *Announcer) question(addr netip.Addr) arpPacket {
	if !a.local.IsValid() {
		return probe(addr.Unmap())
	}
	return request(a.local, addr.Unmap())
}

// addressed fills in the Ethernet addresses of those who have announced an address. A question to nobody is left out.
func (a *Announcer) addressed(questions []ARPQuestion) (all []ARPQuestion) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range questions {
		if q.ToAnnouncer {
			mac := a.announcers[q.Addr.Unmap()]
			if mac == (hardwareAddr{}) {
				continue
			}
			q.To = mac[:]
		}
		if !slices.ContainsFunc(all, func(p ARPQuestion) bool { return p.Addr == q.Addr && slices.Equal(p.To, q.To) }) {
			all = append(all, q)
		}
	}
	return all
}

// Doubt sends questions, and has frames counted that come from now on. If they cannot be counted, the questions are sent
// all the same.
func (a *Announcer) Doubt(d Doubt) error {
	return errors.Join(a.count(d), a.Ask(d.Questions))
}

// count begins to count frames. After an error none are counted.
func (a *Announcer) count(d Doubt) (err error) {
	if d.Port == 0 {
		return nil
	}
	a.counting.Lock()
	defer a.counting.Unlock()
	if a.counter == nil {
		a.counter, err = openFrameCounter(d.Port)
	}
	if err == nil {
		err = a.counter.begin(d.Ignored)
	}
	if err != nil {
		a.stopCounting()
	}
	return err
}

// Heard returns how many frames have come since the last Doubt, and who has sent some of those that have come since Heard was
// called last. None are counted unless there was a Doubt and no Calm.
func (a *Announcer) Heard() (frames uint64, senders []Neighbour, err error) {
	a.counting.Lock()
	defer a.counting.Unlock()
	if a.counter == nil {
		return 0, nil, errors.New("netio: no frames are counted")
	}
	frames, err = a.counter.count()
	return frames, a.counter.senders(), err
}

// Calm ends the counting.
func (a *Announcer) Calm() error {
	a.counting.Lock()
	defer a.counting.Unlock()
	a.stopCounting()
	return nil
}

// stopCounting does not wait for the kernel, which takes a while to close a packet socket. It is called with counting locked.
func (a *Announcer) stopCounting() {
	if counter := a.counter; counter != nil {
		a.closing.Go(func() { unix.Close(counter.fd) })
	}
	a.counter = nil
}

// Resolve asks for the Ethernet address of a host in the name of this one, and expects no answer: it is for
// the kernels of both. One that has asked in vain asks again every second
// (net.ipv4.neigh.default.retrans_time_ms) and holds back what it is to send meanwhile; now the
// answer, and on the other side the question, tells it. The error matches ErrLinkDown when the
// link is away.
func (a *Announcer) Resolve(addr netip.Addr) error {
	if err := a.send(broadcast, a.question(addr)); err != nil {
		return fmt.Errorf("netio: ask for the Ethernet address of %s on interface %d: %w", addr, a.index, err)
	}
	return nil
}

// begin reads what has arrived, and then notes the time of new questions. An answer that has
// waited in the socket while this process stood still is not to be taken for one to them.
func (a *Announcer) begin(questions []ARPQuestion) {
	a.reading.Lock()
	defer a.reading.Unlock()
	a.drain()
	a.note(questions)
	a.renewAwaited()
}

// note notes what is asked, and when.
func (a *Announcer) note(questions []ARPQuestion) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.asked)
	now := Now()
	for _, q := range questions {
		a.asked[q.Addr.Unmap()] = now
	}
}

// Answers sets who is told of answers. It replaces what was set before. heard is called by the
// goroutine that listens or asks, which stands still until it returns, so it must call nothing
// of the Announcer.
func (a *Announcer) Answers(heard func(ARPAnswer)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered = heard
}

// answer returns the answer to own that another host's packet is, and who is to be told. It notes who
// announces a floating address.
func (a *Announcer) answer(packet arpPacket, own hardwareAddr) (answer ARPAnswer, answered func(ARPAnswer)) {
	if _, floating := a.announcers[packet.senderIP]; floating && packet.senderIP == packet.targetIP {
		a.announcers[packet.senderIP] = packet.senderMAC
	}
	at, asked := a.asked[packet.senderIP]
	if !asked || packet.operation != arpReply || packet.targetMAC != own {
		return answer, nil
	}
	delete(a.asked, packet.senderIP) // the same again says nothing more
	return ARPAnswer{Addr: packet.senderIP, AskedAt: at}, a.answered
}
