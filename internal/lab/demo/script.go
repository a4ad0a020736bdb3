package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/demopage"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// pauseIntervals is how long the show looks on after each act, in heartbeats: long
// enough to read the line, and for the detectors to get to know a new leader.
const pauseIntervals = 8

// Kinds of acts, as --json names them.
const (
	actStart  = "start"
	actCut    = "cut-power"
	actOn     = "switch-on"
	actResign = "resign"
	actPull   = "pull-cable"
	actPlug   = "plug-cable"
	actStop   = "stop"
)

// result is what an act led to. All times are in milliseconds.
type result struct {
	AtMs   float64 `json:"at_ms"` // since the beginning of the show
	Act    string  `json:"act"`
	Board  string  `json:"board,omitempty"` // to which something was done
	Text   string  `json:"text"`
	Before string  `json:"before,omitempty"` // who answered the client before the act
	After  string  `json:"after,omitempty"`  // and who does after it
	Moved  bool    `json:"moved"`            // another board leads
	Term   uint32  `json:"term"`
	Reason string  `json:"reason,omitempty"` // why the leader took over, if one did: an identifier
	// OutageMs is the longest time without an answer; 0 if no answer was missed.
	OutageMs float64 `json:"outage_ms"`
	// ClientPausedMs is how much of it says nothing, since the machine was too
	// busy to let the client ask.
	ClientPausedMs float64 `json:"client_paused_ms"`
	TwoHoldersMs   float64 `json:"two_holders_ms"`
	Error          string  `json:"error,omitempty"`
}

// takeover reports whether the leader was gone without a word.
func (r result) takeover() bool { return r.Act == actCut || r.Act == actPull }

// handover reports whether the leader named its successor.
func (r result) handover() bool { return r.Act == actResign || r.Act == actStop }

// summary is the whole show in a few figures, in milliseconds.
type summary struct {
	TakeoverMedianMs  float64 `json:"takeover_median_ms"`
	TakeoverLongestMs float64 `json:"takeover_longest_ms"`
	HandoverMedianMs  float64 `json:"handover_median_ms"`
	HandoverLongestMs float64 `json:"handover_longest_ms"`
	OutageMedianMs    float64 `json:"outage_median_ms"` // of both kinds
	TwoHoldersMs      float64 `json:"two_holders_ms"`
	TookMs            float64 `json:"took_ms"`
}

// report is the document that --json prints.
type report struct {
	Boards      int      `json:"boards"`
	HeartbeatMs float64  `json:"heartbeat_ms"`
	Algorithm   string   `json:"algorithm"`
	Ground      string   `json:"ground"`
	Address     string   `json:"address"`
	AskEveryMs  float64  `json:"ask_every_ms"`
	Acts        []result `json:"acts"`
	Summary     summary  `json:"summary"`
	OK          bool     `json:"ok"`
	Error       string   `json:"error,omitempty"`
}

// Play plays the show, and writes it as text while it goes on, or as one JSON
// document at the end. It returns an error if an act failed, and that of ctx if it ended.
func Play(ctx context.Context, o Options, out io.Writer, asJSON bool) error {
	g, err := newGroup(ctx, o)
	if err != nil {
		return err
	}
	s := newShow(g, out)
	if asJSON {
		s.text.out = io.Discard
	}
	err = errors.Join(s.present(), g.close())
	if asJSON {
		s.report.OK = err == nil
		if err != nil {
			s.report.Error = err.Error()
		}
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return errors.Join(err, encoder.Encode(s.report))
	}
	return err
}

// show is a performance. It is the stage of the group, on which each act is measured.
type show struct {
	*group
	text   programme
	report report
	act    *result // that goes on
	began  time.Time
	// cast are boards by what the scene calls them: the one that leads since the last act, the first and the second one that have lost
	// their power, and the one whose cable was pulled.
	cast map[string]int
}

func newShow(g *group, out io.Writer) *show {
	return &show{group: g, text: programme{out: out}, cast: map[string]int{}}
}

