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

// send sends a message of the core.
func (g *group) send(e *election.Effect) {
	m := &e.Message
	g.stamp(m)
	switch {
	case e.Floating:
		g.sendStamped(m, netip.AddrPortFrom(g.link.firstFloating(), g.port), false)
	case e.To == wire.Nobody:
		if m.Type == wire.TypeHeartbeat && !m.Reply {
			g.heartbeatsBroadcast(e.Broadcast)
		}
		g.sendStamped(m, netip.AddrPort{}, e.Broadcast)
	default:
		addr := g.addressOf(e.To)
		if !addr.IsValid() {
			g.noRoute(e.To)
			return
		}
		if b := g.boards[e.To]; b != nil {
			b.toldAt = g.now()
		}
		g.sendStamped(m, netip.AddrPortFrom(addr, g.port), false)
	}
}

// heartbeatsBroadcast notes whether there are boards that broadcasts alone reach.
func (g *group) heartbeatsBroadcast(also bool) {
	if g.broadcasts != also {
		g.broadcasts = also
		g.changes++
	}
}

// noRoute counts a message to a board that was never heard and whose id is no address. Nobody else may get it, since they
// would act upon it; the algorithms live with a lost message.
func (g *group) noRoute(id wire.ID) {
	g.counts.withoutRoute++
	g.reporter.warn(console.ProblemNoRoute,
		fmt.Sprintf("the address of board %v is not known: nothing is sent to it until it is heard", id))
}

// transmit sends a new message to one address, or to the group if that is zero, and then perhaps broadcasts it as well.
func (g *group) transmit(m *wire.Message, to netip.AddrPort, broadcast bool) {
	g.stamp(m)
	g.sendStamped(m, to, broadcast)
}

// stamp writes into a message who says it, and when.
func (g *group) stamp(m *wire.Message) {
	g.sequence++
	m.Incarnation, m.Sequence = g.incarnation, g.sequence
	if m.Type == wire.TypeHello {
		m.Hello.Keys, m.Hello.Settings, m.Hello.Program = g.codec.Keys(), g.settings, g.program
	}
}

