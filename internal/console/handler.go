package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	return []route{
		{pathStatus, http.MethodGet, s.withoutBody(s.serveShared(s.statuses))},
		{pathEvents, http.MethodGet, s.withoutBody(func(w *answer, r *http.Request) error { return s.serveEvents(ctx, w, r) })},
		{pathTrace, http.MethodGet, s.withoutBody(s.serveShared(s.traces))},
		{pathResign, http.MethodPost, s.act(nil, func(ctx context.Context, _ any) (any, error) { return s.backend.Resign(ctx) })},
		{pathLeave, http.MethodPost, s.act(nil, func(ctx context.Context, _ any) (any, error) { return s.backend.Leave(ctx) })},
		{pathDrain, http.MethodPost, s.act(newOf[DrainRequest], func(ctx context.Context, body any) (any, error) { return s.backend.Drain(ctx, *body.(*DrainRequest)) })},
		{pathUndrain, http.MethodPost, s.act(nil, func(ctx context.Context, _ any) (any, error) { return s.backend.Undrain(ctx) })},
		{pathPause, http.MethodPost, s.act(newOf[PauseRequest], func(ctx context.Context, body any) (any, error) { return s.backend.Pause(ctx, *body.(*PauseRequest)) })},
		{pathUnpause, http.MethodPost, s.act(nil, func(ctx context.Context, _ any) (any, error) { return s.backend.Unpause(ctx) })},
		{pathKeys, http.MethodGet, s.withoutBody(s.serveKeys)},
		{pathReload, http.MethodPost, s.act(nil, func(ctx context.Context, _ any) (any, error) { return s.backend.ReloadKeys(ctx) })},
		{pathTry, http.MethodPost, s.serveTry},
	}
}

// newOf makes the body of a request.
func newOf[T any]() any { return new(T) }

// handler answers all requests; streams of events end with ctx.
func (s *Server) handler(ctx context.Context) http.Handler {
	routes := s.routes(ctx)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &answer{ResponseWriter: w}
		defer s.recover(out)
		c := connectionOf(r.Context())
		c.limiter.asked(c)
		if err := s.serveRoute(routes, out, r); err != nil {
			out.fail(err)
		}
	})
}

// serveRoute finds out what a request wants. There is no http.ServeMux because its
// refusals are no JSON.
func (s *Server) serveRoute(routes []route, w *answer, r *http.Request) error {
	i := slices.IndexFunc(routes, func(known route) bool { return known.path == r.URL.Path })
	if i < 0 {
		var there []string
		for _, known := range routes {
			there = append(there, known.method+" "+known.path)
		}
		return &requestError{
			code:    http.StatusNotFound,
			message: fmt.Sprintf("there is no %s here", excerpt(r.URL.Path)),
			hint:    "there are " + list(there),
		}
	}
	if method := routes[i].method; r.Method != method {
		w.Header().Set("Allow", method)
		return &requestError{
			code:    http.StatusMethodNotAllowed,
			message: fmt.Sprintf("%s does not go with %s", excerpt(r.Method), r.URL.Path),
			hint:    fmt.Sprintf("use %s %s", method, r.URL.Path),
		}
	}
	if routes[i].method != http.MethodGet {
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
		return &requestError{
			code:    http.StatusForbidden,
			message: "this socket only shows; what acts is " + s.path,
			hint:    s.policyOfSocket().hint(),
			err:     errDenied,
		}
	case c.caller.uid == unidentified.uid:
		return &requestError{code: http.StatusForbidden, message: "the kernel does not say who is calling, so nothing is done", err: errDenied}
	}
	return s.authorise(c.caller)
}

// withoutBody serves a request that has no body, or an empty one.
func (s *Server) withoutBody(serve func(*answer, *http.Request) error) func(*answer, *http.Request) error {
	return func(w *answer, r *http.Request) error {
		if err := decodeBody(w, r, nil, s.limits.body); err != nil {
			return err
		}
		return serve(w, r)
	}
}

