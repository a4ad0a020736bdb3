package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"topdog/internal/lab/demopage"
	"topdog/internal/lab/webpage"
	"topdog/internal/web"
)

const (
	// queueLength is how many actions may wait.
	queueLength = 16
	// lookEvery is how often the boards' own views are asked for, while somebody looks at the page.
	lookEvery = 50 * time.Millisecond
	// watchedFor is how long somebody counts as looking after the last request.
	watchedFor = 2 * time.Second
)

// Page serves the demonstration in the browser, at HOST:PORT, until ctx ends. It writes where it is. Where the
// boards need root, the page is served by a child without privileges, which is started by a command; see [demopage.ServeByChild].
func Page(ctx context.Context, o Options, listen string, child []string, out io.Writer) (err error) {
	port, err := web.Listen(ctx, listen)
	if err != nil {
		return err
	}
	defer port.Close()
	o.guarded = true
	g, err := newGroup(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	s := newPageSource(g)
	token := demopage.NewToken()
	sayWhere(out, webpage.URLs(port.Addr(), demopage.Fragment(token)))

	shown := demopage.Options{Boards: o.Boards, Token: token, Report: func(err error) { fmt.Fprintln(out, err) }}
	return s.run(ctx, func(ctx context.Context) error {
		if o.Namespaces {
			return demopage.ServeByChild(ctx, child, port, s, shown)
		}
		return demopage.Serve(ctx, port, s, shown)
	})
}

// sayWhere writes where the page is.
func sayWhere(out io.Writer, urls []string) {
	fmt.Fprintln(out, "The demonstration is at")
	for _, url := range urls {
		fmt.Fprintln(out, " ", url)
	}
	fmt.Fprintln(out, "Whoever has the part behind the # may pull plugs; without it one may look. Ctrl-C ends it.")
}

// pageSource has the boards for the page.
type pageSource struct {
	*group
	watch    *watch
	jobs     chan pageJob
	lookedAt atomic.Int64 // when somebody looked last, since the beginning
}

// pageJob is an action that waits for its turn.
type pageJob struct {
	ctx  context.Context
	do   func() error
	done chan error // holds how it went
}

func newPageSource(g *group) *pageSource {
	return &pageSource{group: g, watch: newWatch(g), jobs: make(chan pageJob, queueLength)}
}

// run switches the boards on and has them shown, until ctx, the boards or whoever shows them end. Nothing of it runs on when it returns.
func (s *pageSource) run(ctx context.Context, show func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also when something panics
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { s.work(ctx) })
	wg.Go(func() { s.look(ctx) })
	wg.Go(func() {
		defer cancel()
		switch err := s.Act(ctx, demopage.Action{Verb: demopage.AllOn}); {
		case ctx.Err() != nil:
		case err != nil:
			failed = err
		default:
			select {
			case failed = <-s.failed:
			case <-ctx.Done():
			}
		}
	})
	err := show(ctx)
	cancel()
	wg.Wait()
	return errors.Join(failed, err)
}

// Look returns a document.
func (s *pageSource) Look(_ context.Context, d demopage.Document) (text []byte, nowNs int64, err error) {
	s.lookedAt.Store(s.at(time.Now()))
	var v any
	switch d {
	case demopage.State:
		v = s.document()
	case demopage.Takeover:
		v = s.watch.lastTakeover()
	case demopage.About:
		v = s.about()
	default:
		return nil, 0, fmt.Errorf("there is no document %q", d)
	}
	text, err = json.Marshal(v)
	return text, s.at(time.Now()), err
}

// Act puts an action into the queue, and waits until it is done.
func (s *pageSource) Act(ctx context.Context, a demopage.Action) error {
	done, err := s.queue(ctx, func() error { return refusal(s.perform(a)) })
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return &demopage.Refusal{Text: "it takes too long, and may be done yet or not"}
	}
}

// queue puts something into the queue. The channel has how it went.
func (s *pageSource) queue(ctx context.Context, do func() error) (done <-chan error, err error) {
	job := pageJob{ctx, do, make(chan error, 1)}
	select {
	case s.jobs <- job:
		return job.done, nil
	default:
		return nil, &demopage.Refusal{Busy: true, Text: fmt.Sprintf("%d actions are waiting already", queueLength)}
	}
}

// work does one action after the other.
func (s *pageSource) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case job := <-s.jobs:
			if job.ctx.Err() == nil { // else nobody waits for it any more
				job.done <- job.do()
			}
		}
	}
}

// refusal is an error of the boards as a person is told.
func refusal(err error) error {
	if _, ok := errors.AsType[*demopage.Refusal](err); ok || err == nil {
		return err
	}
	return &demopage.Refusal{Text: err.Error()}
}

// look keeps what the boards tell up to date while somebody looks at the page.
func (s *pageSource) look(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var viewed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if s.at(time.Now())-s.lookedAt.Load() > int64(watchedFor) {
			continue
		}
		s.watch.lookForTakeover(ctx)
		if now := time.Now(); now.Sub(viewed) >= askViewsEvery {
			viewed = now
			s.askViews(ctx)
		}
	}
}
