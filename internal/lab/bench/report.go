package bench

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// What stands between these two lines of a page is made from a record, and is made anew from the next.
const (
	blockBegin = "<!-- bench report: begin; made from the figures of scripts/bench, so change those -->"
	blockEnd   = "<!-- bench report: end -->"
)

// document is the report as Markdown. On a page, words are no markup; for people at a terminal, columns are aligned.
type document struct {
	bytes.Buffer
	page    bool
	skipped []string // the titles of tables that have no row
}

// What stands above the tables.
const (
	outageIntro = `Milliseconds. The outage is the longest that the client, which asks all the time, waited for an
		answer; of a service, it counts from the first question that got none, and is 0 if all did. Two holders is for
		how long two boards or more had the address, two answer for how long two or more answered ARP requests for it
		from the client's place, which is asked for some events only, none for how long no board had it, moves how
		often another board became the holder. Percentiles are by nearest rank; > is what had not ended when the bench
		stopped waiting. The median is set against that of topdog at the same interval and at its default: x 5.6 is
		5.6 times slower. The limit is half an interval and one round trip: nobody can notice sooner on average that a
		leader is silent.`
	calmIntro = `Packets of the whole group on the LAN, with Ethernet's header. Processor is of one core; memory
		in MB (1,000,000 bytes), all processes of a board together: RSS counts what they share more than once, PSS
		once. Followers are the mean of all.`
	checksIntro = `Every board looks at its service by five checks a second: topdog by asking it for a name,
		keepalived by five scripts that do (dig). The columns are those of the steady state. What the scripts need is
		with what keepalived needs, and the service is with nobody.`
	lossIntro = `Every receiver loses so many of the packets, each by itself. First nobody fails, and every move
		of the address is one for nothing.`
	startIntro = "Milliseconds from the start of the last daemon to the first answer of the address."
	goalsIntro = `H is the interval between two heartbeats. Of several settings of topdog the worst counts; a peer
		is one that is told no more than its interval.`
)

// report writes all tables, in the order in which people read them.
func (r *record) report(w io.Writer, page bool) error {
	d := &document{page: page}
	r.systems(d)
	d.section(2, "Outage", outageIntro)
	events := allEvents()
	for _, e := range faultEvents() {
		if len(r.series(failover, labels{"event": e.String()})) > 0 {
			events = append(events, e)
		}
	}
	for _, e := range events {
		for _, m := range e.measures {
			if r.table(d, 3, m.title, "", failover, labels{"event": m.key}, failoverColumns) {
				r.notes(d, e, r.series(failover, labels{"event": m.key}))
			}
		}
	}
	r.table(d, 2, "Steady state", calmIntro, calm, labels{}, calmColumns)
	r.table(d, 2, "Checks", checksIntro, checks, labels{}, calmColumns)
	r.table(d, 2, "Loss", lossIntro, loss0, labels{}, lossColumns)
	if r.table(d, 3, "the leader's cable is pulled under loss", "Milliseconds.", lossPulled, labels{}, lossPulledColumns) {
		r.notes(d, nil, r.series(lossPulled, labels{}))
	}
	r.table(d, 2, "Cold start", startIntro, start, labels{}, startColumns)
	d.section(2, "Missing", "")
	d.list(append(slices.Clone(r.missing), "Not measured: "+strings.Join(d.skipped, "; ")+"."))
	r.goals(d)
	_, err := w.Write(d.Bytes())
	return err
}

func (d *document) section(level int, title, intro string) {
	fmt.Fprintf(d, "%s %s\n\n", strings.Repeat("#", level), d.mark(title))
	if intro != "" {
		fmt.Fprintf(d, "%s\n\n", d.mark(strings.Join(strings.Fields(intro), " ")))
	}
}

// list writes notes.
func (d *document) list(notes []string) {
	for _, n := range notes {
		fmt.Fprintf(d, "- %s\n", d.mark(n))
	}
	d.WriteString("\n")
}

