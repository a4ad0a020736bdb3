package demo

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"topdog/internal/lab/scene"
)

// This file makes the group a stage, on which scenes are played: those of the show and of the recording, and line by line
// what a person does.

// Machines are the boards and the client.
func (g *group) Machines() (all []int) {
	for n := scene.Client; n <= len(g.boards); n++ {
		all = append(all, n)
	}
	return all
}

// Start starts the daemon of a board, which has power then. All boards have the configuration of the demo.
func (g *group) Start(n int, _ []string) error {
	b := g.boards[n-1]
	g.reap(b)
	if b.daemon != nil {
		return nil
	}
	if err := g.lan.link(n, true, g.state(n).Cable); err != nil {
		return err
	}
	return g.start(b)
}

// Power gives a board power. Or it ends the board as a power cut would, from one moment to the next and without a word to anybody.
func (g *group) Power(n int, on bool) error {
	if on {
		return g.Start(n, nil)
	}
	b := g.boards[n-1]
	g.reap(b)
	g.update(func() { b.gone(daemonOff) }) // first: it does not end by itself
	if b.daemon != nil {
		b.daemon.Kill()
	}
	err := g.lan.link(n, false, g.state(n).Cable)
	return errors.Join(err, b.end())
}

// Signal has a board's daemon meet what a signal does to a process. It is in this process, so it gets none.
func (g *group) Signal(n int, _ scene.Processes, signal scene.Signal) (err error) {
	b := g.boards[n-1]
	if b.daemon == nil {
		return nil
	}
	switch signal {
	case scene.Terminate: // it ends in good order
		b.stop()
		err = b.join()
		g.update(func() { b.gone(daemonStopped) })
	case scene.Kill: // it does nothing more, and what watches over it sees to the rest
		b.gate.shut()
		g.update(func() { b.gone(daemonKilled) })
		g.lan.killed(n)
		err = b.end()
	case scene.Freeze:
		g.update(func() { b.is.Daemon = daemonFrozen })
		b.gate.shut()
	case scene.Thaw:
		g.update(func() { b.is.Daemon = daemonRuns })
		b.gate.open()
	}
	return err
}

// Cable pulls a board's cable out, or puts it back.
func (g *group) Cable(n int, in bool) error {
	if err := g.lan.link(n, g.state(n).Power, in); err != nil {
		return err
	}
	g.update(func() { g.boards[n-1].is.Cable = in })
	return nil
}

// Filter has the switch lose frames.
func (g *group) Filter(filters []scene.Filter) error {
	if err := g.lan.filter(filters); err != nil {
		return err
	}
	g.update(func() {
		g.loss = 0
		for _, f := range filters {
			if f.Election {
				g.loss = int(math.Round(100 * f.Share))
			}
		}
		for _, b := range g.boards {
			has := func(fits func(scene.Filter) bool) bool { return slices.ContainsFunc(filters, fits) }
			from := func(f scene.Filter) bool { return slices.Contains(f.From, b.number) }
			b.is.Deaf = has(func(f scene.Filter) bool { return f.From == nil && slices.Contains(f.To, b.number) })
			b.is.Mute = has(func(f scene.Filter) bool { return f.To == nil && from(f) })
			b.is.Apart = has(func(f scene.Filter) bool { return from(f) && slices.Contains(f.To, scene.Client) })
		}
	})
	return nil
}

// Topdog gives topdog a command on a board. The only one is to resign.
func (g *group) Topdog(n int, args []string) (said string, err error) {
	b := g.boards[n-1]
	switch {
	case !slices.Equal(args, []string{"resign"}):
		return "", scene.ErrCannot
	case b.daemon == nil:
		return "", fmt.Errorf("%s does not run", b.name)
	}
	h, err := b.daemon.Resign(g.ctx)
	return h.Text, err
}

// Holders are the boards that have the address.
func (g *group) Holders() []int { return g.lan.holders().Current() }

// State is what a board has told last.
func (g *group) State(n int) (scene.State, error) {
	is := g.state(n)
	return scene.State{Role: is.Role, Leader: g.name(is.Follows), Holding: slices.Contains(g.Holders(), n)}, nil
}

// Answers reports whether it is a board that answers the client now.
func (g *group) Answers(n int) bool {
	who, silent := g.client.Last()
	return who == n && silent <= silentAfter
}

// Mark forgets what has happened to the address, and Seen tells what has happened since.
func (g *group) Mark() { g.marked = time.Now() }

// Seen is how often the address has moved, and whether two boards have had it. They should not at any time, but for a moment in
// which this machine stands still.
func (g *group) Seen() (moves int, two bool) {
	since := g.lan.holders().Since(g.marked)
	return since.Moves(), since.Overlap() > maxTwoHolders
}

// Now is for how long there is this demo.
func (g *group) Now() time.Duration { return time.Since(g.started) }

// Pass waits.
func (g *group) Pass(d time.Duration) {
	select {
	case <-time.After(d):
	case <-g.ctx.Done():
	}
}

// What a scene must keep to; otherwise it has failed.
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
)

// Until waits until nothing is missing, for as long as the algorithm may take.
func (g *group) Until(_ time.Duration, missing func() string) (lack string) {
	most := max(agreeTimeout, agreeIntervals*g.options.Heartbeat) + elections*g.expected.electionTime
	for end := time.Now().Add(most); ; {
		if lack = missing(); lack == "" || time.Now().After(end) {
			return lack
		}
		select {
		case <-time.After(askEvery):
		case err := <-g.failed:
			return err.Error()
		case <-g.ctx.Done():
			return g.ctx.Err().Error()
		}
	}
}
