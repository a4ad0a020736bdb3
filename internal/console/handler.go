package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"topdog/internal/boottime"
)

// route is what a path is for.
type route struct {
	path, method string
	serve        func(*answer, *http.Request) error
}

// routes lists what there is. Streams of events end with ctx.
func (s *Server) routes(ctx context.Context) []route {
	b := s.backend
	events := func(w *answer, r *http.Request) error { return s.serveEvents(ctx, w, r) }
	return []route{
		{pathStatus, http.MethodGet, s.show(s.serveShared(s.statuses))},
		{pathEvents, http.MethodGet, s.show(events)},
		{pathTrace, http.MethodGet, s.show(s.serveShared(s.traces))},
		{pathResign, http.MethodPost, act(s, withoutBody(b.Resign))},
		{pathLeave, http.MethodPost, act(s, withoutBody(b.Leave))},
		{pathDrain, http.MethodPost, act(s, b.Drain)},
		{pathUndrain, http.MethodPost, act(s, withoutBody(b.Undrain))},
		{pathPause, http.MethodPost, act(s, b.Pause)},
		{pathUnpause, http.MethodPost, act(s, withoutBody(b.Unpause))},
		{pathKeys, http.MethodGet, s.show(s.serveKeys)},
		{pathReload, http.MethodPost, act(s, withoutBody(b.ReloadKeys))},
		{pathTry, http.MethodPost, s.serveTry},
	}
}

// handler answers all requests; streams of events end with ctx.
func (s *Server) handler(ctx context.Context) http.Handler {
	routes := s.routes(ctx)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connectionOf(r.Context())
		c.limiter.asked(c)
		out := &answer{ResponseWriter: w}
		if err := s.serveRoute(routes, out, r); err != nil {
			out.fail(err)
		}
	})
}

// serveRoute finds out what a request wants. There is no http.ServeMux because its refusals are no JSON. A panic of the
// backend becomes an error: whoever asks how the board is must not be able to bring it down.
func (s *Server) serveRoute(routes []route, w *answer, r *http.Request) (err error) {
	defer s.recover(&err)
	i := slices.IndexFunc(routes, func(known route) bool { return known.path == r.URL.Path })
	if i < 0 {
		var there []string
		for _, known := range routes {
			there = append(there, known.method+" "+known.path)
		}
		return Refuse(http.StatusNotFound, fmt.Sprintf("there is no %s here", excerpt(r.URL.Path)), "there are "+list(there))
	}
	method := routes[i].method
	if r.Method != method {
		w.Header().Set("Allow", method)
		return Refuse(http.StatusMethodNotAllowed,
			fmt.Sprintf("%s does not go with %s", excerpt(r.Method), r.URL.Path), fmt.Sprintf("use %s %s", method, r.URL.Path))
	}
	if method != http.MethodGet {
		if err := s.mayAct(connectionOf(r.Context())); err != nil {
			return err
		}
	}
	return routes[i].serve(w, r)
}

// mayAct returns an error unless a client may have the board do something.
func (s *Server) mayAct(c *connection) error {
	switch {
	case c.public:
		return denied("this socket only shows; what acts is "+s.path, s.policyOfSocket().hint())
	case c.caller.uid == unidentified.uid:
		return denied("the kernel does not say who is calling, so nothing is done", "")
	}
	return s.authorise(c.caller)
}

// show serves a request that has no body, or an empty one.
func (s *Server) show(serve func(*answer, *http.Request) error) func(*answer, *http.Request) error {
	return func(w *answer, r *http.Request) error {
		if err := decodeBody(w, r, &struct{}{}, s.limits.body); err != nil {
			return err
		}
		return serve(w, r)
	}
}

// withoutBody is what the backend does for a request that has no body.
func withoutBody[A any](do func(context.Context) (A, error)) func(context.Context, struct{}) (A, error) {
	return func(ctx context.Context, _ struct{}) (A, error) { return do(ctx) }
}

// act decodes the body of a request, has the backend do what it says, and answers with what has happened.
func act[B, A any](s *Server, do func(context.Context, B) (A, error)) func(*answer, *http.Request) error {
	return func(w *answer, r *http.Request) error {
		var asked B
		if err := decodeBody(w, r, &asked, s.limits.body); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.limits.resign)
		defer cancel()
		done, err := do(ctx, asked)
		s.acts.Add(1) // also after a failure: something may have been done
		if err != nil {
			return late(err, s.limits.resign)
		}
		return w.json(done)
	}
}

