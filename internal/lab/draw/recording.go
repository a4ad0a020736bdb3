// Package draw draws what the boards of a simulated LAN send and do: as text, as a
// Mermaid sequence diagram, and as SVG. Each board has a column, and the time runs
// downwards. The code writes the pictures without a template or a drawing library,
// because they consist of a few kinds of lines and words.
package draw

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// Options say what a recording is to contain.
type Options struct {
	// From is when it begins. What boards are at that moment is in the pictures.
	From election.Instant
	// All keeps routine messages as well, which boards send while nothing happens.
	// Otherwise they are folded away, and only counted: scheduled heartbeats, HELLOs,
	// followers that measure the round trip to their leader, and judges, members and
	// leaders of the algorithm agents that repeat themselves.
	All bool
}

// maxEntries bounds the memory of a recording, and how long a picture gets:
// nobody looks at more. What comes then is counted.
const maxEntries = 20_000

// foldGap is for how long something must have lasted that was folded away to get a
// line of its own. Within an election a single HELLO would only be in the way.
const foldGap = 50 * time.Millisecond

// Recording is what happened on a LAN.
type Recording struct {
	options Options
	lan     *sim.Sim
	initial map[*sim.Board]sim.State
	entries []entry
	open    map[uint64]int // entries of datagrams by their number
	folded  fold
	repeats map[repetition]string
	missed  int // events beyond maxEntries
}

// entry is one line: an event, or what was folded away.
type entry struct {
	sim.Event
	copies  []sim.Arrival
	fold    fold
	routine bool // boards send it while nothing happens
}

// fold counts messages that are not shown.
type fold struct {
	counts      sim.Counts
	first, last election.Instant
}

func (f *fold) total() (n int) {
	for _, t := range f.counts {
		n += t.Packets
	}
	return n
}

// String says what was folded away, the most frequent first.
func (f *fold) String() string {
	kinds := f.counts.Kinds()
	sort.SliceStable(kinds, func(i, j int) bool { return f.counts[kinds[i]].Packets > f.counts[kinds[j]].Packets })
	var words []string
	for _, k := range kinds {
		words = append(words, fmt.Sprintf("%d %v", f.counts[k].Packets, k))
	}
	return "… " + strings.Join(words, ", ")
}

// repetition is what a board of the algorithm agents says again and again.
type repetition struct {
	from *sim.Board
	to   wire.ID
	kind wire.Type
}

// Record begins to record what happens on a LAN, by way of its Trace and Arrivals.
func Record(lan *sim.Sim, options Options) *Recording {
	r := &Recording{
		options: options, lan: lan,
		initial: make(map[*sim.Board]sim.State),
		open:    make(map[uint64]int),
		repeats: make(map[repetition]string),
	}
	for _, b := range lan.Boards() {
		r.initial[b] = b.State()
	}
	lan.Trace, lan.Arrivals = r.record, r.arrive
	return r
}

func (r *Recording) record(e sim.Event) {
	if e.At < r.options.From {
		if e.Board != nil {
			r.initial[e.Board] = e.State
		}
		return
	}
	routine := r.routine(&e)
	if routine && !r.options.All {
		r.fold(&e)
		return
	}
	r.unfold(e.At)
	if len(r.entries) >= maxEntries {
		r.missed++
		return
	}
	if e.Message != nil {
		r.open[e.Number] = len(r.entries)
	}
	r.entries = append(r.entries, entry{Event: e, routine: routine})
}

// arrive notes what became of a message that is shown.
func (r *Recording) arrive(a sim.Arrival) {
	if i, ok := r.open[a.Number]; ok {
		r.entries[i].copies = append(r.entries[i].copies, a)
	}
}

// routine reports whether an event is a message that boards send while nothing happens.
func (r *Recording) routine(e *sim.Event) bool {
	m := e.Message
	if m == nil {
		return false
	}
	if e.Counted.Routine() {
		return true
	}
	steady := m.Type == wire.TypeOK || m.Type == wire.TypeAck || m.Type == wire.TypeReport && m.Leading
	if !steady {
		return false
	}
	key, says := repetition{e.Board, e.To, m.Type}, sim.Details(m)
	again := r.repeats[key] == says
	r.repeats[key] = says
	return again
}

func (r *Recording) fold(e *sim.Event) {
	if r.folded.total() == 0 {
		r.folded.first = e.At
	}
	r.folded.last = e.At
	r.folded.counts[e.Counted].Packets++
}

