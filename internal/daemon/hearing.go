package daemon

import (
	"fmt"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// unheardFor is how long a board must hear too little before people are told. Boards that are
// switched on together do not start at the same moment, and a burst of lost packets is over by then.
const unheardFor = 2 * time.Second

// lasting is something that is so, or not.
type lasting struct {
	so    bool
	since time.Duration
}

// update takes in whether it is so, and reports whether it has been for longer than unheardFor.
func (l *lasting) update(now time.Duration, so bool) (long bool) {
	if so && !l.so {
		l.since = now
	}
	l.so = so
	return so && now-l.since >= unheardFor
}

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
	d.reporter.warn(console.ProblemPortSilent, text, forever)
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
		d.reporter.warn(kind, d.describeMajority(unheard), forever)
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

// describeMajority says which voters are missing, what follows from it, and what to do.
func (d *Daemon) describeMajority(unheard []wire.ID) string {
	names := make([]string, len(unheard))
	for i, id := range unheard {
		names[i] = d.called(id)
	}
	voters := len(d.cfg.Voters)
	return fmt.Sprintf("this board hears %d of the %d voters, not %s; nobody takes the address without %d of them: look at the power, the cables and the switch of those, and of this board",
		voters-len(unheard), voters, strings.Join(names, " and not "), voters/2+1)
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
