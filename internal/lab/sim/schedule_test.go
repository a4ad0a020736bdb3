package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"pgregory.net/rapid"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// This file has what schedules of faults are made of. The properties that they play for are in property_test.go.

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
	{"mute", func(s *schedule, b *sim.Board) { mute(s.lan, b) }},
	{"unmute", func(s *schedule, b *sim.Board) { unmute(s.lan, b) }},
	{"freeze", func(s *schedule, b *sim.Board) {
		b.Freeze()
		s.lan.At(time.Duration(s.rng.Int64N(int64(3*time.Second))), b.Thaw)
	}},
	{"deafen", func(s *schedule, b *sim.Board) { deafen(s.lan, b, s.any().Config.ID) }},
	{"undeafen", func(s *schedule, b *sim.Board) {
		for _, other := range s.lan.Boards() {
			undeafen(s.lan, b, other.Config.ID)
		}
	}},
	{"reprioritise", func(s *schedule, b *sim.Board) {
		b.Reprioritise(uint8(s.rng.IntN(4)*50), s.rng.IntN(4) == 0)
	}},
}, clean...)

// silent are those that nobody notices whom they befall: of ports, and of the switch. With them
// come the others, so that the seeds of TestHeals still are what they were.
var silent = append([]fault{
	{"deaf", func(s *schedule, b *sim.Board) { deaf(s.lan, b) }},
	{"unheard", func(s *schedule, b *sim.Board) { unheard(s.lan, b) }},
	{"unmute", func(s *schedule, b *sim.Board) { unmute(s.lan, b) }},
	{"no multicast", func(s *schedule, b *sim.Board) { noMulticast(s.lan, b) }},
	{"no multicast at all", func(s *schedule, _ *sim.Board) { each(s.lan, func(b *sim.Board) { noMulticast(s.lan, b) }) }},
	{"multicast", func(s *schedule, _ *sim.Board) { each(s.lan, func(b *sim.Board) { multicast(s.lan, b) }) }},
	{"a burst", func(s *schedule, _ *sim.Board) {
		each(s.lan, func(b *sim.Board) { mute(s.lan, b) })
		s.lan.At(time.Duration(s.rng.Int64N(int64(interval))), func() { each(s.lan, func(b *sim.Board) { unmute(s.lan, b) }) })
	}},
	{"the switch reboots", func(s *schedule, _ *sim.Board) {
		each(s.lan, func(b *sim.Board) { mute(s.lan, b) })
		each(s.lan, (*sim.Board).Pull)
		s.lan.At(time.Second, func() { each(s.lan, (*sim.Board).Plug) })
		s.lan.At(time.Second+time.Duration(s.rng.Int64N(int64(rebootsWithin-time.Second))), func() { each(s.lan, func(b *sim.Board) { unmute(s.lan, b) }) })
	}},
	{"the witness", func(s *schedule, _ *sim.Board) { witness(s.lan, !hasWitness(s.lan)) }},
}, dirty...)

// luck is where a schedule comes from: rapid, or a generator with a seed.
type luck interface {
	IntN(n int) int
	Int64N(n int64) int64
	ExpFloat64() float64 // of mean 1
}

// drawn is rapid's luck, which shrinks towards few boards and early, frequent faults.
type drawn struct{ *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "choice") }

func (d drawn) Int64N(n int64) int64 { return rapid.Int64Range(0, n-1).Draw(d.T, "choice") }

func (d drawn) ExpFloat64() float64 {
	const steps = 1 << 12
	return -math.Log1p(-float64(rapid.IntRange(0, steps-1).Draw(d.T, "pause")) / steps)
}

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Log(args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
	Cleanup(func())
	Failed() bool
}

// schedule is one run: a LAN with boards, and what shall happen to them. What
// happens is drawn from another source than the wire's luck, so that a change of
// the core changes as little as possible of what a seed means.
type schedule struct {
	lan     *sim.Sim
	parts   parts
	rng     luck
	variant variant
	// unending is for how long leaders stood still whose lease has no end, until their kernels removed the address.
	unending time.Duration
}

// variant is how the boards of a schedule are configured.
type variant struct {
	algorithm wire.Algorithm
	fanout    election.Fanout
	detector  silence.DetectorKind
	measure   election.ScoreSource
	drift     bool // no two clocks run equally fast, or show the same
}

func (v variant) String() string {
	return fmt.Sprintf("%v, %v, detector %v, measure %v, drift %v", v.algorithm, v.fanout, v.detector, v.measure, v.drift)
}

