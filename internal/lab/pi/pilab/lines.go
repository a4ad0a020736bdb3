package pilab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"topdog/gpio"
	"topdog/internal/lab/pi"
	"topdog/internal/lab/scene"
)

// What follows are the lines of the scene's own, beside those that every scene has:
//
//	configure            give the boards their configuration, and start them
//	outage 2s            nobody has answered for at most so long since the line mark, and somebody does; without a time, for however long
//	pi3 sh "…" "…"       a command that succeeds, and says what comes after it
//	pi3 sh or again "…"  if it does not succeed, a board stood still, and the step begins anew
//	pi3 gets the lead    it is the heir of each that may lead instead
//	pi3 is seen to lead  in the eyes of everybody outside; without pi2: its light does not matter
//	pi3 is dark          it shows no light
//	pi3 is off           it has ended
//	pi3 is lit           its light is on at this moment; otherwise the step begins anew
//	pi3 adapter          a second network adapter is plugged in, at the switch of the second path

// line is a line that is about boards.
type line struct {
	within time.Duration // 0: it must hold at once
	words  []string      // after the boards
	quoted []string
}

// boardLines are those that are about boards. Of several boards, one comes after the other: if all are busy at once, they pause for
// too long.
var boardLines = map[string]func(*trial, int, line) error{
	"sh":      (*trial).sh,
	"gets":    (*trial).give,
	"is seen": (*trial).seen,
	"is dark": onBoard((*trial).dark),
	"is lit":  onBoard((*trial).lit),
	"is off":  onBoard(func(t *trial, l line, b *pi.Board) error { return b.AwaitOff(t.Ctx, l.within) }),
	"adapter": onBoard(func(t *trial, _ line, b *pi.Board) error { return b.PlugInSecond(t.Ctx) }),
}

// boardLine returns what words after boards do, if they are the trial's own.
func boardLine(words []string) func(*trial, int, line) error {
	if words[0] == "is" && len(words) > 1 {
		return boardLines["is "+words[1]]
	}
	return boardLines[words[0]]
}

func onBoard(do func(*trial, line, *pi.Board) error) func(*trial, int, line) error {
	return func(t *trial, n int, l line) error {
		b, err := t.Board(n)
		if err != nil {
			return err
		}
		return do(t, l, b)
	}
}

// Do does what a line says to boards.
func (t *trial) Do(boards []int, within time.Duration, words, quoted []string) (known bool, err error) {
	do := boardLine(words)
	for i := 0; i < len(boards) && do != nil && err == nil; i++ {
		err = do(t, boards[i], line{within, words, quoted})
	}
	return do != nil, err
}

// Line does what a line says that is about no board.
func (t *trial) Line(words, _ []string) (known bool, err error) {
	switch words[0] {
	case "configure":
		return true, t.lab.Configure(t.Ctx)
	case "outage":
		return true, t.outage(words[1:])
	}
	return false, nil
}

// Named are the boards of a name that the scene has.
func (t *trial) Named(name string) (numbers []int, known bool) {
	leader, heir := 2, 3
	if t.emulated < several {
		leader, heir = heir, leader
	}
	emulated := []int{1, 2, 3}[trialBoards-t.emulated:]
	numbers, known = map[string][]int{
		"pi1": {1}, "pi2": {2}, "pi3": {3}, "leader": {leader}, "heir": {heir}, "emulated": emulated, "first": emulated[:1],
	}[name]
	return numbers, known
}

// outage is how long nobody answered at the address, once it has been seen to be answered again.
func (t *trial) outage(limits []string) (err error) {
	report := t.Asker.Report(t.Marked)
	longest := report.Longest.Duration()
	limit := longest
	if len(limits) > 0 {
		limit, err = time.ParseDuration(limits[0])
	}
	switch {
	case report.First.Board == 0:
		return fmt.Errorf("nobody answered pings to %s for %s", pi.Floating, longest)
	case longest > limit:
		return errors.Join(err, fmt.Errorf("nobody answered pings to %s for %s, want at most %s", pi.Floating, longest, limit))
	}
	t.details = append(t.details, fmt.Sprintf("no answer to pings for %.2f s at most", longest.Seconds()))
	return nil
}

// againError says why what the step has seen proves nothing.
type againError string

func (e againError) Error() string { return string(e) }

func (t *trial) sh(n int, l line) error {
	out, err := t.Run(n, l.quoted[0])
	for _, want := range l.quoted[1:] {
		if err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("%s: %s says %q, want %q", scene.Name(n), l.quoted[0], out, want)
		}
	}
	if err != nil && len(l.words) > 1 { // or again
		err = fmt.Errorf("%w: %w", againError("a board stood still"), err)
	}
	return err
}

// give has a board lead. One that stands still has lost the lead before it could resign, and refuses.
func (t *trial) give(n int, l line) (err error) {
	lack := t.Until(l.within, func() string {
		holders := t.Holders()
		if slices.Equal(holders, []int{n}) {
			return ""
		}
		if len(holders) == 1 {
			_, err = t.Topdog(holders[0], []string{"resign"})
		}
		return fmt.Sprintf("it does not lead after %s", l.within)
	})
	if lack != "" {
		return errors.Join(errors.New(lack), err)
	}
	return nil
}

// seen waits until a board leads in the eyes of everybody outside.
func (t *trial) seen(n int, l line) (err error) {
	var without []int
	if i := slices.Index(l.words, "without"); i > 0 {
		without, _ = t.Named(l.words[i+1])
	}
	var view pi.View
	lack := t.Until(l.within, func() string {
		// To ask for the address takes a ninth of the time of a look at the lights, which asks again.
		if holders := t.Holders(); l.within > 0 && !slices.Equal(holders, []int{n}) {
			return fmt.Sprintf("address on %v", holders)
		}
		if view, err = t.Look(without...); err != nil || view.Leads(n) {
			return ""
		}
		return view.String()
	})
	if lack != "" {
		return fmt.Errorf("want %s alone with the address and the leader's light; still after %s: %s", scene.Name(n), l.within, lack)
	}
	t.details = append(t.details, view.String())
	return err
}

// dark looks for a while, from outside, at all lines of a board.
func (t *trial) dark(_ line, b *pi.Board) error {
	pins := []pi.Pin{pi.GPIO17, pi.ACT}
	watches, err := b.WatchLights(t.Ctx, pi.WatchTime, pins...)
	for i, w := range watches {
		if w.Pattern() != gpio.Off {
			err = fmt.Errorf("%s of %s is not dark: %s", pins[i], b.Name(), w)
		}
	}
	return err
}

// lit looks once. The light of a leader is on nine tenths of the time.
func (t *trial) lit(_ line, b *pi.Board) error {
	watches, err := b.WatchLights(t.Ctx, 0, b.Light())
	if err == nil && !watches[0].Now {
		err = againError("the leader's light was dark")
	}
	return err
}
