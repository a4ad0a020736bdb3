package daemon

import (
	"fmt"
	"net/netip"
	"sort"
	"time"

	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// silence finds out why this board does not hear another one: what comes from there may be refused, the board may be off, or only
// its daemon.
type silence struct {
	at     time.Duration // when it was looked at last
	boards map[wire.ID]*silentBoard
}

// silentBoard is a board that is not heard.
type silentBoard struct {
	addr       netip.Addr
	since      time.Duration
	askedAt    time.Duration // when it was asked by ARP last
	asked      int           // how often since burstAt
	burstAt    time.Duration
	answeredAt time.Duration // when its kernel answered last
	text       string        // what is known; "" for nothing yet
}

const (
	// silenceEvery is how often it is looked which boards are silent.
	silenceEvery = time.Second
	// silenceFor is how long a board must be silent until people are told that it is off: boards that are switched on together do
	// not start at the same moment. By then it is known whether its packets are refused.
	silenceFor = refusedFor + 2*time.Second
	// silenceAsks questions in a row must go unanswered until the kernel of a board counts as silent too, and silenceAgain later
	// it is asked once more.
	silenceAsks  = 3
	silenceAgain = time.Minute
)

// refusal is what was refused last of the packets that come from an address. That is what somebody has put there.
type refusal struct {
	reason      wire.DropReason
	first, last time.Duration
}

const (
	// refusalsMax bounds for how many addresses refusals are remembered.
	refusalsMax = 64
	// refusedLately is how long a refusal counts, and refusedFor how long packets must be refused to say why a board is not heard:
	// the first ones of each board are, until it has proven that it lives.
	refusedLately = 15 * time.Second
	refusedFor    = 5 * time.Second
)

// refuse remembers why a packet from an address was refused.
func (g *group) refuse(reason wire.DropReason, from netip.Addr) {
	if reason == wire.Duplicate || reason == wire.Own {
		return // as it should be
	}
	now := g.now()
	r, known := g.refusals[from]
	if !known || r.reason != reason || now-r.last > refusedLately {
		if !known && len(g.refusals) >= refusalsMax {
			clear(g.refusals)
		}
		r = refusal{reason: reason, first: now}
	}
	r.last = now
	g.refusals[from] = r
}

// refused is why what comes from an address is refused now, or Accepted.
func (g *group) refused(from netip.Addr) wire.DropReason {
	now := g.now()
	if r := g.refusals[from]; r.reason != wire.Accepted && now-r.last <= refusedLately && r.last-r.first >= refusedFor {
		return r.reason
	}
	return wire.Accepted
}

// inOtherGroupSince reports whether a board has sent packets of another group since it was heard last, and none before: a board may be
// of two groups.
func (g *group) inOtherGroupSince(seen *sighting) bool {
	return g.refused(seen.addr) == wire.OtherGroup && g.refusals[seen.addr].first > seen.at
}

// otherGroup names a board of another group that is heard now, as the likeliest machine to have the address beside this group; "" if none is.
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
	return fmt.Sprintf("; the board %v is of another group of topdog: if that is the machine, give both the same `group` and key, or two addresses", found)
}

// whyRefused says what is wrong with a board whose packets are refused for a reason, and what to do. It is "" if the reason says nothing
// of a board, or drop has told people.
func whyRefused(reason wire.DropReason, group string) string {
	switch reason {
	case wire.OtherGroup:
		return fmt.Sprintf("it takes part in another group: write group = %q into its configuration, and restart topdog there, or take it for a board of that group", group)
	case wire.Unproven:
		return "its packets arrive, and what this board asks it does not: look for a firewall there, or between the two, that drops the group's UDP port"
	case wire.Replayed:
		return "its packets are older than what was heard of it before: restart topdog there"
	case wire.TableFull:
		return fmt.Sprintf("the group has %d boards already, and no more are possible", wire.MaxBoards)
	case wire.TooShort, wire.Malformed, wire.UnknownType:
		return "its packets cannot be read: install the same version of topdog on both, and look for what changes packets between them"
	}
	return ""
}

// told reports whether people are told of the refusal itself.
func told(reason wire.DropReason) bool {
	switch reason {
	case wire.BadTag, wire.Unauthenticated, wire.NotExpectingAuth, wire.BadVersion:
		return true
	}
	return false
}

// due is when to look again though nothing happens.
func (s *silence) due() time.Duration {
	if len(s.boards) == 0 {
		return never
	}
	return s.at + silenceEvery
}

// otherGroupHeard takes in who has sent something of another group, as the kernel has counted.
func (d *Daemon) otherGroupHeard(before, a netio.Arrivals) {
	if before.Counted && a.Other > before.Other {
		d.group.refuse(wire.OtherGroup, a.OtherFrom)
	}
}

