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
	"time"
)

// The paths. The number grows when something changes that old clients would
// misunderstand; new fields do not count.
const (
	pathStatus = "/v1/status"
	pathEvents = "/v1/events"
	pathTrace  = "/v1/trace"
	pathResign = "/v1/resign"
	pathLeave  = "/v1/leave"
)

// handler answers all requests; streams of events end with ctx.
func (s *Server) handler(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &answer{ResponseWriter: w}
		defer s.recover(out)
		if r.Context().Value(overLimitKey{}) != nil && !s.reserved(r) {
			out.Header().Set("Connection", "close")
			out.fail(&requestError{
				code:    http.StatusServiceUnavailable,
				message: fmt.Sprintf("the daemon serves %d connections already", s.limits.connections),
				hint:    "try again in a moment",
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
	case pathLeave:
		method, serve = http.MethodPost, s.serveLeave
	default:
		return &requestError{
			code:    http.StatusNotFound,
			message: fmt.Sprintf("there is no %s here", excerpt(r.URL.Path)),
			hint:    "there are GET /v1/status, GET /v1/events, GET /v1/trace, POST /v1/resign and POST /v1/leave",
		}
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		return &requestError{
			code:    http.StatusMethodNotAllowed,
			message: fmt.Sprintf("%s does not go with %s", excerpt(r.Method), r.URL.Path),
			hint:    fmt.Sprintf("use %s %s", method, r.URL.Path),
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
		return &requestError{
			code:    http.StatusRequestEntityTooLarge,
			message: fmt.Sprintf("the request has a body of more than %d bytes", s.limits.body),
			hint:    "send none",
		}
	case err != nil:
		return &requestError{code: http.StatusBadRequest, message: "the body of the request cannot be read: " + err.Error(), hint: "send none"}
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil || len(fields) > 0 {
		return &requestError{
			code:    http.StatusBadRequest,
			message: fmt.Sprintf("the request has a body that means nothing here: %s", excerpt(string(body))),
			hint:    "send none, or {}",
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
	return s.handOver(w, r, s.backend.Resign)
}

func (s *Server) serveLeave(w *answer, r *http.Request) error {
	return s.handOver(w, r, s.backend.Leave)
}

// handOver has the backend hand over in one of the two ways, if the caller may want that.
func (s *Server) handOver(w *answer, r *http.Request, do func(context.Context) (Handover, error)) error {
	caller, ok := credentialsFrom(r.Context())
	if !ok {
		return &requestError{code: http.StatusForbidden, message: "the kernel does not say who is calling, so this board does not resign"}
	}
	if err := s.authorise(caller); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.resign)
	defer cancel()
	handover, err := do(ctx)
	if err != nil {
		return late(err, s.limits.resign)
	}
	return w.json(http.StatusOK, handover)
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
	cause := recover()
	if cause == nil {
		return
	}
	s.report(fmt.Errorf("control socket: panic: %v\n%s", cause, debug.Stack()))
	w.fail(&requestError{message: "the daemon failed on this request", hint: "journalctl -u topdog has the details; please report them"})
}
