package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"topdog/internal/boottime"
	"topdog/internal/console"
)

// moment is something that happened during a failover, as one of those saw it who
// took part.
type moment struct {
	atNs      int64  // CLOCK_BOOTTIME, the same for all on one machine
	who, what string // the bench, a kernel, the client, or a daemon
}

// traceFailover lets one leader of topdog's default setting lose its cable, and writes down from
// the last heartbeat to the client's first answer what happened when: what the
// daemons noted themselves, what the kernels reported, and what the client saw.
func (o options) traceFailover(ctx context.Context, show *progress, dir string) error {
	s := &session{plan: plan{systems: allSystems()[:1]}, dir: dir, show: show, record: record{facts: map[string]string{}}}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	show.begin("one failover", 0)
	g, err := startedGroup(ctx, s.plan.systems[0], variant{boards: 3})
	if g == nil {
		return err
	}
	var moments []moment
	if err == nil {
		moments, err = g.trace(ctx)
	}
	show.close()
	if err = errors.Join(err, g.End()); err != nil {
		return err
	}
	return write(o.report, func(w io.Writer) error {
		_, err := io.WriteString(w, traceTable(moments))
		return err
	})
}

// trace pulls the leader's cable and collects what everybody saw, from the last heartbeat that the new leader heard to the
// client's first answer.
func (g *Group) trace(ctx context.Context) (list []moment, err error) {
	s, err := g.newStage(ctx, named(allEvents(), "cable-pulled")[0], newSlot(), turn{1, 0.5})
	defer s.close()
	if err != nil {
		return nil, err
	}
	faultAt := time.Now()
	if err := s.leader.Pull(); err != nil {
		return nil, err
	}
	pulled := time.Now()
	if err := s.awaitTakeover(); err != nil {
		return nil, err
	}
	gap := s.Asker.Report(faultAt).Longest
	if gap.After == 0 {
		return nil, errors.New("nobody took over")
	}
	now, nowNs := time.Now(), int64(boottime.Now())
	add := func(at time.Time, who, what string, about ...any) {
		list = append(list, moment{nowNs + at.Sub(now).Nanoseconds(), who, fmt.Sprintf(what, about...)})
	}
	add(gap.From, "client", "gets the last answer of pi%d", gap.Before)
	add(faultAt, "bench", "begins to pull the cable of pi%d", s.leader.Number)
	add(pulled, "bench", "the cable is pulled for certain")
	add(gap.To, "client", "gets the first answer of pi%d", gap.After)
	answered := list[len(list)-1].atNs
	for _, a := range s.heard.since(faultAt) {
		i := slices.IndexFunc(g.boards, func(b *board) bool { return bytes.Equal(b.HardwareAddr, a.from) })
		add(a.at, "client", "hears the address announced by pi%d", i+1)
	}
	for _, span := range g.Holders.Since(faultAt).Spans {
		who := fmt.Sprintf("kernel of pi%d", span.Board)
		if span.From.After(faultAt) {
			add(span.From, who, "reports that it has the address")
		}
		if span.Board == s.leader.Number {
			add(span.To, who, "reports that it has lost the address")
		}
	}
	steps, heartbeat, err := g.steps(ctx, gap.After)
	if err != nil {
		return nil, err
	}
	list = append(list, steps...)
	if heartbeat == 0 {
		return nil, fmt.Errorf("pi%d has noted no change of leader", gap.After)
	}
	list = without(list, func(m moment) bool { return m.atNs < heartbeat || m.atNs > answered })
	slices.SortStableFunc(list, func(a, b moment) int { return cmp.Compare(a.atNs, b.atNs) })
	return list, nil
}

// steps asks all boards for the steps of their newest changes. heartbeat is the last one that the new leader has heard of the former;
// 0 if it has noted no change.
func (g *Group) steps(ctx context.Context, leader int) (list []moment, heartbeat int64, err error) {
	for _, b := range g.boards {
		trace, err := console.Dial(b.file("s")).Trace(ctx)
		if err != nil {
			return nil, 0, fmt.Errorf("ask pi%d for its steps: %w", b.Number, err)
		}
		for _, change := range trace.Newest().Changes {
			if b.Number == leader {
				heartbeat = change.ZeroNs
			}
			for _, step := range change.Steps {
				list = append(list, moment{step.AtNs, fmt.Sprintf("pi%d", b.Number), stepWords(step)})
			}
		}
	}
	return list, heartbeat, nil
}

// stepWords says what a step is, in the words of `topdog trace --json`.
func stepWords(s console.TraceStep) string {
	words := []string{strings.ReplaceAll(s.Step, "_", " ")}
	for _, more := range []string{s.Message, s.Role, cmp.Or(s.BoardName, s.Board), s.ReasonText} {
		if more != "" {
			words = append(words, more)
		}
	}
	if s.Role != "" {
		words[0] = "becomes"
	}
	if s.DueNs != nil {
		words = append(words, fmt.Sprintf("(%.3f ms late)", float64(s.AtNs-*s.DueNs)/1e6))
	}
	if s.Failed {
		words = append(words, "(failed)")
	}
	return strings.Join(words, " ")
}

// traceTable writes moments for people: since the first, since the one before.
func traceTable(list []moment) string {
	var t strings.Builder
	fmt.Fprintf(&t, "%10s %10s  %-14s %s\n", "ms", "+µs", "who", "what")
	for i, m := range list {
		since := ""
		if i > 0 {
			since = fmt.Sprintf("+%.0f", float64(m.atNs-list[i-1].atNs)/1e3)
		}
		fmt.Fprintf(&t, "%10.3f %10s  %-14s %s\n", float64(m.atNs-list[0].atNs)/1e6, since, m.who, m.what)
	}
	return t.String()
}
