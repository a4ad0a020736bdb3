package daemon

import (
	"net/netip"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/netio"
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

// idle is called when the loop has nothing to do.
func (t *trace) idle() { t.cause.kind = "" }

// timerFired is called when the core's deadline has come.
func (t *trace) timerFired(due, now time.Duration) {
	t.cause = traceStep{at: now, due: due, kind: console.StepTimer}
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

// messageReceived is called with a message before the core gets it. read is when it
// was read from its socket, or 0.
func (t *trace) messageReceived(read, now time.Duration, m *wire.Message) {
	if read == 0 {
		read = now
	}
	t.packet = traceStep{at: read, handled: now, kind: console.StepHeard, board: m.Sender, term: m.Term, message: m.Type}
	switch m.Type {
	case wire.TypeHeartbeat:
		t.packet.interval = m.Heartbeat.Interval
	case wire.TypeCoordinator:
		t.packet.interval = m.Coordinator.Interval
	}
	t.cause = t.packet
	if t.role == election.Isolated || chatter(m) {
		return // matters only if something follows from it
	}
	if m.Type == wire.TypeElection {
		// A board that waits for its turn hears the questions of others before it changes
		// anything itself. If nothing follows from them, the timeline is thrown away.
		t.begin()
	}
	if t.recording {
		t.cause.kind = ""
		t.add(t.packet)
	}
	t.received = t.recorded
}

// chatter reports whether boards send such messages all the time, or to anybody
// who is new. A QUERY is chatter unless it asks for the lead.
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
	if !beat && t.packet.message != wire.TypeCoordinator || t.packet.board != t.leader {
		return
	}
	t.heard = t.packet
	// The first heartbeat that changes nothing shows that all is quiet again.
	if beat && t.role == election.Follower && t.recorded == t.received {
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
	// A board that joins sends its QUERY to all. A QUERY to the leader alone measures the
	// round trip.
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
	if m.Type == wire.TypeHeartbeat && !m.Reply && t.role == election.Leader {
		t.end() // the leader sends as usual from now on
	}
}

// traced has the trace told of what is done to the address and to the neighbours.
func (t *trace) traced(platform Platform) Platform {
	openAddresses, openAnnouncer := platform.OpenAddresses, platform.OpenAnnouncer
	if openAddresses != nil {
		platform.OpenAddresses = func(iface string, addresses []netip.Prefix) (Addresses, error) {
			held, err := openAddresses(iface, addresses)
			return tracedAddresses{held, t}, err
		}
	}
	platform.OpenAnnouncer = func(index int, local netip.Addr) (Announcer, error) {
		announcer, err := openAnnouncer(index, local)
		return tracedAnnouncer{announcer, t}, err
	}
	return platform
}

// tracedAddresses tells when the address is acquired and released, and how long the
// kernel needs for it. Only the loop does either; a renewal, which runs beside it, leaves no trace.
type tracedAddresses struct {
	Addresses
	trace *trace
}

func (h tracedAddresses) Acquire() error {
	h.trace.mark(console.StepAcquireBegun, false)
	err := h.Addresses.Acquire()
	h.trace.mark(console.StepAcquireEnded, err != nil)
	return err
}

func (h tracedAddresses) Release() error {
	h.trace.mark(console.StepReleaseBegun, false)
	err := h.Addresses.Release()
	h.trace.mark(console.StepReleaseEnded, err != nil)
	return err
}

// tracedAnnouncer tells when an address has been announced.
type tracedAnnouncer struct {
	Announcer
	trace *trace
}

func (a tracedAnnouncer) Announce(addr netip.Addr) error {
	err := a.Announcer.Announce(addr)
	a.trace.mark(console.StepAnnounced, err != nil)
	return err
}
