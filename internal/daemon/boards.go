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

// board is what is known of another board: when and by which paths it was heard, where it is reached, and what it has
// told of itself.
type board struct {
	first, at time.Duration                         // when it was first and last heard
	heardBy   [netio.PathFloating + 1]time.Duration // when it was last heard by each path
	toldAt    time.Duration                         // when something was last sent to it alone
	addr      netip.Addr                            // where it was heard last
	// byHolder says that its last message was the RESIGN of its holder: its daemon has ended, or stands still.
	byHolder bool
	name     string
	program  string // the version of its program
	settings wire.Settings
	keys     wire.Keys        // zero until it has told
	key      wire.Fingerprint // the key that has verified its last message
}

// boards are the other boards that were heard since the daemon started. They are not the roster of the core, which begins
// anew when this board gets another id.
type boards map[wire.ID]*board

const (
	// keysRemembered is for how long the keys of a silent board are remembered. Nobody waits for a board that was off for
	// longer.
	keysRemembered = 24 * time.Hour
	// unresolvedAfter is how long a board must have been silent before its Ethernet address is asked for when it is heard
	// again. By then the kernel may have asked in vain, and may wait for a second before it asks again
	// (net.ipv4.neigh.default.retrans_time_ms). A packet to that board alone, such as a vote for it, would have to wait
	// as well.
	unresolvedAfter = time.Second
)

// of returns what is known of a board that is heard now. There is room for as many boards as a group may have.
func (bs boards) of(id wire.ID, now time.Duration) *board {
	b := bs[id]
	if b == nil {
		if len(bs) >= wire.MaxBoards {
			forgetOldest(bs, func(b *board) time.Duration { return b.at })
		}
		const longAgo = -time.Hour
		b = &board{first: now, at: now, heardBy: [...]time.Duration{longAgo, longAgo, longAgo, longAgo}, toldAt: longAgo}
		bs[id] = b
	}
	return b
}

// forgetOldest deletes the entry with the smallest time.
func forgetOldest[K comparable, V any](entries map[K]V, at func(V) time.Duration) {
	var oldest K
	first := never
	for key, value := range entries {
		if t := at(value); t < first {
			oldest, first = key, t
		}
	}
	delete(entries, oldest)
}

// keep forgets the boards whose last message was verified with a key that is not one of these. Whoever has such a key may
// have made them up, and a change of the key would wait for them for a day. A board that lives is soon heard again.
func (bs boards) keep(keys wire.Keys) {
	for id, b := range bs {
		if !keys.Accept(b.key) {
			delete(bs, id)
		}
	}
}

// heard enters a message that was accepted. Only such a message says where its sender is: a copy may come from somebody
// who repeats what he has overheard.
func (g *group) heard(r *received, now time.Duration) {
	m, from := &r.message, r.from.Addr()
	b := g.boards.of(m.Sender, now)
	if b.unresolved(now) && g.link.reaches(from) {
		g.resolve(from)
	}
	b.at, b.addr, b.key = now, from, m.Key
	b.byHolder = m.Type == wire.TypeResign && r.from.Port() != g.port // the holder sends from a port of its own
	if m.Type == wire.TypeHello {
		if !b.settings.Equal(m.Hello.Settings) {
			b.settings = m.Hello.Settings.Clone() // the message is used again
		}
		b.name, b.keys, b.program = m.Hello.Name, m.Hello.Keys, m.Hello.Program
	}
	b.heardBy[r.path] = now
}

// unresolved reports whether the kernel may have asked for a board in vain, because something was sent to it while it was
// silent.
func (b *board) unresolved(now time.Duration) bool {
	return b.toldAt > b.at && now-b.at > unresolvedAfter
}

// addressOf returns the own address of a board, or none: where it was last heard or, if it was not heard, its id, which is
// an address unless somebody configured another one.
func (g *group) addressOf(id wire.ID) netip.Addr {
	if b := g.boards[id]; b != nil {
		return b.addr
	}
	if addr := id.Addr(); g.mayBeBoard(addr) {
		return addr
	}
	return netip.Addr{}
}

