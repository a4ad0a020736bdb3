package simpage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"topdog/internal/lab/scenario"
)

// line is what stands behind `topdog sim run` on a command line.
type line string

// base are the flags that describe the boards and the LAN. All boards know each other from the
// start, as the papers assume.
func (c *choice) base() line {
	loss := ""
	if c.LossPercent > 0 {
		loss = fmt.Sprintf(" --loss %d%%", c.LossPercent)
	}
	return line(fmt.Sprintf("--algorithm %s --nodes %d --members%s --seed %d", c.Algorithm, c.Boards, loss, c.Seed))
}

// until is the line of a run that ends then.
func (l line) until(end time.Duration) line { return line(fmt.Sprintf("%s --for %v", l, end)) }

// read reads the flags as the command does: those that this page uses.
func (l line) read() (*scenario.Request, error) {
	r := scenario.NewRequest()
	f, s := pflag.NewFlagSet("topdog sim run", pflag.ContinueOnError), &r.Scenario
	f.StringVar(&r.Algorithm, "algorithm", r.Algorithm, "")
	f.IntVar(&s.Nodes, "nodes", s.Nodes, "")
	f.BoolVar(&s.Members, "members", false, "")
	f.StringVar(&r.Loss, "loss", r.Loss, "")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "")
	f.DurationVar(&s.For, "for", s.For, "")
	f.StringVar(&r.TraceFrom, "trace-from", "", "")
	for name, values := range r.Faults {
		f.StringArrayVar(values, name, nil, "")
	}
	if err := f.Parse(strings.Fields(string(l))); err != nil {
		return nil, err
	}
	return r, r.Read()
}

// play plays it.
func (l line) play(ctx context.Context, options scenario.Options) (*scenario.Play, error) {
	r, err := l.read()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", l, err)
	}
	return r.Scenario.Run(ctx, options)
}

// group finds out who leads when nothing has failed. The same seed gives the same leader then.
func (c *choice) group(ctx context.Context) (*group, error) {
	g := &group{algorithm: c.Algorithm, boards: c.Boards}
	before, err := c.base().until(failsAt).play(ctx, scenario.Options{})
	if err != nil {
		return nil, err
	}
	for _, b := range before.LAN.Boards() {
		if b.Holding() {
			g.leader = int(b.Config.ID)
		}
	}
	if g.leader == 0 {
		return nil, badQuery("choose another seed, or less loss", "with this seed nobody leads after %v, because messages are lost", failsAt)
	}
	return g, nil
}

// line makes a command line of the choices.
func (c *choice) line(g *group) (line, error) {
	f := failureNamed(c.Failure)
	l := c.base() + line(" "+f.in(g))
	switch {
	case c.Notice == 0:
		return l, nil
	case slices.Contains(f.hits(g), c.Notice):
		return "", badQuery("choose another board, or 0 for all", "notice: board %d is one of those that fail", c.Notice)
	}
	return line(fmt.Sprintf("%s --%s %d", l, scenario.Notice, c.Notice)), nil
}

const (
	// The recording begins two heartbeats before something fails, and ends three after the boards have agreed.
	before = 250 * time.Millisecond
	after  = 300 * time.Millisecond
	// All algorithms need less than three seconds for a leader, if they get one. With much loss
	// the elections of score, of two seconds each, are repeated.
	usuallyWatched = 3 * time.Second
	lossyWatched   = 8 * time.Second
)

// play plays what was chosen, until the boards have agreed.
func (c *choice) play(ctx context.Context) (*scenario.Play, *group, line, error) {
	g, err := c.group(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	l, err := c.line(g)
	if err != nil {
		return nil, nil, "", err
	}
	end := failsAt + failureNamed(c.Failure).lasts + usuallyWatched
	if c.LossPercent > 0 {
		end += lossyWatched - usuallyWatched
	}
	options := scenario.Options{Record: true, All: true, Lead: before}
	play, err := l.until(end).play(ctx, options)
	if err != nil {
		return nil, nil, "", err
	}
	// What follows is the steady state. The same flags with a shorter time give the same run until then.
	if at, settled := play.Settled(); settled {
		end = min(end, (max(at, last(play.Happened())) + after).Round(100*time.Millisecond))
		if play, err = l.until(end).play(ctx, options); err != nil {
			return nil, nil, "", err
		}
	}
	return play, g, l.until(end), nil
}

// last is the end of a list that has one.
func last(times []time.Duration) time.Duration { return times[len(times)-1] }
