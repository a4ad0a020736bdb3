package election

import "time"

// Instant is a point in time on the board's monotonic clock: the time since an
// origin that means nothing. It never jumps.
type Instant = time.Duration

// deadline is when something is to be done. The zero one is not set.
type deadline struct {
	at  Instant
	set bool
}

// due returns a deadline that is set.
func due(at Instant) deadline { return deadline{at, true} }

// after makes a deadline that is set sooner, or not at all, come at that time.
func (d deadline) after(at Instant) deadline {
	if d.set && d.at > at {
		return d
	}
	return due(at)
}

// before makes a deadline that is set later, or not at all, come at that time.
func (d deadline) before(at Instant) deadline {
	if d.set && d.at < at {
		return d
	}
	return due(at)
}

// reached reports whether the time of a deadline has come.
func (d deadline) reached(now Instant) bool { return d.set && d.at <= now }

// ahead reports whether a deadline is still to come.
func (d deadline) ahead(now Instant) bool { return d.set && d.at > now }

// duties lists everything that is to be done at a deadline, in the order in which what is
// due together is done. A deadline is kept in the state of the role to which it
// belongs, or with another owner.
var duties = [dutyCount]struct {
	deadline func(*Core) *deadline
	do       func(*Core)
}{
	{func(c *Core) *deadline { return &c.leading.heartbeat }, (*Core).heartbeatDue},
	{func(c *Core) *deadline { return &c.leading.lapse.over }, (*Core).endLapse},
	{func(c *Core) *deadline { return &c.leading.reclaim }, (*Core).reclaimUnopposed},
	{func(c *Core) *deadline { return &c.leading.hearing.again }, (*Core).askHearing},
	{func(c *Core) *deadline { return &c.leading.yield }, (*Core).yieldLead},
	{func(c *Core) *deadline { return &c.hello }, (*Core).sendHello},
	{func(c *Core) *deadline { return &c.listening.end }, func(c *Core) { c.algorithm.Turn(ReasonNoLeader) }},
	{func(c *Core) *deadline { return &c.listening.query }, (*Core).sendQuery},
	{func(c *Core) *deadline { return &c.following.turn }, (*Core).takeTurn},
	{func(c *Core) *deadline { return &c.candidacy.address.ask }, (*Core).askAddress},
	{func(c *Core) *deadline { return &c.candidacy.address.silent }, (*Core).addressUnanswered},
	{func(c *Core) *deadline { return &c.candidacy.askLAN }, (*Core).missEvidence},
	{func(c *Core) *deadline { return &c.candidacy.incumbent }, (*Core).incumbentLate},
	{func(c *Core) *deadline { return &c.candidacy.answers }, func(c *Core) { c.algorithm.Expired(AnswersDue) }},
	{func(c *Core) *deadline { return &c.leading.answers }, func(c *Core) { c.algorithm.Expired(AnswersDue) }},
	{func(c *Core) *deadline { return &c.candidacy.coordinator }, func(c *Core) { c.algorithm.Expired(CoordinatorDue) }},
	{func(c *Core) *deadline { return &c.following.measure }, (*Core).measureRoundTrip},
	{func(c *Core) *deadline { return &c.handover.repeat }, (*Core).repeatResign},
	{func(c *Core) *deadline { return &c.following.preempt }, (*Core).preempt},
	{func(c *Core) *deadline { return &c.leading.deposed.look }, (*Core).look},
	{func(c *Core) *deadline { return &c.pause.end }, (*Core).pauseChanged},
	{func(c *Core) *deadline { return &c.barred.end }, (*Core).endConflict},
	{func(c *Core) *deadline { return &c.own[0] }, func(c *Core) { c.algorithm.Expired(OwnDeadline) }},
	{func(c *Core) *deadline { return &c.own[1] }, func(c *Core) { c.algorithm.Expired(OwnDeadline + 1) }},
	{func(c *Core) *deadline { return &c.own[2] }, func(c *Core) { c.algorithm.Expired(OwnDeadline + 2) }},
}

// timetable has the deadlines of all duties of one core.
type timetable [dutyCount]*deadline

const dutyCount = 22 + ownDeadlines

// earliest returns the first deadline to come.
func (t *timetable) earliest() (first deadline) {
	for _, d := range t {
		if d.set && (!first.set || d.at < first.at) {
			first = *d
		}
	}
	return first
}

// notBefore makes deadlines that are overdue come at that time.
func (t *timetable) notBefore(at Instant) {
	for _, d := range t {
		if d.reached(at) {
			*d = due(at)
		}
	}
}
