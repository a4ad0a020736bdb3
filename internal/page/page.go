package page

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/internal/web"
)

// Options are those of `topdog page`.
type Options struct {
	Listen string   // "HOST:PORT"; without a host it is all addresses of this machine
	Hosts  []string // names by which requests may call this machine, besides the name that its daemon has
	Log    *logrus.Entry
}

const (
	// outageAfter is how long after a change of leader the page asks how long nobody led. The board that has taken over
	// has other things to do first.
	outageAfter = time.Second
	// listenRetry is how long the page waits before it opens its port again.
	listenRetry = time.Second
)

// hostHint is for a request that names another machine.
const hostHint = "use the address, the name of the board, or a name of page_hosts in the configuration"

// Run serves the page until ctx ends. That is no error. Run waits for a daemon that does not run yet, and for a port or an
// address that it cannot have yet.
func Run(ctx context.Context, client *console.Client, o Options) error {
	p, err := newPage(o, newGroup(ctx, client, ""))
	if err != nil {
		return err
	}
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following.Go(func() { p.follow(ctx, client) })
	return p.listen(ctx)
}

// page answers what is asked on the port.
type page struct {
	Options
	assets  web.Routes
	version string           // of the assets
	began   boottime.Instant // when this process began
	readers chan struct{}    // of /v1/events, one element for each

	mu     sync.Mutex
	groups []*group // of the daemon; never empty
	gone   bool     // the log says that there is no daemon
}

// newPage returns a page of some groups.
func newPage(o Options, groups ...*group) (*page, error) {
	assets, version, err := web.Assets("assets", files)
	if err != nil {
		return nil, err
	}
	return &page{
		Options: o, assets: assets, version: version, began: boottime.Now(), groups: groups,
		readers: make(chan struct{}, maxReaders),
	}, nil
}

// watched returns how long this process has run. The times of the history count from its beginning.
func (p *page) watched() time.Duration { return boottime.Now().Sub(p.began) }

// server returns the server of the page, for any port.
func (p *page) server() *web.Server {
	return &web.Server{
		Routes: p.routes(), Limits: web.DefaultLimits, Names: p.names, HostHint: hostHint,
		Report: func(err error) { p.Log.Warn(err) },
	}
}

// names returns the names of this machine.
func (p *page) names() (names []string) {
	for _, g := range p.all() {
		names = append(names, g.source.now().BoardName)
	}
	return append(names, p.Hosts...)
}

// heard takes in an event of the stream of a group.
func (p *page) heard(g *group, t console.Transition) error {
	if t.Event == console.EventAlive {
		g.events.heard(t)
		return nil
	}
	before := g.source.now()
	g.source.heard(t) // first: no reader's stream may begin with a status from before this event
	g.events.heard(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	g.history.heard(p.watched(), &t)
	p.log(&t)
	if t.Leader != "" && t.Leader != before.Leader && t.Status == nil {
		time.AfterFunc(outageAfter, func() { p.lookBack(g) })
	}
	return nil
}

// log says that the daemon has gone, or is back. p.mu is held.
func (p *page) log(t *console.Transition) {
	switch {
	case t.Event == console.EventDaemonGone && !p.gone:
		p.gone = true
		p.Log.Warnf("no daemon: %s", t.ReasonText)
	case t.Event == console.EventSnapshot && p.gone:
		p.gone = false
		p.Log.Info("follows the daemon again")
	}
}

// lookBack asks how long nobody led before the last change of leader. Only a status says that. If the daemon does not
// answer, the next snapshot will say it.
func (p *page) lookBack(g *group) {
	a, err := g.source.shown(context.Background())
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g.history.told(a.Asked.Sub(p.began), a.Status)
}

// listen serves the port until ctx ends.
func (p *page) listen(ctx context.Context) error {
	for logged := false; ; {
		port, err := web.Listen(ctx, p.Listen)
		if err == nil {
			logged = false
			p.Log.Infof("serves HTTP on %s", port.Addr())
			err = p.server().Run(ctx, port)
		} else if !mayPass(err) && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if !logged {
			logged = true
			p.Log.Warnf("%v (tries again every %v)", err, listenRetry)
		}
		select {
		case <-time.After(listenRetry):
		case <-ctx.Done():
			return nil
		}
	}
}

// mayPass reports whether a port that cannot be opened now may be opened later: another program may end, and an address
// may come with the lead or by DHCP.
func mayPass(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// versionHeader is the header of each status for the version of the page's files. A page that was loaded from another
// version says that it is outdated.
const versionHeader = "Topdog-Page"

// checks are the methods by which load balancers ask.
var checks = []string{http.MethodGet, http.MethodHead, http.MethodOptions}

// routes returns all paths.
func (p *page) routes() web.Routes {
	return append(slices.Clip(p.assets), []web.Route{
		{Path: "/v1/groups", Serve: p.serveGroups},
		{Path: "/v1/status", Serve: p.ofOne(p.serveStatus)},
		{Path: "/v1/history", Serve: p.ofOne(p.serveHistory)},
		{Path: "/v1/events", Serve: p.ofOne(p.serveEvents)},
		{Path: "/metrics", Serve: p.serveMetrics},
		{Path: "/leader", Methods: checks, Serve: p.ofOne(inText((*source).leads))},
		{Path: "/follower", Methods: checks, Serve: p.ofOne(inText((*source).follows))},
		{Path: "/fit", Methods: checks, Serve: p.ofOne(inText((*source).fit))},
		{Path: "/healthz", Methods: checks, Serve: p.serveHealth},
	}...)
}

// serveStatus passes the daemon's status on.
func (p *page) serveStatus(g *group, w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set(versionHeader, p.version)
	a, err := g.source.shown(r.Context())
	if err != nil {
		return err
	}
	h.Set("Content-Type", "application/json")
	web.WriteTagged(w, r, a.Tag, a.Text)
	return nil
}

// serveHistory tells what was seen since this process began.
func (p *page) serveHistory(g *group, w http.ResponseWriter, _ *http.Request) error {
	p.mu.Lock()
	told := g.history.since(p.watched())
	p.mu.Unlock()
	return web.WriteJSON(w, http.StatusOK, told)
}

// files are the files of the page. A browser gets them as they are; there is nothing to build.
//
//go:embed assets
var files embed.FS
