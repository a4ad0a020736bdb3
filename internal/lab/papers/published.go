package papers

import (
	"cmp"
	"fmt"

	"topdog/internal/lab/sim"
	"topdog/wire"
)

// published is a table as printed, and what is run to measure it.
type published struct {
	source, title, convention string
	columns                   []column
	rows                      []row
}

// column is a count in one of the runs of a row, or what the runs say together.
type column struct {
	name  string // what the count is called, if it has no other name
	run   int
	count count
	of    func([]sim.Counts) string // instead of the count
}

func (c *column) title() string { return cmp.Or(c.name, c.count.name) }

// row is a line of a table. A figure is "" where the paper prints nothing, and "775 meant 755" where it is misprinted.
type row struct {
	name    string
	runs    []Run
	figures []string
}

// count is what a paper counts, by its own convention.
type count struct {
	name string
	of   func(*sim.Counts) int
}

const allMessages = "all messages"

var (
	// An ELECTION to a dead process counts, a victory message to one does not.
	live001 = count{allMessages, func(c *sim.Counts) int {
		return elections.of(c) + replies.of(c) + c.Type(wire.TypeCoordinator).Live
	}}
	// Those of 004: of the bully algorithm between living processes only, of the candidate sets whatever is sent, and
	// of its own algorithm a broadcast is one message.
	live004 = count{allMessages, func(c *sim.Counts) int {
		return c.Type(wire.TypeElection).Live + c.Type(wire.TypeAnswer).Live + c.Type(wire.TypeCoordinator).Live
	}}
	all004 = count{allMessages, func(c *sim.Counts) int {
		return elections.of(c) + replies.of(c) + c.Type(wire.TypeCoordinator).Messages()
	}}
	broadcasts004 = count{allMessages, func(c *sim.Counts) int {
		return c.Type(wire.TypeElection).Packets + c.Type(wire.TypeAnswer).Packets + c.Type(wire.TypeCoordinator).Packets
	}}
	joining004 = count{allMessages, func(c *sim.Counts) int {
		return queries.of(c) + answers004.of(c) + claims.of(c)
	}}
	answers004 = count{"answers", func(c *sim.Counts) int { return c[sim.KindReply].Packets + c.Type(wire.TypeAnswer).Packets }}

	elections = messages("ELECTION", wire.TypeElection)
	replies   = messages("replies", wire.TypeAnswer)
	halts     = messages("HALT", wire.TypeHalt)
	starts    = messages("START", wire.TypeStart)
	queries   = packets("QUERY", sim.Kind(wire.TypeQuery))
	claims    = packets("COORDINATOR", sim.Kind(wire.TypeCoordinator))
	handovers = packets("ours: QUERY for handover", sim.KindHandover)
	resigns   = packets("ours: RESIGN", sim.Kind(wire.TypeResign))
)

func messages(name string, t wire.Type) count {
	return count{name, func(c *sim.Counts) int { return c.Type(t).Messages() }}
}

func packets(name string, k sim.Kind) count {
	return count{name, func(c *sim.Counts) int { return c[k].Packets }}
}

// Worst001 is the source of the table that the report's figure 11 draws.
const Worst001 = "001, message complexity comparison"

const (
	convention001 = "N processes, the dead coordinator among them; an ELECTION to a dead process counts, " +
		"a COORDINATOR to one does not; HALT and START do not"
	convention004 = "bully: N live processes, messages to the dead coordinator do not count; " +
		"candidates: N processes with the dead coordinator, all messages count; " +
		"minid: N live processes, a broadcast is one message"
	conventionJoining004 = "a broadcast is one message; what topdog adds so that the address is never held twice is shown apart"
)

// examples001 are the columns of the report's examples, which are one run each.
var examples001 = []column{{count: live001}, {count: elections}, {count: replies}, {count: halts}, {count: starts}}

// columns004 are those of tables I and II, and their runs.
var columns004 = []column{{"bully", 0, live004, nil}, {"candidates", 1, all004, nil}, {"minid", 2, broadcasts004, nil}}

