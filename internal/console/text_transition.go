package console

import (
	"fmt"
	"strings"
)

// Text returns a transition as one line for people.
func (t *Transition) Text() string {
	text := fmt.Sprintf("%4d  %-16s  %s", t.Number, t.Event, t.text())
	if t.Missed > 0 {
		text += fmt.Sprintf(" (%d before it were missed)", t.Missed)
	}
	return clean(text)
}

// text says how the board is: "follower of pi3 (192.168.1.13), term 7: heard the leader".
func (t *Transition) text() string {
	var text strings.Builder
	text.WriteString(t.Role)
	switch {
	case t.Role == RoleLeader && t.Holding:
		fmt.Fprintf(&text, " with %s, term %d", strings.Join(t.Addresses, ", "), t.Term)
	case t.Role == RoleLeader:
		fmt.Fprintf(&text, " without the address, term %d", t.Term)
	case t.Leader != "":
		fmt.Fprintf(&text, " of %s, term %d", t.leader(), t.Term)
	}
	if t.Event == EventGradeChanged {
		return text.String() + ": " + t.Grade
	}
	if t.ReasonText != "" {
		text.WriteString(": " + t.ReasonText)
	}
	return text.String()
}

// leader names the leader.
func (t *Transition) leader() string {
	if t.LeaderName == "" {
		return t.Leader
	}
	return fmt.Sprintf("%s (%s)", t.LeaderName, t.Leader)
}
