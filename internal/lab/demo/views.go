package demo

import (
	"context"
	"sync"
	"time"

	"topdog/internal/console"
	"topdog/internal/daemon"
)

const (
	// askViewsEvery is how often the boards are asked for their own view, and askViewWithin how long one
	// may take to tell.
	askViewsEvery = 250 * time.Millisecond
	askViewWithin = 200 * time.Millisecond
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
	asked map[int]bool // boards that have not answered yet
}

func newViews(g *group) *views {
	return &views{group: g, known: map[int]ownView{}, asked: map[int]bool{}}
}

func (v *views) of(n int) ownView {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[n]
}

// ask asks all boards that run, each on its own: one may stand still. It does not wait for the answers.
func (v *views) ask(ctx context.Context) {
	for _, b := range v.boards {
		d, frozen := v.runningDaemon(b)
		v.mu.Lock()
		switch {
		case d == nil:
			delete(v.known, b.number)
		case !frozen && !v.asked[b.number]:
			v.asked[b.number] = true
			go v.askOne(ctx, b.number, d.Status)
		}
		v.mu.Unlock()
	}
}

// askOne asks one board. A daemon that is frozen in the middle of it answers when it goes on.
func (v *views) askOne(ctx context.Context, n int, status func(context.Context) (console.Status, error)) {
	ctx, cancel := context.WithTimeout(ctx, askViewWithin)
	defer cancel()
	s, err := status(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.asked, n)
	if err == nil {
		v.known[n] = v.read(&s)
	}
}

// read takes what the page shows from a status.
func (v *views) read(s *console.Status) ownView {
	view := ownView{grade: s.Grade}
	for i := range s.Boards {
		o := &s.Boards[i]
		n := v.numberOfName(o.Name)
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

// numberOfName is the number of the board with a name; 0 if it is none of them.
func (g *group) numberOfName(name string) int {
	for _, b := range g.boards {
		if b.name == name {
			return b.number
		}
	}
	return 0
}

// runningDaemon returns the daemon of a board, nil if it does not run.
func (g *group) runningDaemon(b *board) (d *daemon.Daemon, frozen bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return b.asked, b.frozen
}
