package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"topdog/election/roster"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// secondPath is another interface by which the boards of the group hear each other. It has sockets of its own, on which the group
// has another tag, so that nothing is taken for what was said on the first path, though both may be in one LAN. A message that
// goes by both has the same incarnation and sequence number on both.
type secondPath struct {
	shared
	link    *link
	group   *group
	opening bool          // the sockets
	waits   string        // why it does not work; "" if it does
	unheard bool          // nobody is heard by it, and some are by the first path
	silent  bool          // and that has lasted
	openAt  time.Duration // since when it could work
	downAt  time.Duration // when this board's own first path was seen not to work
}

// newSecondPath returns the second path of a board, or nil if it has none.
func newSecondPath(s shared, cfg *config.Config, e *exchange, first *group) (*secondPath, error) {
	if cfg.SecondInterface == "" {
		return nil, nil
	}
	onIt := onSecondPath(cfg)
	l := newLink(s, onIt)
	l.cover = func(netio.Snapshot) {}
	g, err := newGroup(s, onIt, l, e, func(netip.Addr) {})
	if err != nil {
		return nil, err
	}
	g.identity, g.second, first.apart = first.identity, true, true
	return &secondPath{shared: s, link: l, group: g, waits: "its interface is being looked for"}, nil
}

// onSecondPath is the configuration of a board as its second path has it. The floating addresses are not on it, and never the
// board's own.
func onSecondPath(cfg *config.Config) *config.Config {
	c := *cfg
	c.Group, c.Interface, c.Peers = wire.OnSecondPath(cfg.Group), cfg.SecondInterface, nil
	c.Addresses, c.OtherAddresses = nil, slices.Concat(ipsOf(cfg.Addresses), cfg.OtherAddresses)
	return &c
}

// JudgeSecondPath judges a state of the interface of the second path as a daemon with that configuration does.
func JudgeSecondPath(cfg *config.Config, s netio.Snapshot) Network {
	return JudgeNetwork(onSecondPath(cfg), s)
}

// paths are those on which this board hears the others: one or two.
func (d *Daemon) paths() []*group {
	if d.second == nil {
		return []*group{d.group}
	}
	return []*group{d.group, d.second.group}
}

// messages is where what was heard by the second path waits for the loop.
func (p *secondPath) messages() <-chan *received {
	if p == nil {
		return nil
	}
	return p.group.inbox.messages
}

// snapshots is where the states of its interface wait for the loop.
func (p *secondPath) snapshots() <-chan netio.Snapshot {
	if p == nil {
		return nil
	}
	return p.link.snapshots
}

// changed handles a new state of the interface.
func (p *secondPath) changed(s netio.Snapshot) {
	p.link.update(s)
	p.reopen()
}

// reopen opens and closes the sockets as the present state of the interface demands, and reports what is missing. Nothing else
// depends on them.
func (p *secondPath) reopen() {
	l := p.link
	local, problem := l.chooseLocal()
	if l.open && (problem != "" || local != l.local || l.seen.Link.Index != l.index) {
		p.close()
	}
	if problem == "" && !l.open {
		p.open(local)
		return
	}
	if crowded, changed := l.crowding(); changed {
		p.group.byAnyInterface(crowded)
	}
	waited := p.waits != ""
	if p.waits = cmp.Or(problem, l.noCarrier()); p.waits == "" && waited {
		p.openAt = p.now()
	}
	p.report()
}

// open opens the sockets, in a task: the holder takes longer for that than the others wait for a leader.
func (p *secondPath) open(local netip.Addr) {
	if p.opening {
		return
	}
	p.opening = true
	p.link.closed(false)
	iface, index := p.link.name, p.link.seen.Link.Index
	p.tasks.start(func(ctx context.Context) {
		transport, err := p.platform.OpenSecond(iface, local)
		if ctx.Err() == nil {
			p.tasks.post(func() { p.opened(transport, err, local, index) })
		} else if err == nil {
			transport.Close()
		}
	})
}

// opened takes the sockets, if the interface is as it was.
func (p *secondPath) opened(transport Transport, err error, local netip.Addr, index int) {
	p.opening = false
	if err != nil {
		p.link.closed(true)
		p.waits = err.Error()
		p.report()
		return
	}
	now, problem := p.link.chooseLocal()
	if problem == "" && now == local && p.link.seen.Link.Index == index {
		p.link.opened(local)
		p.group.open(transport, local)
	} else {
		p.reporter.failed("close the sockets of the second path", transport.Close())
	}
	p.reopen()
}

// report reports why it does not work.
func (p *secondPath) report() {
	text := ""
	switch {
	case p.waits != "":
		text = "the second path does not work: " + p.waits
	case p.silent:
		text = fmt.Sprintf("no board is heard on %s, the second path: each board needs it in its configuration as well, a firewall must let in UDP port %d on it, "+
			"and a Wi-Fi access point must pass multicast and not keep its clients apart", p.link.name, p.group.port)
	}
	p.reporter.set(console.ProblemSecondPath, text)
}

// close closes them.
func (p *secondPath) close() {
	p.link.closed(false)
	p.group.close()
}

