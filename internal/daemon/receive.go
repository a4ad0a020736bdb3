package daemon

import (
	"fmt"
	"net/netip"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// inboxSize is how many packets may wait for the loop. A group of 255 says
// HELLO to a new board with at most that many CHALLENGEs at once.
const inboxSize = 256

// packet is a datagram on its way from a reader to the loop.
type packet struct {
	data      [netio.MaxPacket]byte
	size      int
	from      netip.AddrPort
	multicast bool
	at        time.Duration // when it was read from its socket
}

// path is how another board is reached, and how it was heard lately.
type path struct {
	addr                  netip.AddrPort
	multicastAt, directAt time.Duration
}

// deliver takes a datagram from a reader of the sockets. It copies, allocates
// nothing and never blocks: what does not fit is dropped and counted, like what
// does not fit into a socket's buffer.
func (d *Daemon) deliver(datagram netio.Datagram) {
	var p *packet
	select {
	case p = <-d.free:
	default:
		d.link.overruns.Add(1)
		return
	}
	p.size = copy(p.data[:], datagram.Data)
	p.from, p.multicast, p.at = datagram.From, datagram.Multicast, datagram.At
	d.inbox <- p // never blocks: there are no more packets than places
}

// takeIn judges a packet and hands what is new and true to the core.
func (d *Daemon) takeIn(p *packet) {
	defer func() { d.free <- p }()
	d.counts.received++
	if d.core == nil {
		return
	}
	m := &d.message
	if drop := d.codec.Decode(m, p.data[:p.size]); drop.Dropped() {
		d.drop(drop.Reason, p.from)
		return
	}
	now := d.now()
	verdict := d.guard.Admit(now, m)
	d.reply(verdict, p.from)
	if verdict.Drop != wire.Accepted {
		if verdict.Drop == wire.Duplicate {
			d.heardBy(m.Sender, p, now, false) // it came by the other path as well
		}
		d.drop(verdict.Drop, p.from)
		return
	}
	if p.multicast {
		d.link.multicastAt = now
	}
	if verdict.Namesake {
		d.news.trouble(console.ProblemKind(election.NoticeDuplicateID.Identifier()), fmt.Sprintf("the board at %v has this board's id %v as well", p.from.Addr(), d.self), time.Minute)
		d.act(d.core.DuplicateID(now, m))
		d.namesake()
		return
	}
	d.heardBy(m.Sender, p, now, true)
	d.trace.taking(p.at, now, m)
	d.act(d.core.Step(now, m))
	d.trace.took()
}

// drop counts a packet that was not accepted. Most are nobody's business; some
// say that a board is set up wrongly.
func (d *Daemon) drop(reason wire.DropReason, from netip.AddrPort) {
	d.drops[reason]++
	var text string
	switch reason {
	case wire.BadTag:
		text = fmt.Sprintf("packets from %v fail authentication: its key differs from this board's", from.Addr())
	case wire.Unauthenticated:
		text = fmt.Sprintf("packets from %v are not authenticated, and this group has a key: copy the key file to that board", from.Addr())
	case wire.NotExpectingAuth:
		text = fmt.Sprintf("packets from %v are authenticated, and this board has no key: copy the key file to this board", from.Addr())
	case wire.BadVersion:
		text = fmt.Sprintf("packets from %v have another version of the protocol: upgrade the older board", from.Addr())
	default:
		return
	}
	// One problem for each reason, whoever sends them: a source address is easily
	// made up, and the log must not grow with what somebody makes up.
	if d.news.trouble(console.ProblemKind(reason.Identifier()), text, time.Minute) {
		d.log.Warn(text)
	}
}

// heardBy remembers where a board can be reached, and by which path it was
// heard. Only a message that is heard for the first time says where its sender
// is: a copy may come from somebody who repeats what he has overheard.
func (d *Daemon) heardBy(id wire.ID, p *packet, now time.Duration, fresh bool) {
	way, ok := d.paths[id]
	if !ok {
		if len(d.paths) >= 2*wire.MaxBoards {
			clear(d.paths)
		}
		way = &path{multicastAt: -time.Hour, directAt: -time.Hour}
		d.paths[id] = way
	}
	if fresh {
		// A will comes from a port of its own, where nobody listens.
		way.addr = netip.AddrPortFrom(p.from.Addr(), d.cfg.Multicast.Port())
	}
	if p.multicast {
		way.multicastAt = now
	} else {
		way.directAt = now
	}
}

// reply sends what the guard wants sent: challenges and proofs.
func (d *Daemon) reply(v wire.Verdict, from netip.AddrPort) {
	for i := range v.Replies {
		m := &v.Replies[i]
		d.sign(m)
		to := from
		if v.ReplyByMulticast {
			to = netip.AddrPort{}
		}
		d.transmit(m, to)
	}
}

// sign fills in the header of a message that the core did not make.
func (d *Daemon) sign(m *wire.Message) {
	s := d.core.Signature()
	m.Algorithm, m.Leading, m.Sender, m.Term, m.Priority = s.Algorithm, s.Leading, s.Sender, s.Term, s.Priority
}

// transmit sends a message to one address, or to the group if that is zero.
func (d *Daemon) transmit(m *wire.Message, to netip.AddrPort) {
	if d.link.transport == nil {
		return
	}
	d.sequence++
	m.Incarnation, m.Sequence = d.life, d.sequence
	datagram, err := d.codec.Append(d.out[:0], m)
	if err != nil {
		d.log.Errorf("make a %v: %v", m.Type, err)
		return
	}
	d.out = datagram
	d.counts.sent++
	if to.IsValid() {
		d.sent(d.link.transport.Unicast(datagram, to))
		return
	}
	d.sent(d.link.transport.Multicast(datagram))
	for _, peer := range d.cfg.Peers {
		if peer != d.link.local {
			d.sent(d.link.transport.Unicast(datagram, netip.AddrPortFrom(peer, d.cfg.Multicast.Port())))
		}
	}
}

// sent takes in the outcome of a send. A link that is down is no news: the watch
// over the link reports it, and nothing here could be done about it.
func (d *Daemon) sent(err error) {
	if err == nil {
		return
	}
	d.counts.sendErrors++
	if !isLinkDown(err) && d.news.trouble(console.ProblemSend, err.Error(), time.Minute) {
		d.log.Warn(err)
	}
}
