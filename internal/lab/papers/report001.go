package papers

import (
	"fmt"

	"topdog/internal/lab/sim"
	"topdog/wire"
)

// worst001 is the table of the report's section "Message complexity comparison".
var worst001 = []struct {
	processes         int
	regular, modified int
	meant             int // of regular, where the report misprints it
}{
	{4, 11, 8, 0},
	{6, 29, 14, 0},
	{10, 89, 26, 0},
	{14, 181, 38, 0},
	{18, 305, 50, 0},
	{22, 461, 62, 0},
	{24, 551, 68, 0},
	{28, 775, 80, 755}, // its own formula gives 755
}

const source001 = "001, message complexity comparison"

const convention001 = "N processes, the dead coordinator among them; an ELECTION to a dead process counts, a COORDINATOR to one does not; HALT and START do not"

// worstCase001 has the highest of n processes crash and the lowest notice, with both algorithms.
func worstCase001(n int) (regular, modified sim.Counts, err error) {
	if regular, err = crashed(wire.AlgorithmBully, n, 1, n); err == nil {
		modified, err = crashed(wire.AlgorithmModified, n, 1, n)
	}
	return regular, modified, err
}

func worstCases() (Table, error) {
	t := Table{
		Source: source001, Title: "Worst case: the lowest process notices",
		Convention: convention001,
		Columns:    []string{"regular", "modified", "modified: HALT", "modified: START"},
	}
	for _, row := range worst001 {
		regular, modified, err := worstCase001(row.processes)
		if err != nil {
			return t, err
		}
		cell := figure(row.regular, live001(&regular))
		if row.meant != 0 {
			cell.Corrected = fmt.Sprint(row.meant)
		}
		t.Rows = append(t.Rows, Row{fmt.Sprintf("N = %d", row.processes), []Cell{
			cell,
			figure(row.modified, live001(&modified)),
			shown(modified.Type(wire.TypeHalt).Messages()),
			shown(modified.Type(wire.TypeStart).Messages()),
		}})
	}
	return t, nil
}

// saved001 is the report's second table.
var saved001 = []struct {
	processes                    int
	absolute                     int
	relative                     string
	meantAbsolute, meantRelative string // where the misprint of the first table has spoilt it
}{
	{4, 3, "-27.27%", "", ""},
	{6, 15, "-51.72%", "", ""},
	{10, 63, "-70.79%", "", ""},
	{14, 143, "-79.01%", "", ""},
	{18, 255, "-83.61%", "", ""},
	{22, 399, "-86.55%", "", ""},
	{24, 483, "-87.66%", "", ""},
	{28, 695, "-89.68%", "675", "-89.40%"},
}

func improvements() (Table, error) {
	t := Table{
		Source: source001, Title: "What the modified algorithm saves",
		Convention: convention001,
		Columns:    []string{"absolute", "relative"},
	}
	for _, row := range saved001 {
		regular, modified, err := worstCase001(row.processes)
		if err != nil {
			return t, err
		}
		r, m := live001(&regular), live001(&modified)
		absolute := figure(row.absolute, r-m)
		absolute.Corrected = row.meantAbsolute
		t.Rows = append(t.Rows, Row{fmt.Sprintf("N = %d", row.processes), []Cell{
			absolute,
			{Published: row.relative, Corrected: row.meantRelative, Measured: fmt.Sprintf("%.2f%%", 100*float64(m-r)/float64(r))},
		}})
	}
	return t, nil
}

// What the report says in words of figures 2, 10 and 5.
const (
	all001figure2 = "24"

	elections001figure10 = "5"
	replies001figure10   = "3"

	all001figure5       = "9"
	elections001figure5 = "0"
)

// process translates the report's numbers, which begin with 0, into ids.
func process(p int) int { return p + 1 }