// mayBeBoard reports whether another board of this group could have an address. Nothing must be sent beyond the link. A
// source address is easily forged, and a packet that somebody has recorded is answered before its sender has proven
// itself.
func (g *group) mayBeBoard(addr netip.Addr) bool {
	if addr == g.local || g.link.isFloating(addr) || g.link.isOthers(addr) {
		return false
	}
	return g.link.hasHost(addr) || slices.Contains(g.peers, addr)
}

// hosts are the addresses of all boards that are known, and the floating ones, as far as ARP knows them: those of IPv4.
func (g *group) hosts() (all []netip.Addr) {
	for _, b := range g.boards {
		all = append(all, b.addr)
	}
	all = append(append(all, g.peers...), g.link.floatingAddrs()...)
	return slices.DeleteFunc(all, netip.Addr.Is6)
}

// hasAddresses reports whether a leader would hold all floating addresses of this board, by what it last told.
func (g *group) hasAddresses(leader wire.ID) bool {
	b := g.boards[leader]
	if leader == g.self || b == nil || !b.settings.Told() {
		return true
	}
	return !slices.ContainsFunc(g.settings.Addresses, func(a netip.Addr) bool { return !slices.Contains(b.settings.Addresses, a) })
}

// oneWayProblems returns a problem for each board that is heard by one path only. Boards multicast whatever they
// broadcast. By unicast, they send it only to those that are configured as their peers. called names a board for people.
func (g *group) oneWayProblems(now time.Duration, called func(wire.ID) string) (found []console.Problem) {
	add := func(kind console.ProblemKind, id wire.ID, format string) {
		found = append(found, console.Problem{Kind: kind, Board: id.String(), Text: fmt.Sprintf(format, called(id))})
	}
	const fresh, stale = 5 * time.Second, 10 * time.Second
	for id, b := range g.boards {
		direct, multicast := now-b.heardBy[netio.PathUnicast], now-b.heardBy[netio.PathMulticast]
		switch {
		case now-b.heardBy[netio.PathBroadcast] < fresh && multicast > stale:
			add(console.ProblemMulticastMissing, id, "broadcast from %s arrives and multicast does not: is there IGMP snooping without a querier on this board's switch?")
		case len(g.peers) == 0:
		case direct < fresh && multicast > stale:
			add(console.ProblemMulticastMissing, id, "unicast from %s arrives and multicast does not: the network between drops multicast")
		case multicast < fresh && direct > stale && slices.Contains(g.peers, b.addr):
			add(console.ProblemUnicastMissing, id, "multicast from %s arrives and unicast does not: list this board in its peers as well")
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Text < found[j].Text })
	return found
}

// refusal says why packets from an address are refused. Anybody may have put that address into a packet.
type refusal struct {
	reason      wire.DropReason
	first, last time.Duration
}

const (
	// refusalsMax bounds the addresses for which refusals are remembered.
	refusalsMax = 64
	// refusedLately is how long a refusal counts. Only when packets have been refused for refusedFor is that given as the
	// reason why a board is not heard: the first packets of each board are refused until it has proven that it is alive.
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
		forgetOldest(g.refusals, func(r refusal) time.Duration { return r.last })
	}
	if !known || r.reason != reason || now-r.last > refusedLately {
		r = refusal{reason: reason, first: now}
	}
	r.last = now
	g.refusals[from] = r
}

// refused is why packets from an address are refused at present, or Accepted.
func (g *group) refused(from netip.Addr) wire.DropReason {
	now := g.now()
	if r := g.refusals[from]; r.reason != wire.Accepted && now-r.last <= refusedLately && r.last-r.first >= refusedFor {
		return r.reason
	}
	return wire.Accepted
}

// hearOtherGroups notes the senders of packets of other groups that the kernel has dropped. What this group says on its other path is
// no other group.
func (g *group) hearOtherGroups(onOtherPath func(netip.Addr) bool) {
	if g.transport == nil {
		return
	}
	for _, from := range g.transport.OtherGroups() {
		if !onOtherPath(from) {
			g.refuse(wire.OtherGroup, from)
		}
	}
}

// inOtherGroupSince reports whether a board has begun to send packets of another group since it was heard last. A
// board that did so before may be in two groups.
func (g *group) inOtherGroupSince(seen *board) bool {
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
