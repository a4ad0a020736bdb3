package demo

import (
	"context"
	"sync"
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

// ownView is what a board says of itself and takes the others for.
type ownView struct {
	grade string
	sees  []pageView
}

// views are the boards' own views, as they told them last.
type views struct {
	*group

	mu    sync.Mutex
	known map[int]ownView
}

func newViews(g *group) *views { return &views{group: g, known: map[int]ownView{}} }

func (v *views) of(n int) ownView {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[n]
}

// ask asks all boards that can tell, and forgets those that do not run.
func (v *views) ask(ctx context.Context) {
	told, _ := askAll(ctx, v.group, (*daemon.Daemon).Status)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range v.boards {
		if is := v.state(b.number); !is.runs() {
			delete(v.known, b.number)
		} else if s, ok := told[b.number]; ok {
			v.known[b.number] = v.read(&s)
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

// read takes what the page shows from a status.
func (v *views) read(s *console.Status) ownView {
	view := ownView{grade: s.Grade}
	for i := range s.Boards {
		o := &s.Boards[i]
		n := v.numberWhere(func(b *board) bool { return b.name == o.Name })
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
		view.sees = append(view.sees, pageView{n, as})
	}
	return view
}
