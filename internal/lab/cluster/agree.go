package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"topdog/internal/console"
)

const (
	// Timeout is how long to wait for what must happen. On a quiet machine everything
	// takes a second or two.
	Timeout = 20 * time.Second
	// pollInterval is how often Until looks. To ask a board takes a millisecond of processor, half of it the board's.
	pollInterval = 25 * time.Millisecond
)

// Until waits until nothing is missing any more. missing says what is, in words.
func Until(what string, missing func() string) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	deadline := time.After(Timeout)
	for {
		lack := missing()
		if lack == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("%s: not within %v: %s", what, Timeout, lack)
		}
	}
}

// Agreed returns the leader that all members agree on: by their status they know each other and
// it, and by the kernels it alone has the address. Otherwise the error says what is missing.
func (c *Cluster) Agreed(members []*Topdog) (leader *Topdog, err error) {
	for _, t := range members {
		named, err := t.follows(members)
		if err != nil {
			return nil, err
		}
		if leader != nil && named != leader {
			return nil, fmt.Errorf("%s follows %s, %s follows %s", members[0], leader, t, named)
		}
		leader = named
	}
	if leader == nil {
		return nil, errors.New("there is nobody to agree")
	}
	if holders := c.Holders.Current(); !slices.Equal(holders, []int{leader.Number}) {
		return nil, fmt.Errorf("all follow %s, and the address is on %v", leader, holders)
	}
	return leader, nil
}

// AwaitAgreed waits until the members agree on a leader, and returns it.
func (c *Cluster) AwaitAgreed(members []*Topdog) (leader *Topdog, err error) {
	err = Until("the boards agree on a leader", func() string {
		var lack error
		if leader, lack = c.Agreed(members); lack != nil {
			return lack.Error()
		}
		return ""
	})
	return leader, err
}

// follows returns which of the members the daemon follows, itself included, if it knows all of them.
func (t *Topdog) follows(members []*Topdog) (*Topdog, error) {
	s, err := t.Status()
	if err != nil {
		return nil, err
	}
	if !s.Held() {
		return nil, fmt.Errorf("%s (%s, because %s) sees no holder", t, s.Role, s.Reason)
	}
	i := slices.IndexFunc(members, func(other *Topdog) bool { return other.String() == s.LeaderName })
	if i < 0 {
		return nil, fmt.Errorf("%s follows %q (%s)", t, s.LeaderName, s.Leader)
	}
	if leads := members[i] == t; s.Holding != leads {
		return nil, fmt.Errorf("%s follows %s and Holding is %v", t, s.LeaderName, s.Holding)
	}
	for _, other := range members {
		if !knows(s, other) {
			return nil, fmt.Errorf("%s does not know %s", t, other)
		}
	}
	return members[i], nil
}

// knows reports whether a status shows a daemon as alive.
func knows(s console.Status, other *Topdog) bool {
	return slices.ContainsFunc(s.Boards, func(b console.Board) bool {
		return b.Name == other.String() && !b.Stale && !b.Gone
	})
}
