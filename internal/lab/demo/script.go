package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sort"
	"time"
)

// What an act of the show must keep to; otherwise the show has failed.
const (
	// agreeTimeout is how long the boards may take to agree on a leader because the
	// machine is busy, and agreeIntervals is how many heartbeat intervals that are at least.
	// The time of elections comes on top: one board may have to hold two of them, the second
	// because others held one at the same time.
	agreeTimeout   = 5 * time.Second
	agreeIntervals = 20
	elections      = 2
	// maxTwoHolders is how long two boards may hold the address in one act. It
	// should be nothing at all; this is for a machine that stands still at the wrong moment.
	maxTwoHolders = 50 * time.Millisecond
	// pauseIntervals is how long the show looks on after each act, in heartbeats: long
	// enough to read the line, and for the detectors to get to know a new leader.
	pauseIntervals = 8
)

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
	g, err := newGroup(o)
	if err != nil {
		return err
	}
	s := &show{group: g, text: programme{out: out}}
	if asJSON {
		s.text.out = io.Discard
	}
	err = s.play(ctx)
	err = errors.Join(err, g.close())
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

// show is a performance.
type show struct {
	*group
	text   programme
	report report
	leader *board // since the last act
}

// play plays all acts. What is done depends on who leads, which is up to the boards.
func (s *show) play(ctx context.Context) error {
	s.report = report{
		Boards: s.options.Boards, HeartbeatMs: ms(s.options.Heartbeat), Algorithm: s.options.Algorithm.String(),
		Ground: s.lan.about(), Address: s.lan.floating().String(), AskEveryMs: ms(askEvery),
	}
	s.text.begin(s.report)
	if err := s.startAct(ctx); err != nil {
		return err
	}
	first := s.leader
	if err := s.cutAct(ctx, s.leader, "cut the power of %s, the leader"); err != nil {
		return err
	}
	second := s.leader
	if s.options.Boards > MinBoards {
		if err := s.cutAct(ctx, s.leader, "cut the power of %s too"); err != nil {
			return err
		}
	}
	acts := []func(context.Context) error{
		func(ctx context.Context) error { return s.switchOnAct(ctx, first, "switch %s on again") },
	}
	if !s.expected.bullies {
		// A bully refuses to resign: it would be back at once, being the highest still.
		acts = append(acts, s.resignAct)
	}
	acts = append(acts, s.pullAct)
	if second != s.leader {
		acts = append(acts, func(ctx context.Context) error {
			return s.switchOnAct(ctx, second, "switch %s on again as well")
		})
	}
	acts = append(acts, s.stopAct)
	for _, act := range acts {
		if err := act(ctx); err != nil {
			return err
		}
	}
	s.summarise()
	s.text.end(s.report)
	return nil
}

func (s *show) startAct(ctx context.Context) error {
	joint := "to"
	if len(s.boards) == 2 {
		joint = "and"
	}
	text := fmt.Sprintf("switch on %s %s %s", s.boards[0].name, joint, s.boards[len(s.boards)-1].name)
	return s.perform(ctx, scene{act: actStart, text: text, moves: true, do: func(context.Context) error {
		for _, b := range s.boards {
			if err := s.switchOn(b.number); err != nil {
				return err
			}
		}
		return nil
	}})
}

func (s *show) cutAct(ctx context.Context, b *board, text string) error {
	return s.perform(ctx, scene{act: actCut, board: b, text: fmt.Sprintf(text, b.name), moves: true,
		do: func(context.Context) error { return s.cutPower(b.number) }})
}

func (s *show) switchOnAct(ctx context.Context, b *board, text string) error {
	return s.perform(ctx, scene{act: actOn, board: b, text: fmt.Sprintf(text, b.name), moves: s.bullies(b),
		do: func(context.Context) error { return s.switchOn(b.number) }})
}

// bullies reports whether a board that comes back takes the lead. With the
// classical algorithm, which got its name from that, and with most of its
// descendants one that comes before the leader does.
func (s *show) bullies(b *board) bool {
	return s.expected.bullies && s.expected.above(b.rank(), s.leader.rank())
}

func (s *show) resignAct(ctx context.Context) error {
	b := s.leader
	return s.perform(ctx, scene{act: actResign, board: b, text: fmt.Sprintf("ask %s to resign", b.name), moves: true,
		do: func(ctx context.Context) error { return s.resign(ctx, b.number) }})
}

