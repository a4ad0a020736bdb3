package daemon

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// describe puts a change into a line for the log.
func (d *Daemon) describe(c election.Change) string {
	switch {
	case c.To == election.Leader:
		return fmt.Sprintf("leads in term %d: %v", c.Term, c.Reason)
	case c.From == election.Leader && c.NewLeader != wire.Nobody:
		return fmt.Sprintf("released %s; %s leads: %v", joined(d.address.prefixes()), d.called(c.NewLeader), c.Reason)
	case c.From == election.Leader:
		return fmt.Sprintf("released %s: %v", joined(d.address.prefixes()), c.Reason)
	case c.To == election.Follower && c.NewLeader == wire.Nobody:
		return fmt.Sprintf("waits for a leader: %v", c.Reason)
	case c.To == election.Follower:
		return fmt.Sprintf("follows %s in term %d: %v", d.called(c.NewLeader), c.Term, c.Reason)
	case c.To == election.Barred:
		return fmt.Sprintf("stays out: %v", c.Reason)
	case c.To == election.Isolated:
		return fmt.Sprintf("is without a network: %v", c.Reason)
	default:
		return fmt.Sprintf("is a %v: %v", c.To, c.Reason)
	}
}

// describeNotice puts what the core has noticed into a line for the log.
func (d *Daemon) describeNotice(n election.Notice) string {
	if n.Kind == election.NoticeNoMulticast {
		return d.describeNoMulticast(n.Board)
	}
	return n.String()
}

// describeNoMulticast says that a board gets no multicast, what is done about it, and what to do.
func (d *Daemon) describeNoMulticast(board wire.ID) string {
	const cure = "turn IGMP snooping off on its switch or access point, or a querier on"
	if board == d.group.self {
		return "this board gets no multicast, and is served by broadcast meanwhile: " + cure
	}
	return fmt.Sprintf("%s gets no multicast, so everything is broadcast as well: %s", d.called(board), cure)
}

// noMulticastProblems returns a problem for each board that gets no multicast at the moment.
func (d *Daemon) noMulticastProblems(core *election.Status, now time.Duration) (found []console.Problem) {
	add := func(board wire.ID) {
		kind := console.ProblemKind(election.NoticeNoMulticast.Identifier())
		found = append(found, console.Problem{Kind: kind, Board: board.String(), Text: d.describeNoMulticast(board)})
	}
	if core.NoMulticast {
		add(d.group.self)
	}
	for i := range core.Peers {
		if p := &core.Peers[i]; p.NoMulticast && p.Live(now) {
			add(p.ID)
		}
	}
	return found
}

// called names a board for people: "pi3 (192.168.1.13)", or what is known of it.
func (d *Daemon) called(id wire.ID) string {
	if id == d.group.self {
		return "this board"
	}
	if p, ok := d.core.Peer(id); ok && p.Name != "" {
		return fmt.Sprintf("%s (%v)", p.Name, id)
	}
	return id.String()
}

// idAndName names a board for programs; both are empty for wire.Nobody.
func (d *Daemon) idAndName(id wire.ID) (text, name string) {
	switch id {
	case wire.Nobody:
		return "", ""
	case d.group.self:
		return id.String(), d.cfg.Name
	}
	p, _ := d.core.Peer(id)
	return id.String(), p.Name
}

// hears reports whether this board has heard another one lately.
func (d *Daemon) hears(id wire.ID, now time.Duration) bool {
	p, known := d.core.Peer(id)
	return known && p.Live(now)
}

// missesLeader reports whether this follower has no leader that it hears.
func (d *Daemon) missesLeader() bool {
	return d.core.Role() == election.Follower && !d.hears(d.core.Leader(), d.now())
}

// describePause says whether the group is paused.
func (d *Daemon) describePause() string {
	leader, left, paused := d.core.Paused(d.now())
	if !paused {
		return "the group is not paused any more"
	}
	return fmt.Sprintf("the group is paused for %v: only %s may lead, and topdog unpause ends that", left.Round(time.Second), d.called(leader))
}

// capitalised makes a sentence of a line of the log.
func capitalised(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// joined writes prefixes, or ids, as a list.
func joined[T fmt.Stringer](all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	return strings.Join(texts, ", ")
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func addrTexts(addrs []netip.Addr) (texts []string) {
	for _, a := range addrs {
		texts = append(texts, a.String())
	}
	return texts
}

func age(d time.Duration) *float64 {
	ms := console.Milliseconds(d)
	return &ms
}

func idText(id wire.ID) string {
	if id == wire.Nobody {
		return ""
	}
	return id.String()
}

// gradeText tells people how fit a board is to lead. It is empty if the board passes.
func gradeText(grade wire.Grade) string {
	switch grade {
	case wire.GradePassing:
		return ""
	case wire.GradeProbation:
		return "on probation"
	default:
		return grade.String()
	}
}
