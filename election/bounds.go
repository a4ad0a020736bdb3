package election

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"topdog/election/silence"
	"topdog/wire"
)

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
