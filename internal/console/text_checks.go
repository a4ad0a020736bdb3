package console

import (
	"cmp"
	"strings"
)

// The identifiers that decide how a check, and the grade, are shown.
const (
	gradePassing   = "passing"
	gradeProbation = "probation"
	stateFailing   = "failing"
	stateNotJudged = "not_judged"
)

// grade says how fit this board is to lead, and why; nothing of a board without checks that is.
func (s *Status) grade() string {
	if s.Grade == "" || s.Grade == gradePassing && len(s.Checks) == 0 {
		return ""
	}
	text := s.Grade
	if s.Starting {
		text = "starting"
	}
	if s.GradeText != "" {
		text += ": " + s.GradeText
	}
	if s.GradeEndsInNs > 0 {
		text += ", for another " + span(float64(s.GradeEndsInNs)/1e6)
	}
	return text
}

// checks adds the checks of this board.
func (p *page) checks(s *Status) {
	if len(s.Checks) == 0 {
		return
	}
	p.line(plain, "")
	p.line(strong, "checks of this board")
	states, times := make([]string, len(s.Checks)), make([]string, len(s.Checks))
	stateWidth, timeWidth := 0, 0
	for i := range s.Checks {
		c := &s.Checks[i]
		states[i], times[i] = c.state(), span(float64(c.SinceNs)/1e6)
		stateWidth, timeWidth = max(stateWidth, width(states[i])), max(timeWidth, width(times[i]))
	}
	for i := range s.Checks {
		c := &s.Checks[i]
		look := plain
		if c.State == stateFailing {
			look = notice
		}
		text := cmp.Or(c.NameText, strings.TrimSpace(c.Kind+" "+c.Target))
		if c.Text != "" {
			text += ": " + c.Text
		}
		p.item(look, "  "+pad(states[i], stateWidth, false)+"  "+pad(times[i], timeWidth, true)+"  ", stateWidth+timeWidth+6, text)
	}
}

// state names the state of a check for people.
func (c *Check) state() string {
	switch c.State {
	case stateNotJudged:
		return "not judged"
	case "":
		return "unknown"
	}
	return c.State
}