// deactivating is what the figures say of ten processes 0…9 of which one is switched off.
func deactivating() (Table, error) {
	t := Table{
		Source: "001, figures 2, 3, 7 and 10", Title: "A process is switched off (10 processes, 0 to 9)",
		Convention: convention001,
		Columns:    []string{"all messages", "ELECTION", "replies", "HALT", "START"},
	}
	figure2, err := crashed(wire.AlgorithmBully, 10, process(5), process(9))
	if err != nil {
		return t, err
	}
	// 5 sends four and has three replies, and then 8 sends one and has none.
	figure10, err := crashed(wire.AlgorithmModified, 10, process(5), process(9))
	if err != nil {
		return t, err
	}
	t.Rows = append(t.Rows,
		example("figure 2, regular: 9 dies, 5 notices", &figure2, all001figure2, "", ""),
		example("figure 10, modified: 9 dies, 5 notices", &figure10, "", elections001figure10, replies001figure10))
	for _, other := range []struct {
		name string
		algo wire.Algorithm
	}{{"figure 3, regular: 4 dies", wire.AlgorithmBully}, {"figure 7, modified: 4 dies", wire.AlgorithmModified}} {
		g, err := newGroup(other.algo, 10)
		if err != nil {
			return t, err
		}
		g.lan.ResetCounts()
		g.boards[process(4)].Crash()
		g.lan.Run(settling)
		t.Rows = append(t.Rows, example(other.name, &g.lan.Counts, "0", "0", "0"))
	}
	return t, nil
}

// recovering is what the figures say of a process that comes back.
func recovering() (Table, error) {
	t := Table{
		Source: "001, figures 5, 8 and 9", Title: "A process recovers (10 processes, 0 to 9)",
		Convention: convention001,
		Columns:    []string{"all messages", "ELECTION", "replies", "HALT", "START"},
	}
	for _, f := range []struct {
		name                   string
		algo                   wire.Algorithm
		absent                 []int // besides the one that recovers
		recovers               int
		all, elections, answer string
	}{
		// The report gives the kinds only: no ELECTION, and a victory message to each.
		{"figure 5, regular: 9 recovers", wire.AlgorithmBully, nil, 9, all001figure5, elections001figure5, "0"},
		// 1 sends eight and has seven replies, and then 8 sends one and has none.
		{"figure 8, modified: 9 is dead, 1 recovers", wire.AlgorithmModified, []int{9}, 1, "24", "9", "7"},
		{"figure 9, modified: 7, 8 and 9 are dead, 6 recovers", wire.AlgorithmModified, []int{7, 8, 9}, 6, "9", "3", "0"},
	} {
		absent := []int{process(f.recovers)}
		for _, p := range f.absent {
			absent = append(absent, process(p))
		}
		g, err := newGroup(f.algo, 10, absent...)
		if err != nil {
			return t, fmt.Errorf("%s: %w", f.name, err)
		}
		counts, err := g.recovery(process(f.recovers))
		if err != nil {
			return t, fmt.Errorf("%s: %w", f.name, err)
		}
		t.Rows = append(t.Rows, example(f.name, &counts, f.all, f.elections, f.answer))
	}
	return t, nil
}

// example is a row of one run. An empty text says that the report gives no such figure.
func example(name string, c *sim.Counts, all, elections, replies string) Row {
	return Row{name, []Cell{
		{Published: all, Measured: fmt.Sprint(live001(c))},
		{Published: elections, Measured: fmt.Sprint(c.Type(wire.TypeElection).Messages())},
		{Published: replies, Measured: fmt.Sprint(c.Type(wire.TypeAnswer).Messages())},
		shown(c.Type(wire.TypeHalt).Messages()),
		shown(c.Type(wire.TypeStart).Messages()),
	}}
}

func figure(published, measured int) Cell {
	return Cell{Published: fmt.Sprint(published), Measured: fmt.Sprint(measured)}
}

func shown(measured int) Cell { return Cell{Measured: fmt.Sprint(measured)} }
