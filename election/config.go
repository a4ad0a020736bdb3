package election

import (
	"errors"
	"fmt"
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
	// Patience is the longest grace that the board may learn; 0 is DefaultPatience, see CheckPatience.
	Patience time.Duration

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

func (c *Config) validate() error {
	if err := CheckInterval(c.Interval); err != nil {
		return fmt.Errorf("election: the heartbeat interval %v %w", c.Interval, err)
	}
	if c.Patience != 0 {
		if err := CheckPatience(c.Patience, c.Interval); err != nil {
			return fmt.Errorf("election: the patience %v %w", c.Patience, err)
		}
	}
	if c.PreemptDelay != 0 {
		if err := CheckPreemptDelay(c.PreemptDelay); err != nil {
			return fmt.Errorf("election: the delay before it preempts, %v, %w", c.PreemptDelay, err)
		}
	}
	switch {
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

func (c *Config) checkVoters(definition Definition) error {
	if !definition.votes {
		if len(c.Voters) > 0 {
			return fmt.Errorf("election: there are voters, and the algorithm %v has no votes", c.Algorithm)
		}
		return nil
	}
	if err := CheckVoters(c.Voters); err != nil {
		return fmt.Errorf("election: the list of voters %w", err)
	}
	return nil
}
