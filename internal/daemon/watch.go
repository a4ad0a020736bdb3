package daemon

import (
	"fmt"
	"net"
	"slices"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// watch has the kernel of the leader asked for the floating address as often as the core wants it, and keeps what has come of
// that. The announcer asks, so this process is woken by news alone.
type watch struct {
	leader   wire.ID
	asked    netio.AddressWatch // what the announcer was told; Every is 0 if it asks nobody
	begun    time.Duration      // when that was
	report   netio.WatchReport  // the last one since then
	reported bool               // there is one
	missed   bool               // the core was told that the address does not answer, and not yet that it does again
}

// setWatch has the announcer ask the kernel of that board so often; every is 0 to end that.
func (l *lan) setWatch(leader wire.ID, every time.Duration) {
	w := &l.watch
	if l.announcer == nil || leader == w.leader && every == w.asked.Every {
		return
	}
	if w.asked.Every > 0 { // what the former leader has answered says nothing about the next one
		l.failed(l.announcer.Watch(netio.AddressWatch{}))
	}
	*w = watch{leader: leader, asked: netio.AddressWatch{Addr: l.link.firstFloating(), Every: every}, begun: l.now()}
	if every == 0 {
		return
	}
	l.failed(l.announcer.Watch(w.asked))
	if !l.underWay { // else somebody waits for what is being read, and to read anew would make nothing of it
		l.readTable(func() {})
	}
}

// watchByTable tells the announcer the Ethernet address of the leader when the kernel's table was read. If nobody has announced
// the floating address since the link was opened, only the kernel knows it.
func (l *lan) watchByTable() {
	w := &l.watch
	if w.asked.Every == 0 {
		return
	}
	to := l.hardwareAddrOf(w.leader)
	if to == nil || slices.Equal(to, w.asked.To) {
		return
	}
	w.asked.To = to
	l.failed(l.announcer.Watch(w.asked))
}

// hardwareAddrOf returns the Ethernet address of a board, if the kernel knows that.
func (l *lan) hardwareAddrOf(board wire.ID) net.HardwareAddr {
	addr := l.group.addressOf(board)
	i := slices.IndexFunc(l.table.Hosts, func(n netio.Neighbour) bool { return n.Addr == addr && len(n.MAC) > 0 })
	if i < 0 {
		return nil
	}
	return l.table.Hosts[i].MAC
}

// watchReported gives the core what the watch has found out. A heartbeat may be waiting in its socket, so what has arrived is
// read before. That may end the watch as well. The report of a watch that was ended says nothing about the present leader.
func (d *Daemon) watchReported(r netio.WatchReport) {
	w := &d.lan.watch
	if w.asked.Every == 0 || r.MissedSince > 0 && r.MissedSince < w.begun {
		return
	}
	w.report, w.reported = r, true
	switch {
	case r.MissedSince > 0:
		w.missed = true
		d.drainSockets()
		d.receiveAll()
		if leader, every := d.core.Watch(); every > 0 && leader == w.leader {
			d.trace.addressMissed(r.MissedSince)
			d.carryOut(d.core.AddressMissed(d.now(), r.MissedSince))
		}
	case w.missed && r.Why != netio.WatchNoAnswer: // else another machine is asked by now, and has not answered
		w.missed = false
		d.carryOut(d.core.AddressReturned(d.now()))
	}
}

// describeWatch says what the watch does, or why there is none.
func (d *Daemon) describeWatch() console.Watch {
	state, w := d.core.WatchState(), &d.lan.watch
	described := console.Watch{State: state.String()}
	if state != election.WatchRuns || !w.reported {
		return described
	}
	described.EveryNs, described.RoundTripNs = int64(w.report.Every), int64(w.report.RoundTrip)
	described.LostPercent = 100 * w.report.Lost
	if w.report.Every == 0 || w.report.MissedSince > 0 {
		described.State = w.report.Why.String()
	}
	return described
}

// checkAnswers tells people as long as the leader's kernel does not answer for the address. The leader lives, so nobody
// replaces it for that.
func (d *Daemon) checkAnswers() {
	w, text := &d.lan.watch, ""
	// A leader that is heard by the second path alone is missed on the first, whoever's port that is.
	if d.unanswered.update(d.now(), w.reported && w.report.Why == netio.WatchNoAnswer && d.hears(w.leader, d.now())) {
		text = fmt.Sprintf("%s leads, and does not answer this board's ARP requests for %v, so perhaps nobody reaches the address: "+
			"look there for arp_ignore, for an interface with NOARP, and for whatever filters ARP", d.called(w.leader), w.asked.Addr)
	}
	d.reporter.set(console.ProblemAddressUnanswered, text)
}
