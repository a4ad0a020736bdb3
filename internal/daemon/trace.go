package daemon

import (
	"time"

	"golang.org/x/sys/unix"

	"topdog/election"
	"topdog/wire"
)

// trace keeps the timelines of the last changes of role: what happened when, from
// the last heartbeat on. It is always on, so that whoever wonders where the time
// of a takeover went finds it measured already. So it must cost nothing: the
// memory is all there from the start, in the steady state a heartbeat overwrites
// the one before, and the clock is read only while something happens, and by a
// leader when it has sent a heartbeat.
//
// It belongs to the loop, like all of the node that has no lock.
type trace struct {
	now  func() time.Duration
	zero time.Duration // what CLOCK_MONOTONIC shows when now returns 0

	role   election.Role // as of the last change
	leader wire.ID
	heard  traceStep // the last heartbeat of the leader; kind 0 if there is none
	sent   traceStep // the last heartbeat of this board as the leader

	// cause is what the loop is at. It becomes a step only if something comes of it.
	cause  traceStep
	packet traceStep // the last message that was taken in
	// entered is how many steps there were when it was.
	entered int

	current timeline
	changed ring // of leader
	minor   ring // suspicions that came to nothing, and claims repeated
	count   uint64
}

// stepKind says what happened.
type stepKind uint8

// The kinds of steps. The zero kind is no step.
const (
	stepHeard stepKind = iota + 1
	stepSent
	stepTimer
	stepLinkUp
	stepLinkLost
	stepAsked
	stepRole
	stepProbe
	stepTakeBegun
	stepTakeEnded
	stepReleaseBegun
	stepReleaseEnded
	stepAnnounced
	stepHeartbeatDue // is not recorded, but follows from the heartbeat before
	stepKinds
)

// traceStep is one thing that happened.
type traceStep struct {
	at      time.Duration // a message: when it was read from its socket
	due     time.Duration // stepTimer: when it should have rung
	takenIn time.Duration // stepHeard: when the loop came to it
	every   time.Duration // a heartbeat: the interval that it promises
	board   wire.ID       // stepHeard: the sender; stepSent: the recipient; stepRole: the leader
	term    wire.Term
	kind    stepKind
	message wire.Type
	role    election.Role
	reason  election.Reason
	failed  bool
}

const (
	// headSteps and tailSteps bound a timeline. A takeover on a clean wire has
	// about fifteen steps. One that takes very long, as when a foreign machine has
	// the address, keeps how it began and how it ended.
	headSteps = 16
	tailSteps = 48
	// keptTimelines is how many are kept of either kind. Together with the present
	// one they take about 50 kB.
	keptTimelines = 8
)

// timeline is what happened in one change, in the order in which the loop did it.
type timeline struct {
	number uint64 // counts all that were begun
	kept   bool   // worth keeping
	moved  bool   // the leader has changed
	known  bool   // the first change has been entered
	open   bool   // more may come

	from, to             election.Role
	oldLeader, newLeader wire.ID
	term                 wire.Term
	reason               election.Reason

	head  [headSteps]traceStep
	tail  [tailSteps]traceStep // a ring, once it is full
	steps int                  // how many there were
}

// add enters a step.
func (l *timeline) add(s traceStep) {
	if l.steps < headSteps {
		l.head[l.steps] = s
	} else {
		l.tail[(l.steps-headSteps)%tailSteps] = s
	}
	l.steps++
}

// enter notes a change. Its reason is the first that made another one lead, else
// the first: what follows in the same timeline follows from that.
func (l *timeline) enter(c election.Change) {
	moves := c.LeaderChanged()
	if !l.known || moves && !l.moved {
		l.reason = c.Reason
	}
	l.known = true
	l.moved = l.moved || moves
	l.to, l.newLeader, l.term = c.To, c.NewLeader, c.Term
}

// ring keeps the last timelines.
type ring struct {
	kept [keptTimelines]timeline
	next int
}

func (r *ring) keep(l *timeline) {
	r.kept[r.next] = *l
	r.next = (r.next + 1) % keptTimelines
}

// newTrace returns an empty one. Programs on one machine can merge their traces by
// the kernel's clock, since netio.Now counts from a moment of each process's own;
// a virtual clock is nobody else's.
func newTrace(now func() time.Duration, virtual bool) trace {
	t := trace{now: now, role: election.Isolated}
	if !virtual {
		t.zero = monotonicZero(now)
	}
	return t
}

// monotonicZero compares a clock that counts like CLOCK_MONOTONIC with it. A
// comparison that was interrupted takes long, and the shortest of some is taken.
func monotonicZero(now func() time.Duration) (zero time.Duration) {
	shortest := never
	for range 8 {
		var kernel unix.Timespec
		before := now()
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &kernel) != nil {
			return 0 // no kernel lacks it; the steps are right all the same, among themselves
		}
		after := now()
		if took := after - before; took < shortest {
			shortest = took
			zero = time.Duration(kernel.Nano()) - before - took/2
		}
	}
	return zero
}

// add enters a step into the timeline that is open, behind what caused it.
func (t *trace) add(s traceStep) {
	if t.cause.kind != 0 {
		t.current.add(t.cause)
		t.cause.kind = 0
	}
	t.current.add(s)
}

// mark enters a step that happens now, if a timeline is open.
func (t *trace) mark(kind stepKind, failed bool) {
	if t.current.open {
		t.add(traceStep{at: t.now(), kind: kind, failed: failed})
	}
}

// open begins a timeline, unless one is open, with the last heartbeat.
func (t *trace) open() {
	if t.current.open {
		return
	}
	t.count++
	t.current = timeline{
		number: t.count, open: true,
		from: t.role, to: t.role, oldLeader: t.leader, newLeader: t.leader,
	}
	switch {
	case t.role == election.Leader && t.sent.kind != 0:
		t.current.add(t.sent)
	case t.role != election.Leader && t.leader != wire.Nobody && t.heard.kind != 0:
		t.current.add(t.heard)
	}
}

// close ends the timeline that is open, and keeps it if it is worth that.
func (t *trace) close() {
	if !t.current.open {
		return
	}
	t.current.open = false
	switch {
	case !t.current.kept:
	case t.current.moved:
		t.changed.keep(&t.current)
	default:
		t.minor.keep(&t.current)
	}
}

// change enters a change of role or leader.
func (t *trace) change(c election.Change) {
	if c.From == election.Isolated || c.From == election.Barred {
		t.close() // that this board got there was the end of another story
	}
	t.open()
	t.current.kept = true
	t.current.enter(c)
	t.add(traceStep{at: t.now(), kind: stepRole, board: c.NewLeader, term: c.Term, role: c.To, reason: c.Reason})
	t.role, t.leader = c.To, c.NewLeader
}
