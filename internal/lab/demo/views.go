package demo

import (
	"context"
	"time"

	"topdog/internal/console"
	"topdog/internal/daemon"
)

const (
	// askViewsEvery is how often the boards are asked for their own view, and tellWithin how long one
	// may take to tell something.
	askViewsEvery = 250 * time.Millisecond
	tellWithin    = 200 * time.Millisecond
)

// askViews asks all boards for their own view, and notes what they tell.
func (g *group) askViews(ctx context.Context) {
	told, _ := askAll(ctx, g, (*daemon.Daemon).Status)
	g.mu.Lock()
	defer g.mu.Unlock()
	for n, s := range told {
		if is := &g.boards[n-1].is; is.runs() {
			is.Grade, is.Sees = s.Grade, g.viewOf(&s)
		}
	}
}

// askAll asks all daemons that run and are not frozen. It reports whether all of them have told in time.
func askAll[T any](ctx context.Context, g *group, ask func(*daemon.Daemon, context.Context) (T, error)) (told map[int]T, all bool) {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	type answer struct {
		board int
		told  T
		err   error
	}
	answers := make(chan answer, len(g.boards))
	asked := 0
	for _, b := range g.boards {
		g.mu.Lock()
		d, may := b.asked, b.is.Daemon == daemonRuns
		g.mu.Unlock()
		if !may {
			continue
		}
		asked++
		go func() {
			t, err := ask(d, ctx)
			answers <- answer{b.number, t, err}
		}()
	}
	told, all = map[int]T{}, true
	for range asked {
		select {
		case a := <-answers:
			switch {
			case a.err == nil:
				told[a.board] = a.told
			case ctx.Err() != nil:
				all = false
			}
		case <-ctx.Done(): // a daemon that was frozen in the middle of it answers when it goes on
			return told, false
		}
	}
	return told, all
}

// viewOf is what a board takes the others for.
func (g *group) viewOf(s *console.Status) (sees []pageView) {
	for i := range s.Boards {
		o := &s.Boards[i]
		n := g.numberWhere(func(b *board) bool { return b.name == o.Name })
		if o.Self || n == 0 {
			continue
		}
		as := o.Role
		switch {
		case o.Gone:
			as = seenGone
		case o.Stale:
			as = seenSilent
		case as == "":
			as = seenUnknown
		}
		sees = append(sees, pageView{n, as})
	}
	return sees
}
