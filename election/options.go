package election

import (
	"fmt"
	"slices"
	"topdog/election/silence"
)

// detectorKind is the failure detector of this board.
func (c *Core) detectorKind() silence.DetectorKind { return c.cfg.Detector.Or(c.definition.Detector) }

// Fanout says how a message to several boards travels.
type Fanout uint8

// The ways. Heartbeats, HELLOs and whatever else is for everybody who listens
// are multicast either way.
const (
	FanoutMulticast Fanout = iota // one datagram, which the unconcerned ignore
	FanoutUnicast                 // one datagram for each board that it concerns
	fanoutCount
)

var fanoutNames = [fanoutCount]string{FanoutMulticast: "multicast", FanoutUnicast: "unicast"}

func (f Fanout) String() string { return name(fanoutNames[:], uint8(f), "fanout") }

// Fanouts returns the names of the ways, the default first.
func Fanouts() []string { return fanoutNames[:] }

// FanoutNamed returns the way of that name.
func FanoutNamed(s string) (Fanout, bool) {
	f, ok := named(fanoutNames[:], s)
	return Fanout(f), ok
}

// ScoreSource is what a board's score comes from, for the algorithm score.
type ScoreSource uint8

// The sources of the score.
const (
	ScoreFromPriority ScoreSource = iota // the configured priority
	ScoreFromAge                         // for how long the daemon runs, in seconds
	ScoreFromCommand                     // a number that the owner finds out, see Core.SetScore
	scoreSourceCount
)

var scoreSourceNames = [scoreSourceCount]string{
	ScoreFromPriority: "priority", ScoreFromAge: "age", ScoreFromCommand: "command",
}

func (s ScoreSource) String() string { return name(scoreSourceNames[:], uint8(s), "score source") }

// ScoreSources returns the names of the sources, the default first.
func ScoreSources() []string { return scoreSourceNames[:] }

// ScoreSourceNamed returns the source of that name.
func ScoreSourceNamed(s string) (ScoreSource, bool) {
	source, ok := named(scoreSourceNames[:], s)
	return ScoreSource(source), ok
}

func name(names []string, n uint8, kind string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("%s %d", kind, n)
}

func named(names []string, s string) (int, bool) {
	i := slices.Index(names, s)
	return max(i, 0), i >= 0
}
