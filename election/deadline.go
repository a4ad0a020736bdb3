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

// duty is something that is to be done at a deadline. The deadline itself is in the state
// of the role to which it belongs, or in that of another owner.
type duty struct {
	*deadline
	do func()
}

// duties lists all of them, in the order in which those that are due together are done.
func (c *Core) duties() []duty {
	answersDue := func() { c.algorithm.Expired(AnswersDue) }
	duties := []duty{
		{&c.leading.heartbeat, func() { c.sendHeartbeat(false) }},
		{&c.hello, c.sendHello},
		{&c.listening.end, func() { c.algorithm.Turn(ReasonNoLeader) }},
		{&c.listening.query, c.sendQuery},
		{&c.following.turn, c.takeTurn},
		{&c.standing.answers, answersDue},
		{&c.leading.answers, answersDue},
		{&c.standing.coordinator, func() { c.algorithm.Expired(CoordinatorDue) }},
		{&c.following.measure, c.measureRoundTrip},
		{&c.handover.repeat, c.repeatResign},
		{&c.following.preempt, c.preempt},
		{&c.barred.end, func() { c.becomeListener(ReasonConflictOver, c.listenWindow()) }},
	}
	for i := range c.own {
		duties = append(duties, duty{&c.own[i], func() { c.algorithm.Expired(OwnDeadline + Deadline(i)) }})
	}
	return duties
}

// earliest returns the first deadline to come.
func (c *Core) earliest() (first deadline) {
	for i := range c.timetable {
		if d := c.timetable[i].deadline; d.set && (!first.set || d.at < first.at) {
			first = *d
		}
	}
	return first
}

// notBefore makes deadlines that are overdue come at that time.
func (c *Core) notBefore(at Instant) {
	for _, d := range c.timetable {
		if d.reached(at) {
			*d.deadline = due(at)
		}
	}
}
