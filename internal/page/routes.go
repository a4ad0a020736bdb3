package page

import (
	"net/http"
	"slices"

	"topdog/internal/web"
)

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