// decodeBody reads the body of a request, of so many bytes at most, into v. It refuses what nobody looks
// at: that would be a silent default. No body is as good as {}, and nothing but that is accepted if v is nil.
func decodeBody(w *answer, r *http.Request, v any, most int64) error {
	hint := "send none, or {}"
	if v == nil {
		v = new(struct{})
	} else {
		hint = "send " + example(v)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &requestError{
			code:    http.StatusRequestEntityTooLarge,
			message: fmt.Sprintf("the request has a body of more than %d bytes", most),
			hint:    hint,
		}
	case err != nil:
		return &requestError{code: http.StatusBadRequest, message: "the body of the request cannot be read: " + err.Error(), hint: hint}
	}
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil || body[0] != '{' || decoder.More() {
		return &requestError{
			code:    http.StatusBadRequest,
			message: fmt.Sprintf("the request has a body that means nothing here: %s", excerpt(string(body))),
			hint:    hint,
		}
	}
	return nil
}

// example shows what a body looks like.
func example(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "JSON"
	}
	return string(text)
}

// made is an answer that all share who ask at the same time.
type made struct {
	text   []byte
	status *Status // nil in a trace
}

// newCache returns a cache of an answer that may be so old.
func (s *Server) newCache(ask func(context.Context) (any, *Status, error), fresh time.Duration) *Cache[*made] {
	limit := s.limits.status
	return &Cache[*made]{
		News: s.news, Life: func() context.Context { return s.life }, Limit: limit, Gap: s.limits.gap, Keep: fresh,
		Ask: func(ctx context.Context) (m *made, err error) {
			defer s.panics(&err)
			value, status, err := ask(ctx)
			if err != nil {
				return nil, late(err, limit)
			}
			text, err := encode(value)
			return &made{text, status}, err
		},
	}
}

// shared returns what a cache has, if that was asked for after this call or if nothing has happened since. A leader
// extends its lease all the time, so an answer with a lease that is over by now would be wrong.
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

// leaseOver reports whether the answer tells of a lease that has ended within some time.
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

// askStatus asks the backend how it is.
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

// act has the backend do something, if the caller may want that. body makes what the body of the
// request is decoded into, unless it is nil: then there is none.
func (s *Server) act(body func() any, do func(context.Context, any) (any, error)) func(*answer, *http.Request) error {
	return func(w *answer, r *http.Request) error {
		var asked any
		if body != nil {
			asked = body()
		}
		if err := decodeBody(w, r, asked, s.limits.body); err != nil {
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

// serveTry has the backend try checks.
func (s *Server) serveTry(w *answer, r *http.Request) error {
	// A check can be any program, and only root may write those of the configuration. So only root may try them.
	if connectionOf(r.Context()).caller.uid != 0 {
		return &requestError{code: http.StatusForbidden, message: "only root may have the daemon try checks", hint: "use sudo", err: errDenied}
	}
	var asked TryRequest
	if err := decodeBody(w, r, &asked, s.limits.file); err != nil {
		return err
	}
	// The checks may use their timeouts. Whoever does not want to wait for them hangs up, which ends them.
	limits := http.NewResponseController(w)
	_ = limits.SetWriteDeadline(time.Time{})
	tried, err := s.backend.Try(r.Context(), asked)
	_ = limits.SetWriteDeadline(time.Now().Add(s.limits.write))
	if err != nil {
		return err
	}
	return w.json(tried)
}

// late puts into words that the backend did not answer in time.
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

// recover turns a panic of the backend into an answer and a report: whoever asks
// how the board is must not be able to bring it down.
func (s *Server) recover(w *answer) {
	if cause := recover(); cause != nil {
		w.fail(s.panicked(cause))
	}
}

// panics turns a panic of the backend into an error.
func (s *Server) panics(err *error) {
	if cause := recover(); cause != nil {
		*err = s.panicked(cause)
	}
}

// panicked reports a panic, and returns what to answer.
func (s *Server) panicked(cause any) error {
	s.report(fmt.Errorf("control socket: panic: %v\n%s", cause, debug.Stack()))
	return &requestError{message: "the daemon failed on this request", hint: "journalctl -u topdog has the details; please report them"}
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

// json writes v as one line. It fails before anything is written, if v has no JSON. That the client has gone is no
// failure.
func (a *answer) json(v any) error {
	line, err := encode(v)
	if err == nil {
		_, _ = a.Write(line)
	}
	return err
}

// encode writes v as one line of JSON. It fails if v has none (NaN has none).
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

// excerpt makes text of a caller fit to be repeated to it.
func excerpt(text string) string {
	const most = 60
	text = clean(text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.TrimSpace(text)
}
