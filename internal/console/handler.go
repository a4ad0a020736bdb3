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
	"strings"
	"time"
)

// The paths. The number grows when something changes that old clients would
// misunderstand; new fields do not count.
const (
	pathStatus = "/v1/status"
	pathEvents = "/v1/events"
	pathTrace  = "/v1/trace"
	pathResign = "/v1/resign"
)

// result is the answer to POST /v1/resign.
type result struct {
	Result string `json:"result"`
}

// failure is the answer to a request that failed.
type failure struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// handler answers all requests; streams of events end with ctx.
func (s *Server) handler(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &answer{ResponseWriter: w}
		defer s.recover(out)
		if crowded, _ := r.Context().Value(crowdedKey{}).(bool); crowded {
			out.Header().Set("Connection", "close")
			out.fail(&Error{
				Code:    http.StatusServiceUnavailable,
				Message: fmt.Sprintf("the daemon serves %d connections already", s.limits.connections),
				Hint:    "try again in a moment",
			})
			return
		}
		if err := s.serve(ctx, out, r); err != nil {
			out.fail(err)
		}
	})
}

// serve finds out what a request wants. There is no http.ServeMux because its
// refusals are no JSON.
func (s *Server) serve(ctx context.Context, w *answer, r *http.Request) error {
	method, serve := http.MethodGet, s.serveStatus
	switch r.URL.Path {
	case pathStatus:
	case pathEvents:
		serve = func(w *answer, r *http.Request) error { return s.serveEvents(ctx, w, r) }
	case pathTrace:
		serve = s.serveTrace
	case pathResign:
		method, serve = http.MethodPost, s.serveResign
	default:
		return &Error{
			Code:    http.StatusNotFound,
			Message: fmt.Sprintf("there is no %s here", excerpt(r.URL.Path)),
			Hint:    "there are GET /v1/status, GET /v1/events, GET /v1/trace and POST /v1/resign",
		}
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		return &Error{
			Code:    http.StatusMethodNotAllowed,
			Message: fmt.Sprintf("%s does not go with %s", excerpt(r.Method), r.URL.Path),
			Hint:    fmt.Sprintf("use %s %s", method, r.URL.Path),
		}
	}
	if err := s.emptyBody(w, r); err != nil {
		return err
	}
	return serve(w, r)
}

// emptyBody refuses a body other than none and {}: what a caller asks for and
// nobody looks at would be a silent default.
func (s *Server) emptyBody(w *answer, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limits.body))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &Error{
			Code:    http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("the request has a body of more than %d bytes", s.limits.body),
			Hint:    "send none",
		}
	case err != nil:
		return &Error{Code: http.StatusBadRequest, Message: "the body of the request cannot be read: " + err.Error(), Hint: "send none"}
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil || len(fields) > 0 {
		return &Error{
			Code:    http.StatusBadRequest,
			Message: fmt.Sprintf("the request has a body that means nothing here: %s", excerpt(string(body))),
			Hint:    "send none, or {}",
		}
	}
	return nil
}

func (s *Server) serveStatus(w *answer, r *http.Request) error {
	status, err := s.status(r.Context())
	if err != nil {
		return err
	}
	return w.json(http.StatusOK, status)
}

func (s *Server) status(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.status)
	defer cancel()
	status, err := s.backend.Status(ctx)
	status.fill()
	return status, late(err, s.limits.status)
}

func (s *Server) serveTrace(w *answer, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.status)
	defer cancel()
	trace, err := s.backend.Trace(ctx)
	if err != nil {
		return late(err, s.limits.status)
	}
	trace.fill()
	return w.json(http.StatusOK, trace)
}

func (s *Server) serveResign(w *answer, r *http.Request) error {
	caller, ok := CallerFrom(r.Context())
	if !ok {
		return &Error{Code: http.StatusForbidden, Message: "the kernel does not say who is calling, so this board does not resign"}
	}
	if err := s.authorise(caller); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.resign)
	defer cancel()
	happened, err := s.backend.Resign(ctx)
	if err != nil {
		return late(err, s.limits.resign)
	}
	return w.json(http.StatusOK, result{happened})
}

// late puts into words that the backend did not answer in time.
func late(err error, limit time.Duration) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{
		Code:    http.StatusGatewayTimeout,
		Message: fmt.Sprintf("the daemon's election loop did not answer within %v", limit),
		Hint:    "journalctl -u topdog may tell why; if it stays so, the watchdog restarts the daemon",
		Err:     err,
	}
}

// serveEvents sends a status at once, after each change, and every second.
func (s *Server) serveEvents(stopping context.Context, w *answer, r *http.Request) error {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return &Error{
			Code:    http.StatusServiceUnavailable,
			Message: fmt.Sprintf("the daemon serves %d streams of events already", s.limits.streams),
			Hint:    "end one, or use GET /v1/status",
		}
	}
	conn := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	beat := time.NewTimer(s.limits.beat)
	defer beat.Stop()
	for {
		changed := s.nextChange() // before the status, so that none is missed
		status, err := s.status(r.Context())
		if err != nil {
			return err // once the stream has begun it becomes its last line
		}
		_ = conn.SetWriteDeadline(time.Now().Add(s.limits.write))
		if err := w.json(http.StatusOK, status); err != nil {
			return err
		}
		if err := conn.Flush(); err != nil {
			return nil // the client has gone
		}
		// The gap keeps a group in turmoil from busying the board with telling so.
		if !pause(beat, s.limits.gap, nil, r.Context(), stopping) ||
			!pause(beat, s.limits.beat, changed, r.Context(), stopping) {
			return nil
		}
	}
}

// pause waits for d or for early, and reports false when one of the contexts ended.
func pause(timer *time.Timer, d time.Duration, early <-chan struct{}, request, stopping context.Context) bool {
	timer.Reset(d)
	select {
	case <-timer.C:
	case <-early:
	case <-request.Done():
		return false
	case <-stopping.Done():
		return false
	}
	return true
}

// recover turns a panic of the backend into an answer and a report: whoever asks
// how the board is must not be able to bring it down.
func (s *Server) recover(w *answer) {
	cause := recover()
	if cause == nil {
		return
	}
	s.report(fmt.Errorf("control socket: panic: %v\n%s", cause, debug.Stack()))
	w.fail(&Error{Message: "the daemon stumbled over this request", Hint: "journalctl -u topdog has the details; please report them"})
}

// answer writes JSON. It remembers whether the header has gone out, because an
// error after that can only be appended.
type answer struct {
	http.ResponseWriter
	begun bool
}

// Unwrap gives http.ResponseController its methods.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// json writes v as one line. It fails before anything is written, if v has no
// JSON (NaN has none); that the client has gone is no failure.
func (a *answer) json(code int, v any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // no page shows this
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("the answer has no JSON: %w", err)
	}
	if !a.begun {
		if a.Header().Get("Content-Type") == "" {
			a.Header().Set("Content-Type", "application/json")
		}
		a.Header().Set("Cache-Control", "no-store")
		a.WriteHeader(code)
		a.begun = true
	}
	_, _ = a.Write(line.Bytes())
	return nil
}

// fail answers with an error.
func (a *answer) fail(err error) {
	code, told := http.StatusInternalServerError, failure{Error: err.Error()}
	var e *Error
	if errors.As(err, &e) {
		told = failure{Error: e.Message, Hint: e.Hint}
		if e.Code >= 400 && e.Code <= 599 {
			code = e.Code
		}
	}
	if !a.begun {
		a.Header().Set("Content-Type", "application/json")
	}
	_ = a.json(code, told) // two strings always have JSON
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
