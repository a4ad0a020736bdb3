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
	b := s.backend
	get, post := []string{http.MethodGet}, []string{http.MethodPost}
	events := func(w http.ResponseWriter, r *http.Request) error { return s.serveEvents(ctx, w, r) }
	return web.Routes{
		{Path: pathStatus, Methods: get, Serve: s.serveShared(s.statuses)},
		{Path: pathEvents, Methods: get, Serve: events},
		{Path: pathTrace, Methods: get, Serve: s.serveShared(s.traces)},
		{Path: pathScene, Methods: get, Serve: s.serveScene},
		{Path: pathResign, Methods: post, Serve: act(s, withoutBody(b.Resign))},
		{Path: pathLeave, Methods: post, Serve: act(s, withoutBody(b.Leave))},
		{Path: pathDrain, Methods: post, Serve: act(s, b.Drain)},
		{Path: pathUndrain, Methods: post, Serve: act(s, withoutBody(b.Undrain))},
		{Path: pathPause, Methods: post, Serve: act(s, b.Pause)},
		{Path: pathUnpause, Methods: post, Serve: act(s, withoutBody(b.Unpause))},
		{Path: pathKeys, Methods: get, Serve: s.serveKeys},
		{Path: pathReload, Methods: post, Serve: act(s, withoutBody(b.ReloadKeys))},
		{Path: pathTry, Methods: post, Serve: s.serveTry},
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
func withoutBody[A any](do func(context.Context) (A, error)) func(context.Context, struct{}) (A, error) {
	return func(ctx context.Context, _ struct{}) (A, error) { return do(ctx) }
}

// act serves a command: it decodes the body, has the backend carry the command out if the client may give it, and answers
// with what the backend returns.
func act[B, A any](s *Server, do func(context.Context, B) (A, error)) serveFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := s.mayAct(connectionOf(r.Context())); err != nil {
			return err
		}
		var asked B
		if err := decodeBody(w, r, &asked, bodyBytes); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), handoverTime)
		defer cancel()
		done, err := do(ctx, asked)
		s.acts.Add(1) // also after a failure, since a part may have been done
		if err != nil {
			return late(err, handoverTime)
		}
		return web.WriteJSON(w, http.StatusOK, done)
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
func (s *Server) newCache(fresh time.Duration, ask func(context.Context, *Answer) (any, error)) *Cache {
	limit := s.limits.status
	return &Cache{
		News: s.news, Life: func() context.Context { return s.life }, Limit: limit, Gap: gap, Keep: fresh,
		Ask: func(ctx context.Context, a *Answer) (err error) {
			defer web.Recover(s.Report, &err)
			value, err := ask(ctx, a)
			if err == nil {
				a.Text, err = web.Encode(value)
			}
			return late(err, limit)
		},
	}
}

// askStatus asks the backend for its status.
func (s *Server) askStatus(ctx context.Context, a *Answer) (any, error) {
	status, err := s.backend.Status(ctx)
	status.fill()
	a.Status = &status
	return &status, err
}

// askTrace asks the backend how its last changes of role went.
func (s *Server) askTrace(ctx context.Context, _ *Answer) (any, error) {
	trace, err := s.backend.Trace(ctx)
	trace.fill()
	return &trace, err
}

// shared returns an answer of the backend to a request from after this call, or an older answer if it is fresh and still
// true. It is still true if nothing has happened since, and if the lease that it tells of has not ended: a leader extends
// its lease all the time.
func (s *Server) shared(ctx context.Context, c *Cache) (*Answer, error) {
	arrived := boottime.Now()
	return c.Get(ctx, func(a *Answer) bool {
		if a.Asked >= arrived {
			return true
		}
		age := boottime.Now().Sub(a.Asked)
		leaseOver := a.Status != nil && a.Status.LeaseEndsInNs != 0 && age >= time.Duration(a.Status.LeaseEndsInNs)
		return a.err == nil && a.News == s.news() && age <= c.Keep && !leaseOver
	})
}

// serveShared answers with what a cache has.
func (s *Server) serveShared(c *Cache) serveFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		a, err := s.shared(r.Context(), c)
		if err == nil {
			_, _ = w.Write(a.Text)
		}
		return err
	}
}

func (s *Server) serveKeys(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.status)
	defer cancel()
	keys, err := s.backend.Keys(ctx)
	if err != nil {
		return late(err, s.limits.status)
	}
	return web.WriteJSON(w, http.StatusOK, keys)
}

// serveScene answers with what the board was told lately. The text is long, so not everybody may ask for it.
func (s *Server) serveScene(w http.ResponseWriter, r *http.Request) error {
	if err := s.mayAct(connectionOf(r.Context())); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.status)
	defer cancel()
	scene, err := s.backend.Scene(ctx)
	if err != nil {
		return late(err, s.limits.status)
	}
	return web.WriteJSON(w, http.StatusOK, scene)
}

// serveTry has the backend try the checks of a configuration.
func (s *Server) serveTry(w http.ResponseWriter, r *http.Request) error {
	if err := s.mayAct(connectionOf(r.Context())); err != nil {
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
	tried, err := s.backend.Try(r.Context(), asked)
	_ = limits.SetWriteDeadline(time.Now().Add(s.limits.Write))
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

// Publish adds a transition to all streams, with the next number. It never blocks.
func (s *Server) Publish(t Transition) { s.transitions.Add(t) }

// Published returns the number of the last transition, for Status.Transition.
func (s *Server) Published() uint64 { return s.transitions.Newest() }

// serveEvents sends the state of the board, and then every transition, until the server stops.
func (s *Server) serveEvents(stopping context.Context, w http.ResponseWriter, r *http.Request) error {
	alive, err := WantsLife(r)
	if err != nil {
		return err
	}
	if c := connectionOf(r.Context()); !c.limiter.places.Stream(&c.place, c.limiter.maxStreams()) {
		return Refuse(http.StatusServiceUnavailable,
			fmt.Sprintf("each user may have %d streams of events", c.limiter.maxStreams()), "end one, or use GET /v1/status")
	}
	now, err := s.shared(r.Context(), s.statuses)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	stream := Stream{To: w, Stall: stall, Transitions: s.transitions, Stopped: stopping.Done(), isAlive: s.isAlive}
	if alive {
		stream.Alive = func() <-chan struct{} {
			due := make(chan struct{})
			time.AfterFunc(s.limits.interval, func() { close(due) })
			return due
		}
	}
	stream.Send(r.Context(), now.Status, now.Text)
	return nil
}

// isAlive returns an error unless the daemon's loop turns.
func (s *Server) isAlive(ctx context.Context) (err error) {
	defer web.Recover(s.Report, &err)
	ctx, cancel := context.WithTimeout(ctx, s.limits.status)
	defer cancel()
	return late(s.backend.Alive(ctx), s.limits.status)
}
