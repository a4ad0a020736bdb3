package attack

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"topdog/internal/lab/observe"
)

// The tables of a page of docs/ stand between these lines.
const (
	pageBegin = "<!-- scripts/attack writes the tables from here -->"
	pageEnd   = "<!-- to here -->"
)

// column is one of a table.
type column struct {
	title string
	of    func(Result) string
}

// What the tables show: of what somebody has done, and of how long something took.
var (
	measured = []column{
		{"a second", Result.often}, {"moves", func(x Result) string { return fmt.Sprint(x.Moves) }}, {"two holders", millis(func(x Result) time.Duration { return x.Two })},
		{"longest outage", millis(func(x Result) time.Duration { return x.Longest })}, {"outage in all", millis(func(x Result) time.Duration { return x.Outage })},
		{"the leader's processor", func(x Result) string { return percent(x.Leader) }}, {"a follower's", func(x Result) string { return percent(x.Follower) }},
		{"a follower sends", Result.sends}, {"`topdog status`", Result.status}, {"its median", millis(func(x Result) time.Duration { return x.Status })},
		{"late", millis(func(x Result) time.Duration { return x.Late })},
	}
	timed = []column{{"median", took(50)}, {"p95", took(95)}, {"most", took(100)}, {"runs", func(x Result) string { return fmt.Sprint(len(x.Took)) }}}
	whose = column{"program", func(x Result) string { return x.System }}
)

func millis(of func(Result) time.Duration) func(Result) string {
	return func(x Result) string { return observe.Millis(of(x)) }
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func (x Result) often() string {
	if x.Rate < 10 {
		return fmt.Sprintf("%.1f", x.Rate)
	}
	return fmt.Sprintf("%.0f", x.Rate)
}

func (x Result) sends() string {
	if x.Sends == 0 {
		return "-" // an older file does not have it
	}
	return fmt.Sprintf("%.0f", x.Sends)
}

// status is the longest that root waited for the status, and how often for nothing.
func (x Result) status() string {
	switch {
	case x.StatusFailed > 0 && x.StatusMost == 0:
		return fmt.Sprintf("none, %d failed", x.StatusFailed)
	case x.StatusFailed > 0:
		return fmt.Sprintf("%s, %d failed", observe.Millis(x.StatusMost), x.StatusFailed)
	}
	return observe.Millis(x.StatusMost)
}

// took is a percentile of what an attack is about.
func took(percentile int) func(Result) string {
	return func(x Result) string {
		switch {
		case x.Never && percentile == 50:
			return "not within " + observe.Millis(x.Took[0])
		case x.Never:
			return "-"
		}
		return observe.Millis(observe.Percentile(x.Took, percentile))
	}
}

// text is a row as a line of its own.
func (x Result) text() string {
	text := fmt.Sprintf("%s, %s, %s: ", x.System, x.Place, x.Attack)
	if x.Note != "" {
		return text + firstLine(x.Note)
	}
	columns := measured
	if len(x.Took) > 0 {
		columns = slices.Concat(measured[:3], timed, measured[len(measured)-1:])
	}
	var texts []string
	for _, c := range columns {
		texts = append(texts, c.title+" "+c.of(x))
	}
	return text + strings.Join(texts, ", ")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// ours reports whether a result is of a build of topdog.
func ours(x Result) bool { return x.System == "topdog" || x.System == "before" }

// write writes the tables for people at a terminal.
func (r *report) write(out io.Writer) error {
	tw := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintf(tw, "%d processors\n%s", r.Processors, r.tables())
	return tw.Flush()
}

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
	return os.WriteFile(path, []byte(before+pageBegin+"\n"+strings.ReplaceAll(r.tables(), "\t", " ")+"\n"+pageEnd+"\n"+after), 0o644)
}

// tables are one of what topdog's builds stand in each place, one of how long things took, and one of the others, as Markdown.
// There is a tab before each |.
func (r *report) tables() string {
	var b strings.Builder
	table := func(title string, columns []column, wanted func(Result) bool) {
		rows := r.rows(columns, wanted)
		if len(rows) == 0 {
			return
		}
		head := []string{"attack"}
		for _, c := range columns {
			head = append(head, c.title)
		}
		fmt.Fprintf(&b, "\n### %s%s\n\n", strings.ToUpper(title[:1]), title[1:])
		for _, row := range slices.Insert(rows, 0, head, slices.Repeat([]string{"---"}, len(head))) {
			fmt.Fprintf(&b, "| %s\t|\n", strings.Join(row, "\t| "))
		}
	}
	for _, p := range r.Places {
		table(p.Title, measured, func(x Result) bool { return x.Place == p.Key && ours(x) && len(x.Took) == 0 })
	}
	table("how long it takes", timed, func(x Result) bool { return ours(x) && len(x.Took) > 0 })
	table("the same for keepalived and UCarp", slices.Concat([]column{whose}, measured[:6]), func(x Result) bool { return !ours(x) })
	return b.String()
}

// rows are those of a table, in the order of the attacks. What an older build and this one have in a place is one row.
func (r *report) rows(columns []column, wanted func(Result) bool) (rows [][]string) {
	for _, a := range r.Attacks {
		for _, p := range r.Places {
			those := map[string][]string{} // by system
			for _, x := range r.Results {
				if x.Attack == a.Key && x.Place == p.Key && wanted(x) {
					those[x.System] = x.row(a.Title, columns)
				}
			}
			if before, now := those["before"], those["topdog"]; before != nil && now != nil {
				those["before"] = beside(before, now)
				delete(those, "topdog")
			}
			for _, system := range slices.Sorted(maps.Keys(those)) {
				rows = append(rows, those[system])
			}
		}
	}
	return rows
}

func (x Result) row(title string, columns []column) []string {
	row := make([]string, 1+len(columns))
	row[0], row[1] = title, firstLine(x.Note)
	for i, c := range columns {
		if x.Note == "" {
			row[i+1] = c.of(x)
		}
	}
	return row
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