// sendStamped is the only place where the daemon sends to other boards.
func (g *group) sendStamped(m *wire.Message, to netip.AddrPort, broadcast bool) {
	if g.transport == nil {
		return
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

// hearItself broadcasts that this board does not stand for the lead. The packet comes back to this board unless its firewall
// drops that. All who hear it take the board for dead, see election.Core: with any other message they would take it for a
// successor.
func (g *group) hearItself() {
	if g.transport == nil || g.guard == nil || g.mute() {
		return
	}
	m := wire.Message{Header: g.header()}
	m.Type, m.Priority = wire.TypeResign, 0
	g.transmit(&m, netip.AddrPortFrom(netio.LimitedBroadcast, g.port), false)
}

// presignAhead is how far the sequence of a pre-signed message is ahead of what was sent when it was signed. It is signed
// anew when half of that is used up: after an hour at ten messages a second.
const presignAhead = 1 << 16

// presign signs a message for the holder to send if this daemon no longer can. The message has to be signed anew when the
// revision has changed: with everything that it and its destinations depend on, except the sequence.
func (g *group) presign(m *wire.Message) (prepared netio.PreparedResign, revision int, err error) {
	m.Incarnation, m.Sequence = g.incarnation, g.sequence+presignAhead
	datagram, err := g.codec.Append(nil, m)
	return netio.PreparedResign{Datagram: datagram, To: g.destinations()}, g.changes, err
}

// presignDue reports whether a message with that sequence number and revision has to be signed anew.
func (g *group) presignDue(sequence wire.Sequence, revision int) bool {
	return g.sequence+presignAhead/2 > sequence || g.changes != revision
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

// drain reads its sockets, and those of the board's other groups to which its packets may come.
func (g *group) drain() {
	for _, transport := range g.exchange.at(g.local) {
		transport.Drain()
	}
}

// lostPackets reports whether something has come, since it was asked last, for which there was no room.
func (g *group) lostPackets() bool {
	lost := g.inbox.overruns.Load()
	for _, transport := range g.exchange.at(g.local) {
		lost += transport.Drops().Overflows
	}
	former := g.lost
	g.lost = lost
	return lost > former // less if the transport was opened anew
}

// conflict says why the core does not act upon a message: this board and its sender cannot live together, or the core has
// acted upon it already.
type conflict uint8

const (
	conflictNone      conflict = iota
	conflictID                 // the sender uses this board's id
	conflictVersion            // it speaks another version; only the sender of the message is known
	conflictCopy               // it came by another path before
	conflictElsewhere          // it came by another interface, and this board knows by which path it hears others
)

// receive judges a packet that the readers have verified. It returns the message if it is new and its sender alive, or if the
// two are in conflict; else nil. The message is good until it is recycled.
func (g *group) receive(r *received, now time.Duration) (*wire.Message, conflict) {
	g.counts.received++
	if g.guard == nil {
		return nil, conflictNone
	}
	m := &r.message
	if keys := g.codec.Keys(); r.drop == wire.OtherVersion && keys != (wire.Keys{}) && !keys.Accept(m.Key) {
		r.drop = wire.BadTag // the keys have changed since a reader verified it
	}
	if r.drop != wire.Accepted {
		g.drop(r.drop, r.from)
		if r.drop == wire.OtherVersion {
			return m, conflictVersion
		}
		return nil, conflictNone
	}
	verdict := g.guard.Admit(now, r.from.Addr(), m)
	g.reply(&verdict, r.from.Addr())
	if verdict.Drop != wire.Accepted {
		g.drop(verdict.Drop, r.from)
		if verdict.Drop != wire.Duplicate {
			return nil, conflictNone
		}
		if b := g.boards[m.Sender]; b != nil {
			b.heardBy[r.path] = now // it came by another path as well
		}
		return m, conflictCopy
	}
	if r.path == netio.PathMulticast {
		g.multicastAt = now
	}
	if verdict.Namesake {
		return m, conflictID
	}
	g.transport.Know(r.from.Addr())
	if r.elsewhere && g.apart {
		return m, conflictElsewhere
	}
	g.heard(r, now)
	return m, conflictNone
}

// duplicateID notes another board that uses this board's id. If the id was made of an address that this board no longer has,
// another board has that address now, and this one needs a new id.
func (g *group) duplicateID(from netip.Addr) {
	text := fmt.Sprintf("the board at %v has this board's id %v as well", from, g.self)
	g.reporter.warn(console.ProblemKind(election.NoticeDuplicateID.Identifier()), text)
	if g.chooseID(g.local) != g.self {
		g.outdated = true
	}
}

// dropTexts tell people what may be wrong on a board whose packets are dropped for a reason, and what to do. Nothing of such
// a packet is authenticated, and its source address is what somebody has put there: that is why they are told of a claim.
var dropTexts = map[wire.DropReason]string{
	wire.BadTag: "packets of somebody who claims to be %v fail authentication: " +
		"if that is a board of this group, its key differs from this board's",
	wire.Unauthenticated: "packets of somebody who claims to be %v are not authenticated, and this group has a key: " +
		"if that is a board of this group, copy the key file to it",
	wire.NotExpectingAuth: "packets of somebody who claims to be %v are authenticated, and this board has no key: " +
		"if that is a board of this group, copy the key file to this board",
	wire.BadVersion: "packets of somebody who claims to be %v have another version of the protocol, and are of another group or key",
}

// drop counts a packet that was not accepted, and tells people if they can do something about it. They have one problem for
// each reason, whoever sends such packets: a source address is easily made up, and the log must not grow with that.
func (g *group) drop(reason wire.DropReason, from netip.AddrPort) {
	g.counts.dropped[reason]++
	g.refuse(reason, from.Addr())
	if text, tell := dropTexts[reason]; tell {
		g.reporter.warn(console.ProblemKind(reason.Identifier()), fmt.Sprintf(text, from.Addr()))
	}
}

// outside tells people of a board of the group that nothing is sent to, since this board's networks do not have its address.
// Each of the two may have the wrong netmask.
func (g *group) outside(from netip.Addr) {
	advice := "so that board is not answered, and is no member: correct the address or the netmask of one of the two, or list both in `peers`"
	where := ""
	if g.second {
		where = " on " + g.link.iface()
		advice = "so that board is not answered there: correct the address or the netmask of one of the two"
	}
	g.reporter.warn(console.ProblemOutside, fmt.Sprintf("packets of the group come from %v, which is in none of this board's networks%s (%s), %s",
		from, where, joined(g.link.networks(false)), advice))
}

// reply sends what the guard wants sent: challenges and proofs. They speak for this board, so they have the header of its
// messages. If one is withheld, the board that needs it asks again. The port is that of the group, so that nobody can have a
// reply sent to another program.
func (g *group) reply(v *wire.Verdict, from netip.Addr) {
	if len(v.Replies) == 0 || g.mute() {
		return
	}
	if !v.ReplyByMulticast && !g.mayBeBoard(from) {
		g.outside(from)
		return
	}
	for i := range v.Replies {
		m, h := &v.Replies[i], g.header()
		h.Type, h.Reply = m.Type, m.Reply
		m.Header = h
		to := netip.AddrPortFrom(from, g.port)
		if v.ReplyByMulticast {
			to = netip.AddrPort{}
		}
		g.transmit(m, to, false)
	}
}
