package daemon

import (
	"fmt"
	"net/netip"
	"time"

	"topdog/wire"
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

// refused is why what comes from an address is refused now, or Accepted.
func (g *group) refused(from netip.Addr) wire.DropReason {
	now := g.now()
	if r := g.refusals[from]; r.reason != wire.Accepted && now-r.last <= refusedLately && r.last-r.first >= refusedFor {
		return r.reason
	}
	return wire.Accepted
}

// hearOtherGroups takes in who has sent what is of other groups, as the kernel knows.
func (g *group) hearOtherGroups() {
	if g.transport == nil {
		return
	}
	for _, from := range g.transport.OtherGroups() {
		g.refuse(wire.OtherGroup, from)
	}
}

// inOtherGroupSince reports whether a board has sent packets of another group since it was heard last, and none before: a board may be
// of two groups.
func (g *group) inOtherGroupSince(seen *sighting) bool {
	return g.refused(seen.addr) == wire.OtherGroup && g.refusals[seen.addr].first > seen.at
}

// otherGroup names a board of another group that is heard now: if a machine outside of this group has the floating address, it is likely that
// one. It is "" if none is heard.
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
