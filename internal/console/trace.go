package console

// Trace is what GET /v1/trace returns: what this board did when in its last
// changes of role. The JSON names are part of the interface, as in a [Status].
//
// Unlike there, points in time are absolute: nanoseconds of the kernel's
// CLOCK_BOOTTIME, which all programs of one machine share. So whoever runs
// several boards on one machine, or a client beside a board, can merge what each
// has seen. Between machines only differences mean anything.
type Trace struct {
	Board   string         `json:"board"` // id of this board; "" if it has none yet
	Name    string         `json:"name"`
	Clock   string         `json:"clock"`   // ClockBoottime
	NowNs   int64          `json:"now_ns"`  // when this was written
	Changes []TracedChange `json:"changes"` // the newest first
}

// ClockBoottime is the clock of a [Trace].
const ClockBoottime = "CLOCK_BOOTTIME"

// TracedChange is how one change of role went, or several that followed from
// each other.
type TracedChange struct {
	ZeroNs int64 `json:"zero_ns"` // the first step: the last heartbeat, if there was one
	// LeaderChanged is false for a suspicion that came to nothing, and for a leader
	// that only repeated its claim.
	LeaderChanged bool `json:"leader_changed"`
	Over          bool `json:"over"` // false if more steps may come

	From          string `json:"from"` // role of this board before and after, one of the Role constants
	To            string `json:"to"`
	OldLeader     string `json:"old_leader"` // id; "" for none
	OldLeaderName string `json:"old_leader_name"`
	NewLeader     string `json:"new_leader"`
	NewLeaderName string `json:"new_leader_name"`
	Term          uint32 `json:"term"`
	Reason        string `json:"reason"` // an identifier of election.Reason; "" if a leader only repeated its claim
	ReasonText    string `json:"reason_text"`

	Omitted int         `json:"omitted"` // steps that were too many to be kept, from the middle
	Steps   []TraceStep `json:"steps"`   // in the order of time
}

// TraceStep is one thing that happened. Fields that do not apply are left out.
type TraceStep struct {
	AtNs       int64  `json:"at_ns"`
	Step       string `json:"step"`                  // one of the Step constants
	Message    string `json:"message,omitempty"`     // StepHeard, StepSent: "ELECTION", …
	Board      string `json:"board,omitempty"`       // id of the sender, or recipient, or leader; "" for all, or none
	BoardName  string `json:"board_name,omitempty"`  //
	DueNs      *int64 `json:"due_ns,omitempty"`      // StepTimer: when it should have rung
	HandledNs  *int64 `json:"handled_ns,omitempty"`  // StepHeard: when the daemon handled it
	Role       string `json:"role,omitempty"`        // StepRole: the new one
	Reason     string `json:"reason,omitempty"`      // StepRole: why, an identifier of election.Reason
	ReasonText string `json:"reason_text,omitempty"` // StepRole: the same for people
	Term       uint32 `json:"term,omitempty"`        // of a message, or of the new role
	Failed     bool   `json:"failed,omitempty"`      // what this is the end of did not work
}

// What a step can be.
const (
	StepHeard        = "heard"         // a message, when it was read from its socket
	StepSent         = "sent"          // a message, when the call to send it returned
	StepHeartbeatDue = "heartbeat_due" // when the next heartbeat should have come
	StepTimer        = "timer"         // the election's timer rang
	StepLinkUp       = "link_up"       // the daemon saw the interface, and it has a link
	StepLinkLost     = "link_lost"     // likewise, and it has none
	StepAsked        = "asked"         // somebody wants the board to hand over or to stop
	StepRole         = "role"          // another role or leader
	StepProbe        = "probe"         // begins to ask whether a foreign machine has the address
	StepAcquireBegun = "acquire_begun" // the kernel is asked for the address
	StepAcquireEnded = "acquire_ended" // it has it
	StepReleaseBegun = "release_begun" // the kernel is asked to release it
	StepReleaseEnded = "release_ended" // it has released it
	StepAnnounced    = "announced"     // gratuitous ARP was sent
)

// fill makes empty lists of missing ones.
func (t *Trace) fill() {
	if t.Changes == nil {
		t.Changes = []TracedChange{}
	}
	for i := range t.Changes {
		if t.Changes[i].Steps == nil {
			t.Changes[i].Steps = []TraceStep{}
		}
	}
}

// Newest returns the trace with only the newest change of leader left in it.
func (t Trace) Newest() Trace {
	all := t.Changes
	t.Changes = []TracedChange{}
	for _, c := range all {
		if c.LeaderChanged {
			t.Changes = append(t.Changes, c)
			break
		}
	}
	return t
}
