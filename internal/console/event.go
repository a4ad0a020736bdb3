package console

import (
	"fmt"
	"strings"
	"time"
)

// Transition is an event in the life of a board, and how the board is after it. GET /v1/events is a stream of
// transitions, a line of JSON for each.
type Transition struct {
	Number uint64 `json:"number"` // one more with each; the first of a daemon is 1
	Event  Event  `json:"event"`
	AgeNs  int64  `json:"age_ns"` // from the event until this was sent
	Missed uint64 `json:"missed"` // how many transitions before it were not sent, because the reader was too slow

	Role       string   `json:"role"`        // of this board: one of the Role constants
	Reason     string   `json:"reason"`      // why it has that role, or why the leader changed: an identifier of election.Reason
	ReasonText string   `json:"reason_text"` // the same for people
	Holding    bool     `json:"holding"`     // this board has the addresses, and answers for them
	Leader     string   `json:"leader"`      // id; "" if this board knows of none
	LeaderName string   `json:"leader_name"`
	Term       uint32   `json:"term"`
	Group      string   `json:"group"`
	Addresses  []string `json:"addresses"` // the floating ones, with prefix length
	Interface  string   `json:"interface"`
	Board      string   `json:"board"` // id of this board; "" until it has a network
	BoardName  string   `json:"board_name"`
	Priority   int      `json:"priority"` // of this board; 0 while it does not stand for the lead
	Grade      string   `json:"grade"`    // how fit it is to lead, as Board.Grade

	// Status is everything that is known. Only the first line of a stream has it.
	Status *Status `json:"status,omitempty"`
}

// Event says what has happened.
type Event string

// The events. The daemon does not send EventDaemonGone: [Client.Follow] adds it at the end of a stream.
const (
	EventSnapshot        Event = "snapshot"         // nothing: this is how the board was when the stream began
	EventRoleChanged     Event = "role_changed"     // this board has another role
	EventLeaderChanged   Event = "leader_changed"   // the role is the same, and another board leads, or none, or the same in another term
	EventGradeChanged    Event = "grade_changed"    // this board is more fit to lead, or less
	EventAddressAcquired Event = "address_acquired" // this board has the addresses now
	EventAddressReleased Event = "address_released" // it no longer has them
	EventStopping        Event = "stopping"         // its daemon was told to stop, and hands over if it leads
	EventAlive           Event = "alive"            // nothing: the daemon's loop turns
	EventDaemonGone      Event = "daemon_gone"      // there is no daemon any more, or it does not answer
)

// GradeFailing is the grade of a board whose checks fail, or have not passed yet.
const GradeFailing = "failing"

// Lead returns who leads after the transition, and why.
func (t *Transition) Lead() Lead {
	return Lead{Leader: t.Leader, LeaderName: t.LeaderName, Term: t.Term, Reason: t.Reason, ReasonText: t.ReasonText}
}

// Leads reports whether this board leads and has the addresses.
func (t *Transition) Leads() bool { return t.Role == RoleLeader && t.Holding }

// Leads reports whether this board leads and has the addresses.
func (s *Status) Leads() bool { return s.Role == RoleLeader && s.Holding && !s.MajorityUnheard }

// Snapshot returns the first line of a stream that begins with this status.
func (s *Status) Snapshot() Transition {
	t := Transition{
		Number: s.Transition, Event: EventSnapshot, Role: s.Role, Reason: s.Reason, ReasonText: s.ReasonText,
		Holding: s.Holding && !s.MajorityUnheard, Leader: s.Leader, LeaderName: s.LeaderName, Term: s.Term, Group: s.Group,
		Addresses: s.Addresses, Interface: s.Interface, Board: s.Board.ID, BoardName: s.Board.Name,
		Priority: s.Board.Priority, Grade: s.Board.Grade, Status: s,
	}
	if s.RoleSinceMs != nil {
		t.AgeNs = int64(*s.RoleSinceMs * float64(time.Millisecond))
	}
	return t
}

// Text returns the transition as one line for people.
func (t *Transition) Text() string {
	text := fmt.Sprintf("%4d  %-16s  %s", t.Number, t.Event, t.text())
	if t.Missed > 0 {
		text += fmt.Sprintf(" (%d before it were missed)", t.Missed)
	}
	return clean(text)
}

// text says how the board is: "follower of pi3 (192.168.1.13), term 7: heard the leader".
func (t *Transition) text() string {
	text := t.Role
	switch {
	case t.Role == RoleLeader && t.Holding:
		text += fmt.Sprintf(" with %s, term %d", strings.Join(t.Addresses, ", "), t.Term)
	case t.Role == RoleLeader:
		text += fmt.Sprintf(" without the address, term %d", t.Term)
	case t.LeaderName != "":
		text += fmt.Sprintf(" of %s (%s), term %d", t.LeaderName, t.Leader, t.Term)
	case t.Leader != "":
		text += fmt.Sprintf(" of %s, term %d", t.Leader, t.Term)
	}
	if t.Event == EventGradeChanged {
		return text + ": " + t.Grade
	}
	if t.ReasonText != "" {
		text += ": " + t.ReasonText
	}
	return text
}