// unfold writes down what was folded away until now, unless that was so short that it
// can be counted with what will be folded away next.
func (r *Recording) unfold(now election.Instant) {
	if r.folded.total() == 0 || len(r.entries) > 0 && now-r.entries[len(r.entries)-1].At < foldGap {
		return
	}
	if len(r.entries) < maxEntries {
		r.entries = append(r.entries, entry{Event: sim.Event{At: r.folded.first}, fold: r.folded})
	}
	r.folded = fold{}
}

// finished returns the entries and what was folded away behind the last one.
func (r *Recording) finished() []entry {
	all := slices.Clone(r.entries)
	if r.folded.total() > 0 {
		all = append(all, entry{Event: sim.Event{At: r.folded.first}, fold: r.folded})
	}
	return all
}

// Events returns what is shown, without what was folded away, for programs.
func (r *Recording) Events() []Line {
	var lines []Line
	for _, e := range r.finished() {
		if e.fold.total() == 0 {
			lines = append(lines, e.line())
		}
	}
	return lines
}

// Step is one event, with all that is known of it.
type Step struct {
	sim.Event
	// Copies are those of a message that were for the boards that it concerns, in the order
	// in which something became of them. A copy of what a board had already is not among them.
	Copies []sim.Arrival
	// Routine says that boards send the message while nothing happens.
	Routine bool
}

// Steps returns what was recorded, without what was folded away.
func (r *Recording) Steps() []Step {
	var steps []Step
	for i := range r.entries {
		e := &r.entries[i]
		if e.fold.total() > 0 {
			continue
		}
		s := Step{Event: e.Event, Routine: e.routine}
		for _, c := range e.copies {
			if e.concerns(c.To) && c.Fate != sim.FateReplay {
				s.Copies = append(s.Copies, c)
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// Missed is how many events there were beyond those that a recording keeps.
func (r *Recording) Missed() int { return r.missed }

// Initial is what a board was when the recording began.
func (r *Recording) Initial(b *sim.Board) sim.State { return r.initial[b] }

// missedNote says that a recording was too long, or nothing.
func (r *Recording) missedNote() string {
	if r.missed == 0 {
		return ""
	}
	return fmt.Sprintf("… and %d more events: a recording keeps %d", r.missed, maxEntries)
}

// fates returns the labels of the boards that a message did not reach, by why.
func (e *entry) fates(fate sim.Fate) []string {
	var labels []string
	for _, c := range e.copies {
		if c.Fate == fate && !slices.Contains(labels, c.To.Label) {
			labels = append(labels, c.To.Label)
		}
	}
	return labels
}

// concerned are the boards that the message of an entry is for.
func (e *entry) concerned(boards []*sim.Board) (list []*sim.Board) {
	for _, b := range boards {
		if e.concerns(b) {
			list = append(list, b)
		}
	}
	return list
}

// concerns reports whether the message of an entry is for a board.
func (e *entry) concerns(b *sim.Board) bool {
	switch {
	case b == e.Board:
		return false
	case e.To != wire.Nobody:
		return e.To == b.Config.ID
	default:
		return e.Audience == nil || slices.Contains(e.Audience, b.Config.ID)
	}
}

// Line is one event, for programs.
type Line struct {
	AtMs    float64  `json:"at_ms"`
	Board   string   `json:"board"` // "" if it is about the LAN
	What    string   `json:"what"`
	Message string   `json:"message,omitempty"` // its type
	To      []string `json:"to,omitempty"`      // whom it concerns
	Lost    []string `json:"lost,omitempty"`    // whom of these it did not reach
}

func (e *entry) line() Line {
	l := Line{AtMs: float64(e.At) / float64(time.Millisecond), What: e.What}
	if e.Board != nil {
		l.Board = e.Board.Label
	}
	if e.Message == nil {
		return l
	}
	l.Message = e.Message.Type.String()
	l.What = strings.TrimSpace(fmt.Sprintf("term %d %s", e.Message.Term, sim.Details(e.Message)))
	for _, c := range e.copies {
		if !e.concerns(c.To) || slices.Contains(l.To, c.To.Label) {
			continue
		}
		l.To = append(l.To, c.To.Label)
		if !e.reached(c.To) {
			l.Lost = append(l.Lost, c.To.Label)
		}
	}
	return l
}

// reached reports whether a copy of the message came to the board.
func (e *entry) reached(b *sim.Board) bool {
	f := e.fate(b)
	return f == sim.FateArrived || f == sim.FateWaits
}

// fate is the best that became of a board's copies.
func (e *entry) fate(b *sim.Board) sim.Fate {
	best := sim.FateLost
	for _, c := range e.copies {
		if c.To != b || c.Fate == sim.FateReplay {
			continue
		}
		if best = c.Fate; best == sim.FateArrived || best == sim.FateWaits {
			break
		}
	}
	return best
}
