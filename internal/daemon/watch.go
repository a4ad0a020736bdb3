package daemon

import (
	"fmt"
	"math"
	"slices"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// checkPort tells people as long as nothing arrives on this board's port.
func (d *Daemon) checkPort() {
	silent := d.core != nil && d.core.PortSilent()
	if silent {
		d.lan.excuseWitnesses()
	}
	d.portDead = d.portSilent.update(d.now(), silent)
	if !d.portDead {
		d.reporter.solved(console.ProblemPortSilent)
		return
	}
	text := fmt.Sprintf("nothing arrives on this board's port (%s), from no board and no other host, so it does not take the address: look at its cable, and at its port of the switch (VLAN, spanning tree)", d.link.name)
	d.reporter.set(console.ProblemPortSilent, text)
}

// checkMajority tells people when nobody can lead, as far as this board hears, because too few
// voters are there. That a leader does not hear enough of them is noticed by the core.
func (d *Daemon) checkMajority() {
	if d.core == nil || len(d.cfg.Voters) == 0 {
		return
	}
	now := d.now()
	unheard := d.unheardVoters(now)
	misses := d.missesMajority(unheard)
	kind := console.ProblemKind(election.NoticeMajorityUnheard.Identifier())
	switch long := d.majorityMissed.update(now, misses); {
	case d.portDead:
		d.reporter.solved(kind) // that is why
	case long:
		d.reporter.set(kind, d.describeMajority(unheard))
	case misses, d.core.Role() == election.Leader && d.leaseEnd() <= now:
		// It may be over soon; or the core has told, and it is not over.
	default:
		d.reporter.solved(kind)
	}
}

// unheardVoters are the voters that this board does not hear.
func (d *Daemon) unheardVoters(now time.Duration) (ids []wire.ID) {
	for _, id := range d.cfg.Voters {
		if id != d.group.self && !d.hears(id, now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// missesLeader reports whether this follower has no leader that it hears.
func (d *Daemon) missesLeader() bool {
	return d.core.Role() == election.Follower && !d.hears(d.core.Leader(), d.now())
}

// hears reports whether this board has heard another one lately.
func (d *Daemon) hears(id wire.ID, now time.Duration) bool {
	p, known := d.core.Peer(id)
	return known && p.Live(now)
}

// missesMajority reports whether this board waits for a leader in vain, since too few of the
// voters are there to elect one, as far as it hears.
func (d *Daemon) missesMajority(unheard []wire.ID) bool {
	waits := d.core.Role() == election.Candidate || d.missesLeader()
	return waits && 2*len(unheard) >= len(d.cfg.Voters)
}

// addressQuestionOver reports whether a problem is that the address of a silent board answers, and
// that board does not lead any more, or is not silent. The core tells of it once a minute, so
// the problem is kept for so long, in case it comes again.
func (d *Daemon) addressQuestionOver(kind console.ProblemKind, board wire.ID, now time.Duration) bool {
	switch kind {
	case console.ProblemKind(election.NoticeAddressAnswers.Identifier()), console.ProblemKind(election.NoticeAddressStays.Identifier()):
	default:
		return false
	}
	leader, _ := d.core.Peer(board)
	return d.core.Leader() != board || d.core.Role() != election.Candidate && now-leader.LastHeard < 2*d.cfg.Interval
}

// checkVoters looks for what is wrong with a list of voters and no fault of the file: which id
// this board has is known only now.
func (d *Daemon) checkVoters() {
	voters := d.cfg.Voters
	if len(voters) == 0 {
		return
	}
	if n := len(voters); n%2 == 0 {
		text := fmt.Sprintf("there are %d voters: no more of them may fail than of %d; add one, or remove one", n, n-1)
		d.reporter.set(console.ProblemEvenVoters, text)
	}
	if slices.Contains(voters, d.group.self) {
		d.reporter.solved(console.ProblemNoVoter)
		return
	}
	text := fmt.Sprintf("this board has the id %v, which is not among the voters, so it neither votes nor leads: give it its address back, or change the list on all boards", d.group.self)
	d.reporter.alert(console.ProblemNoVoter, text)
}

const (
	// clockEvery is how often the rate of the clock is looked at. It is looked at when the loop is
	// awake anyway, and only if there are voters.
	clockEvery = 250 * time.Millisecond
	// clockTolerance is by how much the clocks of voters may be off: a quarter of the grace
	// is 2.3 % of a promise, between two clocks.
	clockTolerance = 0.01
	// clockRegained is how near to its rate the clock of a board must be that was off. A clock that is off by
	// about the tolerance would be one and the other by turns, and the address would move each time.
	clockRegained = clockTolerance / 2
)

// checkClock tells the core whether this board's clock runs at its rate. chrony may slew it by
// as much as 8 % (maxslewrate).
func (d *Daemon) checkClock() {
	if len(d.cfg.Voters) == 0 {
		d.clockOff = false // for when there are some
		return
	}
	if d.platform.ClockRate == nil || d.core == nil || d.now()-d.clockAt < clockEvery {
		return
	}
	d.clockAt = d.now()
	off, measured := d.platform.ClockRate()
	if !measured {
		return
	}
	tolerance := clockTolerance
	if d.clockOff {
		tolerance = clockRegained
	}
	text := clockOff(off, tolerance)
	d.clockOff = text != ""
	d.reporter.set(console.ProblemClockRate, text)
	d.carryOut(d.core.ClockTrusted(d.now(), !d.clockOff))
}

// ClockOff says of a clock that is off its rate by such a share that no voter may have it, and what to do; "" if one may.
func ClockOff(off float64) string { return clockOff(off, clockTolerance) }

func clockOff(off, tolerance float64) string {
	if math.Abs(off) <= tolerance {
		return ""
	}
	return fmt.Sprintf("this board's clock runs %+.1f %% off its rate, and more than %g %% is too much for a voter: it neither votes nor leads until it is at most %g %% off; look at what adjusts the clock",
		100*off, 100*clockTolerance, 100*clockRegained)
}

// firewall tells whether something on this board keeps the packets of the group from the daemon: the interface receives them, and the
// sockets do not. Such a board hears nobody, and would take the address from a leader that it does not hear.
type firewall struct {
	at        time.Duration  // when it was looked at last
	arrivals  netio.Arrivals // by then
	suspected bool           // some were missing then. A daemon that has stood still may find them in its sockets
	blocks    bool
}

const (
	// firewallEvery is how often the counts are compared. Twice in a row something must be missing.
	firewallEvery = time.Second
	// FirewallLoss is how many packets must be missing, while none is heard. A board that leads sends ten a second, and a follower one.
	FirewallLoss = 3
)

// look compares the counts, and reports whether that has changed what is known.
func (f *firewall) look(now time.Duration, a netio.Arrivals) (changed bool) {
	f.at = now
	before := f.arrivals
	was := f.blocks
	switch {
	case !a.Counted || !before.Counted || a.Seen < before.Seen || a.Heard < before.Heard: // of other sockets than before
		f.suspected, f.blocks = false, f.blocks && a.Counted
	case a.Heard > before.Heard, a.Own > before.Own && a.Seen < before.Seen+FirewallLoss: // its own does not pass a reverse path filter
		f.suspected, f.blocks = false, false
	case a.Seen < before.Seen+FirewallLoss:
		return false // too few to tell; they count next time
	default:
		f.blocks = f.blocks || f.suspected
		f.suspected = true
	}
	f.arrivals = a
	return f.blocks != was
}

// due is when to look again though nothing happens.
func (f *firewall) due() time.Duration {
	if f.suspected || f.blocks {
		return f.at + firewallEvery
	}
	return never
}

// checkFirewall has a board that hears nobody behind its own firewall take no part. Such a board broadcasts a packet each time: it hears
// that itself when the firewall lets it, also if no other board lives.
func (d *Daemon) checkFirewall() {
	now := d.now()
	if now < d.firewall.at+firewallEvery {
		return
	}
	arrivals, ok := d.group.arrivals()
	if !ok {
		d.firewall.at = now
		return
	}
	d.checkDuplicate(now, arrivals)
	if d.firewall.look(now, arrivals) {
		d.reopenLink()
	}
	if d.firewall.blocks && d.link.state.Up {
		d.group.hearItself()
	}
}

// Blocked says what is wrong on a board behind its own firewall, and what to do.
func Blocked(iface string, port uint16) string {
	return fmt.Sprintf("the group's packets arrive on %s and do not reach this daemon, so a firewall on this board drops them, or its reverse path filter (rp_filter): "+
		"let UDP port %d in, with `ufw allow %[2]d/udp` or `firewall-cmd --permanent --add-port=%[2]d/udp` and `firewall-cmd --reload`. Until then this board takes no part", iface, port)
}

// reportFirewall tells people of it, or that it is over.
func (d *Daemon) reportFirewall() (blocks bool) {
	if !d.firewall.blocks {
		d.reporter.solved(console.ProblemFirewall)
		return false
	}
	d.reporter.set(console.ProblemFirewall, Blocked(d.link.name, d.cfg.Multicast.Port()))
	return true
}
