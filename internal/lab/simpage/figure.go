package simpage

import (
	"fmt"
	"slices"
	"strings"

	"topdog/election/literature"
	"topdog/internal/lab/papers"
	"topdog/internal/lab/sim"
)

// figure is what a paper prints for the same failure, and what this run has counted.
type figure struct {
	SourceText     string `json:"source_text"` // which paper, and where in it
	CountedText    string `json:"counted_text"`
	ConventionText string `json:"convention_text"`
	papers.Cell
	Equal bool   `json:"equal"`
	Text  string `json:"text"` // all of this as `topdog sim tables` prints it
}

// example is a run for which a paper prints a figure.
type example struct {
	Choice choice `json:"choice"`
	Text   string `json:"text"`
}

// examples are the runs that a paper has a figure for, and that the page can show.
func examples() []example {
	var all []example
	for _, f := range papers.Figures() {
		c, ok := chosen(&f)
		if !ok || slices.ContainsFunc(all, func(e example) bool { return e.Choice == c }) {
			continue
		}
		what := fmt.Sprintf("%s crash, %d notices", ids(f.Crash), f.Noticer)
		if f.Joins > 0 {
			what = fmt.Sprintf("board %d comes back", f.Joins)
		}
		all = append(all, example{c, fmt.Sprintf("%s, %d boards: %s", c.Algorithm, c.Boards, what)})
	}
	return all
}

// chosen is what somebody has to choose to see what a figure is about.
func chosen(f *papers.Figure) (choice, bool) {
	c := choice{Algorithm: f.Algorithm.String(), Boards: f.Processes, Notice: f.Noticer, Seed: standard.Seed}
	if c.Boards > maxBoards {
		return c, false
	}
	g := &group{algorithm: c.Algorithm, boards: c.Boards}
	g.leader = g.ranks()[0] // as with all algorithms of these papers
	for _, fails := range failures {
		c.Failure = fails.Name
		if c.check() == nil && c.concerns(f, g) {
			return c, true
		}
	}
	return c, false
}

// concerns reports whether a figure is about what was chosen. The papers know of boards that crash and of one that joins,
// and of no other failures.
func (c *choice) concerns(f *papers.Figure, g *group) bool {
	algorithm, _ := literature.AlgorithmNamed(c.Algorithm) // it has been looked up
	run := papers.Run{Algorithm: algorithm, Processes: c.Boards, Noticer: c.Notice}
	switch {
	case strings.HasPrefix(c.Failure, "crash_"):
		run.Crash = failureNamed(c.Failure).hits(g)
	case c.Failure == "restart_highest":
		run.Joins = g.ranks()[0]
	}
	return f.Equal(&run)
}

// figures are those that a paper prints for this failure. None of them lets messages be lost.
func (c *choice) figures(g *group, counts *sim.Counts) []figure {
	all := []figure{} // a list in JSON, if there is none
	if c.LossPercent > 0 {
		return all
	}
	for _, f := range papers.Figures() {
		if !c.concerns(&f, g) {
			continue
		}
		cell := f.Cell(counts)
		number, where, _ := strings.Cut(f.Source, ", ")
		all = append(all, figure{
			SourceText: words().Papers[number] + ", " + where, CountedText: f.Counted, ConventionText: f.Convention,
			Cell: cell, Equal: cell.Equal(), Text: cell.Text(),
		})
	}
	return all
}

// noFigureText says why there is no figure, and for what there are some.
func (c *choice) noFigureText() string {
	var boards []int
	for _, e := range examples() {
		if n := e.Choice.Boards; e.Choice.Algorithm == c.Algorithm && !slices.Contains(boards, n) {
			boards = append(boards, n)
		}
	}
	switch {
	case len(boards) == 0:
		return "No paper that topdog has measured again prints figures for " + c.Algorithm + "."
	case c.LossPercent > 0:
		return "No paper prints a figure for a network that loses messages."
	default:
		return fmt.Sprintf("No paper prints a figure for this run. There are figures for %s with %s boards, for a certain board that notices.",
			c.Algorithm, strings.ReplaceAll(ids(boards), ",", ", "))
	}
}
