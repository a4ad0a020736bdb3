package demo

import (
	"context"
	"fmt"

	"topdog/internal/lab/demopage"
)

// performAction does what a person wants done on the page, if the boards are such that it can be done.
func (g *group) performAction(ctx context.Context, a demopage.Action) error {
	if why := g.lan.cannot(a.Verb); why != "" {
		return &demopage.Refusal{Text: why}
	}
	switch a.Verb {
	case demopage.Loss:
		return g.lose(*a.Percent)
	case demopage.Split:
		return g.split(a.Apart)
	case demopage.Heal:
		return g.heal()
	case demopage.AllOn:
		return g.allOn()
	}
	s := g.state(a.Board)
	if lacks := s.lacks(a.Verb); lacks != "" {
		return &demopage.Refusal{Text: g.name(a.Board) + " " + lacks}
	}
	return g.performOn(ctx, a.Verb, a.Board, s)
}

// performOn does something to one board, which is such that it can be done.
func (g *group) performOn(ctx context.Context, verb demopage.Verb, n int, s boardState) error {
	called := func(text string) deed { return deed{verb, n, fmt.Sprintf(text, g.name(n))} }
	switch verb {
	case demopage.PowerOff:
		return g.cutPower(n)
	case demopage.PowerOn, demopage.Start:
		return g.switchOn(n)
	case demopage.CableOut, demopage.CableIn:
		return g.cable(n, verb == demopage.CableIn)
	case demopage.Kill:
		return g.kill(n)
	case demopage.Stop:
		return g.stop(n)
	case demopage.Freeze, demopage.Thaw:
		return g.freeze(n, verb == demopage.Freeze)
	case demopage.MuteOn:
		return g.impair(called("made %s mute"), s.deaf, true)
	case demopage.MuteOff:
		return g.impair(called("let %s speak again"), s.deaf, false)
	case demopage.DeafOn:
		return g.impair(called("made %s deaf"), true, s.mute)
	case demopage.DeafOff:
		return g.impair(called("let %s hear again"), false, s.mute)
	case demopage.Resign:
		return g.resign(ctx, n)
	}
	return fmt.Errorf("nobody knows how to do %s", verb)
}

// lacks says why something cannot be done to a board as it is; "" if it can.
func (s *boardState) lacks(verb demopage.Verb) string {
	runs := s.power == running
	for _, c := range map[demopage.Verb][]condition{
		demopage.PowerOff: {{s.power != powerOff, "has no power"}},
		demopage.PowerOn:  {{s.power == powerOff, "has power"}},
		demopage.CableOut: {{s.cable, "has no cable"}},
		demopage.CableIn:  {{!s.cable, "has its cable"}},
		demopage.Kill:     {{runs, "runs no daemon"}},
		demopage.Stop:     {{runs, "runs no daemon"}, {!s.frozen, "is frozen: it would stop when it goes on"}},
		demopage.Start:    {{s.power != powerOff, "has no power"}, {!runs, "runs its daemon"}},
		demopage.Freeze:   {{runs, "runs no daemon"}, {!s.frozen, "is frozen"}},
		demopage.Thaw:     {{runs && s.frozen, "is not frozen"}},
		demopage.MuteOn:   {{!s.mute, "is mute"}},
		demopage.MuteOff:  {{s.mute, "is not mute"}},
		demopage.DeafOn:   {{!s.deaf, "is deaf"}},
		demopage.DeafOff:  {{s.deaf, "is not deaf"}},
		demopage.Resign: {{runs, "runs no daemon"}, {!s.frozen, "is frozen: it hears nobody"},
			{s.leads(), "does not lead, so it cannot resign"}},
	}[verb] {
		if !c.holds {
			return c.otherwise
		}
	}
	return ""
}

// condition is something that must hold, and what is said otherwise.
type condition struct {
	holds     bool
	otherwise string
}
