package scenario

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"topdog/internal/lab/draw"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// Report is what came of a scenario. The JSON names are for programs; fields are
// added, never renamed. Lengths of time carry their unit in their name, and a null
// is what has not happened.
type Report struct {
	Algorithm string  `json:"algorithm"`
	Fanout    string  `json:"fanout"`
	Nodes     int     `json:"nodes"`
	Seed      uint64  `json:"seed"`
	FromMs    float64 `json:"from_ms"` // when counting began
	UntilMs   float64 `json:"until_ms"`

	Messages []Messages `json:"messages"` // by kind
	Packets  int        `json:"packets"`  // a multicast is one

	NoHolderMs        float64 `json:"no_holder_ms"` // nobody held the address
	LongestNoHolderMs float64 `json:"longest_no_holder_ms"`
	TwoHoldersMs      float64 `json:"two_holders_ms"` // two boards or more held it
	Moves             int     `json:"moves"`

	Leaders []Leader   `json:"leaders"` // who held the address when
	Faults  []Recovery `json:"faults"`  // what happened, and how long a new leader took
	Boards  []Board    `json:"boards"`  // in the end

	Trace   []draw.Line `json:"trace,omitempty"`
	Picture string      `json:"picture,omitempty"`
}

// Messages counts one kind of message.
type Messages struct {
	Name    string `json:"-"`    // for people, such as HEARTBEAT in reply
	Kind    string `json:"kind"` // such as HEARTBEAT_REPLY
	Packets int    `json:"packets"`
	Live    int    `json:"live"` // messages as the literature counts, to boards that were alive
	Dead    int    `json:"dead"` // and to others
	Routine bool   `json:"routine"`
}

// Leader is a board that held the address for some time.
type Leader struct {
	Board   string   `json:"board"`
	SinceMs float64  `json:"since_ms"`
	UntilMs *float64 `json:"until_ms"` // null if it still does
}

// Recovery is how the LAN recovered from what happened at one moment.
type Recovery struct {
	AtMs         float64  `json:"at_ms"`
	What         []string `json:"what"`
	Before       string   `json:"leader_before"` // who held the address then, or ""
	ProclaimedMs *float64 `json:"proclaimed_ms"` // until the first COORDINATOR
	AcquiredMs   *float64 `json:"acquired_ms"`   // until another board acquired the address
	AgreedMs     *float64 `json:"agreed_ms"`     // until all live boards followed one leader
	Leader       string   `json:"leader"`        // the board that acquired the address, or ""
}

// Board is what a board is in the end.
type Board struct {
	ID       string `json:"id"`
	Priority uint8  `json:"priority"`
	Running  bool   `json:"running"`
	Role     string `json:"role"`   // "" if it does not run
	Leader   string `json:"leader"` // whom it follows, or ""
	Holding  bool   `json:"holding"`
}

// Report sums up a play.
func (p *Play) Report() Report {
	s := p.Scenario
	r := Report{
		Algorithm: s.Board.Algorithm.String(), Fanout: s.Board.Fanout.String(), Nodes: s.Nodes, Seed: s.Seed,
		FromMs: ms(s.From), UntilMs: ms(p.LAN.Now()),
	}
	for _, k := range p.LAN.Counts.Kinds() {
		t := p.LAN.Counts[k]
		r.Messages = append(r.Messages, Messages{k.String(), k.Identifier(), t.Packets, t.Live, t.Dead, k.Routine()})
		r.Packets += t.Packets
	}
	sum := p.LAN.Summarise(s.From)
	r.NoHolderMs, r.LongestNoHolderMs, r.TwoHoldersMs, r.Moves = ms(sum.Vacant), ms(sum.LongestVacancy), ms(sum.Doubled), sum.Moves
	for _, span := range p.LAN.HoldSpans(s.From) {
		l := Leader{Board: span.Board.Label, SinceMs: ms(span.From)}
		if span.Ended {
			l.UntilMs = new(ms(span.Until))
		}
		r.Leaders = append(r.Leaders, l)
	}
	for _, w := range p.watches {
		r.Faults = append(r.Faults, recovery(w))
	}
	for _, b := range p.LAN.Boards() {
		r.Boards = append(r.Boards, board(b))
	}
	return r
}

func recovery(w watched) Recovery {
	c := Recovery{AtMs: ms(w.watch.Since()), What: w.what, Before: w.before}
	c.ProclaimedMs = optional(w.watch.Proclaimed())
	c.AcquiredMs = optional(w.watch.Acquired())
	c.AgreedMs = optional(w.watch.Agreed())
	if b := w.watch.Leader(); b != nil {
		c.Leader = b.Label
	}
	return c
}