// promises reports whether the most important board leads in the end.
func (v variant) promises() bool {
	switch v.algorithm {
	case wire.AlgorithmHeir, wire.AlgorithmAgents:
		return false // the incumbent stays
	default:
		return v.measure == election.ScoreFromPriority
	}
}

// above is the order of ranks of the algorithm.
func (v variant) above(a, b election.Rank) bool {
	switch {
	case a.Eligible() != b.Eligible():
		return a.Eligible()
	case a.Grade != b.Grade:
		return a.Grade < b.Grade
	case v.algorithm == wire.AlgorithmMinID:
		return a.ID < b.ID
	case a.Priority != b.Priority:
		return a.Priority > b.Priority
	default:
		return a.ID > b.ID
	}
}

// drawVariant draws what else a group may have set.
func drawVariant(rt *rapid.T, algorithm wire.Algorithm) variant {
	v := variant{algorithm: algorithm}
	v.fanout = rapid.SampledFrom([]election.Fanout{election.FanoutMulticast, election.FanoutUnicast}).Draw(rt, "fanout")
	v.detector = rapid.SampledFrom([]silence.DetectorKind{
		silence.DetectorDefault, silence.DetectorAsk, silence.DetectorFixed, silence.DetectorNFDE,
	}).Draw(rt, "detector")
	v.drift = rapid.Bool().Draw(rt, "drift")
	if algorithm == wire.AlgorithmScore {
		v.measure = rapid.SampledFrom([]election.ScoreSource{election.ScoreFromPriority, election.ScoreFromAge}).Draw(rt, "measure")
	}
	return v
}

// drawDrift draws only whether clocks drift apart, and drawNothing nothing.
func drawDrift(rt *rapid.T, a wire.Algorithm) variant {
	return variant{algorithm: a, drift: rapid.Bool().Draw(rt, "drift")}
}

func drawNothing(_ *rapid.T, a wire.Algorithm) variant { return variant{algorithm: a} }

// emptySchedule has no boards yet.
func emptySchedule(t tester, seed uint64, rng luck, v variant, w sim.Wire) *schedule {
	t.Helper()
	s := &schedule{lan: sim.New(seed, w), rng: rng, variant: v}
	if os.Getenv("TOPDOG_TRACE") != "" {
		told := story(s.lan)
		t.Cleanup(func() {
			if t.Failed() || os.Getenv("TOPDOG_SEED") != "" {
				t.Log(v, "\n"+told.String())
			}
		})
	}
	return s
}

