package attack

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"topdog/internal/lab/observe"
)

// The tables of a page of docs/ stand between these lines.
const (
	pageBegin = "<!-- scripts/attack writes the tables from here -->"
	pageEnd   = "<!-- to here -->"
)

// insert puts the tables into a page, in the place of those that it has.
func (r *report) insert(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), pageBegin+"\n")
	_, after, ends := strings.Cut(rest, pageEnd+"\n")
	if !found || !ends {
		return fmt.Errorf("put the tables into %s: it has no line %q with a line %q after it", path, pageBegin, pageEnd)
	}
	return os.WriteFile(path, []byte(before+pageBegin+"\n"+r.markdown()+"\n"+pageEnd+"\n"+after), 0o644)
}

// markdown is a table of what topdog's builds stand in each place, one of how long things took, and one of the others.
func (r *report) markdown() string {
	var b strings.Builder
	for _, p := range r.Places {
		mine := r.chosen(func(x Result) bool { return x.Place == p.Key && ours(x) && len(x.Took) == 0 })
		r.table(&b, p.Title, mine, []string{"a second", "moves", "two holders", "longest outage", "outage in all", "the leader's processor", "a follower's", "a follower sends", "`topdog status`", "late"}, figures)
	}
	took := r.chosen(func(x Result) bool { return ours(x) && len(x.Took) > 0 })
	r.table(&b, "how long it takes", took, []string{"median", "p95", "most", "runs"}, times)
	rest := r.chosen(func(x Result) bool { return !ours(x) })
	r.table(&b, "the same for keepalived and UCarp", rest, []string{"program", "a second", "moves", "two holders", "longest outage", "outage in all", "the leader's processor"}, func(x Result) []string {
		return append([]string{x.System}, figures(x)[:6]...)
	})
	return b.String()
}

// ours reports whether a result is of a build of topdog.
func ours(x Result) bool { return x.System == "topdog" || x.System == "before" }

func (r *report) chosen(wanted func(Result) bool) []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(x Result) bool { return !wanted(x) })
}

// figures are those of a result that is no matter of time.
func figures(x Result) []string {
	status := x.statusMost()
	if x.StatusFailed > 0 && x.StatusMost == 0 {
		status = "none"
	}
	sends := "-" // an older file does not have it
	if x.Sends > 0 {
		sends = fmt.Sprintf("%.0f", x.Sends)
	}
	cells := x.cells()
	return append(cells[:5:5], percent(x.Leader), percent(x.Follower), sends, status, millis(x.Late))
}

// times are those of a result that is one.
func times(x Result) []string {
	if x.Never {
		return []string{x.took(), "-", "-", "1"}
	}
	return []string{millis(observe.Percentile(x.Took, 50)), millis(observe.Percentile(x.Took, 95)), millis(observe.Percentile(x.Took, 100)), fmt.Sprint(len(x.Took))}
}

// table writes a row for each attack. What two builds have is before / after.
func (r *report) table(b *strings.Builder, title string, results []Result, columns []string, cells func(Result) []string) {
	if len(results) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s%s\n\n| attack | %s |\n| --- |%s\n", strings.ToUpper(title[:1]), title[1:], strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
	for _, a := range r.Attacks {
		var rows [][]string
		for _, x := range beforeFirst(results) {
			switch {
			case x.Attack != a.Key:
			case x.Note != "":
				rows = append(rows, append([]string{firstLine(x.Note)}, make([]string, len(columns)-1)...))
			default:
				rows = append(rows, cells(x))
			}
		}
		if len(rows) == 2 && r.twoBuilds(results, a) {
			rows = [][]string{beside(rows[0], rows[1])}
		}
		for _, row := range rows {
			fmt.Fprintf(b, "| %s | %s |\n", a.Title, strings.Join(row, " | "))
		}
	}
}

// beforeFirst has the results of the older build before those of this one, in whatever order they were made.
func beforeFirst(results []Result) []Result {
	return slices.SortedStableFunc(slices.Values(results), func(a, b Result) int { return cmp.Compare(age(a), age(b)) })
}

// age is less for the older build.
func age(x Result) int {
	if x.System == "before" {
		return 0
	}
	return 1
}

// twoBuilds reports whether an attack has a result of each build, and no other.
func (r *report) twoBuilds(results []Result, a attack) bool {
	var systems []string
	for _, x := range results {
		if x.Attack == a.Key {
			systems = append(systems, x.System)
		}
	}
	slices.Sort(systems)
	return slices.Equal(systems, []string{"before", "topdog"})
}

// beside writes two rows as one, where they differ.
func beside(before, now []string) []string {
	row := slices.Clone(now)
	for i := range row {
		if before[i] != now[i] {
			row[i] = before[i] + " / " + now[i]
		}
	}
	return row
}
