package simpage

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"topdog/internal/lab/webpage"
	"topdog/internal/web"
)

// assets are the files of the page.
//
//go:embed assets
var assets embed.FS

// How much may be computed. A run takes 10 ms on a fast machine, and the largest comparison three
// seconds; a small board is ten times as slow.
const (
	runLimit        = 20 * time.Second
	comparisonLimit = 2 * time.Minute
	mayWait         = 64 // a class that clicks at the same time
	mayWaitEach     = 6  // as many requests as a browser makes at the same time
)

// page is what the routes share.
type page struct {
	limits            web.Limits
	runs, comparisons *worker
}

// Run serves the page at HOST:PORT until ctx ends. It writes where it is.
func Run(ctx context.Context, listen string, out io.Writer) error {
	s, err := New(func(err error) { fmt.Fprintln(out, err) })
	if err != nil {
		return err
	}
	port, err := web.Listen(ctx, listen)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "The simulator is at")
	for _, url := range webpage.URLs(port.Addr(), "") {
		fmt.Fprintln(out, " ", url)
	}
	fmt.Fprintln(out, "Whoever reaches it may look. Ctrl-C ends it.")
	return s.Run(ctx, port)
}

// New returns a server of the page. Report is told what nobody else would learn; it may be nil.
func New(report func(error)) (*web.Server, error) {
	files, _, err := web.Assets(assets, "assets")
	if err != nil {
		return nil, err
	}
	p := &page{limits: web.DefaultLimits, runs: newWorker(mayWait, mayWaitEach, runLimit), comparisons: newWorker(mayWait, mayWaitEach, comparisonLimit)}
	return &web.Server{
		Limits: p.limits,
		Names: func() []string {
			name, _ := os.Hostname() // without a name there is one less
			return []string{name}
		},
		HostHint: "use the address that topdog sim --page has printed",
		Report:   report,
		Routes: append(files,
			web.Route{Path: "/v1/sim/choices", Serve: p.choices},
			web.Route{Path: "/v1/sim/run", Serve: p.run},
			web.Route{Path: "/v1/sim/compare", Serve: p.compare},
		),
	}, nil
}

func (p *page) choices(w http.ResponseWriter, _ *http.Request) error {
	return web.WriteJSON(w, http.StatusOK, allChoices())
}

func (p *page) run(w http.ResponseWriter, r *http.Request) error {
	c, err := readChoice(r.URL.RawQuery)
	if err != nil {
		return err
	}
	var result *run
	return p.answer(w, r, p.runs, func(ctx context.Context) (err error) {
		result, err = show(ctx, c)
		return err
	}, func() any { return result })
}

func (p *page) compare(w http.ResponseWriter, r *http.Request) error {
	request, err := readComparison(r.URL.RawQuery)
	if err != nil {
		return err
	}
	var result *comparison
	return p.answer(w, r, p.comparisons, func(ctx context.Context) (err error) {
		result, err = measure(ctx, request)
		return err
	}, func() any { return result })
}

// answer has a worker compute something, and answers with it.
func (p *page) answer(w http.ResponseWriter, r *http.Request, worker *worker, compute func(context.Context) error, result func() any) error {
	// Computing may take longer than a request may. Nothing is expected from the client meanwhile
	// but that it stays: if the connection closes, the context of the request ends.
	if err := p.deadlines(w, time.Time{}); err != nil {
		return err
	}
	err := worker.do(r.Context(), web.AddressOf(r.RemoteAddr), compute)
	if late := p.deadlines(w, time.Now().Add(p.limits.Write)); late != nil {
		return late
	}
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, result())
}

// deadlines moves those of the connection, or clears them. A recorder of a test has none.
func (p *page) deadlines(w http.ResponseWriter, at time.Time) error {
	c := http.NewResponseController(w)
	for _, err := range []error{c.SetReadDeadline(at), c.SetWriteDeadline(at)} {
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			return fmt.Errorf("set the deadlines of the connection: %w", err)
		}
	}
	return nil
}
