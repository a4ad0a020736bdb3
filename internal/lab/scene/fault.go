package scene

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/election"
)

// Fault is something that can happen to boards, or to the LAN. The simulator has a flag for each, and the soak and the bench try each.
type Fault struct {
	// Name is the line that begins it, and End the one that ends it, or "" if it is over at once.
	Name, End string
	// Title says what it is, and Ended what its end is.
	Title, Ended string
	Of           Form
	// Lasts is for how long it lasts where it is drawn at random.
	Lasts Range
	Cost  Cost

	do    func(p *player, t target) error
	undo  func(p *player, t target) error
	loses func(t target) []Filter
}

// Form is what a fault is about.
type Form uint8

// Boards; the LAN; groups into which it falls; two groups; and the LAN, with a share.
const (
	OfBoards Form = iota
	OfLAN
	OfGroups
	OfTwoGroups
	OfShare
)

// Range is a time that is drawn.
type Range struct{ Least, Most time.Duration }

// Cost is what a fault may cost a group in the default mode, on a busy machine with two processors.
type Cost struct {
	Moves    int           // if the leader is hit: the address had to go, or to come back
	Needless int           // moves beyond those
	Outage   time.Duration // beyond the fault's own time, if nobody can answer as long as it lasts
	Lasting  bool          // nobody can answer as long as the fault lasts
	Two      time.Duration // two holders that can be reached from one place
}

// What several faults may cost. A takeover takes H/2 + G, and G learns up to `patience`, 500 ms.
const (
	Takeover  = time.Second
	Handover  = 500 * time.Millisecond
	Unnoticed = 250 * time.Millisecond
	// NoTwo is for a late process: with the fence there are no two holders.
	NoTwo = 20 * time.Millisecond
	// Healed is when two leaders that can reach each other again are one: the one that has replaced the other looks for it every 40 ms.
	Healed = 50 * time.Millisecond
	// Found is when they are where messages are lost, too: the next heartbeat of either tells the other.
	Found = election.DefaultInterval
)

const ms = time.Millisecond

