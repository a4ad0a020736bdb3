package simpage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"topdog/internal/lab/scenario"
)

// line is a command line of `topdog sim run`.
type line []flag

// base are the flags that describe the boards and the LAN. All boards know each other from the
// start, as the papers assume.
func (c *choice) base() line {
	l := line{{"algorithm", c.Algorithm}, {"nodes", strconv.Itoa(c.Boards)}, {"members", ""}}
	if c.LossPercent > 0 {
		l = append(l, flag{"loss", fmt.Sprintf("%d%%", c.LossPercent)})
	}
	return append(l, flag{"seed", strconv.Itoa(c.Seed)})
}

// String is the command for a shell.
func (l line) String() string {
	words := []string{"topdog sim run"}
	for _, f := range l {
		words = append(words, strings.TrimSpace("--"+f.name+" "+f.value))
	}
	return strings.Join(words, " ")
}

// read reads the flags as the command does.
func (l line) read() (*scenario.Request, error) {
	r := scenario.NewRequest()
	for _, f := range l {
		if err := set(r, f); err != nil {
			return nil, err
		}
	}
	return r, r.Read()
}

// set is what the command line does with a flag, for those that this page uses.
func set(r *scenario.Request, f flag) (err error) {
	s := &r.Scenario
	switch f.name {
	case "algorithm":
		r.Algorithm = f.value
	case "nodes":
		s.Nodes, err = strconv.Atoi(f.value)
	case "members":
		s.Members = true
	case "loss":
		r.Loss = f.value
	case "seed":
		s.Seed, err = strconv.ParseUint(f.value, 10, 64)
	case "for":
		s.For, err = time.ParseDuration(f.value)
	case "trace-from":
		r.TraceFrom = f.value
	default:
		for _, kind := range scenario.Kinds() {
			if kind.String() == f.name {
				*r.Faults[kind] = append(*r.Faults[kind], f.value)
				return nil
			}
		}
		err = errors.New("there is no such flag")
	}
	if err != nil {
		return fmt.Errorf("--%s %s: %w", f.name, f.value, err)
	}
	return nil
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
	before, err := append(c.base(), flag{"for", failsAt.String()}).play(ctx, scenario.Options{})
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
	l := append(c.base(), f.faults(g)...)
	if c.Notice > 0 {
		for _, id := range f.hits(g) {
			if id == c.Notice {
				return nil, badQuery("choose another board, or 0 for all", "notice: board %d is one of those that fail", id)
			}
		}
		l = append(l, flag{scenario.Notice.String(), strconv.Itoa(c.Notice)})
	}
	return l, nil
}

// The recording begins two heartbeats before something fails, and ends three after the boards have agreed.
const (
	before = 250 * time.Millisecond
	after  = 300 * time.Millisecond
)

// latest is when a run ends in which the boards do not agree.
func (c *choice) latest() time.Duration {
	end := failsAt + usuallyWatched
	if c.LossPercent > 0 {
		end = failsAt + lossyWatched
	}
	switch c.Failure {
	case "partition":
		end += partitioned
	case "pause_leader":
		end += paused
	}
	return end
}

// play plays what was chosen, until the boards have agreed.
func (c *choice) play(ctx context.Context) (*scenario.Play, *group, line, error) {
	g, err := c.group(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	l, err := c.line(g)
	if err != nil {
		return nil, nil, nil, err
	}
	options := scenario.Options{Record: true, All: true, Lead: before}
	end := c.latest()
	until := func() line { return append(l[:len(l):len(l)], flag{"for", end.String()}) }
	play, err := until().play(ctx, options)
	if err != nil {
		return nil, nil, nil, err
	}
	// What follows is the steady state. The same flags with a shorter time give the same run until then.
	if at, settled := play.Settled(); settled {
		end = min(end, (max(at, last(play.Happened())) + after).Round(100*time.Millisecond))
		if play, err = until().play(ctx, options); err != nil {
			return nil, nil, nil, err
		}
	}
	return play, g, until(), nil
}

// last is the end of a list that has one.
func last(times []time.Duration) time.Duration { return times[len(times)-1] }