func board(b *sim.Board) Board {
	r := Board{ID: b.Label, Priority: b.Config.Priority, Running: b.Running(), Holding: b.Holding()}
	if r.Running {
		r.Role = b.Role().String()
	}
	if b.Leader() != wire.Nobody {
		r.Leader = b.Leader().String()
	}
	return r
}

// ms is in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }

func optional(d time.Duration, ok bool) *float64 {
	if !ok {
		return nil
	}
	return new(ms(d))
}

// Text writes a report for people.
func (r *Report) Text(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d boards, fanout %s, seed %d; from %s to %s\n\n", r.Algorithm, r.Nodes, r.Fanout, r.Seed, span(r.FromMs), span(r.UntilMs))
	r.counts(w)
	fmt.Fprintf(w, "\naddress  nobody held it for %s (%s at a time), two boards for %s; it moved %s\n",
		span(r.NoHolderMs), span(r.LongestNoHolderMs), span(r.TwoHoldersMs), times(r.Moves))
	fmt.Fprintf(w, "leaders  %s\n", r.leaders())
	for _, c := range r.Faults {
		fmt.Fprintf(w, "%s  %s: %s\n", span(c.AtMs), strings.Join(c.What, ", "), c.words())
	}
	_, err := fmt.Fprintf(w, "end      %s\n", r.end())
	return err
}

// counts writes the table of messages, and what is no routine once more in sum.
func (r *Report) counts(w io.Writer) {
	row := func(name string, counts ...any) {
		fmt.Fprintf(w, "%17s%9v%10v%15v%13v\n", append([]any{name}, counts...)...)
	}
	row("message", "packets", "messages", "to the living", "to the dead")
	var sum Messages
	for _, m := range r.Messages {
		row(m.Name, m.Packets, m.Live+m.Dead, m.Live, m.Dead)
		if !m.Routine {
			sum.Packets, sum.Live, sum.Dead = sum.Packets+m.Packets, sum.Live+m.Live, sum.Dead+m.Dead
		}
	}
	row("without routine", sum.Packets, sum.Live+sum.Dead, sum.Live, sum.Dead)
}

func (r *Report) leaders() string {
	if len(r.Leaders) == 0 {
		return "none"
	}
	var words []string
	for _, l := range r.Leaders {
		text := l.Board + " from " + span(l.SinceMs)
		if l.UntilMs != nil {
			text += " to " + span(*l.UntilMs)
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

func (c *Recovery) words() string {
	var words []string
	if c.Before == "" && c.AtMs > 0 {
		words = append(words, "nobody held the address when it happened")
	}
	if c.ProclaimedMs == nil {
		words = append(words, "no leader was named")
	} else {
		words = append(words, "a leader was named after "+span(*c.ProclaimedMs))
	}
	if c.AcquiredMs != nil {
		words = append(words, fmt.Sprintf("board %s acquired the address after %s", c.Leader, span(*c.AcquiredMs)))
	}
	if c.AgreedMs == nil {
		words = append(words, "the live boards did not agree on a leader")
	} else {
		words = append(words, "all live boards agreed after "+span(*c.AgreedMs))
	}
	return strings.Join(words, ", ")
}

// end groups the boards by what they are in the end.
func (r *Report) end() string {
	var states []string
	who := make(map[string][]string)
	for _, b := range r.Boards {
		state := "off"
		switch {
		case b.Running && b.Role == "follower" && b.Leader != "":
			state = "following " + b.Leader
		case b.Running:
			state = b.Role
		}
		if who[state] == nil {
			states = append(states, state)
		}
		who[state] = append(who[state], b.ID)
	}
	for i, state := range states {
		states[i] = state + ": " + ranges(who[state])
	}
	return strings.Join(states, "; ")
}

// ranges writes ids one after the other as a range, such as 1–4, 7.
func ranges(ids []string) string {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	var words []string
	for i := 0; i < len(ids); {
		j := i + 1
		for j < len(ids) && number(ids[j]) == number(ids[j-1])+1 {
			j++
		}
		if j-i > 2 {
			words = append(words, ids[i]+"–"+ids[j-1])
		} else {
			words = append(words, ids[i:j]...)
		}
		i = j
	}
	return strings.Join(words, ", ")
}

// span writes milliseconds.
func span(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.4f s", ms/1000)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	default:
		return fmt.Sprintf("%d times", n)
	}
}
