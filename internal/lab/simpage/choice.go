package simpage

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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

// badQuery refuses a request for what stands in its query.
func badQuery(hint, format string, args ...any) error {
	return &web.Error{Code: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// query is the query of a request: each name is known, and stands there once at most.
type query map[string]string

// readQuery takes a query apart.
func readQuery(raw string, names ...string) (query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badQuery("write it like ?boards=5&seed=1", "the query cannot be read")
	}
	q := query{}
	for name, all := range values {
		switch {
		case !slices.Contains(names, name):
			return nil, badQuery("there are: "+strings.Join(names, ", "), "there is nothing to choose that is called %q", name)
		case len(all) > 1:
			return nil, badQuery("give it once", "%s is given %d times", name, len(all))
		}
		q[name] = all[0]
	}
	return q, nil
}

// word reads one of some words.
func (q query) word(to *string, name string, words []string) error {
	text, given := q[name]
	if !given {
		return nil
	}
	if !slices.Contains(words, text) {
		return badQuery("there are: "+strings.Join(words, ", "), "%s: there is no %q", name, text)
	}
	*to = text
	return nil
}

// number reads a number within bounds.
func (q query) number(to *int, name string, least, most int) error {
	text, given := q[name]
	if !given {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most || strconv.Itoa(n) != text {
		return badQuery(fmt.Sprintf("use a number from %d to %d", least, most), "%s: %q is no such number", name, text)
	}
	*to = n
	return nil
}

// readChoice reads what was chosen; what was not stays as in standard, but for who notices: that
// is everybody.
func readChoice(raw string) (choice, error) {
	c := standard
	if raw == "" {
		return c, nil
	}
	c.Notice = 0
	q, err := readQuery(raw, "algorithm", "boards", "failure", "notice", "loss_percent", "seed")
	if err != nil {
		return c, err
	}
	for _, err := range []error{
		q.word(&c.Algorithm, "algorithm", scenario.Algorithms()),
		q.number(&c.Boards, "boards", minBoards, maxBoards),
		q.word(&c.Failure, "failure", failureNames()),
		q.number(&c.Notice, "notice", 0, maxBoards),
		q.number(&c.LossPercent, "loss_percent", 0, maxLoss),
		q.number(&c.Seed, "seed", 0, maxSeed),
	} {
		if err != nil {
			return c, err
		}
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
