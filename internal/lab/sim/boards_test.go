package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// interval is H in these tests, unless they say otherwise.
const interval = 100 * time.Millisecond

// latency is how long a datagram takes on a wire without surprises, which is quick.
const latency = 200 * time.Microsecond

var quick = sim.Wire{Delay: sim.Constant(latency)}

// lanWire is a LAN of small boards: a tenth to a third of a millisecond to and fro.
func lanWire(loss float64) sim.Wire {
	return sim.Wire{Delay: sim.Uniform(50*time.Microsecond, 150*time.Microsecond), Loss: loss}
}

// config is of a board that differs from the others in nothing but its id.
func config(id wire.ID, a wire.Algorithm, change ...func(*election.Config)) election.Config {
	cfg := election.Config{ID: id, Priority: 100, Interval: interval, Algorithm: a}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// every sets another interval than the usual one.
func every(h time.Duration) func(*election.Config) {
	return func(cfg *election.Config) { cfg.Interval = h }
}

// crowd returns a LAN with boards 1…n that run.
func crowd(seed uint64, w sim.Wire, n int, a wire.Algorithm, change ...func(*election.Config)) *sim.Sim {
	lan := sim.New(seed, w)
	for id := range wire.ID(n) {
		lan.Add(config(id+1, a, change...)).Start()
	}
	return lan
}

// settled returns a LAN on which boards 1…n of one algorithm have agreed on the last one.
func settled(t testing.TB, w sim.Wire, n int, a wire.Algorithm, change ...func(*election.Config)) *sim.Sim {
	t.Helper()
	lan := crowd(1, w, n, a, change...)
	lan.Run(10 * time.Second)
	leads(t, lan.Boards(), wire.ID(n))
	return lan
}

// leader returns the one leader that all boards agree on, which is the one
// holder of the address. It says what is wrong if there is none.
func leader(boards []*sim.Board) (*sim.Board, error) {
	var leader *sim.Board
	for _, b := range boards {
		s, ok := b.Status()
		switch {
		case !ok:
			return nil, fmt.Errorf("board %s is not running", b.Label)
		case s.Role == election.Leader && leader != nil:
			return nil, fmt.Errorf("boards %s and %s both lead", leader.Label, b.Label)
		case s.Role == election.Leader:
			leader = b
		case s.Role != election.Follower:
			return nil, fmt.Errorf("board %s is still a %v", b.Label, s.Role)
		}
		if b.Holding() != (s.Role == election.Leader) {
			return nil, fmt.Errorf("board %s is a %v; that it holds the address is %v", b.Label, s.Role, b.Holding())
		}
	}
	if leader == nil {
		return nil, fmt.Errorf("nobody leads")
	}
	for _, b := range boards {
		if s, _ := b.Status(); s.Leader != leader.Config.ID || b.Leader() != leader.Config.ID {
			return nil, fmt.Errorf("board %s follows %v, and last said %v, not %s", b.Label, s.Leader, b.Leader(), leader.Label)
		}
	}
	return leader, nil
}

// leads ends the test unless these boards agree that this one of them leads.
func leads(t tester, boards []*sim.Board, want wire.ID) {
	t.Helper()
	if lead, err := leader(boards); err != nil || lead.Config.ID != want {
		t.Fatalf("%v leads, want board %v: %v", lead, want, err)
	}
}

// holder returns the one board that holds the address.
func holder(t testing.TB, lan *sim.Sim) *sim.Board {
	t.Helper()
	holders := lan.Summarise(lan.Now()).Holders
	if len(holders) != 1 {
		t.Fatalf("%v hold the address", labels(holders))
	}
	return holders[0]
}

// leading returns the board that leads, as a list.
func leading(lan *sim.Sim) (boards []*sim.Board) {
	for _, b := range lan.Boards() {
		if b.Role() == election.Leader {
			boards = append(boards, b)
		}
	}
	return boards
}

func labels(boards []*sim.Board) []string {
	var labels []string
	for _, b := range boards {
		labels = append(labels, b.Label)
	}
	slices.Sort(labels)
	return labels
}

// each does something to all boards.
func each(lan *sim.Sim, do func(*sim.Board)) {
	for _, b := range lan.Boards() {
		do(b)
	}
}

// burst lets nothing pass from and to some boards for a while.
func burst(lan *sim.Sim, boards []*sim.Board, d time.Duration) {
	for _, b := range boards {
		mute(lan, b)
	}
	lan.Run(d)
	for _, b := range boards {
		unmute(lan, b)
	}
}

// pause lets the processes of some boards stand still.
func pause(lan *sim.Sim, boards []*sim.Board, d time.Duration) {
	for _, b := range boards {
		b.Freeze()
	}
	lan.Run(d)
	for _, b := range boards {
		b.Thaw()
	}
}

// packets are all that were sent since the last reset.
func packets(lan *sim.Sim) (n int) {
	for _, k := range lan.Counts {
		n += k.Packets
	}
	return n
}
