package sim_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/sim"
	"topdog/wire"
)

// The tests in this file make up schedules of faults, one per seed, and look at
// what must be true whatever happened. A seed replays its schedule:
//
//	TOPDOG_SEED=17 go test ./election/sim -run TestHeals -v
//
// shows all that the boards did, and TOPDOG_SCHEDULES=5000 plays that many of
// each kind instead of the few that an ordinary run has time for.

// interval is H in all these tests.
const interval = 100 * time.Millisecond

// seeds calls play once per seed: with those that found a defect once, which are
// listed in regressions, and then with the first ones.
func seeds(t *testing.T, ordinary int, regressions []uint64, play func(t *testing.T, seed uint64)) {
	t.Helper()
	run := func(seed uint64) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { play(t, seed) })
	}
	if seed := number(t, "TOPDOG_SEED", 0); seed != 0 {
		run(uint64(seed))
		return
	}
	for _, seed := range regressions {
		run(seed)
	}
	for seed := range number(t, "TOPDOG_SCHEDULES", ordinary) {
		run(uint64(seed + 1))
	}
}

// number reads an environment variable.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	s, ok := os.LookupEnv(variable)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// fault is something that happens to one board of a schedule.
type fault struct {
	name string
	do   func(s *schedule, b *sim.Board)
}

// clean are the faults that a board notices itself, or that end its process:
// none of them may ever make two holders on a wire that loses nothing.
var clean = []fault{
	{"crash", func(_ *schedule, b *sim.Board) { b.Crash() }},
	{"start", func(_ *schedule, b *sim.Board) { b.Start() }},
	{"start", func(_ *schedule, b *sim.Board) { b.Start() }},
	{"pull", func(_ *schedule, b *sim.Board) { b.Pull() }},
	{"plug", func(_ *schedule, b *sim.Board) { b.Plug() }},
	{"plug", func(_ *schedule, b *sim.Board) { b.Plug() }},
	{"stop", func(_ *schedule, b *sim.Board) { b.Stop() }},
	{"resign", func(_ *schedule, b *sim.Board) { _ = b.Resign() }}, // an error if it does not lead, which is fine
}

// dirty are the others.
var dirty = append([]fault{
	{"mute", func(_ *schedule, b *sim.Board) { b.Mute() }},
	{"unmute", func(_ *schedule, b *sim.Board) { b.Unmute() }},
	{"freeze", func(s *schedule, b *sim.Board) {
		b.Freeze()
		s.lan.At(time.Duration(s.rng.Int64N(int64(3*time.Second))), b.Thaw)
	}},
	{"deafen", func(s *schedule, b *sim.Board) { b.Deafen(s.any().Config.ID) }},
	{"undeafen", func(s *schedule, b *sim.Board) {
		for _, other := range s.lan.Boards() {
			b.Undeafen(other.Config.ID)
		}
	}},
	{"reprioritise", func(s *schedule, b *sim.Board) {
		b.Reprioritise(uint8(s.rng.IntN(4)*50), s.rng.IntN(4) == 0)
	}},
}, clean...)

// schedule is one run: a LAN with boards, and what shall happen to them. What
// happens is drawn from another source than the wire's luck, so that a change of
// the core changes as little as possible of what a seed means.
type schedule struct {
	lan   *sim.Sim
	rng   *rand.Rand
	trace strings.Builder
}

func newSchedule(t *testing.T, seed uint64, algorithm wire.Algorithm, w sim.Wire) *schedule {
	t.Helper()
	s := &schedule{lan: sim.New(seed, w), rng: rand.New(rand.NewPCG(seed, 1))}
	if testing.Verbose() && os.Getenv("TOPDOG_SEED") != "" {
		s.lan.Trace = func(e sim.Event) { fmt.Fprintln(&s.trace, e.Text()) }
		t.Cleanup(func() { t.Log("\n" + s.trace.String()) })
	}
	for id := range wire.ID(2 + s.rng.IntN(6)) {
		b := s.lan.Add(election.Config{
			ID: id + 1, Priority: uint8(50 + 50*s.rng.IntN(3)), Preempt: s.rng.IntN(4) == 0,
			Interval: interval, Algorithm: algorithm,
		})
		s.lan.At(time.Duration(s.rng.Int64N(int64(time.Second))), b.Start)
	}
	return s
}

