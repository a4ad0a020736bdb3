package election

import "topdog/election/clock"

// duties lists everything that is to be done at a deadline, in the order in which what is
// due together is done. A deadline is kept in the state of the role to which it
// belongs, or with another owner.
var duties = [dutyCount]struct {
	deadline func(*Core) *clock.Deadline
	do       func(*Core)
}{
	{func(c *Core) *clock.Deadline { return &c.leading.heartbeat }, (*Core).heartbeatDue},
	{func(c *Core) *clock.Deadline { return &c.leading.lapse.over }, (*Core).endLapse},
	{func(c *Core) *clock.Deadline { return &c.leading.reclaim }, (*Core).reclaimUnopposed},
	{func(c *Core) *clock.Deadline { return &c.leading.hearing.again }, (*Core).askHearing},
	{func(c *Core) *clock.Deadline { return &c.leading.yield }, (*Core).yieldLead},
	{func(c *Core) *clock.Deadline { return &c.hello }, (*Core).sendHello},
	{func(c *Core) *clock.Deadline { return &c.listening.end }, func(c *Core) { c.algorithm.Turn(ReasonNoLeader) }},
	{func(c *Core) *clock.Deadline { return &c.listening.query }, (*Core).sendQuery},
	{func(c *Core) *clock.Deadline { return &c.following.turn }, (*Core).takeTurn},
	{func(c *Core) *clock.Deadline { return &c.candidacy.address.ask }, (*Core).askAddress},
	{func(c *Core) *clock.Deadline { return &c.candidacy.address.silent }, (*Core).addressUnanswered},
	{func(c *Core) *clock.Deadline { return &c.candidacy.askLAN }, (*Core).missEvidence},
	{func(c *Core) *clock.Deadline { return &c.candidacy.incumbent }, (*Core).incumbentLate},
	{func(c *Core) *clock.Deadline { return &c.candidacy.answers }, func(c *Core) { c.algorithm.Expired(AnswersDue) }},
	{func(c *Core) *clock.Deadline { return &c.leading.answers }, func(c *Core) { c.algorithm.Expired(AnswersDue) }},
	{func(c *Core) *clock.Deadline { return &c.candidacy.coordinator }, func(c *Core) { c.algorithm.Expired(CoordinatorDue) }},
	{func(c *Core) *clock.Deadline { return &c.following.measure }, (*Core).measureRoundTrip},
	{func(c *Core) *clock.Deadline { return &c.handover.repeat }, (*Core).repeatResign},
	{func(c *Core) *clock.Deadline { return &c.following.preempt }, (*Core).preempt},
	{func(c *Core) *clock.Deadline { return &c.leading.deposed.look }, (*Core).look},
	{func(c *Core) *clock.Deadline { return &c.pause.end }, (*Core).pauseChanged},
	{func(c *Core) *clock.Deadline { return &c.barred.end }, (*Core).endConflict},
	{func(c *Core) *clock.Deadline { return &c.own[0] }, func(c *Core) { c.algorithm.Expired(OwnDeadline) }},
	{func(c *Core) *clock.Deadline { return &c.own[1] }, func(c *Core) { c.algorithm.Expired(OwnDeadline + 1) }},
	{func(c *Core) *clock.Deadline { return &c.own[2] }, func(c *Core) { c.algorithm.Expired(OwnDeadline + 2) }},
}

// timetable has the deadlines of all duties of one core.
type timetable [dutyCount]*clock.Deadline

const dutyCount = 22 + ownDeadlines

// earliest returns the first deadline to come.
func (t *timetable) earliest() (first clock.Deadline) {
	for _, d := range t {
		if d.Set && (!first.Set || d.At < first.At) {
			first = *d
		}
	}
	return first
}

// notBefore makes deadlines that are overdue come at that time.
func (t *timetable) notBefore(at Instant) {
	for _, d := range t {
		if d.Reached(at) {
			*d = clock.Due(at)
		}
	}
}