// decodeBody reads the body of a request into v, which may take so many bytes. It refuses keys that v does not have:
// to pass over them would be a silent default. No body is as good as {}.
func decodeBody(w *answer, r *http.Request, v any, most int64) error {
	example, err := encode(v)
	if err != nil {
		return err
	}
	hint := "send " + strings.TrimSpace(string(example))
	if hint == "send {}" {
		hint = "send none, or {}"
	}
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
		return Refuse(http.StatusBadRequest, "the request has a body that means nothing here: "+excerpt(string(body)), hint)
	}
	return nil
}

// made is an answer that is shared by all clients who ask at the same time.
type made struct {
	text   []byte
	status *Status // nil if it is a trace
}

// newCache returns a cache of an answer that may be as old as fresh.
func (s *Server) newCache(ask func(context.Context) (any, *Status, error), fresh time.Duration) *Cache[*made] {
	limit := s.limits.status
	return &Cache[*made]{
		News: s.news, Life: func() context.Context { return s.life }, Limit: limit, Gap: s.limits.gap, Keep: fresh,
		Ask: func(ctx context.Context) (m *made, err error) {
			defer s.recover(&err)
			value, status, err := ask(ctx)
			if err != nil {
				return nil, late(err, limit)
			}
			text, err := encode(value)
			return &made{text, status}, err
		},
	}
}

// shared returns an answer that was asked for after this call, or one that is fresh and still true: nothing has happened
// since. A leader extends its lease all the time, so an answer with a lease that is over by now is not true any more.
func (s *Server) shared(ctx context.Context, c *Cache[*made]) (*made, error) {
	arrived := boottime.Now()
	return c.Get(ctx, func(a *Answer[*made]) bool {
		if a.asked >= arrived {
			return true
		}
		age := boottime.Now().Sub(a.asked)
		return a.err == nil && a.News == s.news() && age <= c.Keep && !a.Value.leaseOver(age)
	})
}

// leaseOver reports whether the answer tells of a lease that ends within some time.
func (m *made) leaseOver(within time.Duration) bool {
	return m.status != nil && m.status.LeaseEndsInNs != 0 && within >= time.Duration(m.status.LeaseEndsInNs)
}

// serveShared answers with what a cache has.
func (s *Server) serveShared(c *Cache[*made]) func(*answer, *http.Request) error {
	return func(w *answer, r *http.Request) error {
		made, err := s.shared(r.Context(), c)
		if err == nil {
			_, _ = w.Write(made.text)
		}
		return err
	}
}

// askStatus asks the backend for its status, which is also the text.
func (s *Server) askStatus(ctx context.Context) (any, *Status, error) {
	status, err := s.backend.Status(ctx)
	status.fill()
	return &status, &status, err
}

// askTrace asks the backend how its last changes of role went.
func (s *Server) askTrace(ctx context.Context) (any, *Status, error) {
	trace, err := s.backend.Trace(ctx)
	trace.fill()
	return &trace, nil, err
}

func (s *Server) serveKeys(w *answer, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.status)
	defer cancel()
	keys, err := s.backend.Keys(ctx)
	if err != nil {
		return late(err, s.limits.status)
	}
	return w.json(keys)
}

// serveTry has the backend try the checks of a configuration.
func (s *Server) serveTry(w *answer, r *http.Request) error {
	// A check can be any program, and only root may write those of the configuration. So only root may try them.
	if connectionOf(r.Context()).caller.uid != 0 {
		return denied("only root may have the daemon try checks", "use sudo")
	}
	var asked TryRequest
	if err := decodeBody(w, r, &asked, s.limits.file); err != nil {
		return err
	}
	// The checks may use their timeouts. A client that does not want to wait for them hangs up, which ends them.
	limits := http.NewResponseController(w)
	_ = limits.SetWriteDeadline(time.Time{})
	tried, err := s.backend.Try(r.Context(), asked)
	_ = limits.SetWriteDeadline(time.Now().Add(s.limits.write))
	if err != nil {
		return err
	}
	return w.json(tried)
}

// late returns err, or puts into words that the backend did not answer in time.
func late(err error, limit time.Duration) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &requestError{
		code:    http.StatusGatewayTimeout,
		message: fmt.Sprintf("the daemon's election loop did not answer within %v", limit),
		hint:    "journalctl -u topdog may tell why; if it stays so, the watchdog restarts the daemon",
		err:     err,
	}
}

// recover reports a panic of the backend, and makes an error of it.
func (s *Server) recover(err *error) {
	if cause := recover(); cause != nil {
		s.report(fmt.Errorf("control socket: panic: %v\n%s", cause, debug.Stack()))
		*err = &requestError{
			message: "the daemon failed on this request",
			hint:    "journalctl -u topdog has the details; please report them",
		}
	}
}