// checkSilence looks which boards are silent, asks their kernels, and tells people what is known.
func (d *Daemon) checkSilence() {
	now := d.now()
	s := &d.silence
	if now < s.at+silenceEvery {
		return
	}
	s.at = now
	found := d.silentBoards(now)
	for id := range s.boards {
		if _, still := found[id]; !still {
			delete(s.boards, id)
			d.reporter.solvedOf(console.ProblemBoardSilent, id)
		}
	}
	ids := make([]wire.ID, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	var questions []netio.ARPQuestion
	for _, id := range ids {
		b := s.boards[id]
		if b == nil || b.addr != found[id] {
			b = &silentBoard{addr: found[id], since: now, burstAt: now, answeredAt: -1}
			s.boards[id] = b
		}
		refused := d.group.refused(b.addr)
		b.judge(now, whyRefused(refused, d.cfg.Group))
		if b.asks(now) && !d.lan.waits() {
			questions = append(questions, netio.ARPQuestion{Addr: b.addr})
			b.asked, b.askedAt = b.asked+1, now
		}
		switch {
		case told(refused):
			d.reporter.solvedOf(console.ProblemBoardSilent, id) // that is said already, with the remedy
		case b.text != "":
			d.reporter.warnOf(console.ProblemBoardSilent, id, fmt.Sprintf("%s is not heard: %s", d.called(id), b.text))
		}
	}
	d.lan.send(questions)
}

// asks reports whether a board is to be asked now.
func (b *silentBoard) asks(now time.Duration) bool {
	if now-b.burstAt >= silenceAgain {
		b.burstAt, b.asked = now, 0
	}
	return b.asked < silenceAsks && b.answeredAt < b.burstAt
}

// judge enters why a board is not heard, if that is known: because what it sends is refused for some reason, or by what its kernel says.
func (b *silentBoard) judge(now time.Duration, refused string) {
	switch {
	case refused != "":
		b.text = refused
	case now-b.since < silenceFor:
	case b.answeredAt >= b.burstAt:
		b.text = fmt.Sprintf("its kernel answers for %v, so topdog does not run there, or a firewall drops what it sends or hears: look at `topdog status` there", b.addr)
	case b.asked == silenceAsks && now-b.askedAt >= silenceEvery:
		b.text = fmt.Sprintf("nothing answers for %v either: look at its power, its cable or Wi-Fi, and the switches between; if it was taken away for good, restart topdog on this board", b.addr)
	}
}

// silentBoards are the boards that are not heard, with their own addresses: those that were, those that are listed as peers, and those
// whose packets are refused although they are of this group. While this board hears nobody for a reason of its own there are none.
func (d *Daemon) silentBoards(now time.Duration) map[wire.ID]netip.Addr {
	found := make(map[wire.ID]netip.Addr)
	if d.core == nil || !d.link.state.Up || d.core.PortSilent() || d.firewall.blocks || d.duplicate.yields || d.group.transport == nil {
		return found
	}
	settled, called := d.settled(now)
	add := func(id wire.ID, addr netip.Addr) {
		if !settled[addr] && d.link.hasHost(addr) {
			found[id] = addr
		}
	}
	for addr := range d.group.refusals {
		if refused := d.group.refused(addr); refused != wire.OtherGroup && whyRefused(refused, "") != "" {
			add(wire.IDFromAddr(addr), addr)
		}
	}
	for _, addr := range d.group.peers {
		add(wire.IDFromAddr(addr), addr)
	}
	for id, seen := range d.group.sightings {
		if _, known := d.core.Peer(id); known && !called[seen.name] {
			add(id, seen.addr)
		}
	}
	return found
}

// settled are the addresses of which nobody wonders that nothing is heard, and the names of the boards that are heard. A board has
// left that said so, unless it sends what is of another group since: somebody has changed that. One that has got another address, and
// with that another id, is heard by its name.
func (d *Daemon) settled(now time.Duration) (addrs map[netip.Addr]bool, called map[string]bool) {
	addrs, called = map[netip.Addr]bool{d.link.local: true}, map[string]bool{}
	for id, seen := range d.group.sightings {
		p, known := d.core.Peer(id)
		switch {
		case id == d.group.self || known && p.Live(now):
			addrs[seen.addr], called[seen.name] = true, seen.name != ""
		case known && p.Left && !d.group.inOtherGroupSince(seen):
			addrs[seen.addr] = true
		}
	}
	return addrs, called
}

// silentAnswered takes in that the kernel of a board has answered.
func (d *Daemon) silentAnswered(answer netio.ARPAnswer) {
	for _, b := range d.silence.boards {
		if b.addr == answer.Addr && answer.AskedAt >= b.burstAt {
			b.answeredAt = answer.AskedAt
		}
	}
}
