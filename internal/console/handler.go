package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"topdog/internal/boottime"
	"topdog/internal/web"
)

// routes returns all paths. Streams of events end with ctx.
func (s *Server) routes(ctx context.Context) web.Routes {
	get, post := []string{http.MethodGet}, []string{http.MethodPost}
	events := func(g *Group, w http.ResponseWriter, r *http.Request) error { return g.serveEvents(ctx, w, r) }
	status := func(g *Group) *Cache { return g.statuses }
	trace := func(g *Group) *Cache { return g.traces }
	return web.Routes{
		{Path: pathStatus, Methods: get, Serve: s.ofOne(serveShared(status))},
		{Path: pathEvents, Methods: get, Serve: s.ofOne(events)},
		{Path: pathTrace, Methods: get, Serve: s.ofOne(serveShared(trace))},
		{Path: pathScene, Methods: get, Serve: s.ofOne((*Group).serveScene)},
		{Path: pathResign, Methods: post, Serve: act(s, s.one, withoutBody(Backend.Resign), joinHandovers)},
		{Path: pathLeave, Methods: post, Serve: act(s, s.chosen, withoutBody(Backend.Leave), joinHandovers)},
		{Path: pathDrain, Methods: post, Serve: act(s, s.one, Backend.Drain, joinHandovers)},
		{Path: pathUndrain, Methods: post, Serve: act(s, s.one, withoutBody(Backend.Undrain), joinDone)},
		{Path: pathPause, Methods: post, Serve: act(s, s.one, Backend.Pause, joinDone)},
		{Path: pathUnpause, Methods: post, Serve: act(s, s.one, withoutBody(Backend.Unpause), joinDone)},
		{Path: pathKeys, Methods: get, Serve: s.serveKeys},
		{Path: pathReload, Methods: post, Serve: act(s, s.chosen, withoutBody(Backend.ReloadKeys), joinDone)},
		{Path: pathTry, Methods: post, Serve: s.ofOne((*Group).serveTry)},
		{Path: pathGroups, Methods: get, Serve: s.serveGroups},
	}
}

// handler answers all requests. Streams of events end with ctx. A panic of the backend becomes an error, so that no
// question can end the daemon.
func (s *Server) handler(ctx context.Context) http.Handler {
	routes := s.routes(ctx)
	serve := func(w http.ResponseWriter, r *http.Request) (err error) {
		defer web.Recover(s.Report, &err)
		if !connectionOf(r.Context()).await(r.Context(), ctx) {
			panic(http.ErrAbortHandler) // this hangs up: a daemon that stops does not wait for turns
		}
		if r.Method == http.MethodGet && r.ContentLength != 0 {
			return Refuse(http.StatusBadRequest, "this request may have no body", "")
		}
		return routes.Serve(w, r)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connectionOf(r.Context())
		c.limiter.places.SetBusy(&c.place, true)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if err := serve(w, r); err != nil {
			web.Refuse(w, err)
		}
	})
}

// mayAct returns an error unless a client may give the board commands. A client on the control socket may, since the kernel
// has let it connect. On the other sockets clients may only look.
func (s *Server) mayAct(c *connection) error {
	if c.public {
		return denied("this socket only answers questions; commands go to "+s.path, permissionHint)
	}
	return nil
}

// serveFunc answers a request, or returns an error before it has written anything.
type serveFunc = func(http.ResponseWriter, *http.Request) error

// withoutBody makes a function for act out of one that needs no body.
func withoutBody[A any](do func(Backend, context.Context) (A, error)) func(Backend, context.Context, struct{}) (A, error) {
	return func(b Backend, ctx context.Context, _ struct{}) (A, error) { return do(b, ctx) }
}

// act serves a command: it decodes the body, has the backends of the chosen groups carry the command out if the client may
// give it, and answers with what they return.
func act[B, A any](
	s *Server, choose func(*http.Request) ([]*Group, error), do func(Backend, context.Context, B) (A, error), join func([]*Group, []A) A,
) serveFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := s.mayAct(connectionOf(r.Context())); err != nil {
			return err
		}
		groups, err := choose(r)
		if err != nil {
			return err
		}
		var asked B
		if err := decodeBody(w, r, &asked, bodyBytes); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), handoverTime)
		defer cancel()
		answers, err := askAll(ctx, groups, func(ctx context.Context, g *Group) (A, error) {
			answer, err := do(g.backend, ctx, asked)
			g.acts.Add(1) // also after a failure, since a part may have been done
			return answer, late(err, handoverTime)
		})
		if err != nil {
			return err
		}
		return web.WriteJSON(w, http.StatusOK, join(groups, answers))
	}
}

// decodeBody decodes the body of a request, of at most that many bytes, into v. It refuses keys that v does not have:
// to ignore a mistyped key would silently use a default. A missing body counts as {}.
func decodeBody(w http.ResponseWriter, r *http.Request, v any, most int64) error {
	const hint = "docs/status.md says which requests have a body, and what is in it"
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return Refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has a body of more than %d bytes", most), hint)
	}
	if err != nil {
		return Refuse(http.StatusBadRequest, "the body of the request cannot be read: "+err.Error(), hint)
	}
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil || body[0] != '{' || decoder.More() {
		return Refuse(http.StatusBadRequest, "the request has a body that means nothing here: "+web.Excerpt(string(body)), hint)
	}
	return nil
}

