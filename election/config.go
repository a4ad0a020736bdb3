package election

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"topdog/election/silence"
	"topdog/wire"
)

// Config is what a core must know of its board.
type Config struct {
	ID          wire.ID
	Incarnation wire.Incarnation
	Name        string // for people, printable UTF-8, at most wire.MaxName bytes

	// Priority is 1…MaxPriority; the higher one is preferred. 0 never leads.
	Priority uint8
	// Preempt makes a board ask a leader of lower rank for the lead. Without it
	// the incumbent stays, and the address moves only when it must.
	Preempt bool
	// PreemptDelay is for how long such a board follows before it asks for the first time if no other
	// board outranks it; 0 is 20 intervals, see CheckPreemptDelay.
	PreemptDelay time.Duration
	// TakeInUse makes a board that has found a foreign machine with the address at a cold start
	// claim nevertheless, when that has lasted for TakeInUseAfter.
	TakeInUse bool
	// Interval is the time between two heartbeats, H; see CheckInterval.
	Interval  time.Duration
	Algorithm wire.Algorithm
	// Watch is the time between two questions to the address of the leader, see Core.Watch; 0 is DefaultWatch, and NoWatch none.
	// See CheckWatch.
	Watch time.Duration
	// Patience is the longest grace that the board may learn; 0 is DefaultPatience, see CheckPatience.
	Patience time.Duration

	// SecondPath says that the board has a second path to the others, see second.go.
	SecondPath bool
	// Several says that the board is in other groups too. Then a leader says HELLO half as often, see Core.helloInterval.
	Several bool

	// Detector is the failure detector; zero is the one that suits the algorithm.
	Detector silence.DetectorKind
	// Fanout says how a message to several boards travels.
	Fanout Fanout
	// ScoreSource is what the algorithm score compares.
	ScoreSource ScoreSource
	// Voters lists the boards whose majority a leader of the algorithm strict needs, see
	// CheckVoters. A board that is not in it follows, and neither votes nor leads. It is the
	// same on all boards. With other algorithms it is empty.
	Voters []wire.ID
	// Members lists boards that belong to the group even if they have never been
	// heard. The literature assumes that all know all; without the list a board
	// knows those it has heard. At most wire.MaxBoards.
	Members []wire.ID
}

func (c *Config) validate(votes bool) error {
	if err := CheckInterval(c.Interval); err != nil {
		return fmt.Errorf("election: the heartbeat interval %v %w", c.Interval, err)
	}
	if c.Patience != 0 {
		if err := CheckPatience(c.Patience, c.Interval); err != nil {
			return fmt.Errorf("election: the patience %v %w", c.Patience, err)
		}
	}
	if c.Watch != 0 && c.Watch != NoWatch {
		if err := CheckWatch(c.Watch, c.Interval); err != nil {
			return fmt.Errorf("election: the time between two questions to the address, %v, %w", c.Watch, err)
		}
	}
	if c.PreemptDelay != 0 {
		if err := CheckPreemptDelay(c.PreemptDelay); err != nil {
			return fmt.Errorf("election: the delay before it preempts, %v, %w", c.PreemptDelay, err)
		}
	}
	if votes {
		if err := CheckVoters(c.Voters); err != nil {
			return fmt.Errorf("election: the list of voters %w", err)
		}
	}
	switch {
	case !votes && len(c.Voters) > 0:
		return fmt.Errorf("election: there are voters, and the algorithm %v has no votes", c.Algorithm)
	case c.ID == wire.Nobody:
		return errors.New("election: a board needs an id other than 0")
	case c.Priority > MaxPriority:
		return fmt.Errorf("election: the priority must be at most %d, is %d", MaxPriority, c.Priority)
	case len(c.Name) > wire.MaxName:
		return fmt.Errorf("election: the name %q is longer than %d bytes", c.Name, wire.MaxName)
	case len(c.Members) > wire.MaxBoards:
		return fmt.Errorf("election: a group has at most %d boards, not %d", wire.MaxBoards, len(c.Members))
	case !c.Detector.Valid(), c.Fanout >= fanoutCount, c.ScoreSource >= scoreSourceCount:
		return errors.New("election: no such detector, fanout or score source")
	case !wire.NameFits(c.Name):
		// A HELLO with it could not be sent, so nobody would know this board.
		return fmt.Errorf("election: the name %+q is not printable UTF-8", c.Name)
	}
	return nil
}

// The bounds and defaults of a [Config].
const (
	MinInterval     = 10 * time.Millisecond
	MaxInterval     = 10 * time.Second
	DefaultInterval = 100 * time.Millisecond

	MaxPatience = wire.MaxGrace / time.Minute * time.Minute // whole minutes that fit into the byte of a grace

	// MinPreemptDelay is as short as an interval may be, and MaxPreemptDelay more than the longest boot with
	// a check of the disk.
	MinPreemptDelay = MinInterval
	MaxPreemptDelay = time.Hour

	MaxPriority     = 254 // one byte on the wire; 255 is kept free
	DefaultPriority = 100 // what a board has that nobody gave another one
)

// CheckInterval says what is wrong with an interval between two heartbeats. The
// words follow the interval, as in "5ms is less than 10ms".
func CheckInterval(interval time.Duration) error {
	switch {
	case interval < MinInterval:
		return fmt.Errorf("is less than %v, which the boards' schedulers cannot keep", MinInterval)
	case interval > MaxInterval:
		return fmt.Errorf("is more than %v; a dead leader would go unnoticed for that long", MaxInterval)
	case interval%time.Millisecond != 0:
		return errors.New("is not a whole number of milliseconds, and messages carry whole milliseconds only")
	}
	return nil
}

// CheckPreemptDelay says what is wrong with a delay before a board asks a leader of lower rank for the lead.
// The words follow the delay, as in "2h is more than 1h0m0s".
func CheckPreemptDelay(delay time.Duration) error {
	return checkBetween(delay, MinPreemptDelay, MaxPreemptDelay)
}

func checkBetween(d, least, most time.Duration) error {
	switch {
	case d < least:
		return fmt.Errorf("is less than %v", least)
	case d > most:
		return fmt.Errorf("is more than %v", most)
	}
	return nil
}

// CheckPatience says what is wrong with the longest grace that may be learned, at that interval
// between two heartbeats. The words follow the patience, as in "9ms is less than 10ms".
func CheckPatience(patience, interval time.Duration) error {
	switch least := silence.DefaultGrace(interval); {
	case patience < least:
		return fmt.Errorf("is less than %v, for which every leader is waited for that sends a heartbeat every %v", least, interval)
	case patience > MaxPatience:
		return fmt.Errorf("is more than %v; a dead leader would be waited for that long", MaxPatience)
	}
	return nil
}

// MaxVoters bounds a list of voters: more would only make every heartbeat cost more.
const MaxVoters = 15

// CheckVoters says what is wrong with a list of voters. The words follow the list, as in
// "10.0.0.3, 10.0.0.3 has board 10.0.0.3 twice".
func CheckVoters(voters []wire.ID) error {
	switch {
	case len(voters) == 0:
		return fmt.Errorf("is empty: the algorithm %v needs a list of voters", wire.AlgorithmStrict)
	case len(voters) > MaxVoters:
		return fmt.Errorf("has %d voters, at most %d can be had", len(voters), MaxVoters)
	}
	for i, id := range voters {
		if id == wire.Nobody {
			return fmt.Errorf("has the id 0, which no board has")
		}
		if slices.Contains(voters[:i], id) {
			return fmt.Errorf("has board %v twice", id)
		}
	}
	return nil
}

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
