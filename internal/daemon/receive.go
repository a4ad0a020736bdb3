package daemon

import (
	"fmt"
	"net/netip"
	"time"

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
func (n *Node) deliver(d netio.Datagram) {
	var p *packet
	select {
	case p = <-n.free:
	default:
		n.link.overruns.Add(1)
		return
	}
	p.size = copy(p.data[:], d.Data)
	p.from, p.multicast, p.at = d.From, d.Multicast, d.At
	n.inbox <- p // never blocks: there are no more packets than places
}

// takeIn judges a packet and hands what is new and true to the core.
func (n *Node) takeIn(p *packet) {
	defer func() { n.free <- p }()
	n.counts.received++
	if n.core == nil {
		return
	}
	m := &n.message
	if drop := n.codec.Decode(m, p.data[:p.size]); drop.Dropped() {
		n.drop(drop.Reason, p.from)
		return
	}
	now := n.now()
	verdict := n.guard.Admit(now, m)
	n.reply(verdict, p.from)
	if verdict.Drop != wire.Accepted {
		if verdict.Drop == wire.Duplicate {
			n.heardBy(m.Sender, p, now, false) // it came by the other path as well
		}
		n.drop(verdict.Drop, p.from)
		return
	}
	if p.multicast {
		n.link.multicastAt = now
	}
	if verdict.Namesake {
		n.news.trouble("namesake", fmt.Sprintf("the board at %v has this board's id %v as well", p.from.Addr(), n.self), time.Minute)
		n.act(n.core.DuplicateID(now, m))
		n.namesake()
		return
	}
	n.heardBy(m.Sender, p, now, true)
	n.trace.taking(p.at, now, m)
	n.act(n.core.Step(now, m))
	n.trace.took()
}

// drop counts a packet that was not accepted. Most are nobody's business; some
// say that a board is set up wrongly.
func (n *Node) drop(reason wire.DropReason, from netip.AddrPort) {
	n.drops[reason]++
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
	if n.news.trouble("packets: "+reason.String(), text, time.Minute) {
		n.log.Warn(text)
	}
}

// heardBy remembers where a board can be reached, and by which path it was
// heard. Only a message that is heard for the first time says where its sender
// is: a copy may come from somebody who repeats what he has overheard.
func (n *Node) heardBy(id wire.ID, p *packet, now time.Duration, fresh bool) {
	way, ok := n.paths[id]
	if !ok {
		if len(n.paths) >= 2*wire.MaxBoards {
			clear(n.paths)
		}
		way = &path{multicastAt: -time.Hour, directAt: -time.Hour}
		n.paths[id] = way
	}
	if fresh {
		// A will comes from a port of its own, where nobody listens.
		way.addr = netip.AddrPortFrom(p.from.Addr(), n.cfg.Port)
	}
	if p.multicast {
		way.multicastAt = now
	} else {
		way.directAt = now
	}
}

// reply sends what the guard wants sent: challenges and proofs.
func (n *Node) reply(v wire.Verdict, from netip.AddrPort) {
	for i := range v.Replies {
		m := &v.Replies[i]
		n.sign(m)
		to := from
		if v.ReplyByMulticast {
			to = netip.AddrPort{}
		}
		n.transmit(m, to)
	}
}

// sign fills in the header of a message that the core did not make.
func (n *Node) sign(m *wire.Message) {
	s := n.core.Signature()
	m.Algorithm, m.Leading, m.Sender, m.Term, m.Priority = s.Algorithm, s.Leading, s.Sender, s.Term, s.Priority
}

// transmit sends a message to one address, or to the group if that is zero.
func (n *Node) transmit(m *wire.Message, to netip.AddrPort) {
	if n.link.transport == nil {
		return
	}
	n.sequence++
	m.Incarnation, m.Sequence = n.life, n.sequence
	datagram, err := n.codec.Append(n.out[:0], m)
	if err != nil {
		n.log.Errorf("make a %v: %v", m.Type, err)
		return
	}
	n.out = datagram
	n.counts.sent++
	if to.IsValid() {
		n.sent(n.link.transport.Unicast(datagram, to))
		return
	}
	n.sent(n.link.transport.Multicast(datagram))
	for _, peer := range n.cfg.Peers {
		if peer != n.link.local {
			n.sent(n.link.transport.Unicast(datagram, netip.AddrPortFrom(peer, n.cfg.Port)))
		}
	}
}

// sent takes in the outcome of a send. A link that is down is no news: the watch
// over the link reports it, and nothing here could be done about it.
func (n *Node) sent(err error) {
	if err == nil {
		return
	}
	n.counts.sendErrors++
	if !isLinkDown(err) && n.news.trouble("send", err.Error(), time.Minute) {
		n.log.Warn(err)
	}
}