// any draws a board.
func (s *schedule) any() *sim.Board {
	boards := s.lan.Boards()
	return boards[s.rng.IntN(len(boards))]
}

// misfortune lets some seconds pass in which faults happen.
func (s *schedule) misfortune(faults []fault) {
	for range 5 + s.rng.IntN(25) {
		s.lan.Run(time.Duration(s.rng.ExpFloat64() * float64(300*time.Millisecond)))
		f := faults[s.rng.IntN(len(faults))]
		f.do(s, s.any())
	}
}

// stopsWithin is how long a board that was told to stop may wait for its successor.
const stopsWithin = 300 * time.Millisecond

// heal ends all faults, and lets pass the time within which all must be well.
func (s *schedule) heal() {
	s.lan.SetWire(sim.Wire{Latency: 200 * time.Microsecond})
	eligible := false
	for _, b := range s.lan.Boards() {
		b.Plug()
		b.Unmute()
		for _, other := range s.lan.Boards() {
			b.Undeafen(other.Config.ID)
		}
		b.Thaw()
		eligible = eligible || b.Config.Priority > 0
	}
	s.lan.Run(stopsWithin)
	for _, b := range s.lan.Boards() {
		b.Start()
	}
	if !eligible {
		s.any().Reprioritise(100, false)
	}
	s.lan.Run(3*time.Second + time.Duration(len(s.lan.Boards()))*interval + 2*s.patience())
}

// patience is how long a board asks before it believes that nobody leads. After
// a time of heavy losses that is seconds, since it is slow rather than wrong. One
// board may have to wait that long for another one that was heard asking, and
// then ask itself.
func (s *schedule) patience() (longest time.Duration) {
	for _, b := range s.lan.Boards() {
		if status, ok := b.Status(); ok {
			longest = max(longest, status.Quality.Questions.Patience())
		}
	}
	return longest
}

// leader returns the one leader that all boards agree on, which is the one
// holder of the address. It says what is wrong if there is none.
func leader(lan *sim.Sim) (*sim.Board, error) {
	var leader *sim.Board
	for _, b := range lan.Boards() {
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
	for _, b := range lan.Boards() {
		if s, _ := b.Status(); s.Leader != leader.Config.ID {
			return nil, fmt.Errorf("board %s follows %v, not %s", b.Label, s.Leader, leader.Label)
		}
	}
	return leader, nil
}

// randomWire draws how the LAN treats datagrams while misfortune lasts.
func randomWire(seed uint64) sim.Wire {
	rng := rand.New(rand.NewPCG(seed, 2))
	w := sim.Wire{
		Latency: 100*time.Microsecond + time.Duration(rng.Int64N(int64(2*time.Millisecond))),
		Jitter:  time.Duration(rng.Int64N(int64(3 * time.Millisecond))),
	}
	if rng.IntN(3) > 0 {
		w.Loss, w.Duplicate = 0.2*rng.Float64(), 0.05*rng.Float64()
	}
	return w
}

// TestHeals plays all kinds of faults. However bad it was, soon after the last
// one there is one leader, all follow it, and it alone holds the address; from
// then on the LAN is as quiet as it should be.
func TestHeals(t *testing.T) {
	for algorithm, regressions := range map[wire.Algorithm][]uint64{
		wire.AlgorithmHeir:  {1067, 1117, 3871, 5563, 11830},
		wire.AlgorithmBully: {204, 293, 363, 670, 789},
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			t.Parallel()
			seeds(t, 300, regressions, func(t *testing.T, seed uint64) {
				s := newSchedule(t, seed, algorithm, randomWire(seed))
				s.misfortune(dirty)
				healed := s.lan.Now()
				s.heal()
				if d := s.lan.Summarise(healed).Doubled; d > 2*interval {
					t.Errorf("two boards held the address for %v after the faults had ended", d)
				}
				first, err := leader(s.lan)
				if err != nil {
					t.Fatal(err)
				}
				if algorithm == wire.AlgorithmBully {
					biggest(t, s.lan, first)
				}
				quiet(t, s.lan)
			})
		})
	}
}