// present plays all acts.
func (s *show) present() error {
	s.report = report{
		Boards: s.options.Boards, HeartbeatMs: ms(s.options.Heartbeat), Algorithm: s.options.Algorithm.String(),
		Ground: s.lan.about(), Address: s.lan.floating().String(), AskEveryMs: ms(askEvery),
	}
	s.text.begin(s.report)
	if err := s.perform(s.acts()); err != nil {
		return err
	}
	s.summarise()
	s.text.end(s.report)
	return nil
}

// perform plays acts, and tells of the one that fails.
func (s *show) perform(text string) error {
	acts, err := scene.Parse("show", text)
	if err == nil {
		err = acts.Play(s, rand.Uint64())
	}
	switch {
	case s.ctx.Err() != nil:
		s.text.interrupted()
		return s.ctx.Err()
	case err != nil && s.act != nil:
		what := s.act.Text
		s.act.Error = err.Error()
		s.tell()
		return fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// acts are the show as a scene. What is done depends on who leads, which is up to the boards. With the
// classical algorithm, the bully, and with most of its descendants the best board that is there takes the lead; otherwise the incumbent stays.
func (s *show) acts() string {
	anew, stays, more := "agreed anew", "leader leads", s.options.Boards > MinBoards
	if s.expected.bullies {
		anew, stays = "best leads", "best leads"
	}
	joint := "and"
	if more {
		joint = "to"
	}
	h := s.options.Heartbeat
	var text strings.Builder
	for _, a := range []struct {
		played                 bool
		act, title, line, then string
	}{
		{true, actStart, "switch on pi1 " + joint + " " + scene.Name(s.options.Boards), fmt.Sprint("boards ", s.options.Boards, " run"), anew},
		{true, actCut, "cut the power of {leader}, the leader", "leader power-off", anew},
		{more, actCut, "cut the power of {leader} too", "leader power-off", anew},
		{true, actOn, "switch {first} on again", "first power-on", stays},
		// A bully refuses to resign: it would be back at once, being the highest still.
		{!s.expected.bullies, actResign, "ask {leader} to resign", "leader " + ofOne[demopage.Resign].line, anew},
		{true, actPull, "pull the cable of {leader}, the leader", "leader pull", anew},
		{true, actPlug, "put the cable of {pulled} back", "pulled plug", stays},
		{more, actOn, "switch {second} on again as well", "second power-on", stays},
		{true, actStop, "stop the daemon on {leader} (SIGTERM)", "leader stop", anew},
	} {
		if a.played {
			// There is time to look, for the spectators and for anything that might yet go wrong.
			// Its length is left to chance, so that the next act comes at any moment
			// between two heartbeats: always right before one would flatter the figures.
			fmt.Fprintf(&text, "measure %s %q\n%s\n%s\nwait %v..%v\nleader leads\n",
				a.act, a.title, a.line, a.then, pauseIntervals*h, (pauseIntervals+1)*h)
		}
	}
	return text.String() + "measured\n"
}

// Named are the boards of which the acts have been about, and the one that must lead if the best one does.
func (s *show) Named(name string) (boards []int, known bool) {
	if name == "best" {
		if best := s.best(func(b *board) bool { is := s.state(b.number); return is.runs() && is.Cable }); best != nil {
			boards = []int{best.number}
		}
		return boards, true
	}
	n, known := s.cast[name]
	return []int{n}, known && name != "leader"
}

// Measure begins an act.
func (s *show) Measure(act, title string) error {
	if err := errors.Join(s.Measured(), s.ctx.Err()); err != nil {
		return err
	}
	s.began = time.Now()
	s.Mark()
	before, _ := s.client.Last()
	s.act = &result{AtMs: ms(s.began.Sub(s.started)), Act: act, Before: s.name(before)}
	leader, hadFirst := s.cast["leader"], s.cast["first"] != 0
	switch {
	case act == actPull:
		s.cast["pulled"] = leader
	case act == actCut && hadFirst:
		s.cast["second"] = leader
	case act == actCut:
		s.cast["first"] = leader
	}
	for name, n := range s.cast {
		if place := "{" + name + "}"; strings.Contains(title, place) {
			s.act.Board = s.name(n)
			title = strings.ReplaceAll(title, place, s.act.Board)
		}
	}
	s.act.Text = title
	s.text.act(*s.act)
	return nil
}

// Measured ends an act, if one goes on: it fills in the figures.
func (s *show) Measured() error {
	if s.act == nil {
		return nil
	}
	r, old := s.act, s.cast["leader"]
	gap := s.client.Report(s.began).Outage
	r.OutageMs, r.ClientPausedMs = ms(gap.Duration()), ms(gap.Paused)
	r.TwoHoldersMs = ms(s.lan.holders().Since(s.began).Overlap())
	after, _ := s.client.Last()
	r.After = s.name(after)
	leader, ok := s.leading()
	if !ok {
		return errors.New("nobody leads any more")
	}
	s.cast["leader"] = leader
	r.Moved = leader != old
	s.mu.Lock()
	b := s.boards[leader-1]
	r.Term = b.is.Term
	if r.Moved {
		r.Reason = b.rose.Identifier()
	}
	s.mu.Unlock()
	s.tell()
	return nil
}

// tell tells of an act that is over.
func (s *show) tell() {
	s.report.Acts = append(s.report.Acts, *s.act)
	s.text.result(*s.act)
	s.act = nil
}

// summarise works out the figures of the whole show.
func (s *show) summarise() {
	var takeovers, handovers []float64
	sum := &s.report.Summary
	for _, r := range s.report.Acts {
		switch {
		case r.takeover():
			takeovers = append(takeovers, r.OutageMs)
		case r.handover():
			handovers = append(handovers, r.OutageMs)
		}
	}
	sum.TakeoverMedianMs, sum.TakeoverLongestMs = median(takeovers), slices.Max(takeovers)
	sum.HandoverMedianMs, sum.HandoverLongestMs = median(handovers), slices.Max(handovers)
	sum.OutageMedianMs = median(append(takeovers, handovers...))
	sum.TwoHoldersMs = ms(s.lan.holders().Since(s.started).Overlap())
	sum.TookMs = ms(time.Since(s.started))
}

// median returns the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// ms is a duration in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// expectation is what the show expects of an algorithm.
type expectation struct {
	// bullies says that the first board in the algorithm's order always takes the
	// lead, also from a living leader. Otherwise the incumbent stays.
	bullies bool
	// above is the order in which the algorithm prefers boards.
	above election.Order
	// electionTime is how long boards may take to find a leader in the worst case,
	// when nobody that they know of answers.
	electionTime time.Duration
}

// incumbentsStay lists the algorithms in which a board that comes disturbs nobody.
// The others got it from the bully, where whoever recovers holds an election.
var incumbentsStay = map[wire.Algorithm]bool{wire.AlgorithmHeir: true, wire.AlgorithmAgents: true}

// maxElectionTime bounds the search for how long an algorithm takes.
const maxElectionTime = time.Minute

// expect asks the algorithm itself, so that nothing here has to be kept in step with it.
func expect(o Options) (expectation, error) {
	// The board knows one that comes before it and one that comes after it, and waits in vain for both.
	cfg := election.Config{
		ID: 2, Incarnation: 1, Priority: priority, Interval: o.Heartbeat, Algorithm: o.Algorithm, Members: []wire.ID{1, 3},
	}
	core, err := literature.NewCore(cfg, 0)
	if err != nil {
		return expectation{}, err
	}
	lan := sim.New(1, sim.Wire{})
	alone := lan.Add(cfg)
	alone.Start()
	lan.RunUntil(alone.Holding, maxElectionTime)
	return expectation{bullies: !incumbentsStay[o.Algorithm], above: core.Above, electionTime: lan.Now()}, nil
}

// rank is what the boards are ordered by: all have the same priority, and so the
// same score.
func (b *board) rank() election.Rank {
	return election.Rank{Priority: priority, ID: b.id, Score: priority}
}

// best returns the first of the boards in the algorithm's order for which a
// condition holds, or nil.
func (g *group) best(holds func(*board) bool) (first *board) {
	for _, b := range g.boards {
		if holds(b) && (first == nil || g.expected.above(b.rank(), first.rank())) {
			first = b
		}
	}
	return first
}
