package daemon

import (
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// trace remembers what happened when in the last changes of role, from the last
// heartbeat on. It is always on, so that the steps of a takeover are measured before
// anybody asks for them. So it must cost nothing. The memory is
// all there from the start. In the steady state a heartbeat overwrites the one
// before. The clock is read only while something happens, and by a leader when
// it has sent a heartbeat.
//
// All steps go into one list. It is cut into timelines when somebody asks, and
// when a change is over, to forget what is too old; see [cut].
//
// The trace belongs to the loop, like everything of the daemon that has no lock.
type trace struct {
	now func() time.Duration

	role   election.Role // as of the last change
	leader wire.ID
	heard  traceStep // the last heartbeat of the leader; kind "" if there is none
	sent   traceStep // the last heartbeat of this board as the leader

	// cause is what the loop handles now. It becomes a step only if something follows from it.
	cause  traceStep
	packet traceStep // the last message that was received

	recording bool        // something is going on; else steps are not recorded
	steps     []traceStep // those of the present change are the last ones
	began     int         // where they begin
	recorded  uint64      // how many steps there were, all told
	received  uint64      // the same, when packet was received
}

// Beside the steps of package console, these are in the list. They are never shown.
const (
	stepBegin   = "begin"   // begins a timeline: the role and the leader until then
	stepOmitted = "omitted" // stands for steps that were too many
)

// traceStep is one thing that happened.
type traceStep struct {
	at       time.Duration // a message: when it was read from its socket
	due      time.Duration // StepTimer: when it should have expired
	handled  time.Duration // StepHeard: when the loop came to it
	interval time.Duration // a heartbeat: until the next one, as it says
	board    wire.ID       // StepHeard: the sender; StepSent: the recipient; StepRole: the leader
	term     wire.Term
	kind     string // one of console.Step…, stepBegin or stepOmitted; "" for none
	message  wire.Type
	role     election.Role
	reason   election.Reason
	failed   bool
	outcome  outcome // stepOmitted: what the steps until here came to
	count    int32   // stepOmitted: how many they are
}

// newTrace returns an empty one. Programs on one machine can merge their traces, since
// netio.Now is a clock of the kernel.
func newTrace(now func() time.Duration) *trace {
	return &trace{now: now, role: election.Isolated, steps: make([]traceStep, 0, stepsMax)}
}

// begin begins to record, with the last heartbeat.
func (t *trace) begin() {
	if t.recording {
		return
	}
	t.recording = true
	t.began = len(t.steps)
	t.add(traceStep{kind: stepBegin, role: t.role, board: t.leader})
	switch {
	case t.role == election.Leader && t.sent.kind != "":
		t.add(t.sent)
	case t.role != election.Leader && t.leader != wire.Nobody && t.heard.kind != "":
		t.add(t.heard)
	}
}

// end ends what begin has begun, and forgets what is too old or was nothing.
func (t *trace) end() {
	if t.recording {
		t.recording = false
		t.steps = tidy(t.steps)
	}
}

// record adds a step behind what caused it.
func (t *trace) record(s traceStep) {
	if t.cause.kind != "" {
		t.add(t.cause)
		t.cause.kind = ""
	}
	t.add(s)
}

// add adds a step. A change that goes on and on is shortened now and then.
func (t *trace) add(s traceStep) {
	t.recorded++
	t.steps = append(t.steps, s)
	if present := t.steps[t.began:]; len(present) > presentMax {
		t.steps = t.steps[:t.began+len(shorten(present))]
	}
}

// mark records a step that happens now, if something is going on.
func (t *trace) mark(kind string, failed bool) {
	if t.recording {
		t.record(traceStep{at: t.now(), kind: kind, failed: failed})
	}
}

// change records a change of role or leader.
func (t *trace) change(c election.Change) {
	if c.From == election.Isolated || c.From == election.Barred {
		t.end() // that this board came to that role belongs to the timeline before
	}
	t.begin()
	t.record(traceStep{at: t.now(), kind: console.StepRole, board: c.NewLeader, term: c.Term, role: c.To, reason: c.Reason})
	t.role, t.leader = c.To, c.NewLeader
}