// biggest checks what the bully algorithm is named after.
func biggest(t *testing.T, lan *sim.Sim, leader *sim.Board) {
	t.Helper()
	lead := rank(leader)
	for _, b := range lan.Boards() {
		if rank(b).Eligible() && rank(b).Above(lead) {
			t.Fatalf("board %v leads, which board %v outranks", lead, rank(b))
		}
	}
}

func rank(b *sim.Board) election.Rank {
	return election.Rank{Priority: b.Config.Priority, ID: b.Config.ID}
}

// quiet checks that there is no storm of messages. A board that preempts has its
// turn first.
func quiet(t *testing.T, lan *sim.Sim) {
	t.Helper()
	lan.Run(5 * time.Second)
	before, err := leader(lan)
	if err != nil {
		t.Fatalf("5 s after it had settled: %v", err)
	}
	clear(lan.Packets)
	lan.Run(time.Second)
	if after, err := leader(lan); err != nil || after != before {
		t.Fatalf("the leader changed in peace: %v", err)
	}
	boards := len(lan.Boards())
	most := map[wire.Type]int{
		wire.TypeHeartbeat: int(time.Second/interval) + 1 + lan.Packets[wire.TypeQuery],
		wire.TypeHello:     min(boards+1, 10),
		wire.TypeQuery:     3, // the three that are next in the succession time the way
	}
	for kind, n := range lan.Packets {
		if n > most[kind] {
			t.Errorf("%d %v in one second of peace among %d boards, want at most %d", n, kind, boards, most[kind])
		}
	}
}

// TestNamesakes starts two boards with one id at random moments, where they hear
// each other from the start or only later. One of them leaves, and never both.
func TestNamesakes(t *testing.T) {
	seeds(t, 100, nil, func(t *testing.T, seed uint64) {
		lan := sim.New(seed, sim.Wire{Latency: 200 * time.Microsecond, Jitter: time.Millisecond})
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := election.Config{ID: 1, Priority: 100, Interval: interval, Algorithm: wire.AlgorithmHeir}
		one, other := lan.Add(cfg), lan.Add(cfg)
		if apart := rng.IntN(2) == 0; apart {
			other.Mute()
			lan.At(7*time.Second, other.Unmute)
		}
		one.Start()
		if together := rng.IntN(4) == 0; !together {
			lan.Run(time.Duration(rng.Int64N(int64(5 * time.Second))))
		}
		other.Start()
		lan.Run(20 * time.Second)
		if one.Holding() == other.Holding() {
			a, _ := one.Status()
			b, _ := other.Status()
			t.Errorf("the one is a %v and holds the address: %v; the other one is a %v and holds it: %v",
				a.Role, one.Holding(), b.Role, other.Holding())
		}
	})
}

// TestNeverTwoHolders plays the faults that a board notices itself, on a wire
// that loses nothing: not for one instant do two boards hold the address.
func TestNeverTwoHolders(t *testing.T) {
	for _, algorithm := range []wire.Algorithm{wire.AlgorithmHeir, wire.AlgorithmBully} {
		t.Run(algorithm.String(), func(t *testing.T) {
			t.Parallel()
			seeds(t, 200, nil, func(t *testing.T, seed uint64) {
				s := newSchedule(t, seed, algorithm, sim.Wire{Latency: 200 * time.Microsecond})
				s.misfortune(clean)
				s.heal()
				if _, err := leader(s.lan); err != nil {
					t.Error(err)
				}
				if d := s.lan.Summarise(0).Doubled; d != 0 {
					t.Errorf("two boards held the address for %v", d)
				}
			})
		})
	}
}
