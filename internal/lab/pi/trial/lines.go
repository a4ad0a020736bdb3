package trial

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"topdog/gpio"
	"topdog/internal/lab/pi"
	"topdog/internal/lab/scene"
)

// Named are the boards of a name that the scene has.
func (t *trial) Named(name string) (numbers []int, known bool) {
	leader, heir := 2, 3
	if t.Emulated < several {
		leader, heir = heir, leader
	}
	var emulated []int
	for n := boards - t.Emulated + 1; n <= boards; n++ {
		emulated = append(emulated, n)
	}
	numbers, known = map[string][]int{"leader": {leader}, "heir": {heir}, "emulated": emulated, "first": emulated[:1]}[name]
	return numbers, known
}

// Line does what a line says that is about no board.
func (t *trial) Line(words, _ []string) (known bool, err error) {
	do := lines[words[0]]
	if do == nil {
		return false, nil
	}
	return true, do(t, words[1:])
}

// Do does what a line says to boards.
func (t *trial) Do(boards []int, within time.Duration, words, quoted []string) (known bool, err error) {
	do, rest := boardLine(words)
	if do == nil {
		return false, nil
	}
	return true, do(t, line{boards, within, rest, quoted})
}

// boardLine returns what words after boards do, if they are the trial's own, and the words after the verb.
func boardLine(words []string) (do func(*trial, line) error, rest []string) {
	verb := 1
	if words[0] == "is" && len(words) > 1 {
		verb = 2
	}
	return boardLines[strings.Join(words[:verb], " ")], words[verb:]
}

// line is a line that is about boards.
type line struct {
	boards []int
	within time.Duration // 0: it must hold at once
	words  []string      // those after the verb
	quoted []string
}

// lines are the scene's own, beside those that every scene has:
//
//	configure            give the boards their configuration, and start them
//	outage 2s            nobody has answered for at most so long since the line mark, and somebody does; without a time, for however long
//	unchanged            the command of the line remember says the same as then; or again: otherwise the step begins anew
//	pi3 sh "…" "…"       a command that succeeds, and says what comes after it
//	pi3 remember "…"     keep what a command says
//	pi3 gets the lead    it is the heir of each that may lead instead
//	pi3 is seen to lead  in the eyes of everybody outside; without pi2: its light does not matter
//	pi3 is dark          it shows no light, and says itself that it lacks the address
//	pi3 is off           it has ended
//	pi3 kill-while-lit   SIGKILL of its processes while its light is on
var (
	lines = map[string]func(t *trial, words []string) error{
		"configure": func(t *trial, _ []string) error { return t.lab.Configure(t.Ctx) },
		"outage":    (*trial).outage,
		"unchanged": (*trial).unchanged,
	}
	boardLines = map[string]func(*trial, line) error{
		"sh":             (*trial).sh,
		"remember":       (*trial).keep,
		"gets":           (*trial).give,
		"is seen":        (*trial).seen,
		"is dark":        onEach((*trial).isDark),
		"is off":         onEach((*trial).isOff),
		"kill-while-lit": onEach((*trial).killWhileLit),
	}
)

// onEach does something with all boards of a line at the same time.
func onEach(do func(*trial, line, *pi.Board) error) func(*trial, line) error {
	return func(t *trial, l line) error {
		var g errgroup.Group
		for _, n := range l.boards {
			g.Go(func() error {
				b, err := t.Board(n)
				if err == nil {
					err = do(t, l, b)
				}
				return err
			})
		}
		return g.Wait()
	}
}

// outage is how long nobody answered at the address, once it has been seen to be answered again.
func (t *trial) outage(words []string) error {
	report := t.Asker.Report(t.Marked)
	longest := report.Longest.Duration()
	if report.First.Board == 0 {
		return fmt.Errorf("nobody answered pings to %s for %s", pi.Floating, longest)
	}
	if len(words) > 0 {
		limit, err := time.ParseDuration(words[0])
		if err != nil || longest > limit {
			return errors.Join(err, fmt.Errorf("nobody answered pings to %s for %s, want at most %s", pi.Floating, longest, limit))
		}
	}
	t.details = append(t.details, fmt.Sprintf("no answer to pings for %.2f s at most", longest.Seconds()))
	return nil
}

func (t *trial) sh(l line) error {
	return onEach(func(t *trial, _ line, b *pi.Board) error {
		out, err := t.Run(b.N, l.quoted[0])
		for _, want := range l.quoted[1:] {
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("%s: %s says %q, want %q", b.Name(), l.quoted[0], out, want)
			}
		}
		return err
	})(t, l)
}

