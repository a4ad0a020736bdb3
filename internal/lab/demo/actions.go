package demo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"topdog/internal/lab/demopage"
)

// action is something that was done to the boards.
type action struct {
	number int // from 1
	at     time.Time
	deed
}

// deed is what is done: a verb, the board that it is about (0 for all), and both in words.
type deed struct {
	verb  demopage.Verb
	board int
	text  string
}

// maxActions bounds what is remembered of what was done.
const maxActions = 64

// act does something that is remembered as the cause of what follows.
func (g *group) act(d deed, do func() error) error {
	g.mu.Lock()
	g.acted++
	g.actions = keep(g.actions, action{g.acted, time.Now(), d}, maxActions)
	g.mu.Unlock()
	err := do()
	g.update(func() {})
	return err
}

// ofOne are the actions that are about one board: their lines of a scene, and in words what was done.
var ofOne = map[demopage.Verb]struct{ line, done string }{
	demopage.PowerOff: {"power-off", "cut the power of %s"},
	demopage.PowerOn:  {"power-on", "switched %s on"},
	demopage.CableOut: {"pull", "pulled the cable of %s"},
	demopage.CableIn:  {"plug", "put the cable of %s back"},
	demopage.Kill:     {"kill", "killed the daemon on %s"},
	demopage.Stop:     {"stop", "stopped the daemon on %s"},
	demopage.Start:    {"start", "started the daemon on %s"},
	demopage.Freeze:   {"freeze", "froze the daemon on %s"},
	demopage.Thaw:     {"thaw", "let the daemon on %s go on"},
	demopage.MuteOn:   {"mute", "made %s mute"},
	demopage.MuteOff:  {"speak", "let %s speak again"},
	demopage.DeafOn:   {"deafen", "made %s deaf"},
	demopage.DeafOff:  {"hear", "let %s hear again"},
	demopage.Resign:   {`topdog resign says ""`, "asked %s to resign"},
}

// perform does what a person wants done, if the boards are such that it can be done.
func (g *group) perform(a demopage.Action) error {
	if why := g.lan.cannot(a.Verb); why != "" {
		return &demopage.Refusal{Text: why}
	}
	switch a.Verb {
	case demopage.Loss:
		text := fmt.Sprintf("let all boards lose %d %% of the packets", *a.Percent)
		return g.act(deed{a.Verb, 0, text}, func() error { return g.play(fmt.Sprintf("lose %d%%", *a.Percent)) })
	case demopage.Split:
		var names []string
		for _, n := range a.Apart {
			names = append(names, g.name(n))
		}
		text := "split " + strings.Join(names, ", ") + " from the rest"
		return g.act(deed{a.Verb, 0, text}, func() error {
			if err := g.join(); err != nil {
				return err
			}
			return g.play("split " + strings.Join(names, ","))
		})
	case demopage.Heal:
		return g.act(deed{a.Verb, 0, "healed the LAN"}, g.heal)
	case demopage.AllOn:
		return g.act(deed{a.Verb, 0, "repaired everything and switched all boards on"}, g.repair)
	}
	is, of := g.state(a.Board), ofOne[a.Verb]
	if lacks := is.lacks(a.Verb); lacks != "" {
		return &demopage.Refusal{Text: g.name(a.Board) + " " + lacks}
	}
	return g.act(deed{a.Verb, a.Board, fmt.Sprintf(of.done, g.name(a.Board))}, func() error { return g.playOn(a.Board, a.Verb) })
}

func (g *group) playOn(n int, verb demopage.Verb) error {
	return g.play(g.name(n) + " " + ofOne[verb].line)
}

// join makes one LAN of the parts, if there are any.
func (g *group) join() error {
	for _, b := range g.boards {
		if g.state(b.number).Apart {
			return g.play("join")
		}
	}
	return nil
}

// heal makes the LAN one again, which loses nothing.
func (g *group) heal() error { return errors.Join(g.play("lose 0%"), g.join()) }

// repair makes everything as it was in the beginning, and has every daemon run. What fails keeps nothing else from being done.
func (g *group) repair() error {
	failed := []error{g.heal()}
	for _, b := range g.boards {
		for _, verb := range mending {
			if is := g.state(b.number); is.lacks(verb) == "" {
				failed = append(failed, g.playOn(b.number, verb))
			}
		}
	}
	return errors.Join(failed...)
}

// The verbs from which a takeover may follow.
var (
	// breaking keep a board from leading.
	breaking = []demopage.Verb{
		demopage.PowerOff, demopage.CableOut, demopage.Kill, demopage.Stop, demopage.Freeze, demopage.MuteOn, demopage.DeafOn,
		demopage.Resign,
	}
	// mending bring back a board, which may take the lead because it came back. Its daemon comes last, and finds all as it should be.
	mending = []demopage.Verb{
		demopage.DeafOff, demopage.MuteOff, demopage.CableIn, demopage.PowerOn, demopage.Start, demopage.Thaw,
	}
	// toAll are done to all boards.
	toAll = []demopage.Verb{demopage.Loss, demopage.Split, demopage.Heal, demopage.AllOn}
)

// lacks says why something cannot be done to a board as it is; "" if it can.
func (b *pageBoard) lacks(verb demopage.Verb) string {
	runs, frozen := b.runs(), b.Daemon == daemonFrozen
	for _, c := range map[demopage.Verb][]condition{
		demopage.PowerOff: {{b.Power, "has no power"}},
		demopage.PowerOn:  {{!b.Power, "has power"}},
		demopage.CableOut: {{b.Cable, "has no cable"}},
		demopage.CableIn:  {{!b.Cable, "has its cable"}},
		demopage.Kill:     {{runs, "runs no daemon"}},
		demopage.Stop:     {{runs, "runs no daemon"}, {!frozen, "is frozen: it would stop when it goes on"}},
		demopage.Start:    {{b.Power, "has no power"}, {!runs, "runs its daemon"}},
		demopage.Freeze:   {{runs, "runs no daemon"}, {!frozen, "is frozen"}},
		demopage.Thaw:     {{runs && frozen, "is not frozen"}},
		demopage.MuteOn:   {{!b.Mute, "is mute"}},
		demopage.MuteOff:  {{b.Mute, "is not mute"}},
		demopage.DeafOn:   {{!b.Deaf, "is deaf"}},
		demopage.DeafOff:  {{b.Deaf, "is not deaf"}},
		demopage.Resign: {{runs, "runs no daemon"}, {!frozen, "is frozen: it hears nobody"},
			{b.leads(), "does not lead, so it cannot resign"}},
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
