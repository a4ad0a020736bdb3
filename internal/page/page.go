package page

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/internal/web"
)

// Options are those of `topdog page`.
type Options struct {
	Listen string   // "HOST:PORT"; without a host it is all addresses of this machine
	Hosts  []string // names of this machine that requests may have, beside what its daemon calls it
	Log    *logrus.Entry
}

// outageAfter is how long after a change of leader the daemon is asked for how long nobody
// led. The board that took over has other things to do first.
const outageAfter = time.Second

// hostHint is for who asks by a name that is not this machine's.
const hostHint = "use the address, the name of the board, or a name of page_hosts in the configuration"

// Run serves the page until ctx ends, which is no error. It waits for a daemon that is not there, and for a
// port or an address that is not there.
func Run(ctx context.Context, client *console.Client, o Options) error {
	p, err := newPage(ctx, client.StatusText, o)
	if err != nil {
		return err
	}
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following.Go(func() { p.lookBack(ctx) })
	following.Go(func() {
		_ = client.Follow(ctx, console.WatchOptions{Alive: true, EachAlive: true}, p.heard) // it ends with ctx
	})
	return p.listen(ctx)
}

// page is what is behind the port.
type page struct {
	Options
	assets  *web.Assets
	source  *source
	events  *events
	began   boottime.Instant // when this process did
	changed chan struct{}    // the leader has changed

	mu      sync.Mutex
	history *history
	gone    bool // that there is no daemon was told
	place   place
}

func newPage(ctx context.Context, ask func(context.Context) ([]byte, error), o Options) (*page, error) {
	assets, err := newAssets()
	if err != nil {
		return nil, err
	}
	p := &page{
		Options: o, assets: assets, source: newSource(ctx, ask), events: newEvents(), history: newHistory(),
		began: boottime.Now(), changed: make(chan struct{}, 1),
	}
	return p, nil
}

// watched is for how long this process has been there, which is what the history counts by.
func (p *page) watched() time.Duration { return boottime.Now().Sub(p.began) }

// server serves the page on whatever port.
func (p *page) server() *web.Server {
	return &web.Server{
		Routes: p.routes(), Limits: web.DefaultLimits, Names: p.names, HostHint: hostHint,
		Report: func(err error) { p.Log.Warn(err) },
	}
}

// names are those of this machine.
func (p *page) names() []string { return append([]string{p.source.now().BoardName}, p.Hosts...) }

// heard takes in what the daemon's stream tells.
func (p *page) heard(t console.Transition) error {
	if t.Event == console.EventAlive {
		p.events.heard(t)
		return nil
	}
	before := p.source.now()
	p.source.heard(t) // first: no stream may begin with a status that is older than it
	p.events.heard(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history.heard(p.watched(), &t)
	p.tell(&t)
	p.place.heard(&t)
	p.place.tell(p.Log)
	if t.Leader != "" && t.Leader != before.Leader && t.Status == nil {
		select {
		case p.changed <- struct{}{}:
		default: // it will be looked at
		}
	}
	return nil
}

// tell logs that the daemon is there, or is not. p.mu is held.
func (p *page) tell(t *console.Transition) {
	switch {
	case t.Event == console.EventDaemonGone:
		p.gone = true
		p.Log.Warnf("no daemon: %s", t.ReasonText)
	case t.Event == console.EventSnapshot && p.gone:
		p.gone = false
		p.Log.Info("follows the daemon again")
	}
}

// lookBack asks, some time after the leader has changed, for how long nobody led: only the status tells that.
func (p *page) lookBack(ctx context.Context) {
	for {
		select {
		case <-p.changed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(outageAfter):
		case <-ctx.Done():
			return
		}
		a, err := p.source.shown(ctx)
		if err != nil {
			continue // the next snapshot tells it too
		}
		if status, err := a.status(); err == nil {
			p.mu.Lock()
			p.history.told(a.asked.Sub(p.began), status)
			p.place.own = status.Board.Address
			p.place.tell(p.Log)
			p.mu.Unlock()
		}
	}
}