// keep keeps what a command says on boards. One after the other: three busy boards at once would pause for too long.
func (t *trial) keep(l line) (err error) {
	t.remember = func() (string, error) {
		var text strings.Builder
		for _, n := range l.boards {
			out, err := t.Run(n, l.quoted[0])
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&text, "%s:\n%s", scene.Name(n), out)
		}
		return text.String(), nil
	}
	t.said, err = t.remember()
	return err
}

// errAgain says that what the step has seen proves nothing.
var errAgain = errors.New("a board stood still")

func (t *trial) unchanged(words []string) error {
	said, err := t.remember()
	if err != nil || said == t.said {
		return err
	}
	err = fmt.Errorf("something happened (-before +after):\n%s", cmp.Diff(t.said, said))
	if len(words) > 0 {
		err = fmt.Errorf("%w: %w", errAgain, err)
	}
	return err
}

// give has a board lead. One that stands still has lost the lead before it could resign, and refuses.
func (t *trial) give(l line) error {
	n := l.boards[0]
	var refused error
	lack := t.Until(l.within, func() string {
		holders := t.Holders()
		if slices.Equal(holders, []int{n}) {
			return ""
		}
		if len(holders) == 1 {
			_, refused = t.Topdog(holders[0], []string{"resign"})
		}
		return fmt.Sprintf("it does not lead after %s", l.within)
	})
	if lack != "" {
		return errors.Join(errors.New(lack), refused)
	}
	return nil
}

// seen waits until a board leads in the eyes of everybody outside. The lights of some boards may not matter.
func (t *trial) seen(l line) (err error) {
	n := l.boards[0]
	var without []int
	if i := slices.Index(l.words, "without"); i >= 0 { // without pi3
		if without, err = t.numbers(l.words[i+1]); err != nil {
			return err
		}
	}
	var view pi.View
	lack := t.Until(l.within, func() string {
		// To ask for the address takes a ninth of the time of a look at the lights, which asks again.
		if holders := t.Holders(); l.within > 0 && !slices.Equal(holders, []int{n}) {
			return fmt.Sprintf("address on %v", holders)
		}
		if view, err = t.lab.Look(t.Ctx, t.Prober, without...); err != nil || view.Leads(n) {
			return ""
		}
		return view.String()
	})
	if lack != "" {
		return fmt.Errorf("want pi%d alone with the address and the leader's light; still after %s: %s", n, l.within, lack)
	}
	t.details = append(t.details, view.String())
	return err
}

// numbers are those of a board, or of those of a name.
func (t *trial) numbers(name string) (numbers []int, err error) {
	numbers, known := t.Named(name)
	if !known {
		numbers = make([]int, 1)
		_, err = fmt.Sscanf(name, "pi%d", &numbers[0])
	}
	return numbers, err
}

func (t *trial) isOff(l line, b *pi.Board) error { return b.AwaitOff(t.Ctx, l.within) }

// isDark looks for a while, from outside, at all lines of a board. Whoever calls it has seen another board answer, and that one
// alone.
func (t *trial) isDark(_ line, b *pi.Board) error {
	pins := []pi.Pin{pi.GPIO17, pi.ACT}
	watches, err := b.WatchLights(t.Ctx, pi.WatchTime, pins...)
	if err != nil {
		return err
	}
	for i, w := range watches {
		if w.Pattern() != gpio.Off {
			return fmt.Errorf("%s of %s is not dark: %s", pins[i], b.Name(), w)
		}
	}
	out, err := t.Run(b.N, "ip -br addr; ip -br link")
	if err == nil && (strings.Contains(out, pi.Floating.String()+"/") || strings.Contains(out, "topdog")) {
		err = fmt.Errorf("%s still has the address, or a device of topdog's:\n%s", b.Name(), out)
	}
	return err
}

// killWhileLit kills the daemon while its light is on. The daemon is stopped
// first, so that the light does not change between the look and the kill.
func (t *trial) killWhileLit(_ line, b *pi.Board) error {
	for range 10 {
		if err := t.Signal(b.N, scene.Everything, scene.Freeze); err != nil {
			return err
		}
		watches, err := b.WatchLights(t.Ctx, 0, b.Light())
		if err != nil {
			return err
		}
		if watches[0].Now {
			return t.Signal(b.N, scene.Everything, scene.Kill)
		}
		if err := t.Signal(b.N, scene.Everything, scene.Thaw); err != nil {
			return err
		}
	}
	return errors.New("the leader's light was dark at ten looks: it is lit nine tenths of the time")
}
