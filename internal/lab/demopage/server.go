package demopage

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	"topdog/internal/web"
)

//go:embed assets
var assets embed.FS

// clockHeader has what the clock of the state's times shows. It is no part of the document, which
// so stays the same while nothing happens.
const clockHeader = "Topdog-Now-Ns"

// Options say how a page is served.
type Options struct {
	Boards int    // how many there are
	Token  string // who has it may act
	Report func(error)
}

// Serve serves the page until ctx ends.
func Serve(ctx context.Context, port net.Listener, source Source, o Options) error {
	s, err := newServer(source, o)
	if err != nil {
		return err
	}
	return s.Run(ctx, port)
}

func newServer(source Source, o Options) (*web.Server, error) {
	files, _, err := web.Assets(assets, "assets")
	if err != nil {
		return nil, err
	}
	p := &pages{source: source, options: o}
	return &web.Server{
		Routes: append(files,
			web.Route{Path: "/v1/demo", Serve: p.shows(State)},
			web.Route{Path: "/v1/demo/about", Serve: p.shows(About)},
			web.Route{Path: "/v1/demo/takeover", Serve: p.shows(Takeover)},
			web.Route{Path: "/v1/demo/act", Methods: []string{http.MethodPost}, Serve: p.act},
		),
		Limits:   web.DefaultLimits,
		Names:    hostNames,
		HostHint: "open the URL that `topdog demo --page` has printed",
		Report:   o.Report,
	}, nil
}

// hostNames are the names of this machine.
func hostNames() []string {
	name, err := os.Hostname()
	if err != nil {
		return nil // numbers and localhost are always allowed
	}
	return []string{name}
}

// pages are the routes.
type pages struct {
	source  Source
	options Options
}

// shows serves a document.
func (p *pages) shows(d Document) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		text, nowNs, err := p.source.Look(r.Context(), d)
		if err != nil {
			return fmt.Errorf("look at the boards: %w", err)
		}
		w.Header().Set(clockHeader, strconv.FormatInt(nowNs, 10))
		writeTagged(w, r, text)
		return nil
	}
}

// writeTagged answers with a document, unless the client has it already.
func writeTagged(w http.ResponseWriter, r *http.Request, text []byte) {
	sum := sha256.Sum256(text)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a client that has gone is no failure
}