// Faults are all faults.
var Faults = []Fault{
	{Name: "kill", End: "start", Title: "SIGKILL of daemon and holder", Ended: "started again", do: signal(Everything, Kill), undo: start,
		Lasts: Range{300 * ms, 3000 * ms}, Cost: Cost{Moves: 1, Outage: Takeover, Two: NoTwo}},
	{Name: "kill-daemon", End: "start", Title: "SIGKILL of the daemon", Ended: "started again", do: signal(Daemon, Kill), undo: start,
		Lasts: Range{300 * ms, 3000 * ms}, Cost: Cost{Moves: 1, Outage: Handover, Two: NoTwo}},
	{Name: "kill-holder", End: "start", Title: "SIGKILL of the holder", Ended: "started again", do: signal(Holder, Kill), undo: start,
		Lasts: Range{500 * ms, 2000 * ms}, Cost: Cost{Moves: 1, Outage: Handover, Two: NoTwo}},
	{Name: "stop", End: "start", Title: "SIGTERM: the daemon hands over and ends", Ended: "started again", do: signal(Daemon, Terminate), undo: start,
		Lasts: Range{500 * ms, 3000 * ms}, Cost: Cost{Moves: 1, Outage: Handover, Two: NoTwo}},
	{Name: "restart", Title: "SIGTERM, and a start at once", do: restart,
		Lasts: Range{500 * ms, 1000 * ms}, Cost: Cost{Moves: 1, Outage: Handover, Two: NoTwo}},
	{Name: "freeze", End: "thaw", Title: "all processes stand still", Ended: "they go on", do: signal(Everything, Freeze), undo: signal(Everything, Thaw),
		Lasts: Range{300 * ms, 5000 * ms}, Cost: Cost{Moves: 1, Outage: Takeover, Two: NoTwo}},
	{Name: "freeze-daemon", End: "thaw", Title: "the daemon stands still (SIGSTOP)", Ended: "it goes on", do: signal(Daemon, Freeze), undo: signal(Everything, Thaw),
		Lasts: Range{300 * ms, 5000 * ms}, Cost: Cost{Moves: 1, Outage: Handover, Two: NoTwo}},
	{Name: "power-off", End: "power-on", Title: "the power is cut", Ended: "there is power again", do: power(false), undo: power(true)},
	{Name: "pull", End: "plug", Title: "the cable is pulled", Ended: "it is put back", do: cable(false), undo: cable(true),
		Lasts: Range{300 * ms, 5000 * ms}, Cost: Cost{Moves: 1, Outage: Takeover, Two: NoTwo}},
	{Name: "cut", End: "heal", Title: "the switch drops all of the board's frames; its link stays up", Ended: "the switch passes its frames again", loses: both,
		Lasts: Range{300 * ms, 5000 * ms}, Cost: Cost{Moves: 1, Outage: Takeover, Two: Healed}},
	{Name: "deafen", End: "hear", Title: "deaf: no frame comes in", Ended: "it hears again", loses: func(t target) []Filter { return []Filter{{To: t.boards}} },
		Lasts: Range{2000 * ms, 8000 * ms}, Cost: Cost{Moves: 1, Outage: 2 * Takeover, Two: Found}},
	{Name: "mute", End: "speak", Title: "mute: no frame goes out", Ended: "it is heard again", loses: func(t target) []Filter { return []Filter{{From: t.boards}} },
		Lasts: Range{300 * ms, 5000 * ms}, Cost: Cost{Moves: 1, Outage: Takeover, Two: Found}},
	{Name: "lose-multicast", End: "get-multicast", Title: "no multicast comes in; broadcast and unicast do", Ended: "multicast comes in again",
		loses: func(t target) []Filter { return []Filter{{To: t.boards, Multicast: true}} },
		Lasts: Range{3000 * ms, 10000 * ms}, Cost: Cost{Outage: Unnoticed, Two: NoTwo}},
	{Name: "resign", Title: "topdog resign", do: resign,
		Lasts: Range{300 * ms, 1000 * ms}, Cost: Cost{Moves: 1, Outage: Handover, Two: NoTwo}},
	{Name: "halt", End: "resume", Title: "the switch forwards nothing", Ended: "the switch forwards again", Of: OfLAN, loses: func(target) []Filter { return []Filter{{}} },
		Lasts: Range{1000 * ms, 8000 * ms}, Cost: Cost{Moves: 1, Outage: Takeover, Lasting: true, Two: Healed}},
	{Name: "no-multicast", End: "multicast", Title: "no multicast passes; broadcast and unicast do", Ended: "multicast passes again", Of: OfLAN,
		loses: func(target) []Filter { return []Filter{{Multicast: true}} },
		Lasts: Range{3000 * ms, 10000 * ms}, Cost: Cost{Outage: Unnoticed, Two: NoTwo}},
	{Name: "lose", End: "lose 0%", Title: "so many of the packets between boards are lost", Ended: "none is lost any more", Of: OfShare,
		loses: func(t target) []Filter { return []Filter{{Share: t.share, Election: true}} },
		Lasts: Range{3000 * ms, 10000 * ms}, Cost: Cost{Needless: 1, Outage: Unnoticed, Two: Found}},
	{Name: "split", End: "join", Title: "the LAN falls into groups that do not hear each other", Ended: "it is one again", Of: OfGroups, loses: betweenGroups,
		Lasts: Range{1000 * ms, 6000 * ms}, Cost: Cost{Moves: 2, Outage: Takeover, Two: Healed}},
	{Name: "one-way", End: "join", Title: "the second group does not hear the first", Ended: "they hear each other again", Of: OfTwoGroups,
		loses: func(t target) []Filter { return []Filter{{From: t.groups[0], To: t.groups[1]}} },
		Lasts: Range{1000 * ms, 6000 * ms}, Cost: Cost{Moves: 2, Outage: 2 * Takeover, Two: Found}},
}

// FaultNamed returns the fault that a line begins, or nil.
func FaultNamed(name string) *Fault {
	if i := slices.IndexFunc(Faults, func(f Fault) bool { return f.Name == name }); i >= 0 {
		return &Faults[i]
	}
	return nil
}

