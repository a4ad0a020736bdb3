package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// ARPQuestion asks one host whether it is there, and has an address.
type ARPQuestion struct {
	Addr netip.Addr
	// To is the Ethernet address that is asked. If it is nil, everybody is: then a proxy
	// may answer for another host.
	To net.HardwareAddr
}

// ARPAnswer is the answer to an ARPQuestion.
type ARPAnswer struct {
	Addr netip.Addr
	// AskedAt is when Addr was asked last before the answer was read, on the clock of Now,
	// which was read before the question was sent. The answer may be to an earlier question:
	// ARP does not tell.
	AskedAt time.Duration
}

// Ask sends questions in the name of own, this host's address. What was received before is read
// before. The answers go to whom Answers has set. It returns when the questions were sent; the
// error matches ErrLinkDown when the link is away.
func (a *Announcer) Ask(own netip.Addr, questions []ARPQuestion) error {
	a.begin(questions)
	var failed []error
	for _, q := range questions {
		to := broadcast
		if len(q.To) == len(to) {
			to = hardwareAddr(q.To)
		}
		if err := a.send(to, request(own.Unmap(), q.Addr.Unmap())); err != nil {
			failed = append(failed, fmt.Errorf("netio: ask %s on interface %d: %w", q.Addr, a.index, err))
		}
	}
	return errors.Join(failed...)
}

// Resolve asks for the Ethernet address of a host in the name of own, this host's address, and
// expects no answer: it is for the kernels of both. One that has asked in vain asks again every second
// (net.ipv4.neigh.default.retrans_time_ms) and holds back what it is to send meanwhile; now the
// answer, and on the other side the question, tells it. The error matches ErrLinkDown when the
// link is away.
func (a *Announcer) Resolve(own, addr netip.Addr) error {
	if err := a.send(broadcast, request(own.Unmap(), addr.Unmap())); err != nil {
		return fmt.Errorf("netio: ask for the Ethernet address of %s on interface %d: %w", addr, a.index, err)
	}
	return nil
}

// begin reads what has arrived, and then notes the time of new questions. An answer that has
// waited in the socket while this process stood still is not to be taken for one to them.
func (a *Announcer) begin(questions []ARPQuestion) {
	a.reading.Lock()
	defer a.reading.Unlock()
	_ = a.socket.Control(func(fd uintptr) {
		for range drainMax {
			if a.readLocked(fd) != nil {
				return
			}
		}
	})
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

// Holder returns the Ethernet address of the host that has announced a floating address last,
// if one has since the Announcer was opened.
func (a *Announcer) Holder(addr netip.Addr) (mac net.HardwareAddr, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	holder := a.holders[addr.Unmap()]
	return holder[:], holder != hardwareAddr{}
}

// answer returns the answer to own that another host's packet is, and who is to be told. It notes who
// announces a floating address.
func (a *Announcer) answer(packet arpPacket, own hardwareAddr) (answer ARPAnswer, answered func(ARPAnswer)) {
	if _, floating := a.holders[packet.senderIP]; floating && packet.senderIP == packet.targetIP {
		a.holders[packet.senderIP] = packet.senderMAC
	}
	at, asked := a.asked[packet.senderIP]
	if !asked || packet.operation != arpReply || packet.targetMAC != own {
		return answer, nil
	}
	delete(a.asked, packet.senderIP) // the same again says nothing more
	return ARPAnswer{Addr: packet.senderIP, AskedAt: at}, a.answered
}
