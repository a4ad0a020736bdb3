// Package scenario runs a scenario that a person wrote down, such as "five boards, and
// number 5 crashes after two seconds", on a simulated LAN, and reports the result.
package scenario

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/draw"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// Limits of what makes sense on one screen and in the memory of one machine.
const (
	MaxNodes = wire.MaxBoards
	maxFor   = 24 * time.Hour
)

// Scenario is what shall happen. The boards have the ids 1 to Nodes, and all are switched
// on when it begins.
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
	Faults  []Fault
	// From is when counting and the trace begin, or FromFirstFault.
	From time.Duration
}

// FromFirstFault as Scenario.From leaves out how the boards elect their first
// leader: until the first fault, or nothing if there is none.
const FromFirstFault time.Duration = -1

// name is what traces and errors call a board.
func name(id wire.ID) string { return fmt.Sprintf("board %v", id) }

// setPriority reads priorities as people write them: 3=200 or 1,2=0.
func (s *Scenario) setPriority(text string) error {
	ids, priority, err := parsePriority(text)
	if s.Priorities == nil {
		s.Priorities = make(map[wire.ID]uint8)
	}
	for _, id := range ids {
		s.Priorities[id] = priority
	}
	return err
}

// Check says what is wrong with a scenario, if something is. It calls things what the
// flags of `topdog sim run` call them.
func (s *Scenario) Check() error {
	if s.Nodes < 1 || s.Nodes > MaxNodes {
		return fmt.Errorf("--nodes: there may be 1 to %d boards, not %d", MaxNodes, s.Nodes)
	}
	if s.For <= 0 || s.For > maxFor {
		return fmt.Errorf("--for: the time must be between 0 and %v, is %v", maxFor, s.For)
	}
	if s.From > s.For {
		return fmt.Errorf("--trace-from: %v is after the end at %v; see --for", s.From, s.For)
	}
	for id := range s.Priorities {
		if int(id) > s.Nodes {
			return fmt.Errorf("--priority: there is no %s, only 1 to %d", name(id), s.Nodes)
		}
	}
	for id := range s.Drift.boards {
		if int(id) > s.Nodes {
			return fmt.Errorf("--drift: there is no %s, only 1 to %d", name(id), s.Nodes)
		}
	}
	for i := range s.Faults {
		if err := s.Faults[i].check(s); err != nil {
			return err
		}
	}
	// The core knows best which heartbeats it accepts; all else was checked above.
	if _, err := literature.NewCore(s.config(1), 0); err != nil {
		return fmt.Errorf("--heartbeat: %w", err)
	}
	return nil
}

func (s *Scenario) config(id wire.ID) election.Config {
	cfg := s.Board
	cfg.ID, cfg.Name, cfg.Priority = id, fmt.Sprintf("pi%v", id), election.DefaultPriority
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

	from    election.Instant
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

// chunk is how much virtual time passes between two looks at the context.
const chunk = time.Second

// Run plays a scenario. The error is that of the context.
func (s *Scenario) Run(ctx context.Context, options Options) (*Play, error) {
	p := &Play{Scenario: s, LAN: sim.New(s.Seed, s.Wire), from: max(s.From, 0)}
	groups := s.groups()
	if s.From == FromFirstFault && len(groups) > 0 {
		p.from = groups[0].at
	}
	// Another source than the wire's, so that drifting changes nothing but the clocks.
	rng := rand.New(rand.NewPCG(s.Seed, 3))
	for id := range wire.ID(s.Nodes) {
		b := p.LAN.Add(s.config(id + 1))
		b.Clock = s.Drift.clock(b.Config.ID, rng)
	}
	if options.Record {
		p.Recording = draw.Record(p.LAN, draw.Options{From: max(0, p.from-options.Lead), All: options.All})
	}
	p.LAN.At(p.from, p.LAN.ResetCounts) // before what happens then: a leader that resigns says so at once
	for _, g := range groups {
		p.LAN.At(g.at, func() { p.begin(g) })
	}
	if p.from == 0 {
		p.watch([]string{"start"})
	}
	for _, b := range p.LAN.Boards() {
		b.Start()
	}
	for left := s.For; left > 0; left -= chunk {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.LAN.Run(min(left, chunk))
	}
	return p, nil
}

// group is what happens at one moment, and who notices it.
type group struct {
	at      time.Duration
	faults  []Fault
	notices []wire.ID
}

// groups puts together what happens at the same time. Who is to notice without a time of its
// own notices the first fault that can end the time of a leader.
func (s *Scenario) groups() []group {
	var groups []group
	var notices []wire.ID
	for _, f := range s.Faults {
		if f.Kind == Notice && !f.timed {
			notices = append(notices, f.Boards[0]...)
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.at == f.At })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{at: f.At})
		}
		groups[i].faults = append(groups[i].faults, f)
		if f.For > 0 {
			end := f
			end.Kind, end.At, end.For = ends[f.Kind], f.At+f.For, 0
			groups = append(groups, group{at: end.At, faults: []Fault{end}})
		}
	}
	sort.SliceStable(groups, func(i, j int) bool { return groups[i].at < groups[j].at })
	for i := range groups {
		if slices.ContainsFunc(groups[i].faults, func(f Fault) bool { return slices.Contains(leaderEnders, f.Kind) }) {
			groups[i].notices = notices
			break
		}
	}
	return groups
}

// begin makes the faults of a group happen. If somebody is to notice before all others
// that a leader is gone, they wait for its next heartbeat: then nobody else misses it for a
// whole interval.
func (p *Play) begin(g group) {
	do := func() {
		p.watch(g.words())
		for _, f := range g.faults {
			f.apply(p.LAN)
		}
		for _, id := range g.notices {
			p.LAN.Board(id.String()).Suspect()
		}
	}
	if len(g.notices) > 0 {
		for _, b := range p.LAN.Boards() {
			if b.Holding() && b.Running() && !b.Frozen() && g.hits(b.Config.ID) {
				b.AfterHeartbeat(do)
				return
			}
		}
	}
	do()
}

func (g *group) hits(id wire.ID) bool {
	return slices.ContainsFunc(g.faults, func(f Fault) bool {
		return slices.Contains(leaderEnders, f.Kind) && slices.Contains(f.Boards[0], id)
	})
}

func (g *group) words() []string {
	var words []string
	for _, f := range g.faults {
		words = append(words, f.String())
	}
	for _, id := range g.notices {
		words = append(words, fmt.Sprintf("%v notices", id))
	}
	return words
}

// watch begins to measure how the LAN recovers from something, and ends what was measured before.
func (p *Play) watch(what []string) {
	if n := len(p.watches); n > 0 {
		p.watches[n-1].watch.Stop()
	}
	if p.LAN.Now() >= p.from {
		var holders []string
		for _, b := range p.LAN.Boards() {
			if b.Holding() {
				holders = append(holders, b.Label)
			}
		}
		p.watches = append(p.watches, watched{what, strings.Join(holders, ", "), p.LAN.Watch()})
	}
}

// From is when counting began.
func (p *Play) From() time.Duration { return p.from }

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
