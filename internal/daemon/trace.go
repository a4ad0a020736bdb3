package daemon

import (
	"slices"
	"sort"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// trace remembers what happened when in the last changes of role, from the last heartbeat on. It is always on, so that
// the steps of a takeover are measured before anybody asks for them. So it must cost nothing: in the steady state a
// heartbeat overwrites the one before, and no memory is allocated. The clock is read only while something happens, and by
// a leader when it has sent a heartbeat.
//
// The trace belongs to the loop, like everything of the daemon that has no lock.
type trace struct {
	now  func() time.Duration
	name func(wire.ID) (id, name string)

	heard traceStep // the last heartbeat of the leader; kind "" if there is none
	sent  traceStep // the last heartbeat of this board as the leader

	// cause is what the loop handles now. It becomes a step only if something follows from it.
	cause  traceStep
	packet traceStep // the last message that was received

	recording bool                   // something is going on; else steps are not recorded
	present   timeline               // what is going on, or what went on last
	past      []console.TracedChange // what was worth keeping, the oldest first
	quiet     bool                   // nothing has followed from the last message that was received
}

// traceStep is one thing that happened.
type traceStep struct {
	at       time.Duration // a message: when it was read from its socket
	due      time.Duration // StepTimer: when it should have expired
	handled  time.Duration // StepHeard: when the loop came to it
	interval time.Duration // a heartbeat: until the next one, as it says
	board    wire.ID       // StepHeard: the sender; StepSent: the recipient; StepRole: the leader
	term     wire.Term
	kind     string // one of console.Step…; "" for none
	message  wire.Type
	role     election.Role
	reason   election.Reason
	failed   bool
	second   bool // StepHeard: by the second path
}

// newTrace returns an empty trace, which name tells the names of boards. Programs on one machine can merge their traces,
// since netio.Now is a clock of the kernel.
func newTrace(now func() time.Duration, name func(wire.ID) (id, name string)) *trace {
	return &trace{now: now, name: name, present: timeline{steps: make([]traceStep, 0, stepsMax)}}
}

// begin begins to record, with the last heartbeat.
func (t *trace) begin() {
	if t.recording {
		return
	}
	t.recording = true
	role, leader := t.present.change.To, t.present.change.NewLeader
	t.present = timeline{steps: t.present.steps[:0], change: election.Change{From: role, To: role, OldLeader: leader, NewLeader: leader}}
	switch {
	case role == election.Leader && t.sent.kind != "":
		t.add(t.sent)
	case role != election.Leader && leader != wire.Nobody && t.heard.kind != "":
		t.add(t.heard)
	}
}

// end ends what begin has begun.
func (t *trace) end() {
	if t.recording {
		t.past = t.withPresent(true)
		t.recording = false
	}
}

// changes returns those that are worth showing, the newest first.
func (t *trace) changes() []console.TracedChange {
	found := slices.Clone(t.withPresent(false))
	slices.Reverse(found)
	return found
}

// withPresent returns the changes that are kept, with the present one if it is worth that. It forgets the oldest of the same
// kind if there are too many, so that what happens often does not push out what happens rarely.
func (t *trace) withPresent(over bool) []console.TracedChange {
	if !t.recording || !t.present.worth {
		return t.past
	}
	kept := append(slices.Clone(t.past), t.present.report(t.name, over))
	same := func(c console.TracedChange) bool { return c.LeaderChanged == t.present.moved }
	count := 0
	for _, c := range kept {
		if same(c) {
			count++
		}
	}
	if count > keptTimelines {
		oldest := slices.IndexFunc(kept, same)
		kept = slices.Delete(kept, oldest, oldest+1)
	}
	return kept
}

// record adds a step behind what caused it.
func (t *trace) record(s traceStep) {
	if t.cause.kind != "" {
		t.add(t.cause)
		t.cause.kind = ""
	}
	t.add(s)
}

func (t *trace) add(s traceStep) {
	t.quiet = false
	t.present.add(s)
}

// mark records a step that happens now, if something is going on.
func (t *trace) mark(kind string, failed bool) {
	if t.recording {
		t.record(traceStep{at: t.now(), kind: kind, failed: failed})
	}
}

// during records when something began and ended, and whether it failed.
func (t *trace) during(begun, ended string, do func() error) error {
	t.mark(begun, false)
	err := do()
	t.mark(ended, err != nil)
	return err
}

// change records a change of role or leader.
func (t *trace) change(c election.Change) {
	if c.From == election.Isolated || c.From == election.Barred {
		t.end() // the step to that role belongs to the timeline before
	}
	t.begin()
	t.record(traceStep{at: t.now(), kind: console.StepRole, board: c.NewLeader, term: c.Term, role: c.To, reason: c.Reason})
}

// idle is called when the loop has nothing to do.
func (t *trace) idle() { t.cause.kind = "" }

// timerFired is called when the core's deadline has come.
func (t *trace) timerFired(due, now time.Duration) {
	t.cause = traceStep{at: now, due: due, kind: console.StepTimer}
}

// addressMissed is called when the leader's address has failed to answer since then.
func (t *trace) addressMissed(since time.Duration) {
	t.cause = traceStep{at: since, kind: console.StepAddressMissed, board: t.present.change.NewLeader}
}

// asked is called when a person, or systemd, wants this board to hand over or to stop.
func (t *trace) asked() { t.cause = traceStep{at: t.now(), kind: console.StepAsked} }

// linkSeen is called with the state of the interface.
func (t *trace) linkSeen(s netio.Snapshot) {
	kind := console.StepLinkLost
	if s.Present && s.Link.Up {
		kind = console.StepLinkUp
	}
	t.cause = traceStep{at: t.now(), kind: kind}
}

// messageReceived is called with a message before the core gets it. read is when it was read from its socket, or 0.
func (t *trace) messageReceived(read, now time.Duration, m *wire.Message, bySecondPath bool) {
	if read == 0 {
		read = now
	}
	t.packet = traceStep{at: read, handled: now, kind: console.StepHeard, board: m.Sender, term: m.Term, message: m.Type, second: bySecondPath}
	switch m.Type {
	case wire.TypeHeartbeat:
		t.packet.interval = m.Heartbeat.Interval
	case wire.TypeCoordinator:
		t.packet.interval = m.Coordinator.Interval
	}
	t.cause = t.packet
	if t.present.change.To == election.Isolated || chatter(m) {
		return // matters only if something follows from it
	}
	switch m.Type {
	case wire.TypeElection, wire.TypeResign:
		// A board that waits for its turn hears the questions of others before it changes anything itself, and one that
		// is named reads what else has arrived. If nothing follows, the timeline is thrown away.
		t.begin()
	}
	if t.recording {
		t.cause.kind = ""
		t.add(t.packet)
	}
	t.quiet = true
}

// chatter reports whether boards send such messages all the time, or to every new board. A QUERY is chatter unless it
// asks for the lead.
func chatter(m *wire.Message) bool {
	switch m.Type {
	case wire.TypeHello, wire.TypeChallenge, wire.TypeProof:
		return true
	case wire.TypeQuery:
		return m.Query.Purpose == wire.PurposeJoin
	}
	return false
}

// messageHandled is called when the core has handled the message.
func (t *trace) messageHandled() {
	beat := t.packet.message == wire.TypeHeartbeat
	if !beat && t.packet.message != wire.TypeCoordinator || t.packet.board != t.present.change.NewLeader || t.packet.second {
		return // a heartbeat by the second path is no reason to wait for the next one
	}
	t.heard = t.packet
	// The first heartbeat that changes nothing shows that all is quiet again.
	if beat && t.present.change.To == election.Follower && t.quiet {
		t.end()
	}
}

// effectBegun is called with each effect before it is carried out.
func (t *trace) effectBegun(e *election.Effect) {
	switch e.Kind {
	case election.EffectAcquire, election.EffectRelease:
		t.begin()
	case election.EffectProbe:
		t.mark(console.StepProbe, false)
	case election.EffectChange:
		t.change(e.Change)
	}
}

// messageSent is called when a message of the core has been sent.
func (t *trace) messageSent(to wire.ID, m *wire.Message) {
	// A board that joins sends its QUERY to all. A QUERY to the leader alone measures the round trip.
	joins := m.Type == wire.TypeQuery && to == wire.Nobody
	if m.Type != wire.TypeHeartbeat && (!t.recording || chatter(m) && !joins) {
		return
	}
	s := traceStep{at: t.now(), kind: console.StepSent, board: to, term: m.Term, message: m.Type}
	if t.recording {
		t.record(s)
	}
	if m.Type != wire.TypeHeartbeat && m.Type != wire.TypeCoordinator {
		return
	}
	t.sent = s
	if m.Type == wire.TypeHeartbeat && !m.Reply && t.present.change.To == election.Leader {
		t.end() // the leader sends as usual from now on
	}
}

const (
	// headSteps and tailSteps bound a timeline. A takeover on a clean wire has about fifteen steps. One that takes very
	// long, as when a foreign machine has the address, keeps how it began and how it ended.
	headSteps = 16
	tailSteps = 48
	stepsMax  = headSteps + tailSteps
	// keptTimelines is how many are kept of either kind: of changes of leader, and of suspicions that came to nothing.
	keptTimelines = 8
)

// timeline is what happened in one change, or in several that followed from each other, and what it has come to.
type timeline struct {
	steps   []traceStep // in the order in which the loop did them
	omitted int         // steps from the middle

	// change is all of it as one change. Its reason is that of the first change that made another one lead, else of the
	// first change: what follows in the same timeline follows from that.
	change election.Change
	known  bool // there was a change, and so a reason
	moved  bool // the leader has changed, perhaps back
	worth  bool // keeping: something was done
}

// add adds a step. If there are too many, one in the middle makes room for it.
func (l *timeline) add(s traceStep) {
	switch s.kind {
	case console.StepRole:
		moves := s.board != l.change.NewLeader
		if !l.known || moves && !l.moved {
			l.change.Reason = s.reason
		}
		l.known, l.worth, l.moved = true, true, l.moved || moves
		l.change.To, l.change.NewLeader, l.change.Term = s.role, s.board, s.term
	case console.StepAcquireBegun, console.StepReleaseBegun:
		l.worth = true
	case console.StepSent:
		if s.message == wire.TypeHeartbeat || s.message == wire.TypeCoordinator {
			l.change.Term = s.term
		}
	}
	if len(l.steps) == stepsMax {
		l.steps = slices.Delete(l.steps, headSteps, headSteps+1)
		l.omitted++
	}
	l.steps = append(l.steps, s)
}

// inTime returns the steps in the order in which they happened, with the moment at which the heartbeat was due that did
// not come. Messages may have waited in their socket while the loop did something else.
func (l *timeline) inTime() []traceStep {
	steps := slices.Clone(l.steps)
	if len(steps) == 0 {
		return nil
	}
	if last := steps[0]; last.kind == console.StepHeard && last.interval > 0 {
		due := last.at + last.interval
		if len(steps) > 1 && steps[1].at >= due {
			steps = append(steps, traceStep{at: due, kind: console.StepHeartbeatDue, board: last.board})
		}
	}
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].at < steps[j].at })
	return steps
}