// newSchedule makes a schedule of 2 to 7 boards, which start within a second.
func newSchedule(t tester, seed uint64, rng luck, v variant, w sim.Wire) *schedule {
	t.Helper()
	s := emptySchedule(t, seed, rng, v, w)
	boards := wire.ID(2 + s.rng.IntN(6))
	var members []wire.ID
	if v.fanout == election.FanoutUnicast {
		// Who is not known is not asked: the papers assume that all know all.
		for id := range boards {
			members = append(members, id+1)
		}
	}
	for id := range boards {
		b := s.lan.Add(election.Config{
			ID: id + 1, Priority: uint8(50 + 50*s.rng.IntN(3)), Preempt: s.rng.IntN(4) == 0,
			Interval: interval, Algorithm: v.algorithm,
			Fanout: v.fanout, Detector: v.detector, ScoreSource: v.measure, Members: members, Several: id%2 == 0,
		})
		if v.drift { // a quartz is off by 100 ppm at most
			b.Clock = sim.Clock{Origin: time.Duration(id) * time.Hour, PPM: 40*int(id) - 100}
		}
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
	s.lan.Wire = quick
	eligible := false
	for _, b := range s.lan.Boards() {
		b.Plug()
		unmute(s.lan, b)
		multicast(s.lan, b)
		for _, other := range s.lan.Boards() {
			undeafen(s.lan, b, other.Config.ID)
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
	s.lan.Run(s.settles())
}

// settles is how long boards that nothing happens to may take to agree.
func (s *schedule) settles() time.Duration {
	d := 3*time.Second + time.Duration(len(s.lan.Boards()))*interval + 2*s.questionsDuration()
	if s.variant.algorithm == wire.AlgorithmScore {
		d += 4 * 2 * time.Second // the deadline of its paper, for elections that follow each other
	}
	if slices.ContainsFunc(s.lan.Boards(), func(b *sim.Board) bool { return b.Grade >= wire.GradeDrained }) {
		d += 160 * interval // an unfit leader that has handed over in vain time and again tries again after so long
	}
	return d
}

// questionsDuration is how long a board asks before it believes that nobody leads. After
// a time of heavy losses that is seconds, since it is slow rather than wrong. One
// board may have to wait that long for another one that was heard asking, and
// then ask itself.
func (s *schedule) questionsDuration() (longest time.Duration) {
	for _, b := range s.lan.Boards() {
		if status, ok := b.Status(); ok {
			longest = max(longest, status.Quality.Questions.Duration())
		}
	}
	return longest
}

// randomWire draws how the LAN treats datagrams while misfortune lasts.
func randomWire(rng luck) sim.Wire {
	least := 100*time.Microsecond + time.Duration(rng.Int64N(int64(2*time.Millisecond)))
	w := sim.Wire{Delay: sim.Uniform(least, least+time.Duration(rng.Int64N(int64(3*time.Millisecond))))}
	if rng.IntN(3) > 0 {
		w.Loss, w.Duplicate = 0.2*fraction(rng), 0.05*fraction(rng)
	}
	return w
}

func fraction(rng luck) float64 {
	if r, ok := rng.(*rand.Rand); ok {
		return r.Float64()
	}
	return float64(rng.IntN(1000)) / 1000
}

// whole are the faults of whole ports and of the switch: what befalls a board befalls it for all
// others, and for the witness.
var whole = append([]fault{
	{"deaf", func(s *schedule, b *sim.Board) { deaf(s.lan, b) }},
	{"mute", func(s *schedule, b *sim.Board) { unheard(s.lan, b) }},
	{"dead", func(s *schedule, b *sim.Board) { mute(s.lan, b) }},
	{"well", func(s *schedule, b *sim.Board) { unmute(s.lan, b) }},
	{"well", func(s *schedule, b *sim.Board) { unmute(s.lan, b) }},
	{"no multicast", func(s *schedule, b *sim.Board) { noMulticast(s.lan, b) }},
	{"no multicast at all", func(s *schedule, _ *sim.Board) { each(s.lan, func(b *sim.Board) { noMulticast(s.lan, b) }) }},
	{"multicast", func(s *schedule, _ *sim.Board) { each(s.lan, func(b *sim.Board) { multicast(s.lan, b) }) }},
	{"freeze", func(s *schedule, b *sim.Board) {
		d := time.Duration(s.rng.Int64N(int64(3 * time.Second)))
		if b.Holding() && !b.LeaseEnds() {
			s.unending += min(d, election.AddressOutlives)
		}
		b.Freeze()
		s.lan.At(d, b.Thaw)
	}},
}, clean...)

// handsOverWithin is how long an ordinary handover takes at most on a LAN without faults.
const handsOverWithin = 10 * time.Millisecond

// agreed returns the leader as leader does. Boards that preempt ask one after the other, 20
// intervals apart, for as long as a higher one asks. So the instant at which a test looks
// may be in the middle of a handover: then agreed looks once more when that has ended.
func agreed(lan *sim.Sim, boards []*sim.Board) (*sim.Board, error) {
	board, err := leader(boards)
	if err == nil {
		return board, nil
	}
	lan.Run(handsOverWithin)
	return leader(boards)
}

// heals ends all faults, and checks that there is one leader then. It looks at the rest as well if there is none.
func (s *schedule) heals(t tester) {
	t.Helper()
	s.heal()
	if _, err := agreed(s.lan, s.lan.Boards()); err != nil {
		t.Errorf("%v", err)
	}
}

// neverTwo checks that no two boards have held the address for longer than that.
func (s *schedule) neverTwo(t tester, most time.Duration) {
	t.Helper()
	if d := s.lan.Summarise(0).Doubled; d > most {
		t.Errorf("two boards held the address for %v", d)
	}
}

// staysPut lets a group settle, prepares it for what shall not move the address, and disturbs it so until the end.
func (s *schedule) staysPut(t tester, prepare func(), disturb func(stays *sim.Board), end func()) {
	t.Helper()
	s.heal()
	s.lan.Run(5 * time.Second) // as long as a board that preempts takes to ask
	before, err := agreed(s.lan, s.lan.Boards())
	if err != nil {
		t.Fatal(err)
	}
	since := s.lan.Now()
	prepare()
	for range 5 + s.rng.IntN(20) {
		s.lan.Run(time.Duration(s.rng.ExpFloat64() * float64(300*time.Millisecond)))
		disturb(before)
	}
	end()
	if after, err := agreed(s.lan, s.lan.Boards()); err != nil || after != before {
		t.Errorf("the leader changes from %v to %v (%v)", before, after, err)
	}
	if moves := s.lan.Summarise(since).Moves; moves != 0 {
		t.Errorf("the address moved %d times for nothing", moves)
	}
}
