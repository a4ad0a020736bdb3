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

// titles are what people are told of the figures, by unit.
var titles = map[string]string{
	"watched-s": "watched, in seconds",
	"times/s":   "a second", // frames, or what a user did
	"moves":     "moves", "two-ms": "two holders",
	"longest-ms": "longest outage", // without an answer to the client
	"outage-ms":  "outage in all",  // the sum, of what is longer than two questions
	"dark-%":     "the client's time without an answer",
	// A follower's are means. What it answers to strangers is among the packets that it sends.
	"leader-cpu-%": "the leader's processor", "follower-cpu-%": "a follower's", "packets/s": "a follower sends",
	"status-ms": "`topdog status`", "status-median-ms": "its median", "status-failed": "it failed",
	"late-ms": "late", // for how long this program itself did not run, at worst
	"late-%":  "late in all, within outages",
	// How long what the attack is about took: until somebody led, or was back.
	"took-median-ms": "median", "took-ms": "p95", "took-most-ms": "most", "runs": "runs",
	"never": "what did not come about as long as it was watched",
}

// What the tables show: of what somebody has done, and of how long something took.
var (
	measured = []string{"times/s", "moves", "two-ms", "longest-ms", "outage-ms", "leader-cpu-%", "follower-cpu-%", "packets/s",
		"status-ms", "status-median-ms", "status-failed", "late-ms"}
	timed = []string{"took-median-ms", "took-ms", "took-most-ms", "runs"}
)

// words are a figure as people read it.
func words(unit string, v float64) string {
	switch {
	case strings.HasSuffix(unit, "-ms"):
		return observe.Millis(time.Duration(v * float64(time.Millisecond)))
	case strings.HasSuffix(unit, "-%"):
		return fmt.Sprintf("%.1f %%", v)
	case unit == "times/s" && v < 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// cell is a figure, or why there is none.
func (x Result) cell(unit string) string {
	v, known := x.Figures[unit]
	switch never := x.Figures["never"] > 0; {
	case never && unit == timed[0]:
		return "not within " + words(unit, v)
	case !known, never && strings.HasPrefix(unit, "took"):
		return "-"
	}
	return words(unit, v)
}

// text is a result as a line of its own.
func (x Result) text() string {
	text := fmt.Sprintf("%s, %s, %s: ", x.System, x.Place, x.Attack)
	if x.Note != "" {
		return text + firstLine(x.Note)
	}
	var texts []string
	for _, unit := range slices.Concat(measured, timed) {
		if _, known := x.Figures[unit]; known {
			texts = append(texts, titles[unit]+" "+x.cell(unit))
		}
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
	table := func(title, whose string, units []string, wanted func(Result) bool) {
		rows := r.rows(units, whose != "", wanted)
		if len(rows) == 0 {
			return
		}
		head := []string{"attack"}
		if whose != "" {
			head = append(head, whose)
		}
		for _, unit := range units {
			head = append(head, titles[unit])
		}
		fmt.Fprintf(&b, "\n### %s%s\n\n", strings.ToUpper(title[:1]), title[1:])
		for _, row := range slices.Insert(rows, 0, head, slices.Repeat([]string{"---"}, len(head))) {
			fmt.Fprintf(&b, "| %s\t|\n", strings.Join(row, "\t| "))
		}
	}
	for _, p := range r.Places {
		table(p.Title, "", measured, func(x Result) bool { return x.Place == p.Key && ours(x) && len(x.Runs) == 0 })
	}
	for _, p := range r.Places {
		table("how long it takes"+r.where(p), "", timed, func(x Result) bool { return x.Place == p.Key && ours(x) && len(x.Runs) > 0 })
	}
	for _, p := range r.Places {
		table("the same for keepalived and UCarp"+r.where(p), "program", measured[:6], func(x Result) bool { return x.Place == p.Key && !ours(x) })
	}
	return b.String()
}

// where says in which place something was measured, if there are several.
func (r *report) where(p place) string {
	if len(r.Places) < 2 {
		return ""
	}
	return ": " + p.Title
}

// rows are those of a table, in the order of the attacks. What an older build and this one have is one row.
func (r *report) rows(units []string, named bool, wanted func(Result) bool) (rows [][]string) {
	for _, a := range r.Attacks {
		those := map[string][]string{} // by system
		for _, x := range r.Results {
			if x.Attack == a.Key && wanted(x) {
				those[x.System] = x.row(a.Title, units, named)
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
	return rows
}

func (x Result) row(title string, units []string, named bool) []string {
	row := []string{title}
	if named {
		row = append(row, x.System)
	}
	for i, unit := range units {
		switch {
		case x.Note == "":
			row = append(row, x.cell(unit))
		case i == 0:
			row = append(row, firstLine(x.Note))
		default:
			row = append(row, "")
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
