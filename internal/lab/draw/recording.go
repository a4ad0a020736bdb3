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
	entries []*entry
	open    map[uint64]*entry // of datagrams by their number
	folded  *entry            // to be written down, or nil
	repeats map[repetition]string
	missed  int // events beyond maxEntries
}

// entry is one line: an event, or what was folded away.
type entry struct {
	Step
	folded *sim.Counts // or nil
	last   election.Instant
}

// Step is one event, with all that is known of it.
type Step struct {
	sim.Event
	Concerned []*sim.Board  // whom a message is for: one, some or all others
	Copies    []sim.Arrival // of a message, in the order in which something became of them
	Routine   bool          // boards send the message while nothing happens
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
		open:    make(map[uint64]*entry),
		repeats: make(map[repetition]string),
	}
	for _, b := range lan.Boards() {
		r.initial[b] = b.State()
	}
	lan.Trace = r.record
	lan.Arrivals = func(a sim.Arrival) {
		if e := r.open[a.Number]; e != nil { // else the message is not shown
			e.Copies = append(e.Copies, a)
		}
	}
	return r
}

func (r *Recording) record(event sim.Event) {
	if event.At < r.options.From {
		if event.Board != nil {
			r.initial[event.Board] = event.State
		}
		return
	}
	e := &entry{Step: Step{Event: event, Routine: r.routine(&event)}}
	if e.Routine && !r.options.All {
		if r.folded == nil {
			r.folded = &entry{Step: Step{Event: sim.Event{At: e.At}}, folded: new(sim.Counts)}
		}
		r.folded.last = e.At
		r.folded.folded[e.Counted].Packets++
		return
	}
	// What was folded away so shortly before can be counted with what will be folded away next.
	if n := len(r.entries); r.folded != nil && (n == 0 || e.At-r.entries[n-1].At >= foldGap) {
		if n < maxEntries {
			r.entries = append(r.entries, r.folded)
		}
		r.folded = nil
	}
	if len(r.entries) >= maxEntries {
		r.missed++
		return
	}
	if e.Message != nil {
		r.open[e.Number] = e
		e.Concerned = concerned(&event, r.lan.Boards())
	}
	r.entries = append(r.entries, e)
}

// routine reports whether an event is a message that boards send while nothing happens.
func (r *Recording) routine(e *sim.Event) bool {
	m := e.Message
	if m == nil || e.Counted.Routine() {
		return m != nil
	}
	if steady := m.Type == wire.TypeOK || m.Type == wire.TypeAck || m.Type == wire.TypeReport && m.Leading; !steady {
		return false
	}
	key, says := repetition{e.Board, e.To, m.Type}, sim.Details(m)
	again := r.repeats[key] == says
	r.repeats[key] = says
	return again
}

// finished returns the entries and what was folded away behind the last one.
func (r *Recording) finished() []*entry {
	if r.folded == nil {
		return r.entries
	}
	return append(slices.Clone(r.entries), r.folded)
}

// Steps returns what was recorded, without what was folded away.
func (r *Recording) Steps() (steps []*Step) {
	for _, e := range r.entries {
		if e.folded == nil {
			steps = append(steps, &e.Step)
		}
	}
	return steps
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

// Events returns the same for programs.
func (r *Recording) Events() []Line {
	var lines []Line
	for _, e := range r.entries {
		if e.folded != nil {
			continue
		}
		l := Line{AtMs: float64(e.At) / float64(time.Millisecond), What: e.What}
		if e.Board != nil {
			l.Board = e.Board.Label
		}
		if m := e.Message; m != nil {
			l.Message, l.What = m.Type.String(), strings.TrimSpace(fmt.Sprintf("term %d %s", m.Term, sim.Details(m)))
		}
		for _, c := range e.Copies {
			if !slices.Contains(e.Concerned, c.To) || slices.Contains(l.To, c.To.Label) {
				continue
			}
			l.To = append(l.To, c.To.Label)
			if !e.reached(c.To) {
				l.Lost = append(l.Lost, c.To.Label)
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// Missed is how many events there were beyond those that a recording keeps.
func (r *Recording) Missed() int { return r.missed }

// Initial is what a board was when the recording began.
func (r *Recording) Initial(b *sim.Board) sim.State { return r.initial[b] }

// concerned are those of some boards that a message is for.
func concerned(e *sim.Event, boards []*sim.Board) (all []*sim.Board) {
	for _, b := range boards {
		id := b.Config.ID
		if b != e.Board && (e.To == id || e.To == wire.Nobody && (e.Audience == nil || slices.Contains(e.Audience, id))) {
			all = append(all, b)
		}
	}
	return all
}

// reached reports whether a copy of the message came to the board.
func (e *entry) reached(b *sim.Board) bool {
	f := e.fate(b)
	return f == sim.FateArrived || f == sim.FateWaits
}

// fate is the best that became of a board's copies.
func (e *entry) fate(b *sim.Board) sim.Fate {
	best := sim.FateLost
	for _, c := range e.Copies {
		if c.To != b || c.Fate == sim.FateReplay {
			continue
		}
		if best = c.Fate; best == sim.FateArrived || best == sim.FateWaits {
			break
		}
	}
	return best
}

// foldedWords says what was folded away, the most frequent first.
func (e *entry) foldedWords() string {
	kinds := e.folded.Kinds()
	sort.SliceStable(kinds, func(i, j int) bool { return e.folded[kinds[i]].Packets > e.folded[kinds[j]].Packets })
	var words []string
	for _, k := range kinds {
		words = append(words, fmt.Sprintf("%d %v", e.folded[k].Packets, k))
	}
	return "… " + strings.Join(words, ", ")
}