// newCache returns a cache of an answer that may be as old as fresh.
func (g *Group) newCache(fresh time.Duration, ask func(context.Context, *Answer) (any, error)) *Cache {
	limit := g.server.limits.status
	return &Cache{
		News: g.news, Life: func() context.Context { return g.server.life }, Limit: limit, Gap: gap, Keep: fresh,
		Ask: func(ctx context.Context, a *Answer) (err error) {
			defer web.Recover(g.server.Report, &err)
			value, err := ask(ctx, a)
			if err == nil {
				a.Text, err = web.Encode(value)
			}
			return late(err, limit)
		},
	}
}

// askStatus asks the backend for its status.
func (g *Group) askStatus(ctx context.Context, a *Answer) (any, error) {
	status, err := g.backend.Status(ctx)
	status.fill()
	a.Status = &status
	return &status, err
}

// askTrace asks the backend how its last changes of role went.
func (g *Group) askTrace(ctx context.Context, _ *Answer) (any, error) {
	trace, err := g.backend.Trace(ctx)
	trace.fill()
	return &trace, err
}

// shared returns an answer of the backend to a request from after this call, or an older answer if it is fresh and still
// true. It is still true if nothing has happened since, and if the lease that it tells of has not ended: a leader extends
// its lease all the time.
func (g *Group) shared(ctx context.Context, c *Cache) (*Answer, error) {
	arrived := boottime.Now()
	return c.Get(ctx, func(a *Answer) bool {
		if a.Asked >= arrived {
			return true
		}
		age := boottime.Now().Sub(a.Asked)
		leaseOver := a.Status != nil && a.Status.LeaseEndsInNs != 0 && age >= time.Duration(a.Status.LeaseEndsInNs)
		return a.err == nil && a.News == g.news() && age <= c.Keep && !leaseOver
	})
}

// serveShared answers with what a cache of the group has.
func serveShared(cache func(*Group) *Cache) func(*Group, http.ResponseWriter, *http.Request) error {
	return func(g *Group, w http.ResponseWriter, r *http.Request) error {
		a, err := g.shared(r.Context(), cache(g))
		if err == nil {
			_, _ = w.Write(a.Text)
		}
		return err
	}
}

func (s *Server) serveKeys(w http.ResponseWriter, r *http.Request) error {
	groups, err := s.chosen(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.status)
	defer cancel()
	answers, err := askAll(ctx, groups, func(ctx context.Context, g *Group) (Keys, error) { return g.backend.Keys(ctx) })
	if err != nil {
		return late(err, s.limits.status)
	}
	keys, err := joinKeys(answers)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, keys)
}

// serveScene answers with what the board was told lately. The text is long, so not everybody may ask for it.
func (g *Group) serveScene(w http.ResponseWriter, r *http.Request) error {
	if err := g.server.mayAct(connectionOf(r.Context())); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), g.server.limits.status)
	defer cancel()
	scene, err := g.backend.Scene(ctx)
	if err != nil {
		return late(err, g.server.limits.status)
	}
	return web.WriteJSON(w, http.StatusOK, scene)
}

// serveTry has the backend try the checks of a configuration.
func (g *Group) serveTry(w http.ResponseWriter, r *http.Request) error {
	if err := g.server.mayAct(connectionOf(r.Context())); err != nil {
		return err
	}
	// A check can be any program, and only root may write those of the configuration. So only root may try them.
	if connectionOf(r.Context()).user != 0 {
		return denied("only root may have the daemon try checks", "use sudo")
	}
	var asked TryRequest
	if err := decodeBody(w, r, &asked, MaxTryBytes); err != nil {
		return err
	}
	// The checks may take as long as their timeouts. A client that does not want to wait hangs up, which ends the checks.
	limits := http.NewResponseController(w)
	_ = limits.SetWriteDeadline(time.Time{})
	tried, err := g.backend.Try(r.Context(), asked)
	_ = limits.SetWriteDeadline(time.Now().Add(g.server.limits.Write))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, tried)
}

// late returns err, with a message and a hint if it means that the backend did not answer in time.
func late(err error, limit time.Duration) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &web.Error{
		Code:    http.StatusGatewayTimeout,
		Message: fmt.Sprintf("the daemon's election loop did not answer within %v", limit),
		Hint:    "journalctl -u topdog may tell why; if it stays so, the watchdog restarts the daemon",
		Err:     err,
	}
}

// serveEvents sends the state of the board, and then every transition, until the server stops.
func (g *Group) serveEvents(stopping context.Context, w http.ResponseWriter, r *http.Request) error {
	alive, err := WantsLife(r)
	if err != nil {
		return err
	}
	if c := connectionOf(r.Context()); !c.limiter.places.Stream(&c.place, c.limiter.maxStreams()) {
		return Refuse(http.StatusServiceUnavailable,
			fmt.Sprintf("each user may have %d streams of events", c.limiter.maxStreams()), "end one, or use GET /v1/status")
	}
	now, err := g.shared(r.Context(), g.statuses)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	stream := Stream{To: w, Stall: stall, Transitions: g.transitions, Stopped: stopping.Done(), isAlive: g.isAlive}
	if alive {
		stream.Alive = func() <-chan struct{} {
			due := make(chan struct{})
			time.AfterFunc(g.server.limits.interval, func() { close(due) })
			return due
		}
	}
	stream.Send(r.Context(), now.Status, now.Text)
	return nil
}

// isAlive returns an error unless the daemon's loop turns.
func (g *Group) isAlive(ctx context.Context) (err error) {
	defer web.Recover(g.server.Report, &err)
	ctx, cancel := context.WithTimeout(ctx, g.server.limits.status)
	defer cancel()
	return late(g.backend.Alive(ctx), g.server.limits.status)
}
