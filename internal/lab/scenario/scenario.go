// Package scenario plays a scene, such as "five boards, and number 5 is killed after two seconds", on a simulated LAN, and reports the
// result. A person writes the scene down, or its faults on a command line.
package scenario

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/draw"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// Limits of what makes sense on one screen and in the memory of one machine.
const (
	MaxNodes = wire.MaxBoards
	maxFor   = scene.Longest
)

// Scenario is what shall happen. The boards have the ids 1 to Nodes.
type Scenario struct {
	Nodes int
	Board election.Config // of each; ID, Name, Priority, Members and Voters are filled in
	// Priorities are those that are not 100.
	Priorities map[wire.ID]uint8
	// Members makes all boards know of all others from the start, as the literature
	// assumes, instead of when they hear them.
	Members bool
	Wire    sim.Wire
	Drift   Drift
	Seed    uint64
	For     time.Duration
	Scene   *scene.Scene
	// From is when counting and the trace begin.
	From time.Duration
	// Judged says that it is a failure if two boards hold the address where the scene does not allow it.
	Judged bool
}

// setPriority reads priorities as people write them: 3=200 or 1,2=0.
func (s *Scenario) setPriority(text string) error {
	boards, number, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("%q does not say which priority; write it like 3=200", text)
	}
	ids, err := parseIDs(boards)
	if err != nil {
		return err
	}
	priority, err := strconv.ParseUint(number, 10, 8)
	if err != nil || priority > election.MaxPriority {
		return fmt.Errorf("%q: %q is no priority from 0 to %d", text, number, election.MaxPriority)
	}
	for _, id := range ids {
		s.Priorities[id] = uint8(priority)
	}
	return nil
}

// Check says what is wrong with a scenario, if something is. It calls things what the
// flags of `topdog sim run` call them.
func (s *Scenario) Check() error {
	if err := s.checkNodes(); err != nil {
		return err
	}
	if s.For <= 0 || s.For > maxFor {
		return fmt.Errorf("--for: the time must be between 0 and %v, is %v", maxFor, s.For)
	}
	if s.From > s.For {
		return fmt.Errorf("--trace-from: %v is after the end at %v; see --for", s.From, s.For)
	}
	if err := s.have(slices.Collect(maps.Keys(s.Priorities))); err != nil {
		return fmt.Errorf("--priority: %w", err)
	}
	if err := s.have(slices.Collect(maps.Keys(s.Drift.boards))); err != nil {
		return fmt.Errorf("--drift: %w", err)
	}
	// The core knows best which heartbeats it accepts; all else was checked above.
	if _, err := literature.NewCore(s.config(1), 0); err != nil {
		return fmt.Errorf("--heartbeat: %w", err)
	}
	return nil
}

func (s *Scenario) checkNodes() error {
	if s.Nodes < 1 || s.Nodes > MaxNodes {
		return fmt.Errorf("--nodes: there may be 1 to %d boards, not %d", MaxNodes, s.Nodes)
	}
	return nil
}

// have says which of these boards there is not.
func (s *Scenario) have(ids []wire.ID) error {
	if i := slices.IndexFunc(ids, func(id wire.ID) bool { return int(id) > s.Nodes }); i >= 0 {
		return fmt.Errorf("there is no board %v, only 1 to %d", ids[i], s.Nodes)
	}
	return nil
}

func (s *Scenario) config(id wire.ID) election.Config {
	cfg := s.Board
	cfg.ID, cfg.Name, cfg.Priority = id, scene.Name(int(id)), election.DefaultPriority
	if p, ok := s.Priorities[id]; ok {
		cfg.Priority = p
	}
	if s.Members {
		for other := range wire.ID(s.Nodes) {
			cfg.Members = append(cfg.Members, other+1)
		}
	}
	if s.Board.Algorithm == wire.AlgorithmStrict {
		// The boards that lead have the highest ids, and a leader must be a voter.
		for i := range min(s.Nodes, election.MaxVoters) {
			cfg.Voters = append(cfg.Voters, wire.ID(s.Nodes-i))
		}
	}
	return cfg
}

// Play is a scenario that was played.
type Play struct {
	Scenario *Scenario
	LAN      *sim.Sim
	// Recording is what happened, if it was wanted.
	Recording *draw.Recording

	count   func() // begins to count
	watches []watched
}

// watched is how the LAN recovered from what happened at one moment.
type watched struct {
	what   []string
	before string // who held the address then
	watch  *sim.Watch
}

// Options say what of a play shall be recorded.
type Options struct {
	Record bool
	All    bool // also what boards send while nothing happens
	// Lead is for how long before counting begins the recording does.
	Lead time.Duration
}

// Run plays a scenario. The error is that of the context, or of the scene.
func (s *Scenario) Run(ctx context.Context, options Options) (*Play, error) {
	p := &Play{Scenario: s, LAN: sim.New(s.Seed, s.Wire)}
	p.count = sync.OnceFunc(p.LAN.ResetCounts)
	// Another source than the wire's, so that drifting changes nothing but the clocks.
	rng := rand.New(rand.NewPCG(s.Seed, 3))
	for id := range wire.ID(s.Nodes) {
		b := p.LAN.Add(s.config(id + 1))
		b.Clock = s.Drift.clock(b.Config.ID, rng)
	}
	if options.Record {
		p.Recording = draw.Record(p.LAN, draw.Options{From: max(0, s.From-options.Lead), All: options.All})
	}
	p.LAN.At(s.From, p.count) // or before what happens then: a leader that resigns says so at once
	played := &stage{Play: p, ended: func() bool { return ctx.Err() != nil }}
	err := s.Scene.Play(played, s.Seed)
	if err == nil {
		p.LAN.RunUntil(played.ended, max(0, s.For-p.LAN.Now()))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return p, err
}

// From is when counting began.
func (p *Play) From() time.Duration { return p.Scenario.From }

// Happened is when things happened that the counting saw, such as a crash and a restart. A fault
// that waits for a heartbeat happens later than it is written.
func (p *Play) Happened() (times []time.Duration) {
	for _, w := range p.watches {
		times = append(times, w.watch.Since())
	}
	return times
}

// Settled is since when all live boards have followed one leader; ok is false if they do not
// in the end, or if nothing has happened.
func (p *Play) Settled() (at time.Duration, ok bool) {
	if len(p.watches) == 0 {
		return 0, false
	}
	w := p.watches[len(p.watches)-1].watch
	after, ok := w.Settled()
	return w.Since() + after, ok
}

// title is what the picture is called.
func (p *Play) title() string {
	s := p.Scenario
	words := []string{fmt.Sprintf("%v, %d boards", s.Board.Algorithm, s.Nodes)}
	for _, w := range p.watches {
		words = append(words, w.what...)
	}
	return strings.Join(words, "; ")
}

// Draw writes the recording in one of Formats.
func (p *Play) Draw(w io.Writer, format string) error {
	switch format {
	case "mermaid":
		return p.Recording.Mermaid(w)
	case "svg":
		return p.Recording.SVG(w, p.title())
	default:
		return p.Recording.Text(w)
	}
}

// Formats returns the names of the formats in which a recording can be written, the default first.
func Formats() []string { return []string{"text", "mermaid", "svg"} }
