package election

import "time"

// Instant is a point in time on the board's monotonic clock: the time since an
// origin that means nothing. It never jumps.
type Instant = time.Duration

// alarm names a deadline. A core has one of each kind, at most.
type alarm uint8

// The order is the order in which alarms that are due together are handled.
const (
	alarmHeartbeat alarm = iota // the leader's next heartbeat
	alarmHello                  // the next HELLO
	alarmListen                 // a listener has listened long enough
	alarmQuery                  // a listener asks once more who leads
	alarmTurn                   // the leader is late and it is this board's turn to act
	alarmAsk                    // a candidate's question has gone unanswered
	alarmVerdict                // a candidate that was outranked has waited for a COORDINATOR
	alarmSound                  // a follower that may be needed times the way to the leader
	alarmResign                 // the RESIGN was not followed by a COORDINATOR
	alarmPreempt                // a follower of higher rank asks for the lead
	alarmBarred                 // a barred board looks whether the conflict is over

	// The first of those that belong to single algorithms and outlive changes of role.

	alarmOwn
	alarmCount = alarmOwn + ownDeadlines
)

// never is an alarm that is not set.
const never Instant = 1<<63 - 1

// alarms are the deadlines of one core.
type alarms [alarmCount]Instant

func newAlarms() (a alarms) {
	for i := range a {
		a[i] = never
	}
	return a
}

func (a *alarms) clear(kinds ...alarm) {
	for _, k := range kinds {
		a[k] = never
	}
}

// clearOwn clears the alarms that belong to single algorithms.
func (a *alarms) clearOwn() {
	for i := range ownDeadlines {
		a.clear(alarmOwn + alarm(i))
	}
}

// notBefore makes alarms that are overdue be due at that time.
func (a *alarms) notBefore(at Instant) {
	for i := range a {
		a[i] = max(a[i], at)
	}
}

// earliest returns the first alarm to come, or never.
func (a *alarms) earliest() Instant {
	first := never
	for _, at := range a {
		first = min(first, at)
	}
	return first
}
