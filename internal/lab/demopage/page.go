package demopage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"time"

	"topdog/internal/lab/webpage"
	"topdog/internal/web"
)

// Document is something that one may look at.
type Document string

// The documents, all of them JSON; docs/demo.md describes them.
const (
	About    Document = "about"    // what stays the same
	State    Document = "state"    // how the boards stand
	Takeover Document = "takeover" // the messages of the last change of leader
)

// Source has the boards. Its methods may be called from several goroutines.
type Source interface {
	// Look returns a document, and what the clock of its times shows now.
	Look(ctx context.Context, d Document) (text []byte, nowNs int64, err error)
	// Act does something, and returns when it is done. Actions wait for each other. The error is a
	// *Refusal if it was not done for a reason that concerns whoever asked.
	Act(ctx context.Context, a Action) error
}

// Refusal says why something was not done.
type Refusal struct {
	Busy bool // because too much is waiting to be done
	Text string
}

func (r *Refusal) Error() string { return r.Text }

// Options say how a page is served.
type Options struct {
	Boards int    // how many there are
	Token  string // who has it may act
	Report func(error)
}

// NewToken makes the token of a page: 128 bits and more that nobody guesses.
func NewToken() string { return rand.Text() }

// Fragment is what stands behind the # of a URL whose user may act.
func Fragment(token string) string { return "token=" + token }

const (
	// clockHeader has what the clock of the state's times shows. It is no part of the document, which
	// so stays the same while nothing happens.
	clockHeader = "Topdog-Now-Ns"
	// tokenHeader has the token. A page elsewhere cannot set it: a browser asks this host first whether it
	// may (CORS), and never gets a yes.
	tokenHeader = "Topdog-Token"
	// within bounds how long an answer may take. An action waits in a queue for a part of it.
	within = 5 * time.Second
)

//go:embed assets
var assets embed.FS

// Serve serves the page until ctx ends.
func Serve(ctx context.Context, port net.Listener, source Source, o Options) error {
	s, err := newServer(routes(source, o), o.Report)
	if err != nil {
		return err
	}
	return s.Run(ctx, port)
}

func newServer(routes web.Routes, report func(error)) (*web.Server, error) {
	return webpage.NewServer(assets, routes, "open the URL that `topdog demo --page` has printed", report)
}

// routes are the paths besides the files.
func routes(source Source, o Options) web.Routes {
	p := &page{source, o}
	return web.Routes{
		{Path: "/v1/demo", Serve: p.shows(State)},
		{Path: "/v1/demo/about", Serve: p.shows(About)},
		{Path: "/v1/demo/takeover", Serve: p.shows(Takeover)},
		{Path: "/v1/demo/act", Methods: []string{http.MethodPost}, Serve: p.act},
	}
}

// page answers with what a source has.
type page struct {
	source  Source
	options Options
}

// shows serves a document.
func (p *page) shows(d Document) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), within)
		defer cancel()
		text, nowNs, err := p.source.Look(ctx, d)
		if err != nil {
			return fmt.Errorf("look at the boards: %w", err)
		}
		w.Header().Set(clockHeader, strconv.FormatInt(nowNs, 10))
		w.Header().Set("Content-Type", "application/json")
		sum := sha256.Sum256(text)
		web.WriteTagged(w, r, `"`+hex.EncodeToString(sum[:8])+`"`, text)
		return nil
	}
}

// act does what a person wants done.
func (p *page) act(w http.ResponseWriter, r *http.Request) error {
	if err := p.mayAct(r); err != nil {
		return err
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return &web.Error{Code: http.StatusRequestEntityTooLarge, Message: "the request is too long, or did not come whole"}
	}
	a, err := ReadAction(text, p.options.Boards)
	if err != nil {
		return &web.Error{Code: http.StatusBadRequest, Message: err.Error(), Hint: "docs/demo.md has all actions"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	if err := p.source.Act(ctx, a); err != nil {
		return refused(err)
	}
	return web.WriteJSON(w, http.StatusOK, a)
}

// refused is an error of a Source as the client is told.
func refused(err error) error {
	refusal, ok := errors.AsType[*Refusal](err)
	switch {
	case !ok:
		return err
	case refusal.Busy:
		return &web.Error{Code: http.StatusTooManyRequests, Message: refusal.Text, Hint: "wait until the last action is done"}
	}
	return &web.Error{Code: http.StatusConflict, Message: refusal.Text}
}

// mayAct refuses whoever may only look.
func (p *page) mayAct(r *http.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	origin := r.Header.Get("Origin")
	switch {
	case err != nil || kind != "application/json":
		return &web.Error{Code: http.StatusUnsupportedMediaType, Message: "an action is JSON", Hint: "set Content-Type: application/json"}
	case origin != "http://"+r.Host:
		return &web.Error{Code: http.StatusForbidden, Message: fmt.Sprintf("the origin %q is not this page", origin),
			Hint: "only the page itself may act: open the URL that `topdog demo --page` has printed"}
	case subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(p.options.Token)) != 1:
		return &web.Error{Code: http.StatusForbidden, Message: "without the token one may only look",
			Hint: "open the whole URL that `topdog demo --page` has printed, with what is behind the #"}
	}
	return nil
}
