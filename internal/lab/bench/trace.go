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
	AtNs      int64  // CLOCK_BOOTTIME, the same for all on one machine
	Who, What string // the bench, a kernel, the client, or a daemon
}

// clockPair is one moment on two clocks: Go's, and the kernel's CLOCK_BOOTTIME.
type clockPair struct {
	here time.Time
	ns   int64
}

func readClocks() clockPair { return clockPair{time.Now(), int64(boottime.Now())} }

// kernel converts a time of this process.
func (c clockPair) kernel(t time.Time) int64 { return c.ns + t.Sub(c.here).Nanoseconds() }

// traceFailover lets one leader of topdog's default setting lose its cable, and writes down from
// the last heartbeat to the client's first answer what happened when: what the
// daemons noted themselves, what the kernels reported, and what the client saw.
func (o options) traceFailover(ctx context.Context, show *progress, dir string) error {
	s := &session{plan: plan{systems: allSystems()[:1]}, dir: dir, show: show, record: record{facts: map[string]string{}}}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	show.say("one failover")
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

// trace pulls the leader's cable and collects what everybody saw.
func (g *Group) trace(ctx context.Context) ([]moment, error) {
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
	if err := s.await("takeover"); err != nil {
		return nil, err
	}
	clocks := readClocks()
	gap := s.asker.Report(faultAt).Longest
	if gap.After == 0 {
		return nil, errors.New("nobody took over")
	}
	list := []moment{
		{clocks.kernel(gap.From), "client", fmt.Sprintf("gets the last answer of pi%d", gap.Before)},
		{clocks.kernel(faultAt), "bench", fmt.Sprintf("begins to pull the cable of pi%d", s.leader.Number)},
		{clocks.kernel(pulled), "bench", "the cable is pulled for certain"},
		{clocks.kernel(gap.To), "client", fmt.Sprintf("gets the first answer of pi%d", gap.After)},
	}
	for _, a := range s.heard.since(faultAt) {
		list = append(list, moment{clocks.kernel(a.at), "client", "hears the address announced by " + g.nameOf(a.from)})
	}
	list = append(list, s.kernelReports(faultAt, clocks)...)
	steps, zero, err := g.daemonSteps(ctx, gap.After)
	if err != nil {
		return nil, err
	}
	return upTo(append(list, steps...), zero, clocks.kernel(gap.To)), nil
}

// kernelReports is who got the address since the fault, and when the old leader lost it.
func (s *stage) kernelReports(faultAt time.Time, clocks clockPair) (list []moment) {
	for _, span := range s.Group.Holders.Since(faultAt).Spans {
		who := fmt.Sprintf("kernel of pi%d", span.Board)
		if span.From.After(faultAt) {
			list = append(list, moment{clocks.kernel(span.From), who, "reports that it has the address"})
		}
		if span.Board == s.leader.Number {
			list = append(list, moment{clocks.kernel(span.To), who, "reports that it has lost the address"})
		}
	}
	return list
}

// daemonSteps asks every daemon for the steps of its last change of leader. They begin with the last heartbeat that the new
// leader heard.
func (g *Group) daemonSteps(ctx context.Context, winner int) (steps []moment, zero int64, err error) {
	for _, b := range g.boards {
		trace, err := console.Dial(b.file("s")).Trace(ctx)
		if err != nil {
			return nil, 0, fmt.Errorf("ask pi%d for its steps: %w", b.Number, err)
		}
		changes := trace.Newest().Changes
		if len(changes) == 0 && b.Number == winner {
			return nil, 0, fmt.Errorf("pi%d has noted no change of leader", b.Number)
		}
		if len(changes) == 0 {
			continue
		}
		if b.Number == winner {
			zero = changes[0].ZeroNs
		}
		for _, s := range changes[0].Steps {
			steps = append(steps, moment{s.AtNs, fmt.Sprintf("pi%d", b.Number), stepWords(s)})
		}
	}
	return steps, zero, nil
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

// upTo keeps what happened from one moment to another, in order.
func upTo(list []moment, from, to int64) []moment {
	list = slices.DeleteFunc(list, func(m moment) bool { return m.AtNs < from || m.AtNs > to })
	slices.SortStableFunc(list, func(a, b moment) int { return cmp.Compare(a.AtNs, b.AtNs) })
	return list
}

// traceTable writes moments for people: since the first, since the one before.
func traceTable(list []moment) string {
	var t strings.Builder
	fmt.Fprintf(&t, "%10s %10s  %-14s %s\n", "ms", "+µs", "who", "what")
	for i, m := range list {
		since := ""
		if i > 0 {
			since = fmt.Sprintf("+%.0f", float64(m.AtNs-list[i-1].AtNs)/1e3)
		}
		fmt.Fprintf(&t, "%10.3f %10s  %-14s %s\n", float64(m.AtNs-list[0].AtNs)/1e6, since, m.Who, m.What)
	}
	return t.String()
}

// nameOf returns which board has a hardware address.
func (g *Group) nameOf(mac []byte) string {
	for _, b := range g.boards {
		if bytes.Equal(b.HardwareAddr, mac) {
			return fmt.Sprintf("pi%d", b.Number)
		}
	}
	return "somebody else"
}
