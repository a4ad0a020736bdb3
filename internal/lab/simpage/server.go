package simpage

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"topdog/election/literature"
	"topdog/internal/lab/compare"
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
)

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
	runs, comparisons := newWorker(runLimit), newWorker(comparisonLimit)
	return webpage.NewServer(assets, web.Routes{
		{Path: "/v1/sim/choices", Serve: func(w http.ResponseWriter, _ *http.Request) error {
			return web.WriteJSON(w, http.StatusOK, allChoices())
		}},
		{Path: "/v1/sim/run", Serve: func(w http.ResponseWriter, r *http.Request) error {
			c, err := readChoice(r.URL.RawQuery)
			if err != nil {
				return err
			}
			return runs.answer(w, r, func(ctx context.Context) (any, error) { return show(ctx, c) })
		}},
		{Path: "/v1/sim/compare", Serve: func(w http.ResponseWriter, r *http.Request) error {
			asked, err := readComparison(r.URL.RawQuery)
			if err != nil {
				return err
			}
			return comparisons.answer(w, r, func(ctx context.Context) (any, error) { return measure(ctx, asked) })
		}},
	}, "use the address that topdog sim --page has printed", report)
}

// answer computes something, and answers with it.
func (w *worker) answer(to http.ResponseWriter, r *http.Request, compute func(context.Context) (any, error)) error {
	// Computing may take longer than a request may. Nothing is expected from the client meanwhile
	// but that it stays: if the connection closes, the context of the request ends.
	if err := setDeadlines(to, time.Time{}); err != nil {
		return err
	}
	result, err := w.do(r.Context(), web.AddressOf(r.RemoteAddr), compute)
	if late := setDeadlines(to, time.Now().Add(web.DefaultLimits.Write)); late != nil {
		return late
	}
	if err != nil {
		return err
	}
	return web.WriteJSON(to, http.StatusOK, result)
}

// setDeadlines moves those of the connection, or clears them. A recorder of a test has none.
func setDeadlines(w http.ResponseWriter, at time.Time) error {
	c := http.NewResponseController(w)
	for _, err := range []error{c.SetReadDeadline(at), c.SetWriteDeadline(at)} {
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			return fmt.Errorf("set the deadlines of the connection: %w", err)
		}
	}
	return nil
}

// comparison is how one algorithm replaces a failed leader of so many boards.
type comparison struct {
	Command string      `json:"command"` // repeats it
	Row     compare.Row `json:"row"`     // what the command prints with --json
}

// readComparison reads which row of the comparison somebody wants. A browser asks for one after the
// other, so it can show each as it comes, and nothing goes on when it has gone.
func readComparison(raw string) (*compare.Request, error) {
	q := newQuery(raw, "algorithm", "boards")
	name := q.word("algorithm", literature.Algorithms()[0], literature.Algorithms())
	boards := q.number("boards", compare.DefaultBoards[0], minBoards, slices.Max(compare.DefaultBoards))
	if !slices.Contains(compare.DefaultBoards, boards) {
		q.refuse(fmt.Sprintf("there are: %v", compare.DefaultBoards), "boards: groups of %d are not compared", boards)
	}
	r := compare.NewRequest()
	r.Algorithms, r.Boards = []string{name}, []int{boards}
	return r, q.err
}

// measure measures it.
func measure(ctx context.Context, r *compare.Request) (*comparison, error) {
	rows, err := r.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &comparison{fmt.Sprintf("topdog sim compare --algorithms %s --boards %d", r.Algorithms[0], r.Boards[0]), rows[0]}, nil
}
