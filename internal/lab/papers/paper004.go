package papers

import (
	"fmt"

	"topdog/internal/lab/sim"
	"topdog/wire"
)

const convention004 = "bully: N live processes, messages to the dead coordinator do not count; " +
	"candidates: N processes with the dead coordinator, all messages count; " +
	"minid: N live processes, a broadcast is one message"

// worstOf004 is table I: the process that knows least notices.
func worstOf004() (Table, error) {
	return table004(source004worst, "Worst case", worst004, worstFailures004)
}

const source004worst = "table I"

var worst004 = []row004{
	{5, 24, 9, 6},
	{10, 99, 18, 11},
	{20, 399, 38, 21},
}

func worstFailures004(n int) [3]Failure {
	return [3]Failure{
		{wire.AlgorithmBully, n + 1, 1, []int{n + 1}},
		{wire.AlgorithmCandidates, n, 1, []int{n}},
		// The coordinator and the second smallest fail together, so nobody may
		// proclaim itself without asking; the largest notices and hears from all.
		{wire.AlgorithmMinID, n + 2, n + 2, []int{1, 2}},
	}
}

// bestOf004 is table II: the process that takes over anyway notices.
func bestOf004() (Table, error) {
	return table004(source004best, "Best case", best004, bestFailures004)
}

const source004best = "table II"

var best004 = []row004{
	{5, 4, 4, 1},
	{10, 9, 9, 1},
	{20, 19, 19, 1},
}

func bestFailures004(n int) [3]Failure {
	return [3]Failure{
		{wire.AlgorithmBully, n + 1, n, []int{n + 1}},
		{wire.AlgorithmCandidates, n, n - 1, []int{n}},
		{wire.AlgorithmMinID, n + 1, 2, []int{1}},
	}
}

// row004 is a row as the paper prints it.
type row004 struct{ processes, bully, candidates, minid int }

// table004 measures the failures of bully, candidates and minid for every row.
func table004(source, title string, rows []row004, failures func(n int) [3]Failure) (Table, error) {
	t := Table{
		Source: "004, " + source, Title: title, Convention: convention004,
		Columns: []string{"bully", "candidates", "minid"},
	}
	for _, row := range rows {
		var counts [3]sim.Counts
		for i, f := range failures(row.processes) {
			var err error
			if counts[i], err = crashed(f.Algorithm, f.Processes, f.Noticer, f.Crash...); err != nil {
				return t, err
			}
		}
		t.Rows = append(t.Rows, Row{fmt.Sprintf("N = %d", row.processes), []Cell{
			figure(row.bully, live004(&counts[0])),
			figure(row.candidates, all004(&counts[1])),
			figure(row.minid, broadcasts004(&counts[2])),
		}})
	}
	return t, nil
}

// bestJoining004 is what the best case of section VI takes.
const bestJoining004 = 1

const conventionJoining004 = "a broadcast is one message; what topdog adds so that the address is never held twice is shown apart"

// joining is section VI of 004: what it costs when a process joins.
func joining() (Table, error) {
	t := Table{
		Source: "004, findings", Title: "A process joins (minid)",
		Convention: conventionJoining004,
		Columns:    []string{"all messages", "QUERY", "answers", "COORDINATOR", "ours: QUERY for handover", "ours: RESIGN"},
	}
	for _, row := range []struct {
		name    string
		absent  []int
		process int
		all     int
	}{
		// The smallest possible id is known to be so, and need not ask.
		{"best case: the smallest possible id joins", []int{1}, 1, bestJoining004},
		{"worst case: an id below the coordinator's joins", []int{1, 2}, 2, 3},
	} {
		g, err := newGroup(wire.AlgorithmMinID, 10, row.absent...)
		if err != nil {
			return t, err
		}
		c, err := g.recovery(row.process)
		if err != nil {
			return t, fmt.Errorf("%s: %w", row.name, err)
		}
		query, answers := c[sim.Kind(wire.TypeQuery)].Packets, answers004(&c)
		t.Rows = append(t.Rows, Row{row.name, []Cell{
			figure(row.all, joining004(&c)),
			shown(query), shown(answers), shown(c.Type(wire.TypeCoordinator).Packets),
			shown(c[sim.KindHandover].Packets), shown(c.Type(wire.TypeResign).Packets),
		}})
	}
	return t, nil
}
