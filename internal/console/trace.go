package console

import (
	"cmp"
	"fmt"
	"io"
)

// Trace is what GET /v1/trace returns: what this board did in its last changes of role, and when. The keys of the JSON are
// part of the interface, like those of a [Status].
//
// Unlike in a status, points in time are absolute: nanoseconds of the kernel's CLOCK_BOOTTIME, which all programs of a
// machine share. So the traces of several boards on one machine, and of a client beside a board, can be merged. Between
// machines, only differences mean anything.
type Trace struct {
	Board   string         `json:"board"` // id of this board; "" if it has none yet
	Name    string         `json:"name"`
	Clock   string         `json:"clock"`   // ClockBoottime
	NowNs   int64          `json:"now_ns"`  // when the trace was made
	Changes []TracedChange `json:"changes"` // the newest first
}

// ClockBoottime is the clock of a [Trace].
const ClockBoottime = "CLOCK_BOOTTIME"

// TracedChange is the course of a change of role, or of several changes of which each led to the next.
type TracedChange struct {
	ZeroNs int64 `json:"zero_ns"` // the first step: the last heartbeat, if there was one
	// LeaderChanged is false for a suspicion that came to nothing, and for a leader that only repeated its claim.
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

	Omitted int         `json:"omitted"` // how many steps in the middle were not kept, because there were too many
	Steps   []TraceStep `json:"steps"`   // in the order of time
}

// TraceStep is something that happened. Keys that do not apply are left out.
type TraceStep struct {
	AtNs       int64  `json:"at_ns"`
	Step       string `json:"step"`                  // one of the Step constants
	Message    string `json:"message,omitempty"`     // StepHeard, StepSent: "ELECTION", …
	Board      string `json:"board,omitempty"`       // id of the sender, or recipient, or leader; "" for all, or none
	BoardName  string `json:"board_name,omitempty"`  //
	DueNs      *int64 `json:"due_ns,omitempty"`      // StepTimer: when it should have fired
	HandledNs  *int64 `json:"handled_ns,omitempty"`  // StepHeard: when the daemon handled it
	SecondPath bool   `json:"second_path,omitempty"` // StepHeard: it came by the second path
	Role       string `json:"role,omitempty"`        // StepRole: the new one
	Reason     string `json:"reason,omitempty"`      // StepRole: why, an identifier of election.Reason
	ReasonText string `json:"reason_text,omitempty"` // StepRole: the same for people
	Term       uint32 `json:"term,omitempty"`        // of a message, or of the new role
	Failed     bool   `json:"failed,omitempty"`      // what ended with this step did not work
}

// The steps (TraceStep.Step).
const (
	StepHeard         = "heard"          // a message, when it was read from its socket
	StepSent          = "sent"           // a message, when the call to send it returned
	StepHeartbeatDue  = "heartbeat_due"  // when the next heartbeat should have come
	StepAddressMissed = "address_missed" // when the leader's address was first asked for in vain
	StepTimer         = "timer"          // the timer of the election fired
	StepLinkUp        = "link_up"        // the daemon saw the interface, and it has a link
	StepLinkLost      = "link_lost"      // the daemon saw the interface, and it has no link
	StepAsked         = "asked"          // somebody wants the board to hand over or to stop
	StepRole          = "role"           // the board has another role or leader
	StepProbe         = "probe"          // the board begins to ask whether another machine has the address
	StepAcquireBegun  = "acquire_begun"  // the kernel is asked for the address
	StepAcquireEnded  = "acquire_ended"  // the kernel has the address
	StepReleaseBegun  = "release_begun"  // the kernel is asked to release the address
	StepReleaseEnded  = "release_ended"  // the kernel has released the address
	StepAnnounced     = "announced"      // gratuitous ARP was sent, and unsolicited Neighbour Advertisements for IPv6
)

// fill replaces missing lists by empty ones.
func (t *Trace) fill() {
	fillList(&t.Changes)
	for i := range t.Changes {
		fillList(&t.Changes[i].Steps)
	}
}

// Newest returns the trace with the newest change of leader only.
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

