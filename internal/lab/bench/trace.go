package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	AtNs int64  `json:"at_ns"` // CLOCK_BOOTTIME, the same for all on one machine
	Who  string `json:"who"`   // the bench, a kernel, the client, or a daemon
	What string `json:"what"`
}

// clockPair is one moment on two clocks: Go's, and the kernel's CLOCK_BOOTTIME.
type clockPair struct {
	here time.Time
	ns   int64
}

func readClocks() clockPair { return clockPair{time.Now(), int64(boottime.Now())} }

// kernel converts a time of this process.
func (c clockPair) kernel(t time.Time) int64 { return c.ns + t.Sub(c.here).Nanoseconds() }

// trace lets one leader of topdog's default setting lose its cable, and writes down from
// the last heartbeat to the client's first answer what happened when: what the
// daemons noted themselves, what the kernels reported, and what the client saw.
func (o options) trace(ctx context.Context, show *progress, dir string) error {
	moments, err := traceOnNewRig(ctx, show, dir)
	if err != nil {
		return err
	}
	show.close()
	var errs []error
	if o.json != "" {
		errs = append(errs, write(o.json, func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(moments)
		}))
	}
	if o.report != "" {
		errs = append(errs, write(o.report, func(w io.Writer) error {
			_, err := io.WriteString(w, traceTable(moments))
			return err
		}))
	}
	return errors.Join(errs...)
}

// traceOnNewRig builds a LAN for one failover.
func traceOnNewRig(ctx context.Context, show *progress, dir string) ([]moment, error) {
	sys := allSystems()[0].(*topdog)
	show.say("building topdog")
	var err error
	if sys.path, sys.version, err = buildTopdog(ctx, dir); err != nil {
		return nil, err
	}
	show.say("one failover")
	r, err := newRig(sys, 3, variant{})
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.startInTurn(ctx); err != nil {
		return nil, err
	}
	return r.traceFailover(ctx, sys)
}

// traceFailover pulls the leader's cable and collects what everybody saw.
func (r *rig) traceFailover(ctx context.Context, sys *topdog) ([]moment, error) {
	t, err := r.newTrial(ctx, event{}, newSlot(), turn{1, 0.5})
	if err != nil {
		return nil, err
	}
	defer t.end()
	heard, err := r.hearAnnouncements()
	if err != nil {
		return nil, err
	}
	defer heard.close()
	faultAt := time.Now()
	if err := t.leader.Pull(); err != nil {
		return nil, err
	}
	pulled := time.Now()
	if err := t.awaitTakeover(ctx); err != nil {
		return nil, err
	}
	clocks := readClocks()
	gap := t.asker.Report(faultAt).Longest
	if gap.After == 0 {
		return nil, errors.New("nobody took over")
	}
	list := []moment{
		{clocks.kernel(gap.From), "client", fmt.Sprintf("gets the last answer of pi%d", gap.Before)},
		{clocks.kernel(faultAt), "bench", fmt.Sprintf("begins to pull the cable of pi%d", t.leader.Number)},
		{clocks.kernel(pulled), "bench", "the cable is pulled for certain"},
		{clocks.kernel(gap.To), "client", fmt.Sprintf("gets the first answer of pi%d", gap.After)},
	}
	for _, a := range heard.all() {
		list = append(list, moment{clocks.kernel(a.at), "client", "hears the address announced by " + r.nameOf(a.mac)})
	}
	list = append(list, t.kernelReports(faultAt, clocks)...)
	steps, err := r.collectSteps(ctx, sys, gap.After)
	if err != nil {
		return nil, err
	}
	return upTo(append(list, steps.moments...), steps.zero, clocks.kernel(gap.To)), nil
}

// kernelReports is who got the address since the fault, and when the old leader lost it.
func (t *trial) kernelReports(faultAt time.Time, clocks clockPair) (list []moment) {
	for _, s := range t.Holders.Since(faultAt).Spans {
		who := fmt.Sprintf("kernel of pi%d", s.Board)
		if s.From.After(faultAt) {
			list = append(list, moment{clocks.kernel(s.From), who, "reports that it has the address"})
		}
		if s.Board == t.leader.Number {
			list = append(list, moment{clocks.kernel(s.To), who, "reports that it has lost the address"})
		}
	}
	return list
}

// daemonSteps is what the daemons noted.
type daemonSteps struct {
	moments []moment
	zero    int64 // the last heartbeat that the new leader heard
}

// collectSteps asks every daemon for the steps of its last change of leader.
func (r *rig) collectSteps(ctx context.Context, sys *topdog, winner int) (all daemonSteps, err error) {
	for _, b := range r.boards {
		trace, err := console.Dial(sys.socket(b)).Trace(ctx)
		if err != nil {
			return all, fmt.Errorf("ask pi%d for its steps: %w", b.Number, err)
		}
		newest := trace.Newest()
		if len(newest.Changes) == 0 {
			if b.Number == winner {
				return all, fmt.Errorf("pi%d has noted no change of leader", b.Number)
			}
			continue
		}
		change := newest.Changes[0]
		if b.Number == winner {
			all.zero = change.ZeroNs
		}
		for _, s := range change.Steps {
			all.moments = append(all.moments, moment{s.AtNs, fmt.Sprintf("pi%d", b.Number), stepWords(s)})
		}
	}
	return all, nil
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
func (r *rig) nameOf(mac []byte) string {
	for _, b := range r.boards {
		if bytes.Equal(b.HardwareAddr, mac) {
			return fmt.Sprintf("pi%d", b.Number)
		}
	}
	return "somebody else"
}
