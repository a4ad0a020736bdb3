package simpage

import (
	"fmt"
	"slices"

	"topdog/internal/lab/papers"
)

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
		text := fmt.Sprintf("%s, %d boards: ", c.Algorithm, c.Boards)
		if f.Joins > 0 {
			text += fmt.Sprintf("board %d comes back", f.Joins)
		} else {
			text += fmt.Sprintf("%s crash, %d notices", ids(f.Crash), f.Noticer)
		}
		all = append(all, example{Choice: c, Text: text})
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
		if c.check() != nil {
			continue
		}
		if run := c.runOf(g); f.Equal(&run) {
			return c, true
		}
	}
	return c, false
}
