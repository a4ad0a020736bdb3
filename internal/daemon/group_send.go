package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// send sends a message of the core.
func (g *group) send(e *election.Effect) {
	switch m := &e.Message; {
	case e.Floating:
		g.transmit(m, netip.AddrPortFrom(g.link.firstFloating(), g.port), false)
	case e.To == wire.Nobody:
		if m.Type == wire.TypeHeartbeat && !m.Reply {
			g.heartbeatsBroadcast(e.Broadcast)
		}
		g.transmit(m, netip.AddrPort{}, e.Broadcast)
	default:
		addr, ok := g.routeTo(e.To)
		if !ok {
			g.noRoute(e.To)
			return
		}
		if r, heard := g.routes[e.To]; heard {
			r.toldAt = g.now()
		}
		g.transmit(m, addr, false)
	}
}

// heartbeatsBroadcast notes whether there are boards that broadcasts alone reach.
func (g *group) heartbeatsBroadcast(also bool) {
	if g.broadcasts != also {
		g.broadcasts = also
		g.changes++
	}
}

// noRoute counts a message to a board that was never heard and whose id is no
// address. To send it to everybody instead would have others act upon it; the
// algorithms live with a lost message.
func (g *group) noRoute(id wire.ID) {
	g.counts.withoutRoute++
	text := fmt.Sprintf("the address of board %v is not known: nothing is sent to it until it is heard", id)
	g.reporter.warn(console.ProblemNoRoute, text, time.Minute)
}

// transmit sends a message to one address, or to the group if that is zero, and then
// perhaps by broadcast as well. It is the only place where the daemon sends to other boards.
func (g *group) transmit(m *wire.Message, to netip.AddrPort, broadcast bool) {
	if g.transport == nil {
		return
	}
	g.sequence++
	m.Incarnation, m.Sequence = g.incarnation, g.sequence
	if m.Type == wire.TypeHello {
		m.Hello.Keys, m.Hello.Settings, m.Hello.Program = g.codec.Keys(), g.settings, g.program
	}
	datagram, err := g.codec.Append(g.out[:0], m)
	if err != nil {
		g.reporter.log.Errorf("make a %v: %v", m.Type, err)
		return
	}
	g.out = datagram
	g.counts.sent++
	if to.IsValid() { // which may be the broadcast address
		g.noteSend(g.transport.Unicast(datagram, to))
		return
	}
	g.noteSend(g.transport.Multicast(datagram))
	if broadcast {
		g.noteSend(g.transport.Broadcast(datagram))
	}
	for _, peer := range g.peers {
		if peer != g.local {
			g.noteSend(g.transport.Unicast(datagram, netip.AddrPortFrom(peer, g.port)))
		}
	}
}

// hearItself broadcasts that this board does not stand for the lead, and comes back to it unless its firewall drops that. All who hear it
// take the board for dead, see election.Core: with any other message they would take it for a successor.
func (g *group) hearItself() {
	if g.transport == nil || g.guard == nil || g.mute() {
		return
	}
	m := wire.Message{Header: g.header()}
	m.Type, m.Priority = wire.TypeResign, 0
	g.transmit(&m, netip.AddrPortFrom(netio.LimitedBroadcast, g.port), false)
}

// noteSend notes the outcome of a send. A link that is down is no problem of its
// own: the watch over the link reports it, and nothing here could be done about it.
func (g *group) noteSend(err error) {
	if err == nil {
		return
	}
	g.counts.sendErrors++
	if !isLinkDown(err) {
		g.reporter.warn(console.ProblemSend, err.Error(), time.Minute)
	}
}

func isLinkDown(err error) bool { return errors.Is(err, netio.ErrLinkDown) }

// presignAhead is how far the sequence of a pre-signed message is ahead of what was
// sent when it was signed. It is signed anew when half of that is used up, after
// an hour at ten messages a second.
const presignAhead = 1 << 16

// presignSequence is the sequence number of a message that is signed now, for the
// holder to send if this daemon no longer can.
func (g *group) presignSequence() wire.Sequence { return g.sequence + presignAhead }

// presignDue reports whether a message with that number has to be signed anew.
func (g *group) presignDue(sequence wire.Sequence) bool { return g.sequence+presignAhead/2 > sequence }

// revision changes with everything but the sequence that a pre-signed message and
// where it goes depend on.
func (g *group) revision() int { return g.changes }

// presign signs a message that has its sequence number already.
func (g *group) presign(m wire.Message) ([]byte, error) {
	m.Incarnation = g.incarnation
	return g.codec.Append(nil, &m)
}

// destinations are where a message to the group goes.
func (g *group) destinations() []netip.AddrPort {
	all := []netip.AddrPort{g.multicast}
	if g.broadcasts {
		all = append(all, netip.AddrPortFrom(netio.LimitedBroadcast, g.port))
	}
	for _, peer := range g.peers {
		if peer != g.local {
			all = append(all, netip.AddrPortFrom(peer, g.port))
		}
	}
	return all
}

// skipTo has what this board says from now on come after a pre-signed message.
func (g *group) skipTo(sequence wire.Sequence) { g.sequence = max(g.sequence, sequence) }
