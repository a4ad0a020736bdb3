package gpio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Pattern is what the light says about the board.
type Pattern uint8

// The patterns can be told apart from across a room, by someone who knows only that
// one of the boards is the leader: mostly lit, mostly dark, flickering, or none of these.
const (
	Off      Pattern = iota // topdog does not run, or is on its way out
	Follower                // alive, and not the leader
	Election                // the leader is being asked for or elected
	Leader                  // this board holds the address
	Fault                   // this board cannot take part; its log says why
)

// Step is a piece of a pattern: the light is on or off for that long.
type Step struct {
	On  bool
	For time.Duration // 0: for good
}

// blink returns steps of these durations, in turn lit and dark.
func blink(durations ...time.Duration) []Step {
	steps := make([]Step, len(durations))
	for i, d := range durations {
		steps[i] = Step{On: i%2 == 0, For: d}
	}
	return steps
}

// patterns has one period of each. All but Off begin lit, so that a change of role
// shows at once and not after the rest of a dark phase. No step is shorter than
// 50 ms: about the shortest flash that everybody notices in daylight, and longer
// than the scheduler of a busy Pi Zero delays a program.
var patterns = [...]struct {
	name, looks string
	steps       []Step
}{
	Off: {"off", "dark", []Step{{On: false}}},

	// One short blink every two seconds shows that the board is alive. A rack of twenty
	// followers must not draw more attention than its leader.
	Follower: {"follower", "a short blink every 2 s", blink(50*time.Millisecond, 1950*time.Millisecond)},

	// As fast as it can be seen. An election lasts milliseconds, so people see this only
	// when one goes on for too long, which is when it matters.
	Election: {"election", "a quick flicker", blink(50*time.Millisecond, 50*time.Millisecond)},

	// Lit for nine tenths, with a gap each second. A steady light could be a dead
	// leader's: Raspberry Pi kernels keep a line driven after its process died, and a
	// frozen board keeps its light too. Only a running program makes a pulse.
	Leader: {"leader", "lit, with a short gap every second", blink(900*time.Millisecond, 100*time.Millisecond)},

	// Three slow blinks and a rest, as most appliances count out an error.
	Fault: {"fault", "three blinks and a pause", blink(
		300*time.Millisecond, 300*time.Millisecond,
		300*time.Millisecond, 300*time.Millisecond,
		300*time.Millisecond, 1500*time.Millisecond)},
}

// Steps returns one period of the pattern, to be repeated, unless its only step
// is for good. The caller must not change it.
func (p Pattern) Steps() []Step { return patterns[p].steps }

// Looks says in words what the light does, for people who look at it.
func (p Pattern) Looks() string { return patterns[p].looks }

func (p Pattern) String() string { return patterns[p].name }

// walkOrder begins with the pattern that people look for.
var walkOrder = []Pattern{Leader, Follower, Election, Fault, Off}

// Walk shows every pattern on the light for the time each, names it on out, and closes
// the light at the end.
func Walk(ctx context.Context, out io.Writer, led LED, each time.Duration) error {
	fmt.Fprintf(out, "%s, each pattern for %v:\n", led, each)
	for _, p := range walkOrder {
		fmt.Fprintf(out, "  %-9s %s\n", p, p.Looks())
		if err := showFor(ctx, led, p, each); err != nil {
			return errors.Join(err, led.Close())
		}
	}
	if err := led.Close(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "done; the light is what it was before")
	return err
}

// showFor shows a pattern for that long.
func showFor(ctx context.Context, led LED, p Pattern, each time.Duration) error {
	over := time.After(each)
	for i := 0; ; i++ {
		step := p.Steps()[i%len(p.Steps())]
		if err := led.Set(step.On); err != nil {
			return err
		}
		var next <-chan time.Time // nil for a step that is for good
		if step.For > 0 {
			next = time.After(step.For)
		}
		select {
		case <-next:
		case <-over:
			return nil
		case <-ctx.Done():
			return errors.New("interrupted; the light was put out")
		}
	}
}