var markup = strings.NewReplacer("&#34;", `"`, "&#39;", "'", // html writes them as numbers, which need not be
	"|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`, `\`, `\\`)

// mark writes words so that nothing in them is taken for more than words.
func (d *document) mark(s string) string {
	if !d.page {
		return s
	}
	return markup.Replace(html.EscapeString(s))
}

// grid writes a table. A column of which all but the head is empty is left out.
func (d *document) grid(head []string, rows [][]string, words int) {
	all := append([][]string{head}, rows...)
	widths := make([]int, len(head))
	used := make([]bool, len(head))
	for n, row := range all {
		for i, cell := range row {
			all[n][i] = d.mark(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			used[i] = used[i] || n > 0 && cell != ""
		}
	}
	pad := func(i int, cell string) string {
		blanks := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
		switch {
		case d.page:
			return cell
		case i < words:
			return cell + blanks
		}
		return blanks + cell
	}
	for n, row := range all {
		d.WriteString("|")
		for i, cell := range row {
			if used[i] {
				fmt.Fprintf(d, " %s |", pad(i, cell))
			}
		}
		d.WriteString("\n")
		for i := 0; n == 0 && i < len(head); i++ {
			rule := map[bool]string{true: "---", false: "---:"}[i < words]
			switch {
			case !used[i]:
			case i == 0:
				d.WriteString("| " + rule + " |")
			default:
				d.WriteString(" " + rule + " |")
			}
		}
		if n == 0 {
			d.WriteString("\n")
		}
	}
	d.WriteString("\n")
}

// systems is the head of the report.
func (r *record) systems(d *document) {
	d.section(2, "topdog beside its peers", r.facts["machine"]+"; the "+r.facts["form"]+" form, begun "+r.facts["begun"]+".")
	var rows [][]string
	var measured []*system
	for fact, version := range r.facts {
		if key, ok := strings.CutPrefix(fact, "version "); ok {
			s := systemOf(key)
			s.version = version
			measured = append(measured, s)
		}
	}
	slices.SortFunc(measured, func(a, b *system) int { return cmp.Compare(place(a), place(b)) })
	for _, s := range measured {
		rows = append(rows, []string{s.programName(), s.version, s.setting, span(s.H)})
	}
	d.grid([]string{"system", "version", "setting", "interval"}, rows, 3)
	for _, s := range measured {
		if d.page && !s.other && s.setting != "" {
			fmt.Fprintf(d, "<details><summary>%s: the configuration of the first board</summary>\n\n", d.mark(s.title()))
			fmt.Fprintf(d, "```\n%s\n```\n\n</details>\n\n", strings.TrimRight(s.shown(), "\n"))
		}
	}
}

// column is one of a table. A cell is "" if there is no such figure.
type column struct {
	title string
	cell  func(r *record, s *series) string
}

// ranked is a column of a percentile.
func ranked(title, unit string, p int) column {
	return column{title, func(_ *record, s *series) string {
		f, ok := s.rank(unit, p)
		if !ok {
			return ""
		}
		return cell(unit, f)
	}}
}

// columns are some columns, each written as TITLE = FIGURE PERCENTILE, or by the title alone if it is one of those below.
func columns(texts ...string) (all []column) {
	for _, text := range texts {
		title, figure, ranks := strings.Cut(text, " = ")
		if !ranks {
			all = append(all, column{title, special[title]})
			continue
		}
		unit, percentile, _ := strings.Cut(figure, " ")
		p, err := strconv.Atoi(percentile)
		if err != nil {
			panic(err) // It is a mistake in this file.
		}
		all = append(all, ranked(title, unit, p))
	}
	return all
}

// special are the columns that are no percentiles.
var special = map[string]func(r *record, s *series) string{
	"system": func(_ *record, s *series) string { return s.system.title() },
	"boards": func(_ *record, s *series) string { return s.of["boards"] },
	"loss":   func(_ *record, s *series) string { return lossOf(s) },
	"runs":   func(_ *record, s *series) string { return strconv.Itoa(len(s.samples)) },
	"moves med/max": func(r *record, s *series) string {
		return ranked("", "moves", 50).cell(r, s) + "/" + ranked("", "moves", 100).cell(r, s)
	},
	"vs topdog same H": func(r *record, s *series) string {
		return besideTopdog(r, s, func(own *system) bool { return s.system.name != "topdog" && own.H == s.system.H })
	},
	"vs topdog default": func(r *record, s *series) string { return besideTopdog(r, s, (*system).unset) },
	"vs limit":          besideLimit,
}

func lossOf(s *series) string { return strings.Replace(s.of["loss"], "%", " %", 1) }

var (
	failoverColumns = columns("system", "runs",
		"outage median = outage-ms 50", "outage p95 = outage-ms 95", "outage max = outage-ms 100",
		"two holders max = two-ms 100", "two holders median = two-ms 50",
		"two answer max = two-answer-ms 100", "two answer median = two-answer-ms 50",
		"none median = none-ms 50", "moves med/max", "vs topdog same H", "vs topdog default", "vs limit",
		"hook median = hook-ms 50", "hook p95 = hook-ms 95", "hook max = hook-ms 100",
		"pages median = pages-ms 50", "pages p95 = pages-ms 95", "pages max = pages-ms 100")
	calmColumns = columns("system", "boards", "for = watched-s 50",
		"packets a second = packets/s 50", "packets bytes = bytes/packet 50",
		"leader CPU = leader-cpu-% 50", "leader RSS = leader-rss-MB 50", "leader PSS = leader-pss-MB 50",
		"follower CPU = follower-cpu-% 50", "follower RSS = follower-rss-MB 50", "follower PSS = follower-pss-MB 50")
	lossColumns = columns("system", "loss", "nobody fails for = watched-s 50", "nobody fails moves = moves 50",
		"nobody fails two, ms = two-ms 50", "nobody fails unanswered, ms = unanswered-ms 50")
	lossPulledColumns = columns("system", "loss", "runs",
		"median = outage-ms 50", "p95 = outage-ms 95", "max = outage-ms 100", "two, max = two-ms 100")
	startColumns = columns("system", "runs", "median = start-ms 50", "p95 = start-ms 95", "max = start-ms 100",
		"vs topdog same H", "vs topdog default")
)

// besideTopdog sets a median against that of topdog with the settings that are wanted.
func besideTopdog(r *record, s *series, wanted func(own *system) bool) string {
	unit := "outage-ms"
	if s.samples[0].bench == start {
		unit = "start-ms"
	}
	median, _ := s.rank(unit, 50)
	for _, own := range r.series(s.samples[0].bench, labels{"event": s.of["event"]}) {
		if own.system.programName() != "topdog" || own.system.key == s.system.key || !wanted(own.system) {
			continue
		}
		theirs, _ := own.rank(unit, 50)
		if q, ok := ratio(median, theirs); ok {
			return times(q)
		}
	}
	return "-"
}

// besideLimit sets a median against the least that it can be when a leader falls silent.
func besideLimit(_ *record, s *series) string {
	trip, ok := s.rank("trip-ms", 50)
	if event := s.of["event"]; !ok || event != "cable-pulled" && event != "frames-dropped" {
		return ""
	}
	median, _ := s.rank("outage-ms", 50)
	q, _ := ratio(median, figure{millis(s.system.H)/2 + trip.value, false})
	return times(q)
}

// table writes the table of one benchmark, if there is one.
func (r *record) table(d *document, level int, title, intro, bench string, of labels, columns []column) bool {
	var head []string
	for _, c := range columns {
		head = append(head, c.title)
	}
	var rows [][]string
	for _, s := range r.series(bench, of) {
		var row []string
		for _, c := range columns {
			row = append(row, c.cell(r, s))
		}
		rows = append(rows, row)
	}
	if rows == nil {
		d.skipped = append(d.skipped, title)
		return false
	}
	d.section(level, title, intro)
	d.grid(head, rows, 1)
	return true
}

// notes says what the table of an event does not: who has no such event, what had no end, and how late the client was.
func (r *record) notes(d *document, e *event, all []*series) {
	var notes, late []string
	for fact := range r.facts {
		key, ok := strings.CutPrefix(fact, "version ")
		if sys := systemOf(key); ok && e != nil && e.suits(sys) && e.unable(sys) != "" {
			notes = append(notes, fmt.Sprintf("%s has no such event: %s", sys.title(), e.unable(sys)))
		}
	}
	slices.Sort(notes)
	for _, s := range all {
		name := s.system.title()
		if share := lossOf(s); share != "" {
			name += " at " + share + " loss"
		}
		open := func(unit, what string) {
			n := len(slices.DeleteFunc(slices.Clone(s.samples), func(one sample) bool { return one.values[unit] == 0 }))
			if n > 0 {
				runs := count(len(s.samples), "run", "runs")
				notes = append(notes, fmt.Sprintf("%s: in %d of %s %s when the bench stopped waiting.", name, n, runs, what))
			}
		}
		open("unended", "the outage had not ended")
		open("two-lasts", "two boards still had the address")
		if f, _ := s.rank("late-ms", 100); f.value > lateEnough {
			late = append(late, cell("late-ms", f)+" ms with "+name)
		}
	}
	if late != nil {
		notes = append(notes,
			"The client itself was late by up to "+strings.Join(late, ", ")+": what differs by less means nothing.")
	}
	if notes != nil {
		d.list(notes)
	}
}

// goals shows the goals, and counts them.
func (r *record) goals(d *document) {
	d.section(2, "Goals", goalsIntro)
	n := map[verdict]int{}
	var rows [][]string
	for _, g := range goals {
		j := g.judge(r)
		n[j.verdict]++
		what := g.what + ": " + g.limitWords()
		rows = append(rows, []string{titleOf(g.of) + g.in.words, what, j.verdict.String(), j.measured})
	}
	d.grid([]string{"what happens", "goal", "verdict", "measured"}, rows, 4)
	counts := []string{fmt.Sprintf("%d held", n[held]), fmt.Sprintf("%d missed", n[missed])}
	if n[disturbed] > 0 {
		counts = append(counts, fmt.Sprintf("%d disturbed by other work on this machine", n[disturbed]))
	}
	counts = append(counts, fmt.Sprintf("%d not measured", n[unmeasured]))
	d.list([]string{fmt.Sprintf("%s: %s.", count(len(goals), "goal", "goals"), strings.Join(counts, ", "))})
}

// insert returns the page with the report in it, in the place of the one that it has. What stands around it stays as it is.
func (r *record) insert(page []byte) ([]byte, error) {
	if n := bytes.Count(page, []byte(blockBegin)); n != 1 {
		return nil, fmt.Errorf("put a report into a page: the line %q is there %d times; it must be there once",
			blockBegin, n)
	}
	before, rest, _ := bytes.Cut(page, []byte(blockBegin))
	end := bytes.LastIndex(rest, []byte(blockEnd))
	if end < 0 {
		return nil, errors.New("put a report into a page: the line " + blockEnd + " does not follow where the report begins")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%s\n\n", before, blockBegin)
	err := r.report(&b, true)
	b.Write(rest[end:])
	return b.Bytes(), err
}

func (r *record) insertInto(path string) error {
	page, err := os.ReadFile(path)
	if err == nil {
		page, err = r.insert(page)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, page, 0o644)
}

// cell writes a figure for a table, as exactly as it was measured: the client asks once per millisecond, the kernel says
// at which microsecond an address came or went.
func cell(unit string, f figure) string {
	more := map[bool]string{true: ">"}[f.open]
	switch {
	case unit == "watched-s":
		return span(time.Duration(f.value * float64(time.Second)))
	case strings.HasSuffix(unit, "-%"):
		return fmt.Sprintf("%.3g %%", f.value)
	case unit == "moves" || unit == "bytes/packet":
		return fmt.Sprintf("%.0f", f.value)
	case !strings.HasSuffix(unit, "-ms"):
		return fmt.Sprintf("%.1f", f.value)
	case f.open && f.value >= 1000:
		return fmt.Sprintf(">%.4g s", f.value/1000)
	case f.value == 0:
		return more + "0"
	case f.value < 0.01:
		return "<0.01"
	case f.value < 0.995:
		return fmt.Sprintf("%s%.2f", more, f.value)
	case f.value < 99.95:
		return fmt.Sprintf("%s%.1f", more, f.value)
	}
	return fmt.Sprintf("%s%.0f", more, f.value)
}

// times writes a ratio.
func times(q figure) string {
	more := map[bool]string{true: ">"}[q.open]
	switch {
	case q.value < 0.995:
		return fmt.Sprintf("x %s%.2f", more, q.value)
	case q.value < 9.95:
		return fmt.Sprintf("x %s%.1f", more, q.value)
	}
	return fmt.Sprintf("x %s%.0f", more, q.value)
}

// span writes a time that somebody has chosen, such as an interval or how long to watch.
func span(t time.Duration) string {
	switch {
	case t >= time.Minute && t%time.Minute == 0:
		return fmt.Sprintf("%d min", t/time.Minute)
	case t >= time.Second:
		return fmt.Sprintf("%.4g s", t.Seconds())
	}
	return fmt.Sprintf("%.4g ms", millis(t))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