// FaultsEnded returns the faults that a line ends.
func FaultsEnded(end string) (ended []*Fault) {
	for i := range Faults {
		if Faults[i].End == end {
			ended = append(ended, &Faults[i])
		}
	}
	return ended
}

// target is what a fault is about.
type target struct {
	boards []int   // or machines
	groups [][]int // of the LAN, and those that are in none
	share  float64
}

func both(t target) []Filter { return []Filter{{From: t.boards}, {To: t.boards}} }

func betweenGroups(t target) (filters []Filter) {
	for i, from := range t.groups {
		for j, to := range t.groups {
			if i != j && len(from) > 0 && len(to) > 0 {
				filters = append(filters, Filter{From: from, To: to})
			}
		}
	}
	return filters
}

func onEach(do func(p *player, board int) error) func(*player, target) error {
	return func(p *player, t target) error {
		for _, board := range t.boards {
			if err := do(p, board); err != nil {
				return fmt.Errorf("%s: %w", Name(board), err)
			}
		}
		return nil
	}
}

func signal(to Processes, s Signal) func(*player, target) error {
	return onEach(func(p *player, board int) error {
		of := p.of(board)
		switch s {
		case Kill, Terminate:
			of.runs = false
		case Freeze, Thaw:
			of.frozen = s == Freeze
		}
		return p.Signal(board, to, s)
	})
}

func start(p *player, t target) error { return onEach((*player).run)(p, t) }

func restart(p *player, t target) error {
	return errors.Join(signal(Daemon, Terminate)(p, t), signal(Everything, Thaw)(p, t), start(p, t))
}

func cable(in bool) func(*player, target) error {
	return onEach(func(p *player, board int) error {
		p.of(board).plugged = in
		return p.Cable(board, in)
	})
}

// power cuts the power of boards, or gives it to them. What has no plug loses its processes.
func power(on bool) func(*player, target) error {
	return onEach(func(p *player, board int) error {
		p.of(board).runs = on
		switch s, ok := p.Stage.(Powered); {
		case ok:
			return s.Power(board, on)
		case on:
			return p.run(board)
		}
		return p.Signal(board, Everything, Kill)
	})
}

// resign has a board hand over. One that does not lead refuses, and one that stands still says nothing.
func resign(p *player, t target) error {
	s, ok := p.Stage.(Commandable)
	if !ok {
		return ErrCannot
	}
	return onEach(func(_ *player, board int) error {
		_, _ = s.Topdog(board, []string{"resign"})
		return nil
	})(p, t)
}

// inForce is a fault that makes the switch lose frames, and has not ended.
type inForce struct {
	fault *Fault
	target
}

// begin has a fault happen.
func (p *player) begin(f *Fault, t target) error {
	if f.loses == nil {
		return f.do(p, t)
	}
	force := slices.Clone(p.force)
	if f.Of == OfShare { // another share takes the place of the one before
		force = slices.DeleteFunc(force, func(x inForce) bool { return x.fault == f })
	}
	if f.Of != OfShare || t.share > 0 {
		force = append(force, inForce{f, t})
	}
	return p.filter(force)
}

// end ends what has begun last of the faults that such a line ends.
func (p *player) end(faults []*Fault, t target) error {
	if faults[0].loses == nil {
		return faults[0].undo(p, t)
	}
	for i := len(p.force) - 1; i >= 0; i-- {
		if x := p.force[i]; slices.Contains(faults, x.fault) && (x.fault.Of != OfBoards || slices.Equal(x.boards, t.boards)) {
			return p.filter(slices.Delete(slices.Clone(p.force), i, i+1))
		}
	}
	return errors.New("nothing of the kind has begun")
}

// filter puts faults in force. If the switch fails, what was in force still is.
func (p *player) filter(force []inForce) error {
	var all []Filter
	for _, x := range force {
		all = append(all, x.fault.loses(x.target)...)
	}
	if err := p.Filter(all); err != nil {
		return err
	}
	p.force = force
	return nil
}

// ReadShare reads a share of frames: 20% or 0.2.
func ReadShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("%q is no probability from 0%% to 100%%, such as 5%% or 0.05", text)
	}
	return share, nil
}