// report puts a timeline into the form that others see. over says that no more steps come.
func (l *timeline) report(name func(wire.ID) (id, name string), over bool) console.TracedChange {
	c := console.TracedChange{
		From: l.change.From.String(), To: l.change.To.String(), LeaderChanged: l.moved, Term: uint32(l.change.Term), Omitted: l.omitted,
		// A board that is cut off does not know what the others did next.
		Over: over || l.change.To == election.Isolated || l.change.To == election.Barred,
	}
	c.OldLeader, c.OldLeaderName = name(l.change.OldLeader)
	c.NewLeader, c.NewLeaderName = name(l.change.NewLeader)
	if l.known {
		c.Reason, c.ReasonText = l.change.Reason.Identifier(), l.change.Reason.String()
	}
	for _, s := range l.inTime() {
		c.Steps = append(c.Steps, s.report(name))
	}
	if len(c.Steps) > 0 {
		c.ZeroNs = c.Steps[0].AtNs
	}
	return c
}

func (s *traceStep) report(name func(wire.ID) (id, name string)) console.TraceStep {
	r := console.TraceStep{AtNs: int64(s.at), Step: s.kind, Term: uint32(s.term), Failed: s.failed}
	r.Board, r.BoardName = name(s.board)
	switch s.kind {
	case console.StepHeard:
		at := int64(s.handled)
		r.Message, r.HandledNs, r.SecondPath = s.message.String(), &at, s.second
	case console.StepSent:
		r.Message = s.message.String()
	case console.StepTimer:
		at := int64(s.due)
		r.DueNs = &at
	case console.StepRole:
		r.Role, r.Reason, r.ReasonText = s.role.String(), s.reason.Identifier(), s.reason.String()
	}
	return r
}
