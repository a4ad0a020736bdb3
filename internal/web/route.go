package web

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
)

// Route is what a path is for.
type Route struct {
	Path string
	// Post says that it is asked by POST, and may have a body. Otherwise it is GET and HEAD.
	Post bool
	// AnswersOptions says that Serve is asked by OPTIONS too. A load balancer may check by that method, and takes
	// the 204 that OPTIONS has otherwise for a yes.
	AnswersOptions bool
	// Serve answers, or returns why not before it has written anything.
	Serve func(http.ResponseWriter, *http.Request) error
}

// methods are those that a route answers.
func (r *Route) methods() []string {
	if r.Post {
		return []string{http.MethodPost, http.MethodOptions}
	}
	return []string{http.MethodGet, http.MethodHead, http.MethodOptions}
}

// ServeHTTP answers all requests. There is no http.ServeMux because its refusals are no JSON.
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

// serve has a route answer, if it is asked as it should be.
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

// recover keeps a mistake in a route from ending the process. The client gets what it can still get.
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
