package papers

import (
	"fmt"
	"slices"

	"topdog/internal/lab/sim"
	"topdog/wire"
)

// Failure is a group of which some processes crash at once, noticed by one alone. The processes
// are numbered from 1, and the leader is among those that crash.
type Failure struct {
	Algorithm          wire.Algorithm
	Processes, Noticer int
	Crash              []int
}

// Figure is one that a paper prints for a failure, or for a process that joins.
type Figure struct {
	Failure
	Joins int // the process that joins; then Noticer is 0, and Crash is empty

	Source     string // which paper, and where in it
	Counted    string // what the paper counts here, such as all messages
	Convention string

	published, corrected string
	count                func(*sim.Counts) int
}

// Cell is the figure in print, and as counted in a run.
func (f *Figure) Cell(c *sim.Counts) Cell {
	return Cell{Published: f.published, Corrected: f.corrected, Measured: fmt.Sprint(f.count(c))}
}

// Is reports whether the figure is about that failure of these processes, or that process that joins.
func (f *Figure) Is(other *Failure, joins int) bool {
	a, b := slices.Sorted(slices.Values(f.Crash)), slices.Sorted(slices.Values(other.Crash))
	return f.Algorithm == other.Algorithm && f.Processes == other.Processes && f.Noticer == other.Noticer &&
		f.Joins == joins && slices.Equal(a, b)
}

// Figures returns those that are about a group which lacks nobody but who crashes or joins.
func Figures() []Figure {
	return slices.Concat(worstFigures001(), exampleFigures001(),
		figures004(source004worst, worst004, worstFailures004), figures004(source004best, best004, bestFailures004),
		joiningFigures004())
}

const allMessages = "all messages"

func worstFigures001() (all []Figure) {
	for _, row := range worst001 {
		regular := Figure{
			Failure: Failure{wire.AlgorithmBully, row.processes, 1, []int{row.processes}},
			Source:  source001, Counted: allMessages, Convention: convention001,
			published: fmt.Sprint(row.regular), count: live001,
		}
		if row.meant != 0 {
			regular.corrected = fmt.Sprint(row.meant)
		}
		modified := regular
		modified.Algorithm, modified.published, modified.corrected = wire.AlgorithmModified, fmt.Sprint(row.modified), ""
		all = append(all, regular, modified)
	}
	return all
}

// exampleFigures001 are those of ten processes of which all are there.
func exampleFigures001() []Figure {
	const n = 10
	highest := process(n - 1)
	dies := func(a wire.Algorithm) Failure { return Failure{a, n, process(5), []int{highest}} }
	joins := Failure{Algorithm: wire.AlgorithmBully, Processes: n}
	elections := func(c *sim.Counts) int { return c.Type(wire.TypeElection).Messages() }
	replies := func(c *sim.Counts) int { return c.Type(wire.TypeAnswer).Messages() }
	return []Figure{
		{dies(wire.AlgorithmBully), 0, "001, figure 2", allMessages, convention001, all001figure2, "", live001},
		{dies(wire.AlgorithmModified), 0, "001, figure 10", "ELECTION", convention001, elections001figure10, "", elections},
		{dies(wire.AlgorithmModified), 0, "001, figure 10", "replies", convention001, replies001figure10, "", replies},
		{joins, highest, "001, figure 5", allMessages, convention001, all001figure5, "", live001},
		{joins, highest, "001, figure 5", "ELECTION", convention001, elections001figure5, "", elections},
	}
}

func figures004(source string, rows []row004, failures func(n int) [3]Failure) (all []Figure) {
	for _, row := range rows {
		published := [3]int{row.bully, row.candidates, row.minid}
		count := [3]func(*sim.Counts) int{live004, all004, broadcasts004}
		for i, f := range failures(row.processes) {
			all = append(all, Figure{
				Failure: f, Source: "004, " + source, Counted: allMessages, Convention: convention004,
				published: fmt.Sprint(published[i]), count: count[i],
			})
		}
	}
	return all
}

func joiningFigures004() []Figure {
	return []Figure{{
		Failure: Failure{Algorithm: wire.AlgorithmMinID, Processes: 10}, Joins: 1,
		Source: "004, findings", Counted: allMessages, Convention: conventionJoining004,
		published: fmt.Sprint(bestJoining004), count: joining004,
	}}
}
