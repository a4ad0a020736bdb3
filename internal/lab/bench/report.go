package bench

import (
	"bytes"
	"cmp"
	_ "embed"
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

// goalsIntro stands above the goals.
const goalsIntro = `H is the interval between two heartbeats. Of several settings of topdog the worst counts; a peer
	is one that is told no more than its interval.`

//go:embed tables.txt
var tablesText string

// table is one of the report; see tables.txt. It has no columns if it is the head of others.
type table struct {
	level               int
	title, intro, bench string
	columns             []column
}

// tables are those of the report.
var tables = func() (all []table) {
	for _, block := range strings.Split(tablesText, "\n\n")[1:] {
		head, text, _ := strings.Cut(block, "\n")
		level, title, _ := strings.Cut(head, " ")
		t := table{level: len(level), title: title}
		var columns string
		for line := range strings.Lines(text) {
			if more, found := strings.CutPrefix(line, "= "); found {
				columns += strings.TrimSpace(more) + " "
			} else {
				t.intro += line
			}
		}
		names := strings.Split(columns, " | ")
		t.bench = names[0]
		for _, name := range names[1:] {
			t.columns = append(t.columns, columnOf(strings.TrimSpace(name)))
		}
		all = append(all, t)
	}
	return all
}()

// report writes all tables, in the order in which people read them.
func (r *record) report(w io.Writer, page bool) error {
	d := &document{page: page}
	r.systems(d)
	for _, t := range tables {
		switch t.bench {
		case "":
			if !r.curveAlone() {
				d.section(t.level, t.title, t.intro)
			}
		case curve:
			if points := (labels{"amid": amids[0].key}); r.series(curve, points) != nil {
				r.table(d, t, nil, points) // What was measured amid other things is in columns of it.
			}
		case failover:
			for _, e := range slices.Concat(allEvents(), faultEvents()) {
				for _, m := range e.measures {
					t.title = m.title
					r.table(d, t, e, labels{"event": m.key})
				}
			}
		default:
			r.table(d, t, nil, nil)
		}
	}
	if !r.curveAlone() {
		d.section(2, "Missing", "")
		d.list(append(slices.Clone(r.missing), "Not measured: "+strings.Join(d.skipped, "; ")+"."))
		r.goals(d)
	} else if r.missing != nil {
		d.section(2, "Missing", "")
		d.list(r.missing)
	}
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

// grid writes a table, of which some columns have words. A column of which all but the head is empty is left out.
func (d *document) grid(head []string, rows [][]string, words int) {
	lines := make([]string, 2+len(rows))
	for i, title := range head {
		rule, width, used := "---:", utf8.RuneCountInString(title), false
		cells := []string{title}
		for _, row := range rows {
			cells = append(cells, row[i])
			width = max(width, utf8.RuneCountInString(row[i]))
			used = used || row[i] != ""
		}
		if !used {
			continue
		}
		if i < words {
			rule, width = "---", -width // at the left
		}
		for n, cell := range slices.Insert(cells, 1, rule) {
			if d.page || n == 1 {
				lines[n] += " " + d.mark(cell) + " |"
			} else {
				lines[n] += fmt.Sprintf(" %*s |", width, cell)
			}
		}
	}
	for _, line := range lines {
		d.WriteString("|" + line + "\n")
	}
	d.WriteString("\n")
}

// systems is the head of the report.
func (r *record) systems(d *document) {
	clients := ""
	if r.facts["ipv6"] != "" {
		clients = " One client asks at an IPv4 address and another one at an IPv6 address that moves with it, in the same runs. " +
			"Two answer counts answers to ARP or Neighbor Discovery, and to ICMP."
	}
	d.section(2, "topdog beside its peers", r.facts["machine"]+"; the "+r.facts["form"]+" form, begun "+r.facts["begun"]+"."+clients)
	var rows [][]string
	var measured []*system
	for fact, version := range r.facts {
		if key, ok := strings.CutPrefix(fact, "version "); ok {
			s := systemOf(key)
			s.version, s.IPv6 = version, r.facts["ipv6"] != ""
			measured = append(measured, s)
		}
	}
	slices.SortFunc(measured, func(a, b *system) int { return cmp.Compare(a.place, b.place) })
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

// columnOf is a column as tables.txt has it.
func columnOf(text string) column {
	title, figure, isRank := strings.Cut(text, " = ")
	if amid, what, found := strings.Cut(title, ": "); found && !isRank {
		return amidColumn(title, amid, what)
	}
	if !isRank {
		return column{title, special[title]}
	}
	var unit string
	var p int
	if _, err := fmt.Sscan(figure, &unit, &p); err != nil {
		panic(fmt.Sprintf("tables.txt: %s: %v", text, err))
	}
	return ranked(title, unit, p)
}

// special are the columns that are no percentiles.
var special = map[string]func(r *record, s *series) string{
	"system": func(_ *record, s *series) string { return s.system.title() },
	"boards": func(_ *record, s *series) string { return s.of["boards"] },
	"loss":   func(_ *record, s *series) string { return lossOf(s) },
	"runs":   func(_ *record, s *series) string { return strconv.Itoa(len(s.samples)) },
	"pulled cables": func(r *record, s *series) string {
		if pulled := r.point(curvePull, s.system, s.of["amid"]); pulled != nil {
			return strconv.Itoa(len(pulled.samples))
		}
		return "0"
	},
	"moves med/max": func(r *record, s *series) string {
		return ranked("", "moves", 50).cell(r, s) + "/" + ranked("", "moves", 100).cell(r, s)
	},
	"vs topdog same H": func(r *record, s *series) string {
		return besideTopdog(r, s, func(own *system) bool { return s.system.name != "topdog" && own.H == s.system.H })
	},
	"vs topdog default":  func(r *record, s *series) string { return besideTopdog(r, s, (*system).unset) },
	"vs limit":           besideLimit,
	"CPU vs default":     func(r *record, s *series) string { return besidePlain(r, s, "cpu-%") },
	"PSS vs default":     func(r *record, s *series) string { return besidePlain(r, s, "pss-MB") },
	"packets vs default": func(r *record, s *series) string { return besidePlain(r, s, "") },
}

// besidePlain sets what boards that have two of something cost, all of them together, against the same number of boards that have one.
// Without a unit it is about the packets.
func besidePlain(r *record, s *series, unit string) string {
	if !s.system.doubled() {
		return ""
	}
	sum := func(s *series) (all figure) {
		if unit == "" {
			all, _ = s.rank("packets/s", 50)
			return all
		}
		boards, _ := strconv.Atoi(s.of["boards"])
		leader, _ := s.rank("leader-"+unit, 50)
		follower, _ := s.rank("follower-"+unit, 50)
		return figure{value: leader.value + float64(boards-1)*follower.value}
	}
	for _, one := range r.series(s.samples[0].bench, labels{"system": plain, "boards": s.of["boards"]}) {
		if q, ok := ratio(sum(s), sum(one)); ok {
			return times(q)
		}
	}
	return ""
}

func lossOf(s *series) string { return strings.Replace(s.of["loss"], "%", " %", 1) }

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
	median, _ := s.rank("outage-ms", 50)
	if q, ok := ratio(median, figure{value: s.limit()}); ok {
		return times(q)
	}
	return ""
}

// limit is the least that the median of a silent leader's outage can be, or 0.
func (s *series) limit() float64 {
	trip, ok := s.rank("trip-ms", 50)
	if event := s.of["event"]; !ok || event != "cable-pulled" && event != "frames-dropped" {
		return 0
	}
	return millis(s.system.H)/2 + trip.value
}

// table writes a table, if there is something to write, and notes about it. That of a measure has an event.
func (r *record) table(d *document, t table, e *event, of labels) {
	all := r.series(t.bench, of)
	if all == nil {
		if e == nil || !e.added {
			d.skipped = append(d.skipped, t.title)
		}
		return
	}
	var head []string
	rows := make([][]string, len(all))
	for _, c := range t.columns {
		head = append(head, c.title)
		for i, s := range all {
			rows[i] = append(rows[i], c.cell(r, s))
		}
	}
	d.section(t.level, t.title, t.intro)
	d.grid(head, rows, 1)
	r.notes(d, e, all)
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
			n := len(without(s.samples, func(one sample) bool { return one.values[unit] == 0 }))
			if n > 0 {
				runs := count(len(s.samples), "run", "runs")
				notes = append(notes, fmt.Sprintf("%s: in %d of %s %s when the bench stopped waiting.", name, n, runs, what))
			}
		}
		open("unended", "the outage had not ended")
		open("two-lasts", "two boards still had the address")
		open(ipv6+"unended", "the outage of the IPv6 client had not ended")
		open(ipv6+"two-lasts", "two boards still had the IPv6 address")
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
		rows = append(rows, []string{g.title(), what, j.verdict.String(), j.measured})
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
	case unit == "moves/min" && f.value > 0 && f.value < 10:
		return digits(f.value, 10)
	case unit == "moves" || unit == "moves/min" || unit == "bytes/packet":
		return fmt.Sprintf("%.0f", f.value)
	case !strings.HasSuffix(unit, "-ms"):
		return fmt.Sprintf("%.1f", f.value)
	case f.open && f.value >= 1000:
		return fmt.Sprintf(">%.4g s", f.value/1000)
	case f.value == 0:
		return more + "0"
	case f.value < 0.01:
		return "<0.01"
	}
	return more + digits(f.value, 100)
}

// times writes a ratio.
func times(q figure) string { return "x " + map[bool]string{true: ">"}[q.open] + digits(q.value, 10) }

// digits writes a figure that is more than a whole number with none behind the point.
func digits(v, whole float64) string {
	switch {
	case v < 0.995:
		return fmt.Sprintf("%.2f", v)
	case v < whole-0.05:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
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
