package simpage

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"topdog/election/literature"
	"topdog/internal/lab/compare"
	"topdog/internal/lab/scenario"
	"topdog/internal/web"
	"topdog/wire"
)

// The bounds of what may be chosen. With more boards nobody could tell the lanes of a diagram apart.
const (
	minBoards = 2
	maxBoards = 20
	maxLoss   = 40            // percent
	maxSeed   = 1_000_000_000 // a number that a person can copy, and that JavaScript keeps exactly
)

// choice is what somebody wants to see.
type choice struct {
	Algorithm   string `json:"algorithm"`
	Boards      int    `json:"boards"`
	Failure     string `json:"failure"`
	Notice      int    `json:"notice"` // the board that notices alone; 0 if each does for itself
	LossPercent int    `json:"loss_percent"`
	Seed        int    `json:"seed"`
}

// standard is what is seen if nothing was chosen: the smallest failure for which a paper prints a figure.
var standard = choice{Algorithm: wire.AlgorithmBully.String(), Boards: 4, Failure: "crash_leader", Notice: 1, Seed: 1}

// choices is all that may be chosen, and what the page says of it.
type choices struct {
	Standard   choice      `json:"standard"`
	Algorithms []algorithm `json:"algorithms"`
	Failures   []failure   `json:"failures"`
	Boards     bounds      `json:"boards"`
	Loss       bounds      `json:"loss_percent"`
	Seed       bounds      `json:"seed"`
	Examples   []example   `json:"examples"`
	Compare    comparable  `json:"compare"`
}

type bounds struct {
	Least int `json:"least"`
	Most  int `json:"most"`
}

// comparable says what can be compared.
type comparable struct {
	Algorithms []string `json:"algorithms"`
	Boards     []int    `json:"boards"`    // computed at once
	OnDemand   []int    `json:"on_demand"` // and these take seconds
}

// atOnce is up to how many boards a comparison takes a fraction of a second for each algorithm.
const atOnce = 20

func allChoices() choices {
	c := choices{
		Standard: standard, Failures: failures, Examples: examples(),
		Boards: bounds{minBoards, maxBoards}, Loss: bounds{0, maxLoss}, Seed: bounds{0, maxSeed},
	}
	for _, name := range scenario.Algorithms() {
		c.Algorithms = append(c.Algorithms, describe(name))
	}
	all := compare.DefaultBoards
	slow := slices.IndexFunc(all, func(n int) bool { return n > atOnce })
	c.Compare = comparable{Algorithms: literature.Algorithms(), Boards: all[:slow], OnDemand: all[slow:]}
	return c
}

// badQuery refuses a request for what stands in its query.
func badQuery(hint, format string, args ...any) error {
	return &web.Error{Code: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// query is the query of a request. Its error is that of the first thing that is wrong.
type query struct {
	values url.Values
	err    error
}

// newQuery takes a query apart. Each name is known, and stands there once at most.
func newQuery(raw string, names ...string) *query {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return &query{err: badQuery("write it like ?boards=5&seed=1", "the query cannot be read")}
	}
	for name, all := range values {
		switch {
		case !slices.Contains(names, name):
			return &query{err: badQuery("there are: "+strings.Join(names, ", "), "there is nothing to choose that is called %q", name)}
		case len(all) > 1:
			return &query{err: badQuery("give it once", "%s is given %d times", name, len(all))}
		}
	}
	return &query{values: values}
}

// refuse notes what is wrong, unless something else is.
func (q *query) refuse(hint, format string, args ...any) {
	if q.err == nil {
		q.err = badQuery(hint, format, args...)
	}
}

// word is one of some words, or the usual one.
func (q *query) word(name, usual string, words []string) string {
	if !q.values.Has(name) {
		return usual
	}
	text := q.values.Get(name)
	if !slices.Contains(words, text) {
		q.refuse("there are: "+strings.Join(words, ", "), "%s: there is no %q", name, text)
	}
	return text
}

// number is a number within bounds, or the usual one.
func (q *query) number(name string, usual, least, most int) int {
	if !q.values.Has(name) {
		return usual
	}
	text := q.values.Get(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most || strconv.Itoa(n) != text {
		q.refuse(fmt.Sprintf("use a number from %d to %d", least, most), "%s: %q is no such number", name, text)
	}
	return n
}

// readChoice reads what was chosen; what was not stays as in standard, but for who notices: that
// is everybody.
func readChoice(raw string) (choice, error) {
	if raw == "" {
		return standard, nil
	}
	q := newQuery(raw, "algorithm", "boards", "failure", "notice", "loss_percent", "seed")
	c := choice{
		Algorithm:   q.word("algorithm", standard.Algorithm, scenario.Algorithms()),
		Boards:      q.number("boards", standard.Boards, minBoards, maxBoards),
		Failure:     q.word("failure", standard.Failure, failureNames()),
		Notice:      q.number("notice", 0, 0, maxBoards),
		LossPercent: q.number("loss_percent", standard.LossPercent, 0, maxLoss),
		Seed:        q.number("seed", standard.Seed, 0, maxSeed),
	}
	if q.err != nil {
		return c, q.err
	}
	return c, c.check()
}

// check looks whether the choices go together.
func (c *choice) check() error {
	f := failureNamed(c.Failure)
	switch {
	case c.Boards < f.LeastBoards:
		return badQuery(fmt.Sprintf("use %d boards or more", f.LeastBoards), "%s needs more than %d boards", f.Name, c.Boards)
	case c.Notice > c.Boards:
		return badQuery(fmt.Sprintf("use a number from 1 to %d, or 0 for all", c.Boards), "notice: there is no board %d", c.Notice)
	case c.Notice > 0 && !f.Notice:
		return badQuery("use notice=0", "with %s no single board can notice first", f.Name)
	}
	return nil
}
