package gpio

import (
	"fmt"
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

// blink lists durations in turn lit and dark.
func blink(durations ...time.Duration) []Step {
	steps := make([]Step, len(durations))
	for i, d := range durations {
		steps[i] = Step{On: i%2 == 0, For: d}
	}
	return steps
}

// patterns holds one period of each. Each begins lit (but Off), so that a
// change of role shows at once and not after what is left of a dark phase. No
// step is shorter than 50 ms: about the shortest flash that everybody notices
// in daylight, and more than a busy Pi Zero's scheduler takes away.
var patterns = [...][]Step{
	Off: {{On: false}},

	// One short blink every two seconds shows that the board is alive. A rack of twenty
	// followers must not draw more attention than its leader.
	Follower: blink(50*time.Millisecond, 1950*time.Millisecond),

	// As fast as it can be seen. An election lasts milliseconds, so people see this only
	// when one goes on for too long, which is when it matters.
	Election: blink(50*time.Millisecond, 50*time.Millisecond),

	// Lit for nine tenths, with a gap each second. A steady light could be a dead
	// leader's: Raspberry Pi kernels keep a line driven after its process died, and a
	// frozen board keeps its light too. Only a running program makes a pulse.
	Leader: blink(900*time.Millisecond, 100*time.Millisecond),

	// Three slow blinks and a rest, as most appliances count out an error.
	Fault: blink(
		300*time.Millisecond, 300*time.Millisecond,
		300*time.Millisecond, 300*time.Millisecond,
		300*time.Millisecond, 1500*time.Millisecond),
}

var patternNames = [...]string{"off", "follower", "election", "leader", "fault"}

// Steps gives one period of the pattern, to be repeated, unless its only step
// is for good. The caller must not change it. A value that is no pattern shows
// as Fault: it is one.
func (p Pattern) Steps() []Step {
	if int(p) >= len(patterns) {
		p = Fault
	}
	return patterns[p]
}

func (p Pattern) String() string {
	if int(p) >= len(patternNames) {
		return fmt.Sprintf("Pattern(%d)", uint8(p))
	}
	return patternNames[p]
}

// Looks says in words what the light does, for people who stand before it.
func (p Pattern) Looks() string {
	if int(p) >= len(patternLooks) {
		p = Fault
	}
	return patternLooks[p]
}

var patternLooks = [...]string{
	Off:      "dark",
	Follower: "a short blink every 2 s",
	Election: "a quick flicker",
	Leader:   "lit, with a short gap every second",
	Fault:    "three blinks and a pause",
}
