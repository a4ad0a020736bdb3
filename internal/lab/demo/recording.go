package demo

import (
	"sort"
	"time"
)

// Recording is what happened in a show, for whoever draws it. All times are nanoseconds since
// its beginning, and the lists are in their order.
type Recording struct {
	Command     string `json:"command"`      // which made it
	MachineText string `json:"machine_text"` // what it ran on
	GroundText  string `json:"ground_text"`  // what connected the boards
	// Runs are the outages of each run that was recorded at a time, in all. This is one of them.
	Runs []time.Duration `json:"runs_ns"`

	Algorithm string        `json:"algorithm"`
	Address   string        `json:"address"` // the floating one
	Heartbeat time.Duration `json:"heartbeat_ns"`
	AskEvery  time.Duration `json:"ask_every_ns"` // the client
	Length    time.Duration `json:"length_ns"`

	Boards  []string        `json:"boards"` // their names
	Acts    []RecordedAct   `json:"acts"`
	States  []RecordedState `json:"states"`
	Lights  []RecordedEdge  `json:"lights"`
	Holders []RecordedSpan  `json:"holders"`
	// Gaps are the times after which another board answered, and those in which several
	// questions in a row stayed without an answer.
	Gaps []RecordedGap `json:"gaps"`
	// Paused is the longest time in which the machine did not let the client ask.
	Paused time.Duration `json:"client_paused_ns"`
}

// severalQuestions is how many must stay without an answer to make a gap. A packet or two may be
// late on any machine, and when it is busy the client itself does not ask.
const severalQuestions = 5

// RecordedAct is something that was done to a board.
type RecordedAct struct {
	At    time.Duration `json:"at_ns"`
	Act   string        `json:"act"` // as in the report of the show
	Board string        `json:"board"`
	Text  string        `json:"text"`
	Moves bool          `json:"moves"` // another board leads then
}

// RecordedState is what a board is from a moment on.
type RecordedState struct {
	At      time.Duration `json:"at_ns"`
	Board   string        `json:"board"`
	Role    string        `json:"role"` // as on the screen of the demo
	Plugged bool          `json:"plugged"`
	Running bool          `json:"running"`
}

// RecordedEdge is a change of a light.
type RecordedEdge struct {
	At    time.Duration `json:"at_ns"`
	Board string        `json:"board"`
	On    bool          `json:"on"`
}

// RecordedSpan is a time in which a board had the address.
type RecordedSpan struct {
	Board string        `json:"board"`
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
}

// RecordedGap is the time between two answers.
type RecordedGap struct {
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"`
	Before string        `json:"before"` // who answered last
	After  string        `json:"after"`  // and who answered next
}

// recorder notes what the boards are, from its beginning on.
type recorder struct {
	group *group
	began time.Time
	seen  int             // answers of the client before
	last  []RecordedState // of each board
	notes Recording
}

func (g *group) record() *recorder {
	_, seen := g.client.Gaps(0)
	r := &recorder{group: g, began: time.Now(), seen: seen, last: make([]RecordedState, len(g.boards))}
	for _, b := range g.boards {
		r.notes.Boards = append(r.notes.Boards, b.name)
	}
	return r
}

// look notes which boards have become something else.
func (r *recorder) look() {
	at := time.Since(r.began)
	for i, v := range r.group.lookAtBoards() {
		s := RecordedState{Board: v.Name, Role: v.Role, Plugged: v.Plugged, Running: v.Running}
		if s != r.last[i] {
			r.last[i] = s
			s.At = at
			r.notes.States = append(r.notes.States, s)
		}
	}
}

// watch looks at every change until it is told to stop.
func (r *recorder) watch(stop <-chan struct{}) {
	for {
		r.group.mu.Lock()
		changed := r.group.changed
		r.group.mu.Unlock()
		r.look()
		select {
		case <-changed:
		case <-stop:
			return
		}
	}
}

// act notes that something is about to be done.
func (r *recorder) act(a RecordedAct) {
	a.At = time.Since(r.began)
	r.notes.Acts = append(r.notes.Acts, a)
}

// finish collects what others have noted.
func (r *recorder) finish() Recording {
	g, n := r.group, r.notes
	n.Length = time.Since(r.began)
	n.GroundText, n.Algorithm = g.lan.about(), g.options.Algorithm.String()
	n.Address, n.Heartbeat, n.AskEvery = g.lan.floating().String(), g.options.Heartbeat, askEvery
	n.Paused = g.client.Report(r.began).Pause
	for _, b := range g.boards {
		n.Lights = append(n.Lights, r.lightsOf(b)...)
	}
	sort.SliceStable(n.Lights, func(i, j int) bool { return n.Lights[i].At < n.Lights[j].At })
	for _, s := range g.lan.holders().Since(r.began).Spans {
		n.Holders = append(n.Holders, RecordedSpan{g.name(s.Board), s.From.Sub(r.began), s.To.Sub(r.began)})
	}
	gaps, _ := g.client.Gaps(r.seen)
	for _, s := range gaps {
		if s.Before == s.After && s.Duration()-s.Paused < severalQuestions*askEvery {
			continue
		}
		n.Gaps = append(n.Gaps, RecordedGap{s.From.Sub(r.began), s.To.Sub(r.began), g.name(s.Before), g.name(s.After)})
	}
	return n
}

// lightsOf returns the changes of a board's light. The first is what it was at the beginning.
func (r *recorder) lightsOf(b *board) []RecordedEdge {
	edges := []RecordedEdge{{Board: b.name}}
	for _, e := range b.led.Edges() {
		if e.At.Before(r.began) {
			edges[0].On = e.On
			continue
		}
		edges = append(edges, RecordedEdge{e.At.Sub(r.began), b.name, e.On})
	}
	return edges
}
