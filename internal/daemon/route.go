package daemon

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"time"

	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// unresolvedAfter is how long a board must have been silent before its Ethernet address is asked for
// when it is heard again. By then the kernel may have asked in vain, and may wait for a second
// before it asks again (net.ipv4.neigh.default.retrans_time_ms). A packet to that board alone,
// such as a vote for it, would have to wait as well.
const unresolvedAfter = time.Second

// unresolved reports whether the kernel may have asked for a board in vain, because something was sent to it
// while it was silent.
func (r *route) unresolved(now time.Duration) bool {
	heardAt := max(r.multicastAt, r.broadcastAt, r.directAt)
	return r.toldAt > heardAt && now-heardAt > unresolvedAfter
}

// routeTo returns where a board is reached: where it was last heard from or, if
// it was not heard, at its id, which is an address unless somebody
// configured another one.
func (g *group) routeTo(id wire.ID) (netip.AddrPort, bool) {
	if r, ok := g.routes[id]; ok && r.addr.IsValid() {
		return r.addr, true
	}
	addr := id.Addr()
	return netip.AddrPortFrom(addr, g.port), g.mayBeBoard(addr)
}

// mayBeBoard reports whether another board of this group could have an address. Nothing must be sent beyond
// the link. A source address is easily forged, and a packet that somebody has recorded is answered before
// its sender has proven itself.
func (g *group) mayBeBoard(addr netip.Addr) bool {
	if addr == g.local || g.link.isFloating(addr) {
		return false
	}
	return g.link.hasHost(addr) || slices.Contains(g.peers, addr)
}

// heardBy notes where a board is reached, and by which path it was
// heard. Only a fresh message says where its sender
// is: a copy may come from somebody who repeats what he has overheard.
func (g *group) heardBy(id wire.ID, m *received, now time.Duration, fresh bool) {
	r, ok := g.routes[id]
	if !ok && !fresh {
		return // it is not known where that board is
	}
	if !ok {
		if len(g.routes) >= 2*wire.MaxBoards {
			clear(g.routes)
		}
		r = &route{multicastAt: -time.Hour, broadcastAt: -time.Hour, directAt: -time.Hour, toldAt: -time.Hour}
		g.routes[id] = r
	}
	if r.unresolved(now) && g.link.reaches(m.from.Addr()) {
		g.resolve(m.from.Addr())
	}
	if fresh {
		// A pre-signed RESIGN comes from a port of its own, where nobody listens.
		r.addr = netip.AddrPortFrom(m.from.Addr(), g.port)
	}
	switch m.path {
	case netio.PathMulticast:
		r.multicastAt = now
	case netio.PathBroadcast:
		r.broadcastAt = now
	case netio.PathUnicast:
		r.directAt = now
	}
}

// addressOf returns the own address of a board, or none.
func (g *group) addressOf(id wire.ID) netip.Addr {
	if addr, ok := g.routeTo(id); ok {
		return addr.Addr()
	}
	return netip.Addr{}
}

// hosts are the addresses of all boards that are known, and the floating ones.
func (g *group) hosts() (all []netip.Addr) {
	for _, r := range g.routes {
		all = append(all, r.addr.Addr())
	}
	return append(append(all, g.peers...), g.link.floatingAddrs()...)
}

// heardFrom returns the address that a board was heard from, or none.
func (g *group) heardFrom(id wire.ID) netip.Addr {
	if r, ok := g.routes[id]; ok {
		return r.addr.Addr()
	}
	return netip.Addr{}
}

// oneWayProblems returns a problem for each board that is heard by one path only.
// Boards multicast whatever they broadcast. By unicast, they send it only to those
// that are configured as their peers. called names a board for people.
func (g *group) oneWayProblems(now time.Duration, called func(wire.ID) string) (found []console.Problem) {
	add := func(kind console.ProblemKind, id wire.ID, format string) {
		found = append(found, console.Problem{Kind: kind, Board: id.String(), Text: fmt.Sprintf(format, called(id))})
	}
	const fresh, stale = 5 * time.Second, 10 * time.Second
	for id, r := range g.routes {
		direct, multicast := now-r.directAt, now-r.multicastAt
		switch {
		case now-r.broadcastAt < fresh && multicast > stale:
			add(console.ProblemMulticastMissing, id, "broadcast from %s arrives and multicast does not: is there IGMP snooping without a querier on this board's switch?")
		case len(g.peers) == 0:
		case direct < fresh && multicast > stale:
			add(console.ProblemMulticastMissing, id, "unicast from %s arrives and multicast does not: the network between drops multicast")
		case multicast < fresh && direct > stale && slices.Contains(g.peers, r.addr.Addr()):
			add(console.ProblemUnicastMissing, id, "multicast from %s arrives and unicast does not: list this board in its peers as well")
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Text < found[j].Text })
	return found
}

const (
	// refusalsMax bounds for how many addresses refusals are remembered.
	refusalsMax = 64
	// refusedLately is how long a refusal counts. refusedFor is how long packets must have been refused before that is
	// given as the reason why a board is not heard: the first packets of each board are refused until it has proven
	// that it is alive.
	refusedLately = 15 * time.Second
	refusedFor    = 5 * time.Second
)

// refuse remembers why a packet from an address was refused.
func (g *group) refuse(reason wire.DropReason, from netip.Addr) {
	if reason == wire.Duplicate || reason == wire.Own {
		return // that is normal
	}
	now := g.now()
	r, known := g.refusals[from]
	if !known && len(g.refusals) >= refusalsMax {
		g.forgetRefusal()
	}
	if !known || r.reason != reason || now-r.last > refusedLately {
		r = refusal{reason: reason, first: now}
	}
	r.last = now
	g.refusals[from] = r
}

// forgetRefusal forgets the oldest one.
func (g *group) forgetRefusal() {
	var oldest netip.Addr
	for from, r := range g.refusals {
		if !oldest.IsValid() || r.last < g.refusals[oldest].last {
			oldest = from
		}
	}
	delete(g.refusals, oldest)
}

// refused is why packets from an address are refused at present, or Accepted.
func (g *group) refused(from netip.Addr) wire.DropReason {
	now := g.now()
	if r := g.refusals[from]; r.reason != wire.Accepted && now-r.last <= refusedLately && r.last-r.first >= refusedFor {
		return r.reason
	}
	return wire.Accepted
}

// hearOtherGroups notes the senders of packets of other groups that the kernel has dropped.
func (g *group) hearOtherGroups() {
	if g.transport == nil {
		return
	}
	for _, from := range g.transport.OtherGroups() {
		g.refuse(wire.OtherGroup, from)
	}
}

// inOtherGroupSince reports whether a board has begun to send packets of another group since it was heard last. A
// board that did so before may be in two groups.
func (g *group) inOtherGroupSince(seen *sighting) bool {
	return g.refused(seen.addr) == wire.OtherGroup && g.refusals[seen.addr].first > seen.at
}

// otherGroup names a board of another group that is heard now; "" for none. If a machine outside of this group has the
// floating address, it is probably that board.
func (g *group) otherGroup() string {
	var found netip.Addr
	for from := range g.refusals {
		if g.refused(from) == wire.OtherGroup && (!found.IsValid() || from.Less(found)) {
			found = from
		}
	}
	if !found.IsValid() {
		return ""
	}
	return fmt.Sprintf("; boards of another group of topdog are heard, such as %v: if one of them is the machine, give all the same `group` and key, or this group another address", found)
}
