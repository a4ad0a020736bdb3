package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"topdog/internal/lab/demopage"
)

const (
	// drawEvery is how often the picture is drawn, if it has changed. The shortest
	// flash of an LED lasts as long.
	drawEvery = 50 * time.Millisecond
	// showProblemFor is how long a failure stays on the screen.
	showProblemFor = 5 * time.Second
)

// Live draws the boards on a terminal and does what the keys ask for, until a key or ctx
// ends it. The terminal is given back as it was.
func Live(ctx context.Context, o Options, in, out *os.File) (err error) {
	g, err := newGroup(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	t, err := openTerminal(in, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }() // also when something panics
	l := &live{pageSource: newPageSource(g), terminal: t}
	return l.run(ctx, l.show)
}

// live is a picture that lives.
type live struct {
	*pageSource
	terminal *terminal
	keys     keys

	mu        sync.Mutex
	problem   string
	problemAt time.Time
}

// show draws and does what is asked for until it is told to quit.
func (l *live) show(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	typed := make(chan []byte)
	var wg sync.WaitGroup
	var readErr error
	wg.Go(func() { defer cancel(); readErr = l.terminal.read(ctx, typed) })
	defer func() { cancel(); wg.Wait(); err = errors.Join(err, readErr) }()
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	for {
		if err := l.terminal.show(l.look()); err != nil {
			return fmt.Errorf("draw the picture: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case input := <-typed:
			for _, c := range l.keys.parse(input) {
				if c.verb == doQuit {
					return nil
				}
				l.do(ctx, c)
			}
		case <-tick.C:
		}
	}
}

func (l *live) reportProblem(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problem, l.problemAt = text, time.Now()
}

// do puts what a command asks for into the queue. Which board is meant is decided when
// its turn comes: the leader may be another one by then.
func (l *live) do(ctx context.Context, c command) {
	if c.board > len(l.boards) {
		l.reportProblem(fmt.Sprintf("there is no board %d", c.board))
		return
	}
	_, err := l.queue(ctx, func() error {
		a, err := l.wanted(c)
		if err == nil {
			err = l.perform(a)
		}
		if err != nil && ctx.Err() == nil {
			l.reportProblem(err.Error())
		}
		return err
	})
	if err != nil {
		l.reportProblem("that was too fast")
	}
}

// wanted is what a command asks for, as the boards are now.
func (l *live) wanted(c command) (demopage.Action, error) {
	of := func(n int, verb demopage.Verb) (demopage.Action, error) {
		return demopage.Action{Verb: verb, Board: n}, nil
	}
	leader, led := l.leading()
	switch c.verb {
	case doPower:
		switch is := l.state(c.board); {
		case is.runs():
			return of(c.board, demopage.PowerOff)
		case is.Power:
			return of(c.board, demopage.Start)
		}
		return of(c.board, demopage.PowerOn)
	case doCable:
		if l.state(c.board).Cable {
			return of(c.board, demopage.CableOut)
		}
		return of(c.board, demopage.CableIn)
	case doResign:
		if !led {
			return demopage.Action{}, errors.New("nobody leads, so nobody can resign")
		}
		return of(leader, demopage.Resign)
	}
	if n := l.numberWhere(func(b *board) bool { return l.state(b.number).Daemon == daemonStopped }); n != 0 {
		return of(n, demopage.Start)
	}
	if !led {
		return demopage.Action{}, errors.New("nobody leads, so there is no leader to stop")
	}
	return of(leader, demopage.Stop)
}

// look collects what the picture shows.
func (l *live) look() view {
	v := view{pageAbout: l.about(), Stands: l.states(), TwoHolders: l.lan.holders().Since(l.started).Overlap(), Which: l.keys.which}
	who, silent := l.client.Last()
	v.Answers = l.name(who)
	if silent > silentAfter {
		v.Silent = silent
	}
	now := time.Now()
	for _, o := range slices.Backward(l.watch.outages()) {
		v.Outages = append(v.Outages, outageView{
			Ago: now.Sub(o.To), Lasted: o.Duration(), Before: l.name(o.Before), After: l.name(o.After), Why: o.why,
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.problemAt) < showProblemFor {
		v.Problem = l.problem
	}
	return v
}