// pullAct pulls the leader's cable, and puts it back.
func (s *show) pullAct(ctx context.Context) error {
	b := s.leader
	err := s.perform(ctx, scene{act: actPull, board: b, text: fmt.Sprintf("pull the cable of %s, the leader", b.name), moves: true,
		do: func(context.Context) error { return s.cable(b.number, false) }})
	if err != nil {
		return err
	}
	return s.perform(ctx, scene{act: actPlug, board: b, text: fmt.Sprintf("put the cable of %s back", b.name), moves: s.bullies(b),
		do: func(context.Context) error { return s.cable(b.number, true) }})
}

func (s *show) stopAct(ctx context.Context) error {
	b := s.leader
	return s.perform(ctx, scene{act: actStop, board: b, text: fmt.Sprintf("stop the daemon on %s (SIGTERM)", b.name), moves: true,
		do: func(context.Context) error { return s.stop(b.number) }})
}

// scene is an act that is about to be played.
type scene struct {
	act   string
	board *board // nil if it is about all of them
	text  string
	moves bool // another board must lead afterwards; otherwise the same one must
	do    func(context.Context) error
}

// perform plays one act: does it, waits until the boards agree, looks on for a
// while, and judges.
func (s *show) perform(ctx context.Context, act scene) error {
	began := time.Now()
	before, _ := s.client.Last()
	r := result{AtMs: ms(began.Sub(s.started)), Act: act.act, Text: act.text, Before: s.name(before), Moved: act.moves}
	if act.board != nil {
		r.Board = act.board.name
	}
	s.text.act(r)
	err := s.attempt(ctx, act)
	if err == nil {
		s.measure(&r, began)
		err = judge(r)
	}
	if ctx.Err() != nil {
		s.text.interrupted()
		return ctx.Err()
	}
	if err != nil {
		r.Error = err.Error()
	}
	s.report.Acts = append(s.report.Acts, r)
	s.text.result(r)
	if err != nil {
		return fmt.Errorf("%s: %w", act.text, err)
	}
	return nil
}

// attempt does what the act does, and waits for what must follow from it.
func (s *show) attempt(ctx context.Context, act scene) error {
	limited, cancel := context.WithTimeout(ctx, max(agreeTimeout, agreeIntervals*s.options.Heartbeat)+elections*s.expected.electionTime)
	defer cancel()
	if err := act.do(limited); err != nil {
		return err
	}
	old := s.leader
	leader, err := s.awaitAgreed(limited, func(b *board) bool { return (!act.moves || b != old) && s.mayLead(b) })
	if err != nil {
		return err
	}
	s.leader = leader
	// Time to look, for the spectators and for anything that might yet go wrong.
	// Its length is left to chance, so that the next act comes at any moment
	// between two heartbeats: always right before one would flatter the figures.
	select {
	case <-time.After(pauseIntervals*s.options.Heartbeat + rand.N(s.options.Heartbeat)):
	case <-ctx.Done():
		return ctx.Err()
	}
	// A board that was not given the processor for a while may ask once whether the leader is still there. It must
	// find that out, and the leader must be the same.
	now, err := s.awaitAgreed(limited, func(*board) bool { return true })
	switch {
	case err != nil:
		return fmt.Errorf("%s led, and the boards no longer agree: %w", leader.name, err)
	case now != leader:
		return fmt.Errorf("%s led, and then %s: the lead moved without a cause", leader.name, now.name)
	case !act.moves && leader != old:
		return fmt.Errorf("the lead moved from %s to %s, and nothing should have moved", old.name, leader.name)
	}
	return nil
}

// mayLead reports whether it is for good that a board leads: where the first in
// the algorithm's order always takes the lead it must be that one.
func (s *show) mayLead(b *board) bool {
	if !s.expected.bullies {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return b == s.best((*board).reachable)
}

// measure fills in the figures.
func (s *show) measure(r *result, began time.Time) {
	gap := s.client.Report(began).Outage
	r.OutageMs, r.ClientPausedMs = ms(gap.Duration()), ms(gap.Paused)
	r.TwoHoldersMs = ms(s.lan.holders().Since(began).Overlap())
	after, _ := s.client.Last()
	r.After = s.name(after)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Term = uint32(s.leader.term)
	if r.Moved {
		r.Reason = s.leader.rose.Identifier()
	}
}

// judge says what is wrong with the figures of an act, if anything.
func judge(r result) error {
	if limit := ms(maxTwoHolders); r.TwoHoldersMs > limit {
		return fmt.Errorf("two boards held the address for %.1f ms, and more than %.0f ms is a failure", r.TwoHoldersMs, limit)
	}
	return nil
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
	sorted := slices.Clone(values)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// ms is a duration in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
