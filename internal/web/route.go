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
	"unicode"
	"unicode/utf8"
)

// Route is what a path is for.
type Route struct {
	Path string
	// Methods are those that Serve answers; if there are none, GET and HEAD.
	Methods []string
	// Serve answers, or returns an error before it has written anything.
	Serve func(http.ResponseWriter, *http.Request) error
}

// methods returns the methods that a route answers.
func (r *Route) methods() []string {
	if len(r.Methods) == 0 {
		return []string{http.MethodGet, http.MethodHead}
	}
	return r.Methods
}

// Routes are all routes of a server. It has no http.ServeMux, because the refusals of that are not JSON.
type Routes []Route

// Serve answers a request, or refuses it.
func (routes Routes) Serve(w http.ResponseWriter, r *http.Request) error {
	route, err := routes.find(w, r)
	if err != nil {
		return err
	}
	return route.Serve(w, r)
}

// find returns the route of a request, and an error unless the route answers the method.
func (routes Routes) find(w http.ResponseWriter, r *http.Request) (*Route, error) {
	i := slices.IndexFunc(routes, func(route Route) bool { return route.Path == r.URL.Path })
	if i < 0 {
		var there []string
		for _, route := range routes {
			there = append(there, route.methods()[0]+" "+route.Path)
		}
		message := fmt.Sprintf("there is no %s here", Excerpt(r.URL.Path))
		return nil, &Error{Code: http.StatusNotFound, Message: message, Hint: "there are " + strings.Join(there, ", ")}
	}
	route := &routes[i]
	methods := route.methods()
	answers := slices.Contains(methods, r.Method)
	if !answers || r.Method == http.MethodOptions {
		w.Header().Set("Allow", strings.Join(methods, ", "))
	}
	if answers {
		return route, nil
	}
	return route, &Error{
		Code:    http.StatusMethodNotAllowed,
		Message: fmt.Sprintf("%s does not go with %s", Excerpt(r.Method), route.Path),
		Hint:    fmt.Sprintf("use %s %s", methods[0], route.Path),
	}
}

// Excerpt makes a client's text fit to be repeated in an answer.
func Excerpt(text string) string {
	const most = 60
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.TrimSpace(text)
}

// ServeHTTP answers all requests.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if err := s.serve(w, r); err != nil {
		Refuse(w, err)
	}
}

// serve finds out what a request wants. OPTIONS is answered for all routes. A load balancer may check by that method, and
// would take the 204 for a yes, so the routes that it checks answer that method themselves.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer Recover(s.report, &err)
	if !allowed(r.Host, s.names()) {
		return &Error{
			Code:    http.StatusMisdirectedRequest,
			Message: "this is not the host that was asked for",
			Hint:    s.HostHint,
		}
	}
	route, err := s.Routes.find(w, r)
	if route != nil && err != nil && !slices.Contains(route.methods(), http.MethodOptions) {
		w.Header().Set("Allow", w.Header().Get("Allow")+", OPTIONS")
	}
	switch {
	case route != nil && err != nil && r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case err != nil:
		return err
	case slices.Contains(route.Methods, http.MethodPost):
		r.Body = http.MaxBytesReader(w, r.Body, s.Limits.bodyBytes)
	case r.ContentLength != 0:
		return &Error{Code: http.StatusBadRequest, Message: "this request may have no body"}
	}
	return route.Serve(w, r)
}

func (s *Server) names() []string {
	if s.Names == nil {
		return nil
	}
	return s.Names()
}

// Recover keeps a panic of a function that answers a request from ending the process. It reports the panic, and turns it
// into an error. Defer it.
func Recover(report func(error), err *error) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		report(fmt.Errorf("panic while a request was answered: %v\n%s", p, debug.Stack()))
		*err = &Error{Message: "the program failed on this request", Hint: "journalctl has the details; please report them"}
	}
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
// of the names, or a name with .local, as mDNS has it. Any other name may belong to another site, and resolve to this
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

// Error refuses a request. Its JSON is the answer.
type Error struct {
	Code    int    `json:"-"`              // the HTTP status, 400 to 599; 0 means 500
	Message string `json:"error"`          // what is wrong
	Hint    string `json:"hint,omitempty"` // what to do about it; "" if the message says it
	Err     error  `json:"-"`              // the kind or the cause; it is not in the answer
}

// Error returns the message and the hint in one line.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + ": " + e.Hint
}

// Unwrap returns the kind or the cause.
func (e *Error) Unwrap() error { return e.Err }

// Explain returns what an error says is wrong, and what to do about it. The hint may be "".
func Explain(err error) (message, hint string) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message, e.Hint
	}
	return err.Error(), ""
}

// Encode returns a value as one line of JSON. It fails if JSON cannot express the value, such as NaN.
func Encode(v any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // no browser takes it for HTML: see protect
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("the answer has no JSON: %w", err)
	}
	return line.Bytes(), nil
}

// WriteJSON answers with a value, as one line of JSON. If that fails, nothing was written.
func WriteJSON(w http.ResponseWriter, code int, v any) error {
	line, err := Encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(line) // a client that has gone is no failure
	return nil
}

// Refuse answers with an error.
func Refuse(w http.ResponseWriter, err error) {
	var told Error
	told.Message, told.Hint = Explain(err)
	code := http.StatusInternalServerError
	if e, ok := errors.AsType[*Error](err); ok && e.Code >= 400 && e.Code <= 599 {
		code = e.Code
	}
	_ = WriteJSON(w, code, &told) // two strings always have JSON
}
