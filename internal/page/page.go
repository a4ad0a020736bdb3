package page

import (
	"context"
	"embed"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
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
		_ = client.Follow(ctx, console.WatchOptions{Alive: true}, p.heard) // it ends with ctx
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

// listenRetry is how long to wait before the port is opened again.
const listenRetry = time.Second

// listen serves the port until ctx ends.
func (p *page) listen(ctx context.Context) error {
	for told := false; ; {
		port, err := web.Listen(ctx, p.Listen)
		if err == nil {
			told = false
			p.opened(port)
			err = p.server().Run(ctx, port)
		} else if !passes(err) && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if !told {
			told = true
			p.Log.Warnf("%v (tries again every %v)", err, listenRetry)
		}
		select {
		case <-time.After(listenRetry):
		case <-ctx.Done():
			return nil
		}
	}
}

// passes reports whether a port that cannot be opened now may be there later: another program
// may end, and an address may come with the lead or by DHCP.
func passes(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// opened notes on which port people find the page.
func (p *page) opened(port net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Log.Infof("serves HTTP on %s", port.Addr())
	if at, err := netip.ParseAddrPort(port.Addr().String()); err == nil {
		p.place.port = at
		p.place.tell(p.Log)
	}
}

// place is where people find the page.
type place struct {
	port     netip.AddrPort // invalid until there is one
	own      string         // address of this board
	floating []string
	told     []string
}

// heard notes which addresses there are.
func (p *place) heard(t *console.Transition) {
	if t.Status != nil {
		p.own = t.Status.Board.Address
	}
	if len(t.Addresses) > 0 {
		p.floating = nil
		for _, prefix := range t.Addresses {
			address, _, _ := strings.Cut(prefix, "/")
			p.floating = append(p.floating, address)
		}
	}
}

// tell logs where people find the page, when that is known or has changed.
func (p *place) tell(log *logrus.Entry) {
	if !p.port.IsValid() || !p.port.Addr().IsUnspecified() || len(p.floating) == 0 {
		return
	}
	urls := p.urls(p.floating)
	if p.own != "" {
		urls = append(urls, p.urls([]string{p.own})...)
	}
	if slices.Equal(urls, p.told) {
		return
	}
	p.told = urls
	if p.own == "" {
		log.Infof("the page is at %s on the board that leads", strings.Join(urls, " "))
		return
	}
	log.Infof("the page is at %s on the board that leads, and at %s on this one", strings.Join(urls[:len(urls)-1], " "), urls[len(urls)-1])
}

// urls are those of the page at some addresses.
func (p *place) urls(addresses []string) (all []string) {
	for _, text := range addresses {
		if address, err := netip.ParseAddr(text); err == nil {
			all = append(all, "http://"+netip.AddrPortFrom(address, p.port.Port()).String()+"/")
		}
	}
	return all
}

// versionHeader names the version of the files of the page, in each status: a page that was
// loaded from another version says that it is outdated.
const versionHeader = "Topdog-Page"

// routes are what there is.
func (p *page) routes() []web.Route {
	return append(slices.Clip(p.assets.Routes()), []web.Route{
		{Path: "/v1/status", Serve: p.serveStatus},
		{Path: "/v1/history", Serve: p.serveHistory},
		{Path: "/v1/events", Serve: p.serveEvents},
		{Path: "/metrics", Serve: p.serveMetrics},
		{Path: "/leader", AnswersOptions: true, Serve: inText(p.source.leads)},
		{Path: "/follower", AnswersOptions: true, Serve: inText(p.source.follows)},
		{Path: "/fit", AnswersOptions: true, Serve: inText(p.source.fit)},
		{Path: "/healthz", AnswersOptions: true, Serve: inText(p.source.serves)},
	}...)
}

// serveStatus passes the daemon's status on.
func (p *page) serveStatus(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set(versionHeader, p.assets.Version())
	a, err := p.source.shown(r.Context())
	if err != nil {
		return err
	}
	h.Set("Cache-Control", "no-cache") // it is kept, and asked for again
	h.Set("ETag", a.tag)
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", "application/json")
	_, _ = w.Write(a.text) // a client that has gone is no failure
	return nil
}

// serveMetrics tells Prometheus how this board is. That there is no daemon is one of the metrics.
func (p *page) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	s := p.sample(r.Context())
	w.Header().Set("Content-Type", metricsType)
	_, _ = w.Write(s.exposition()) // a client that has gone is no failure
	return nil
}

// serveHistory tells what was seen since this process began.
func (p *page) serveHistory(w http.ResponseWriter, _ *http.Request) error {
	p.mu.Lock()
	told := p.history.since(p.watched())
	p.mu.Unlock()
	return web.WriteJSON(w, http.StatusOK, told)
}

// files are the page. A browser gets them as they are; there is nothing to build.
//
//go:embed assets
var files embed.FS

func newAssets() (*web.Assets, error) { return web.NewAssets(files, "assets") }
