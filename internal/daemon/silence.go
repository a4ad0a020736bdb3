package daemon

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"time"

	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// silentBoards are the boards that this board does not hear, by their addresses. It finds out why: their packets may be
// refused, the board may be off, or only its daemon.
type silentBoards map[netip.Addr]*silentBoard

// silentBoard is a board that is not heard.
type silentBoard struct {
	since    time.Duration
	askedAt  time.Duration // when it was asked by ARP last
	asked    int           // how often in a row
	answered bool          // its kernel has answered one of these questions
	text     string        // what is known; "" for nothing yet
}

const (
	// silenceFor is how long a board must be silent until people are told that it is off: boards that are switched on
	// together do not start at the same moment. By then it is known whether its packets are refused.
	silenceFor = refusedFor + 2*time.Second
	// silenceAsks questions, one in each look, must go unanswered until the kernel of a board counts as silent too. After
	// silenceAgain it is asked once more.
	silenceAsks  = 3
	silenceAgain = time.Minute
	// silentMax bounds how many boards have a problem each. If more are silent, it is the network, and they have one
	// problem together.
	silentMax = 4
)

// whyRefused says what is wrong with a board whose packets are refused for a reason, and what to do. It is "" if the
// reason says nothing about a board, or if drop has already told people.
func whyRefused(reason wire.DropReason, group string) string {
	switch reason {
	case wire.OtherGroup:
		return fmt.Sprintf("it takes part in another group: write group = %q into its configuration, and restart topdog there; or, if it shall stay there, restart topdog on this board", group)
	case wire.Unproven:
		return "its packets arrive, and this board's do not arrive there: look for a firewall there, or between the two, that drops the group's UDP port"
	case wire.Replayed:
		return "its packets are older than what was heard of it before: restart topdog there"
	case wire.TableFull:
		return fmt.Sprintf("the group has %d boards already, and no more are possible", wire.MaxBoards)
	case wire.TooShort, wire.Malformed, wire.UnknownType:
		return "its packets cannot be read: install the same version of topdog on both, and look for what changes packets between them"
	}
	return ""
}

// checkSilence looks for silent boards, asks their kernels, and tells people what is known.
func (d *Daemon) checkSilence(now time.Duration) {
	d.group.hearOtherGroups(d.second.isOn)
	found := d.silentBoards(now)
	for addr := range d.silent {
		if _, still := found[addr]; !still {
			delete(d.silent, addr)
		}
	}
	addrs := make([]netip.Addr, 0, len(found))
	for addr := range found {
		addrs = append(addrs, addr)
	}
	sort.Slice(addrs, func(i, j int) bool { return addrs[i].Less(addrs[j]) })
	var questions []netio.ARPQuestion
	for _, addr := range addrs {
		b := d.silent[addr]
		if b == nil {
			b = &silentBoard{since: now, askedAt: now}
			d.silent[addr] = b
		}
		b.judge(now, addr, whyRefused(d.group.refused(addr), d.cfg.Group))
		if b.asks(now) && !d.lan.waits() {
			questions = append(questions, netio.ARPQuestion{Addr: addr})
			b.asked, b.askedAt = b.asked+1, now
		}
	}
	d.lan.send(questions)
	d.tellSilence(addrs, found)
}

// tellSilence tells people why boards are not heard, and ends what is over.
func (d *Daemon) tellSilence(addrs []netip.Addr, ids map[netip.Addr]wire.ID) {
	said := map[wire.ID]string{}
	var names []string
	for _, addr := range addrs {
		b, id := d.silent[addr], ids[addr]
		if _, told := dropTexts[d.group.refused(addr)]; told || b.text == "" { // people know already, and what to do
			continue
		}
		said[id] = fmt.Sprintf("%s is not heard: %s", d.called(id), b.text)
		names = append(names, d.called(id))
	}
	if len(names) > silentMax {
		said = map[wire.ID]string{wire.Nobody: fmt.Sprintf("%d boards are not heard, among them %s: look at the switches between, and at their power",
			len(names), strings.Join(names[:silentMax], ", "))}
	}
	d.reporter.only(console.ProblemBoardSilent, said)
}

// asks reports whether the board is to be asked now.
func (b *silentBoard) asks(now time.Duration) bool {
	if now-b.askedAt >= silenceAgain {
		b.asked, b.answered = 0, false
	}
	return b.asked < silenceAsks && !b.answered
}

// judge notes why the board is not heard, if that is known: its packets are refused, or its kernel answers or is
// silent.
func (b *silentBoard) judge(now time.Duration, addr netip.Addr, refused string) {
	switch {
	case refused != "":
		b.text = refused
	case now-b.since < silenceFor:
	case b.answered:
		b.text = fmt.Sprintf("its kernel answers for %v, so topdog does not run there, or a firewall drops what it sends or hears: look at `topdog status` there", addr)
	case b.asked == silenceAsks && now-b.askedAt >= lookEvery:
		b.text = fmt.Sprintf("nothing answers for %v either: look at its power, its cable or Wi-Fi, and the switches between; if it was taken away for good, restart topdog on this board", addr)
	}
}

// silentBoards are the boards that are not heard, by their own addresses: those that were heard before, and those that are
// listed as peers. There are none while this board hears nobody for a reason of its own.
func (d *Daemon) silentBoards(now time.Duration) map[netip.Addr]wire.ID {
	found := make(map[netip.Addr]wire.ID)
	deaf := d.firewall.blocks || d.duplicate.yields || d.group.transport == nil
	if deaf || d.core == nil || !d.link.seen.Link.Up || d.core.PortSilent() {
		return found
	}
	for _, addr := range d.group.peers {
		if id := wire.IDFromAddr(addr); id != d.group.self && !d.hears(id, now) && d.link.hasHost(addr) {
			found[addr] = id
		}
	}
	var excused []netip.Addr
	for id, seen := range d.group.boards {
		p, known := d.core.Peer(id)
		if known && d.link.hasHost(seen.addr) && d.missed(id, now) != console.ProblemFirstPathMissing {
			found[seen.addr] = id
		}
		if id == d.group.self || known && (p.Live(now) || p.Left && !seen.byHolder && !d.group.inOtherGroupSince(seen)) {
			excused = append(excused, seen.addr)
		}
	}
	for addr, id := range found {
		if addr == d.link.local || slices.Contains(excused, addr) || d.hasMoved(id, now) {
			delete(found, addr)
		}
	}
	return found
}

// hasMoved reports whether a board is heard as another one since it fell silent: it has another address, and with that
// another id.
func (d *Daemon) hasMoved(id wire.ID, now time.Duration) bool {
	silent := d.group.boards[id]
	if silent == nil || silent.name == "" {
		return false
	}
	for other, seen := range d.group.boards {
		if seen.name == silent.name && seen.first > silent.at && d.hears(other, now) {
			return true
		}
	}
	return false
}

// silentAnswered takes in an answer, and reports whether it is that of the kernel of a silent board. That says nothing about
// whether this board's port receives what matters: the kernel of a lost leader answers, too.
func (d *Daemon) silentAnswered(answer netio.ARPAnswer) bool {
	b, silent := d.silent[answer.Addr]
	if silent {
		b.answered = true
	}
	return silent
}