// answer writes JSON. It remembers whether the header has gone out, because an error after that can only be appended.
type answer struct {
	http.ResponseWriter
	begun bool
}

// Unwrap gives http.ResponseController its methods.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader begins the answer.
func (a *answer) WriteHeader(code int) {
	if a.begun {
		return
	}
	a.begun = true
	if a.Header().Get("Content-Type") == "" {
		a.Header().Set("Content-Type", "application/json")
	}
	a.Header().Set("Cache-Control", "no-store")
	a.ResponseWriter.WriteHeader(code)
}

// Write begins the answer with 200, unless it has begun.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.ResponseWriter.Write(p)
}

// json writes v as one line. If v has no JSON, it fails before it has written anything. It is no failure if the client
// has gone.
func (a *answer) json(v any) error {
	line, err := encode(v)
	if err == nil {
		_, _ = a.Write(line)
	}
	return err
}

// encode returns v as one line of JSON. It fails if v has none, as NaN.
func encode(v any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // no page shows this
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("the answer has no JSON: %w", err)
	}
	return line.Bytes(), nil
}

// fail answers with an error.
func (a *answer) fail(err error) {
	code, told := http.StatusInternalServerError, failure{Error: err.Error()}
	var e *requestError
	if errors.As(err, &e) {
		told = failure{Error: e.message, Hint: e.hint}
		if e.code >= 400 && e.code <= 599 {
			code = e.code
		}
	}
	a.Header().Set("Content-Type", "application/json")
	a.WriteHeader(code)
	_ = a.json(told) // two strings always have JSON
}

// excerpt makes a text of the client fit to be repeated in an answer.
func excerpt(text string) string {
	const most = 60
	text = clean(text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.TrimSpace(text)
}

// Publish adds a transition to all streams, with the next number. It never blocks.
func (s *Server) Publish(t Transition) { s.transitions.Add(t) }

// Published returns the number of the last transition. A [Status] has to tell it.
func (s *Server) Published() uint64 { return s.transitions.Newest() }

// wanted is what a client has asked for with /v1/events.
type wanted struct {
	forHooks bool // it is one of the streams that are kept for hooks
	alive    bool // with a sign of life every second
}

// wantedBy reads the query of a request.
func wantedBy(query url.Values) (wanted, error) {
	for name, values := range query {
		if name != "for" && name != "alive" || name == "for" && (len(values) != 1 || values[0] != "hooks") {
			return wanted{}, Refuse(http.StatusBadRequest, "the query means nothing here: "+excerpt(query.Encode()),
				"use /v1/events, with ?alive, ?for=hooks or ?alive&for=hooks if wanted")
		}
	}
	return wanted{forHooks: query.Has("for"), alive: query.Has("alive")}, nil
}

// follow makes the connection of a request a stream. Not everybody may have a stream for hooks, or hooks would not get
// theirs.
func (s *Server) follow(c *connection, want wanted) error {
	k, whose := stream, "of each user"
	if want.forHooks {
		k, whose = hookStream, "for hooks"
		if err := s.mayAct(c); err != nil {
			return err
		}
	}
	if c.limiter.follow(c, k) {
		return nil
	}
	return Refuse(http.StatusServiceUnavailable,
		fmt.Sprintf("there may be %d streams of events %s", c.limiter.maxStreams(k), whose), "end one, or use GET /v1/status")
}

// serveEvents sends how the board is, and then every transition. It ends when the server is stopping.
func (s *Server) serveEvents(stopping context.Context, w *answer, r *http.Request) error {
	want, err := wantedBy(r.URL.Query())
	if err != nil {
		return err
	}
	if err := s.follow(connectionOf(r.Context()), want); err != nil {
		return err
	}
	made, err := s.shared(r.Context(), s.statuses)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	stream := Stream{To: w, Stall: s.limits.stall, Transitions: s.transitions, Stopped: stopping.Done(), isAlive: s.isAlive}
	if want.alive {
		stream.Alive = func() <-chan struct{} {
			due := make(chan struct{})
			time.AfterFunc(s.limits.interval, func() { close(due) })
			return due
		}
	}
	return stream.Send(r.Context(), made.status, made.text) // an error becomes the last line
}

// isAlive returns an error unless the backend shows that it is.
func (s *Server) isAlive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.status)
	defer cancel()
	return late(s.backend.Alive(ctx), s.limits.status)
}