// end closes all that it uses.
func (p *secondPath) end() {
	p.close()
	if p.platform.CloseSecond != nil {
		p.reporter.failed("leave the holder of the second path", p.platform.CloseSecond())
	}
}

// look looks after what may be up to lookEvery late.
func (p *secondPath) look(now time.Duration) {
	if p.link.retry {
		p.reopen()
	}
	p.group.rejoin(now)
}

// send sends a copy of what was sent on the first path: to all boards, or to one that was heard on this path. A RESIGN goes to
// the successor as well, since Wi-Fi repeats a unicast that was lost, and no multicast. Who gets both takes one for a replay.
func (p *secondPath) send(m *wire.Message, to wire.ID) {
	if !p.link.seen.Link.Up {
		return
	}
	if to == wire.Nobody {
		p.group.sendStamped(m, netip.AddrPort{}, false)
		if m.Type == wire.TypeResign {
			to = m.Resign.Successor
		}
	}
	if b := p.group.boards[to]; b != nil {
		p.group.sendStamped(m, netip.AddrPortFrom(b.addr, p.group.port), false)
	}
}

// firstPathLost is how much later a board must have been heard by the second path than by the first, on which it says HELLO every
// second.
const firstPathLost = 5 * time.Second

// lost is the same for the second path, by which a follower says every fifth HELLO, and a leader of several groups every tenth.
// Three may be lost.
func (p *secondPath) lost(boards int) time.Duration { return 35 * roster.HelloInterval(boards) }

// missed says which path of a board is missing, if it was heard by both of late; "" for none.
func (d *Daemon) missed(id wire.ID, now time.Duration) console.ProblemKind {
	if d.second == nil {
		return ""
	}
	first, second, lost := d.group.boards[id], d.second.group.boards[id], d.second.lost(len(d.group.boards)+1)
	switch {
	case second == nil: // it may have no second path
		return ""
	case first == nil:
		first = &board{at: second.first}
	}
	switch {
	case second.at-first.at > firstPathLost && now-second.at <= lost:
		return console.ProblemFirstPathMissing
	case first.at-second.at > lost && now-d.second.openAt > lost && d.hears(id, now):
		return console.ProblemSecondPathMissing
	}
	return ""
}

// checkPaths tells people of the boards that are heard by one path alone, and of a second path by which nobody is heard.
func (d *Daemon) checkPaths(now time.Duration) {
	p := d.second
	if p == nil || d.core == nil {
		return
	}
	heard, unheard, lost := false, true, p.lost(len(d.group.boards)+1)
	for id := range d.group.boards {
		heard = heard || d.hears(id, now)
	}
	var missed [2][]wire.ID // by the first path, and by the second
	for id, b := range p.group.boards {
		unheard = unheard && now-b.at > lost
		switch d.missed(id, now) {
		case console.ProblemFirstPathMissing:
			missed[0] = append(missed[0], id)
		case console.ProblemSecondPathMissing:
			missed[1] = append(missed[1], id)
		}
	}
	p.unheard = unheard && heard && p.waits == ""
	p.silent = p.unheard && now-p.openAt > lost
	p.report()
	if !d.link.seen.Link.Up || d.core.PortSilent() {
		p.downAt = now // which is the reason, and told
	}
	if now-p.downAt <= firstPathLost {
		missed[0] = nil
	}
	if p.unheard || p.waits != "" {
		missed[1] = nil
	}
	d.tellPath(console.ProblemFirstPathMissing, missed[0], p.link.name, d.link.name+": look at the cable and the port of the switch that it has there, and that this board has")
	d.tellPath(console.ProblemSecondPathMissing, missed[1], d.link.name, p.link.name)
}

// tellPath tells which boards are heard by one path and not by the other. If they are many, it is the network.
func (d *Daemon) tellPath(kind console.ProblemKind, ids []wire.ID, by, not string) {
	said := map[wire.ID]string{}
	for _, id := range ids {
		who := d.called(id)
		if len(ids) > silentMax {
			id, who = wire.Nobody, fmt.Sprintf("each of %d boards", len(ids))
		}
		said[id] = who + " is heard on " + by + " and not on " + not
	}
	d.reporter.only(kind, said)
}

// isOn reports whether an address is one that a board has on the second path, this one or another.
func (p *secondPath) isOn(addr netip.Addr) bool {
	if p == nil {
		return false
	}
	for _, b := range p.group.boards {
		if b.addr == addr {
			return true
		}
	}
	return p.link.open && p.link.local == addr
}

// status describes it; nil for none.
func (p *secondPath) status() *console.SecondPath {
	if p == nil {
		return nil
	}
	s := &console.SecondPath{Interface: p.link.name, State: console.SecondPathWorks}
	if p.link.open {
		s.Address = addrText(p.link.local)
	}
	switch {
	case p.waits != "":
		s.State, s.Text = console.SecondPathWaits, p.waits
	case p.unheard:
		s.State, s.Text = console.SecondPathSilent, "no board is heard on "+p.link.name
	}
	return s
}
