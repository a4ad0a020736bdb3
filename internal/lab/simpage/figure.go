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
	Published      string `json:"published"`
	Corrected      string `json:"corrected,omitempty"` // what a misprint should be
	Measured       string `json:"measured"`
	Equal          bool   `json:"equal"`
	Text           string `json:"text"` // all of this as `topdog sim tables` prints it
}

// runOf is what was chosen as the papers have it: who crashes or joins, and who notices. They
// have nothing else.
func (c *choice) runOf(g *group) papers.Run {
	algorithm, _ := literature.AlgorithmNamed(c.Algorithm) // it has been looked up
	r := papers.Run{Algorithm: algorithm, Processes: c.Boards, Noticer: c.Notice}
	switch c.Failure {
	case "crash_leader", "crash_leader_and_next", "crash_half":
		r.Crash = failureNamed(c.Failure).hits(g)
	case "restart_highest":
		r.Joins = g.ranks()[0]
	}
	return r
}

// figures are those that a paper prints for this failure. None of them lets messages be lost.
func (c *choice) figures(g *group, counts *sim.Counts) []figure {
	all := []figure{} // a list in JSON, if there is none
	if c.LossPercent > 0 {
		return all
	}
	run := c.runOf(g)
	for _, f := range papers.Figures() {
		if !f.Equal(&run) {
			continue
		}
		cell := f.Cell(counts)
		all = append(all, figure{
			SourceText: sourceText(f.Source), CountedText: f.Counted, ConventionText: f.Convention,
			Published: cell.Published, Corrected: cell.Corrected, Measured: cell.Measured, Equal: cell.Equal(), Text: cell.Text(),
		})
	}
	return all
}

// sourceText names a paper as people do.
func sourceText(source string) string {
	number, where, _ := strings.Cut(source, ", ")
	return paperTitles[number] + ", " + where
}

// noFigureText says why there is no figure, and for what there are some.
func (c *choice) noFigureText() string {
	var boards []int
	for _, e := range examples() {
		if n := e.Choice.Boards; e.Choice.Algorithm == c.Algorithm && !slices.Contains(boards, n) {
			boards = append(boards, n)
		}
	}
	slices.Sort(boards)
	switch {
	case len(boards) == 0:
		return "No paper that topdog has measured again prints figures for " + c.Algorithm + "."
	case c.LossPercent > 0:
		return "No paper prints a figure for a network that loses messages."
	default:
		return fmt.Sprintf("No paper prints a figure for this run. There are figures for %s with %s boards, for a certain board that notices.",
			c.Algorithm, strings.ReplaceAll(strings.Trim(fmt.Sprint(boards), "[]"), " ", ", "))
	}
}
