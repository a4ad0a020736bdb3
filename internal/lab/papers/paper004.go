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
	t := Table{
		Source: "004, table I", Title: "Worst case", Convention: convention004,
		Columns: []string{"bully", "candidates", "minid"},
	}
	for _, row := range []struct{ processes, bully, candidates, minid int }{
		{5, 24, 9, 6},
		{10, 99, 18, 11},
		{20, 399, 38, 21},
	} {
		n := row.processes
		bully, err := crashed(wire.AlgorithmBully, n+1, 1, n+1)
		if err != nil {
			return t, err
		}
		candidates, err := crashed(wire.AlgorithmCandidates, n, 1, n)
		if err != nil {
			return t, err
		}
		// The coordinator and the second smallest fail together, so nobody may
		// proclaim itself without asking; the largest notices and hears from all.
		minid, err := crashed(wire.AlgorithmMinID, n+2, n+2, 1, 2)
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, row004(n, row.bully, row.candidates, row.minid, &bully, &candidates, &minid))
	}
	return t, nil
}

// bestOf004 is table II: the process that takes over anyway notices.
func bestOf004() (Table, error) {
	t := Table{
		Source: "004, table II", Title: "Best case", Convention: convention004,
		Columns: []string{"bully", "candidates", "minid"},
	}
	for _, row := range []struct{ processes, bully, candidates, minid int }{
		{5, 4, 4, 1},
		{10, 9, 9, 1},
		{20, 19, 19, 1},
	} {
		n := row.processes
		bully, err := crashed(wire.AlgorithmBully, n+1, n, n+1)
		if err != nil {
			return t, err
		}
		candidates, err := crashed(wire.AlgorithmCandidates, n, n-1, n)
		if err != nil {
			return t, err
		}
		minid, err := crashed(wire.AlgorithmMinID, n+1, 2, 1)
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, row004(n, row.bully, row.candidates, row.minid, &bully, &candidates, &minid))
	}
	return t, nil
}

func row004(n, bully, candidates, minid int, b, c, m *sim.Counts) Row {
	return Row{fmt.Sprintf("N = %d", n), []Cell{
		figure(bully, live004(b)),
		figure(candidates, all004(c)),
		figure(minid, broadcasts004(m)),
	}}
}

// joining is section VI of 004: what it costs when a process joins.
func joining() (Table, error) {
	t := Table{
		Source: "004, findings", Title: "A process joins (minid)",
		Convention: "a broadcast is one message; what topdog adds so that the address is never held twice is shown apart",
		Columns:    []string{"all messages", "QUERY", "answers", "COORDINATOR", "ours: QUERY for handover", "ours: RESIGN"},
	}
	for _, row := range []struct {
		name    string
		absent  []int
		process int
		all     int
	}{
		// The smallest possible id is known to be so, and need not ask.
		{"best case: the smallest possible id joins", []int{1}, 1, 1},
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
		query, answers := c[sim.Kind(wire.TypeQuery)].Packets, c[sim.KindReply].Packets+c.Type(wire.TypeAnswer).Packets
		coordinator := c.Type(wire.TypeCoordinator).Packets
		t.Rows = append(t.Rows, Row{row.name, []Cell{
			figure(row.all, query+answers+coordinator),
			shown(query), shown(answers), shown(coordinator),
			shown(c[sim.KindHandover].Packets), shown(c.Type(wire.TypeResign).Packets),
		}})
	}
	return t, nil
}