// WriteTrace writes a trace for people: a table for each change.
func WriteTrace(w io.Writer, t Trace, o Options) error {
	p := newPage(o)
	if len(t.Changes) == 0 {
		p.item(plain, "", "No change of leader yet, as far as this board knows: it keeps them only until its daemon ends.")
	}
	for i := range t.Changes {
		if i > 0 {
			p.line(plain, "")
		}
		p.tracedChange(&t, &t.Changes[i])
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// The columns of the table. An hour in milliseconds, with three decimal places, has eleven characters.
const (
	atWidth    = 12
	deltaWidth = 12

	// delayShown is the shortest delay of a message that is shown, in nanoseconds.
	delayShown = 100_000
)

func (p *page) tracedChange(t *Trace, c *TracedChange) {
	p.item(strong, "", t.changeHeadline(c))
	board := clean(t.boardName(t.Board, t.Name))
	p.line(dim, pad("ms", atWidth, true)+pad("+ms", deltaWidth, true)+between+"on "+board)
	before := c.ZeroNs
	for i := range c.Steps {
		s := &c.Steps[i]
		delta := ""
		if i > 0 {
			delta = "+" + milliseconds(s.AtNs-before)
		}
		label := pad(milliseconds(s.AtNs-c.ZeroNs), atWidth, true) + pad(delta, deltaWidth, true) + between
		p.item(s.style(), label, t.stepText(s))
		before = s.AtNs
	}
	if c.Omitted > 0 {
		p.item(notice, "", fmt.Sprintf("%d steps in the middle were not kept: there were too many.", c.Omitted))
	}
}

// changeHeadline says which change a table is about.
func (t *Trace) changeHeadline(c *TracedChange) string {
	name := func(id, name string) string {
		if id == "" {
			return "nobody"
		}
		text := t.boardName(id, name)
		if text != id {
			text += " (" + id + ")"
		}
		return text
	}
	text := "the lead stayed with " + name(c.NewLeader, c.NewLeaderName)
	if c.LeaderChanged {
		text = fmt.Sprintf("the lead went from %s to %s", name(c.OldLeader, c.OldLeaderName), name(c.NewLeader, c.NewLeaderName))
	}
	if len(c.Steps) > 0 {
		text = fmt.Sprintf("%s, %s", ago(float64(t.NowNs-c.Steps[len(c.Steps)-1].AtNs)/1e6), text)
	}
	text += fmt.Sprintf(", term%c%d: %s", joint, c.Term, cmp.Or(c.ReasonText, "it claimed the address again"))
	if !c.Over {
		text += " (not over yet)"
	}
	return text
}

// boardName returns the name of a board, or its id.
func (t *Trace) boardName(id, name string) string {
	if id == t.Board && t.Name != "" {
		name = t.Name
	}
	return cmp.Or(name, id, "an unknown board")
}

// style returns the look of a step. It highlights the steps that clients notice.
func (s *TraceStep) style() style {
	switch {
	case s.Failed:
		return urgent
	case s.Step == StepAcquireEnded, s.Step == StepReleaseEnded, s.Step == StepAnnounced:
		return good
	}
	return plain
}

// stepText describes a step in words.
func (t *Trace) stepText(s *TraceStep) string {
	who := t.boardName(s.Board, s.BoardName)
	switch s.Step {
	case StepHeard:
		text := fmt.Sprintf("heard %s of %s", s.Message, who)
		if s.SecondPath {
			text += " by the second path"
		}
		if s.HandledNs != nil && *s.HandledNs-s.AtNs >= delayShown {
			text += fmt.Sprintf(", and handled it %s later", apart(*s.HandledNs-s.AtNs))
		}
		return text
	case StepSent:
		if s.Board == "" {
			who = "all"
		}
		return fmt.Sprintf("sent %s to %s", s.Message, who)
	case StepHeartbeatDue:
		return "the next heartbeat is due"
	case StepTimer:
		text := "the timer fires"
		if s.DueNs != nil {
			text += fmt.Sprintf(", %s late", apart(s.AtNs-*s.DueNs))
		}
		return text
	case StepRole:
		text := s.Role
		if s.Board != "" && s.Role == RoleFollower {
			text += " of " + who
		}
		if s.Role == RoleLeader {
			text += fmt.Sprintf(" in term%c%d", joint, s.Term)
		}
		return fmt.Sprintf("becomes %s: %s", text, cmp.Or(s.ReasonText, "unknown why"))
	}
	if words, ok := stepWords[s.Step]; ok {
		if s.Failed {
			return words.failed
		}
		return words.done
	}
	return cmp.Or(s.Step, "something unknown") // a newer daemon may have other steps
}

// stepWords are the texts of the other steps.
var stepWords = map[string]struct{ done, failed string }{
	StepAddressMissed: {done: "asks for the leader's address in vain"},
	StepLinkUp:        {done: "sees that the link is there"},
	StepLinkLost:      {done: "sees that the link is gone"},
	StepAsked:         {done: "is asked to hand over"},
	StepProbe:         {done: "begins to ask whether a foreign machine has the address"},
	StepAcquireBegun:  {done: "begins to acquire the address"},
	StepAcquireEnded:  {done: "has the address", failed: "could not acquire the address"},
	StepReleaseBegun:  {done: "begins to release the address"},
	StepReleaseEnded:  {done: "has released the address", failed: "could not release the address"},
	StepAnnounced:     {done: "has announced the address", failed: "could not announce the address"},
}
