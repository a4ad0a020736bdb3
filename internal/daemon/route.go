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

// route is how another board is reached, and how it was heard lately.
type route struct {
	addr                               netip.AddrPort
	multicastAt, broadcastAt, directAt time.Duration
	toldAt                             time.Duration // when something was sent to it alone
}

// unresolvedAfter is how long a board must have been silent for its Ethernet address to be asked for
// when it is heard again. By then the kernel may have asked in vain, and waits for up to a second
// before it does so again (net.ipv4.neigh.default.retrans_time_ms). What is to go to that board alone,
// such as a vote for it, would wait as well.
const unresolvedAfter = time.Second

// unresolved reports whether the kernel may have asked for a board in vain: something was sent to it
// while it was silent.
func (r *route) unresolved(now time.Duration) bool {
	heardAt := max(r.multicastAt, r.broadcastAt, r.directAt)
	return r.toldAt > heardAt && now-heardAt > unresolvedAfter
}

// routeTo returns where a board is reached: where it was last heard from, or, if
// it was not heard, where its id says, since an id is an address unless somebody
// configured another one.
func (g *group) routeTo(id wire.ID) (netip.AddrPort, bool) {
	if r, ok := g.routes[id]; ok && r.addr.IsValid() {
		return r.addr, true
	}
	addr := id.Addr()
	return netip.AddrPortFrom(addr, g.port), g.mayBeBoard(addr)
}

// mayBeBoard reports whether another board of this group could have an address: what is meant for the
// link must not be sent beyond it. A source address is easily made up, and what anybody may have
// recorded is answered before its sender has proven itself.
func (g *group) mayBeBoard(addr netip.Addr) bool {
	if addr == g.local || g.link.isFloating(addr) {
		return false
	}
	return g.link.hasHost(addr) || slices.Contains(g.peers, addr)
}

// heardBy remembers where a board can be reached, and by which path it was
// heard. Only a message that is heard for the first time says where its sender
// is: a copy may come from somebody who repeats what he has overheard.
func (g *group) heardBy(id wire.ID, m *received, now time.Duration, fresh bool) {
	r, ok := g.routes[id]
	if !ok && !fresh {
		return // nobody knows where it is
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
// What is broadcast is multicast as well. By unicast, boards send all that they multicast
// only to those that are configured as their peers. called names a board for people.
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
