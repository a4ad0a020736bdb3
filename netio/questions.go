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

// ARPQuestion asks one host whether it is there, and has an address.
type ARPQuestion struct {
	Addr netip.Addr
	// To is the Ethernet address to ask. If it is nil, everybody is asked, and a proxy
	// may answer for another host.
	To net.HardwareAddr
	// ToAnnouncer sends the question to the host that has announced the floating address last. If none has since the
	// Announcer was opened, nobody is asked.
	ToAnnouncer bool
}

// Doubt is what a board asks when it doubts that it hears anything.
type Doubt struct {
	Questions []ARPQuestion
	// Port is the index of the interface at which the frames of other hosts are counted; 0 for no counting. The frames
	// of Ignored do not count.
	Port    int
	Ignored []netip.Addr
}

// ARPAnswer is the answer to an ARPQuestion.
type ARPAnswer struct {
	Addr netip.Addr
	// AskedAt is when Addr was asked last before the answer was read. The clock is that of Now,
	// and was read before the question was sent. The answer may belong to an earlier question:
	// ARP does not say to which.
	AskedAt time.Duration
}

// Ask sends questions in the name of this host, and forgets the former ones. It first reads what has arrived already.
// The answers go to the function that Answers has set. Ask returns when the questions are sent. The error matches
// ErrLinkDown when the link is away.
func (a *Announcer) Ask(questions []ARPQuestion) error {
	questions = a.addressed(questions)
	if len(questions) == 0 {
		return nil
	}
	failed := []error{a.begin(questions)}
	for _, q := range questions {
		to := broadcast
		if len(q.To) == len(to) {
			to = hardwareAddr(q.To)
		}
		if err := a.socket.send(to, a.question(q.Addr)); err != nil {
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

// addressed fills in the Ethernet address of a host that has announced an address. It leaves out questions to nobody,
// and repeated ones.
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

// begin reads what has arrived, and then notes the time of new questions. Otherwise an answer that has
// waited in the socket while this process stood still could be taken for an answer to them.
func (a *Announcer) begin(questions []ARPQuestion) error {
	a.reading.Lock()
	defer a.reading.Unlock()
	a.drain()
	a.note(questions)
	a.watching.rounds.doubt()
	return a.passAnswers()
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

// Answers sets the function that is told of answers. It replaces the former one. heard is called by the
// goroutine that listens or asks, which waits for it, so heard must call no method of the Announcer.
func (a *Announcer) Answers(heard func(ARPAnswer)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered = heard
}

// answer returns the answer that a packet of another host to own is, and the function to tell. If the packet announces
// a floating address, its sender is noted.
func (a *Announcer) answer(packet arpPacket, own hardwareAddr) (answer ARPAnswer, answered func(ARPAnswer)) {
	if _, floating := a.announcers[packet.senderIP]; floating && packet.senderIP == packet.targetIP {
		a.announcers[packet.senderIP] = packet.senderMAC
	}
	at, asked := a.asked[packet.senderIP]
	if !asked || packet.operation != arpReply || packet.targetMAC != own {
		return answer, nil
	}
	delete(a.asked, packet.senderIP) // a second answer says nothing more
	return ARPAnswer{Addr: packet.senderIP, AskedAt: at}, a.answered
}

// Resolve asks for the Ethernet address of a host in the name of this one, and waits for no answer. It helps the
// kernels of both. A kernel that has asked in vain asks again only after a second
// (net.ipv4.neigh.default.retrans_time_ms), and holds back packets until then. Here it learns the address from the
// answer, and on the other host from the question. The error matches ErrLinkDown when the link is away.
func (a *Announcer) Resolve(addr netip.Addr) error {
	if addr = addr.Unmap(); addr.Is6() {
		return a.six.probe(addr)
	}
	if err := a.socket.send(broadcast, a.question(addr)); err != nil {
		return fmt.Errorf("netio: ask for the Ethernet address of %s on interface %d: %w", addr, a.index, err)
	}
	return nil
}

// Doubt sends questions, and counts frames from now on. It sends the questions even if frames cannot be counted.
func (a *Announcer) Doubt(d Doubt) error {
	return errors.Join(a.count(d), a.Ask(d.Questions))
}

// countsAt reports whether frames are counted at an interface.
func (a *Announcer) countsAt(port int) bool {
	a.counting.Lock()
	defer a.counting.Unlock()
	return a.counter != nil && a.counter.index == port
}

// count begins to count frames. After an error none are counted.
func (a *Announcer) count(d Doubt) (err error) {
	if d.Port == 0 {
		return nil
	}
	a.counting.Lock()
	defer a.counting.Unlock()
	if a.counter != nil && a.counter.index != d.Port {
		a.stopCounting()
	}
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

// Heard returns how many frames have arrived since the last Doubt, and the senders of some that have arrived since the
// last call of Heard. It is an error if there was no Doubt, or Calm was called since.
func (a *Announcer) Heard() (frames uint64, senders []Neighbour, err error) {
	a.counting.Lock()
	defer a.counting.Unlock()
	if a.counter == nil {
		return 0, nil, errors.New("netio: no frames are counted")
	}
	frames, err = a.counter.count()
	return frames, a.counter.senders(), err
}

// Calm stops counting frames.
func (a *Announcer) Calm() error {
	a.counting.Lock()
	defer a.counting.Unlock()
	a.stopCounting()
	return nil
}

// stopCounting closes the counter in the background, since closing a packet socket takes about 17 ms. It is called
// with counting locked.
func (a *Announcer) stopCounting() {
	if counter := a.counter; counter != nil {
		a.closing.Go(func() { unix.Close(counter.fd) })
	}
	a.counter = nil
}

// Probe asks n times, spacing apart, whether another host on the link has addr,
// and waits spacing after the last time (RFC 5227, section 2.1). It returns
// at once when somebody answers, speaks as addr, or probes for addr as well.
// Silence proves something only while the link is up: with the
// cable out, packets are lost without an error.
//
// A host that has the address answers even if its programs are frozen, since its kernel does.
func (a *Announcer) Probe(ctx context.Context, addr netip.Addr, n int, spacing time.Duration) (owner net.HardwareAddr, found bool, err error) {
	addr = addr.Unmap()
	w, err := a.await(addr)
	defer a.forget(w)
	ticker := time.NewTicker(spacing)
	defer ticker.Stop()
	for range n {
		if err == nil {
			err = a.sendProbe(addr)
		}
		if err == nil {
			select {
			case mac := <-w.heard:
				return mac[:], true, nil
			case <-ticker.C:
				continue
			case <-a.closed:
				err = net.ErrClosed
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		return nil, false, fmt.Errorf("netio: probe for %s on interface %d: %w", addr, a.index, err)
	}
	return nil, false, nil
}

func (a *Announcer) sendProbe(addr netip.Addr) error {
	if addr.Is6() {
		return a.six.probe(addr)
	}
	return a.socket.send(broadcast, probe(addr))
}

// awaited is a Probe that waits for a conflict.
type awaited struct {
	addr  netip.Addr
	heard chan hardwareAddr // who was heard; its capacity is 1, since the first one is enough
}

// await begins to wait for a packet about an address. What has arrived before counts as well.
func (a *Announcer) await(addr netip.Addr) (*awaited, error) {
	w := &awaited{addr: addr, heard: make(chan hardwareAddr, 1)}
	a.reading.Lock()
	defer a.reading.Unlock()
	a.mu.Lock()
	a.waiting[w] = struct{}{}
	a.mu.Unlock()
	if addr.Is6() && a.six != nil {
		a.six.passAll() // a flood may have had the kernel drop the answer
	}
	return w, a.passAnswers()
}

func (a *Announcer) forget(w *awaited) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, w)
}

// AskGateway asks the default gateway of an interface by ARP whether it is there, and returns when it has answered, or when
// ctx ends. It needs CAP_NET_RAW; see Holder.AskGateway.
func AskGateway(ctx context.Context, iface string) error {
	link, err := net.InterfaceByName(iface)
	if err != nil {
		return fmt.Errorf("there is no interface %s", iface)
	}
	own, err := prefixesOf(link)
	if err == nil && len(own) == 0 {
		err = fmt.Errorf("%s has no IPv4 address", iface)
	}
	if err != nil {
		return err
	}
	gateway, err := gatewayOn(link.Index)
	if err != nil {
		return err
	}
	announcer, err := OpenAnnouncer(link.Index, own[0].Addr(), gateway)
	if err != nil {
		return err
	}
	defer func() { go announcer.Close() }() // which takes about 17 ms
	answered := make(chan struct{}, 1)
	announcer.Answers(func(ARPAnswer) { answered <- struct{}{} }) // there is one at most
	if err := announcer.Ask([]ARPQuestion{{Addr: gateway}}); err != nil {
		return err
	}
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the gateway %s does not answer", gateway)
	}
}

// prefixesOf returns the IPv4 addresses of this host on a link, each with its subnet.
func prefixesOf(link *net.Interface) (own []netip.Prefix, err error) {
	addrs, err := link.Addrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of %s: %w", link.Name, err)
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			own = append(own, prefix)
		}
	}
	return own, nil
}

// gatewayOn returns the default gateway on a link.
func gatewayOn(index int) (netip.Addr, error) {
	n, err := ReadNeighbours(index)
	if err == nil && !n.Gateway.IsValid() {
		err = errors.New("there is no default gateway on this interface")
	}
	return n.Gateway, err
}