// tables is all that the papers print.
var tables = []published{
	{
		Worst001, "Worst case: the lowest process notices", convention001,
		[]column{
			{"regular", 0, live001, nil}, {"modified", 1, live001, nil},
			{"modified: HALT", 1, halts, nil}, {"modified: START", 1, starts, nil},
		},
		[]row{
			worstCase001(4, "11", "8"), worstCase001(6, "29", "14"), worstCase001(10, "89", "26"), worstCase001(14, "181", "38"),
			worstCase001(18, "305", "50"), worstCase001(22, "461", "62"), worstCase001(24, "551", "68"),
			worstCase001(28, "775 meant 755", "80"), // its own formula gives 755
		},
	},
	{
		Worst001, "What the modified algorithm saves", convention001,
		[]column{{name: "absolute", of: saved}, {name: "relative", of: savedShare}},
		[]row{
			worstCase001(4, "3", "-27.27%"), worstCase001(6, "15", "-51.72%"), worstCase001(10, "63", "-70.79%"),
			worstCase001(14, "143", "-79.01%"), worstCase001(18, "255", "-83.61%"), worstCase001(22, "399", "-86.55%"),
			worstCase001(24, "483", "-87.66%"),
			// The misprint of the first table has spoilt these.
			worstCase001(28, "695 meant 675", "-89.68% meant -89.40%"),
		},
	},
	{
		"001, figures 2, 3, 7 and 10", "A process is switched off (10 processes, 0 to 9)", convention001, examples001,
		[]row{
			one("figure 2, regular: 9 dies, 5 notices", crash(wire.AlgorithmBully, 10, process(5), process(9)), "24"),
			// 5 sends four and has three replies, and then 8 sends one and has none.
			one("figure 10, modified: 9 dies, 5 notices", crash(wire.AlgorithmModified, 10, process(5), process(9)), "", "5", "3"),
			one("figure 3, regular: 4 dies", crash(wire.AlgorithmBully, 10, 0, process(4)), "0", "0", "0"),
			one("figure 7, modified: 4 dies", crash(wire.AlgorithmModified, 10, 0, process(4)), "0", "0", "0"),
		},
	},
	{
		"001, figures 5, 8 and 9", "A process recovers (10 processes, 0 to 9)", convention001, examples001,
		[]row{
			// The report gives the kinds only: no ELECTION, and a victory message to each.
			one("figure 5, regular: 9 recovers", joins(wire.AlgorithmBully, process(9)), "9", "0", "0"),
			// 1 sends eight and has seven replies, and then 8 sends one and has none.
			one("figure 8, modified: 9 is dead, 1 recovers", joins(wire.AlgorithmModified, process(1), process(9)), "24", "9", "7"),
			one("figure 9, modified: 7, 8 and 9 are dead, 6 recovers",
				joins(wire.AlgorithmModified, process(6), process(7), process(8), process(9)), "9", "3", "0"),
		},
	},
	{
		"004, table I", "Worst case", convention004, columns004,
		[]row{worstCase004(5, "24", "9", "6"), worstCase004(10, "99", "18", "11"), worstCase004(20, "399", "38", "21")},
	},
	{
		"004, table II", "Best case", convention004, columns004,
		[]row{bestCase004(5, "4", "4", "1"), bestCase004(10, "9", "9", "1"), bestCase004(20, "19", "19", "1")},
	},
	{
		"004, findings", "A process joins (minid)", conventionJoining004,
		[]column{
			{count: joining004}, {count: queries}, {count: answers004}, {count: claims},
			{count: handovers}, {count: resigns},
		},
		[]row{
			// The smallest possible id is known to be so, and need not ask.
			one("best case: the smallest possible id joins", joins(wire.AlgorithmMinID, 1), "1"),
			one("worst case: an id below the coordinator's joins", joins(wire.AlgorithmMinID, 2, 1), "3"),
		},
	},
}

// process translates the report's numbers, which begin with 0, into ids.
func process(p int) int { return p + 1 }

// one is a row of one run.
func one(name string, r Run, figures ...string) row { return row{name, []Run{r}, figures} }

// sized is a row of a table by the number of processes.
func sized(n int, figures []string, runs ...Run) row {
	return row{fmt.Sprintf("N = %d", n), runs, figures}
}

// worstCase001 has the highest of n processes crash and the lowest notice, with both algorithms.
func worstCase001(n int, figures ...string) row {
	return sized(n, figures, crash(wire.AlgorithmBully, n, 1, n), crash(wire.AlgorithmModified, n, 1, n))
}

// worstCase004 has the process notice that knows least.
func worstCase004(n int, figures ...string) row {
	return sized(n, figures, crash(wire.AlgorithmBully, n+1, 1, n+1), crash(wire.AlgorithmCandidates, n, 1, n),
		// The coordinator and the second smallest fail together, so nobody may
		// proclaim itself without asking; the largest notices and hears from all.
		crash(wire.AlgorithmMinID, n+2, n+2, 1, 2))
}

// bestCase004 has the process notice that takes over anyway.
func bestCase004(n int, figures ...string) row {
	return sized(n, figures, crash(wire.AlgorithmBully, n+1, n, n+1), crash(wire.AlgorithmCandidates, n, n-1, n),
		crash(wire.AlgorithmMinID, n+1, 2, 1))
}

// saved is how many messages the second run takes less than the first one.
func saved(runs []sim.Counts) string { return fmt.Sprint(live001.of(&runs[0]) - live001.of(&runs[1])) }

func savedShare(runs []sim.Counts) string {
	regular, modified := live001.of(&runs[0]), live001.of(&runs[1])
	return fmt.Sprintf("%.2f%%", 100*float64(modified-regular)/float64(regular))
}
