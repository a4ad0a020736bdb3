package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// settledIntervals is for how many heartbeats a group is led before it is recorded: the
	// detectors have got to know the leader, and the lights show their steady patterns. Those of
	// followers, which began when there was a leader, blink every 2 s: the recording begins between.
	settledIntervals = 45
	// calmIntervals is for how many nothing is done before each act. A part of a heartbeat
	// comes on top, which is left to chance: see attempt.
	calmIntervals = 14
	// minRecorded is how many boards the acts need.
	minRecorded = 3
)

// Record plays the acts that the moving picture of the README shows, and returns what
// happened. The group ends as it began, so that the picture can begin anew.
func Record(ctx context.Context, o Options) (recording Recording, err error) {
	if o.Boards < minRecorded {
		return Recording{}, fmt.Errorf("%d boards: must be at least %d, since two leaders go one after the other", o.Boards, minRecorded)
	}
	g, err := newGroup(o)
	if err != nil {
		return Recording{}, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	// The best board comes first, so that it leads.
	for i := range g.boards {
		if err := g.switchOn(len(g.boards) - i); err != nil {
			return Recording{}, err
		}
		if _, err := g.led(ctx, g.boards[len(g.boards)-1]); err != nil {
			return Recording{}, err
		}
	}
	if err := pass(ctx, settledIntervals*o.Heartbeat); err != nil {
		return Recording{}, err
	}
	r, stop, done := g.record(), make(chan struct{}), make(chan struct{})
	go func() { defer close(done); r.watch(stop) }()
	err = r.play(ctx)
	close(stop)
	<-done
	return r.finish(), err
}

// led waits until a board leads.
func (g *group) led(ctx context.Context, by *board) (*board, error) {
	ctx, cancel := context.WithTimeout(ctx, agreeTimeout)
	defer cancel()
	return g.awaitAgreed(ctx, func(b *board) bool { return b == by })
}

// play does everything in turn: power, cable, both back, and a leader that resigns.
func (r *recorder) play(ctx context.Context) error {
	g := r.group
	n := len(g.boards)
	first, second, third := g.boards[n-1], g.boards[n-2], g.boards[n-3]
	leader := first
	for _, step := range []struct {
		act    string
		text   string
		board  *board
		do     func() error
		leader *board // who leads then
	}{
		{actCut, "%s loses its power", first, func() error { return g.cutPower(first.number) }, second},
		{actPull, "the cable of %s is pulled", second, func() error { return g.cable(second.number, false) }, third},
		{actOn, "%s has power again", first, func() error { return g.switchOn(first.number) }, third},
		{actPlug, "the cable of %s is back", second, func() error { return g.cable(second.number, true) }, third},
		{actResign, "%s is asked to hand over", third, func() error { return g.resign(ctx, third.number) }, first},
	} {
		if err := pass(ctx, calmIntervals*g.options.Heartbeat+rand.N(g.options.Heartbeat)); err != nil {
			return err
		}
		r.act(RecordedAct{Act: step.act, Board: step.board.name, Text: fmt.Sprintf(step.text, step.board.name), Moves: step.leader != leader})
		if err := step.do(); err != nil {
			return err
		}
		var err error
		if leader, err = g.led(ctx, step.leader); err != nil {
			return fmt.Errorf("%s %s: %w", step.act, step.board.name, err)
		}
	}
	return pass(ctx, calmIntervals*g.options.Heartbeat)
}

// pass lets time pass.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
