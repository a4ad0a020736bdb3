package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"topdog/internal/lab/scene"
)

const (
	// settledIntervals is for how many heartbeats a group is led before it is recorded: the
	// detectors have got to know the leader, and the lights show their steady patterns. Those of
	// followers, which began when there was a leader, blink every 2 s: the recording begins between.
	settledIntervals = 45
	// calmIntervals is for how many nothing is done before each act. A part of a heartbeat
	// comes on top, which is left to chance: see acts of the show.
	calmIntervals = 14
	// minRecorded is how many boards the acts need.
	minRecorded = 3
)

// recorded are the acts of the moving picture: power, cable, both back, and a leader that resigns. The group ends as it
// began, so that the picture can begin anew. The best board comes first, so that it leads.
const recorded = `
boards BOARDS
wait SETTLED
record
wait CALM
measure cut-power "FIRST loses its power"
FIRST power-off
SECOND leads
wait CALM
measure pull-cable "the cable of SECOND is pulled"
SECOND pull
THIRD leads
wait CALM
measure switch-on "FIRST has power again"
FIRST power-on
THIRD leads
wait CALM
measure plug-cable "the cable of SECOND is back"
SECOND plug
THIRD leads
wait CALM
measure resign "THIRD is asked to hand over"
THIRD topdog resign says ""
FIRST leads
wait CALM
measured
`

// Record plays the acts that the moving picture of the README shows, and returns what
// happened.
func Record(ctx context.Context, o Options) (recording Recording, err error) {
	if o.Boards < minRecorded {
		return Recording{}, fmt.Errorf("%d boards: must be at least %d, since two leaders go one after the other", o.Boards, minRecorded)
	}
	acts, err := scene.Parse("recording", strings.NewReplacer(
		"BOARDS", fmt.Sprint(o.Boards), "FIRST", scene.Name(o.Boards), "SECOND", scene.Name(o.Boards-1), "THIRD", scene.Name(o.Boards-2),
		"SETTLED", fmt.Sprint(settledIntervals*o.Heartbeat),
		"CALM", fmt.Sprintf("%v..%v", calmIntervals*o.Heartbeat, (calmIntervals+1)*o.Heartbeat),
	).Replace(recorded))
	if err != nil {
		return Recording{}, err
	}
	g, err := newGroup(ctx, o)
	if err != nil {
		return Recording{}, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	r := &recorder{group: g, stop: make(chan struct{})}
	err = acts.Play(r, rand.Uint64())
	close(r.stop)
	r.watching.Wait()
	if err != nil {
		return Recording{}, errors.Join(ctx.Err(), err)
	}
	return r.finish(), nil
}

// recorder is the stage of the group, on which it is noted what the boards are.
type recorder struct {
	*group
	began    time.Time
	seen     int             // answers of the client before
	last     []RecordedState // of each board
	notes    Recording
	leader   int           // when the last act began
	stop     chan struct{} // closed to end watching
	watching sync.WaitGroup
}

// Line begins the recording.
func (r *recorder) Line(words, _ []string) (known bool, err error) {
	if words[0] != "record" {
		return false, nil
	}
	_, r.seen = r.client.Gaps(0)
	r.began, r.last = time.Now(), make([]RecordedState, len(r.boards))
	for _, b := range r.boards {
		r.notes.Boards = append(r.notes.Boards, b.name)
	}
	r.watching.Go(r.watch)
	return true, nil
}

// Measure notes that something is about to be done to the board that the title names.
func (r *recorder) Measure(act, title string) error {
	if err := errors.Join(r.Measured(), r.ctx.Err()); err != nil {
		return err
	}
	n := r.numberWhere(func(b *board) bool { return slices.Contains(strings.Fields(title), b.name) })
	r.notes.Acts = append(r.notes.Acts, RecordedAct{At: time.Since(r.began), Act: act, Board: r.name(n), Text: title})
	return nil
}

// Measured notes whether another board leads after an act than before.
func (r *recorder) Measured() error {
	leader, _ := r.leading()
	if n := len(r.notes.Acts); n > 0 {
		r.notes.Acts[n-1].Moves = leader != r.leader
	}
	r.leader = leader
	return nil
}

// watch notes which boards have become something else, until it is told to stop.
func (r *recorder) watch() {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		at := time.Since(r.began)
		for i, b := range r.states() {
			s := RecordedState{Board: r.boards[i].name, Role: b.shownRole(), Plugged: b.Cable, Running: b.runs()}
			if s != r.last[i] {
				r.last[i] = s
				s.At = at
				r.notes.States = append(r.notes.States, s)
			}
		}
		select {
		case <-changed:
		case <-r.stop:
			return
		}
	}
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
