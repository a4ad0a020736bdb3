package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
)

// Route is what a path is for.
type Route struct {
	Path string
	// Post means that the method is POST, with a body. Otherwise it is GET or HEAD.
	Post bool
	// AnswersOptions means that Serve answers OPTIONS too. A load balancer may check by that method, and would take the
	// 204 of other routes for a yes.
	AnswersOptions bool
	// Serve answers, or returns an error before it has written anything.
	Serve func(http.ResponseWriter, *http.Request) error
}

// methods returns the methods that a route answers.
func (r *Route) methods() []string {
	if r.Post {
		return []string{http.MethodPost, http.MethodOptions}
	}
	return []string{http.MethodGet, http.MethodHead, http.MethodOptions}
}

// ServeHTTP answers all requests. It uses no http.ServeMux, whose refusals are no JSON.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.recover(w)
	protect(w.Header())
	if err := s.route(w, r); err != nil {
		refuse(w, err)
	}
}

// route finds out what a request wants.
func (s *Server) route(w http.ResponseWriter, r *http.Request) error {
	if !allowed(r.Host, s.names()) {
		return &Error{
			Code:    http.StatusMisdirectedRequest,
			Message: "this is not the host that was asked for",
			Hint:    s.HostHint,
		}
	}
	i := slices.IndexFunc(s.Routes, func(route Route) bool { return route.Path == r.URL.Path })
	if i < 0 {
		return &Error{Code: http.StatusNotFound, Message: "there is no such path here", Hint: "there are: " + strings.Join(s.paths(), " ")}
	}
	return s.serve(&s.Routes[i], w, r)
}

// serve has a route answer, if the method and the body are right.
func (s *Server) serve(route *Route, w http.ResponseWriter, r *http.Request) error {
	methods := strings.Join(route.methods(), ", ")
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", methods)
	}
	switch {
	case r.Method == http.MethodOptions && !route.AnswersOptions:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case !slices.Contains(route.methods(), r.Method):
		w.Header().Set("Allow", methods)
		return &Error{Code: http.StatusMethodNotAllowed, Message: "this path is not for that method", Hint: "use " + methods}
	case !route.Post && r.ContentLength != 0:
		return &Error{Code: http.StatusBadRequest, Message: "this request may have no body"}
	}
	if route.Post {
		r.Body = http.MaxBytesReader(w, r.Body, s.Limits.bodyBytes)
	}
	return route.Serve(w, r)
}

func (s *Server) names() []string {
	if s.Names == nil {
		return nil
	}
	return s.Names()
}

func (s *Server) paths() (all []string) {
	for _, r := range s.Routes {
		all = append(all, r.Path)
	}
	return all
}

// recover keeps a panic of a route from ending the process. It refuses the request, if that is still possible.
func (s *Server) recover(w http.ResponseWriter) {
	p := recover()
	switch {
	case p == nil:
		return
	case p == http.ErrAbortHandler:
		panic(p)
	}
	s.report(fmt.Errorf("panic while a request was answered: %v\n%s", p, debug.Stack()))
	refuse(w, errors.New("the answer has failed; the log of the program says why"))
}

// policy allows a page its own files and nothing else: no script or style in the text, no request to another host, no
// form, and no page around it (Content Security Policy Level 3).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// protect sets the headers that say what a browser may do with an answer. There is no Cross-Origin-Opener-Policy:
// browsers ignore it without HTTPS, and complain on the console of every page.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// allowed reports whether a request for a host may be answered: for no host, as in HTTP/1.0, an address, localhost, one
// of the names, or a name with .local, as mDNS has it. Any other may be the name of another site that resolves to this
// address now.
func allowed(host string, names []string) bool {
	if host == "" {
		return true
	}
	name := strings.ToLower(strings.TrimSuffix(withoutPort(host), "."))
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		n = strings.ToLower(n)
		return n != "" && (name == n || name == n+".local")
	})
}

// withoutPort returns the host of a Host header: of "[::1]:80", "[::1]", "pi1:80" or "pi1".
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// Error refuses a request.
type Error struct {
	Code    int    // the HTTP status
	Message string // what is wrong
	Hint    string // what to do about it; may be empty
}

func (e *Error) Error() string { return e.Message }

// failure is the JSON of a refusal.
type failure struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// WriteJSON answers with a value, as one line of JSON.
func WriteJSON(w http.ResponseWriter, code int, v any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // no browser takes it for HTML: see protect
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("the answer has no JSON: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(line.Bytes()) // a client that has gone is no failure
	return nil
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	code, told := http.StatusInternalServerError, failure{Error: err.Error()}
	if e, ok := errors.AsType[*Error](err); ok {
		code, told.Hint = e.Code, e.Hint
	}
	_ = WriteJSON(w, code, told) // two strings always have JSON
}
