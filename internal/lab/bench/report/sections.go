package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// lateEnough is from when on the client's own lateness is worth a word.
const lateEnough = time.Millisecond

// sections is the whole report, in the order in which people read it.
func (r *Report) sections() []section {
	list := []section{r.head()}
	list = append(list, section{
		title: "Outage", level: 1,
		intro: "Milliseconds. The outage is the longest that the client, which asks all the time, waited for an answer; of a service, it counts " +
			"from the first question that got none, and is 0 if all did. Two holders is for how long " +
			"two boards or more had the address, two answer for how long two or more answered ARP requests for it from the client's place, " +
			"which is asked for some events only, none for how long no board had it, moves how often another board became " +
			"the holder. Percentiles are by nearest rank; > is what had not ended when the bench stopped waiting. " +
			"The median is set against that of topdog at the same interval and at its default: x 5.6 is 5.6 times slower. The limit is half an " +
			"interval and one round trip: nobody can notice sooner on average that a leader is silent.",
	})
	for _, e := range r.Events {
		list = append(list, r.event(e))
	}
	if len(r.Events) == 0 {
		list[len(list)-1].notes = []string{"Not measured."}
	}
	return append(list, r.calm(), r.checked(), r.lossy(), r.starts(), r.missing(), r.goalSection())
}

func (r *Report) head() section {
	m := r.Machine
	s := section{
		title: "topdog beside its peers", level: 1,
		intro: fmt.Sprintf("%s (%s), %.1f GB of memory, %s, %s; the %s form, begun %s.",
			count(m.Processors, "processor", "processors"), clean(m.Model), float64(m.Memory)/1e9,
			clean(m.Kernel), clean(m.Go), clean(r.Form), clean(r.Made)),
		table: newTable(1, []int{0, 1, 2}, "system", "version", "setting", "interval"),
	}
	for _, y := range r.Systems {
		interval := nothing
		if y.Interval > 0 {
			interval = span(y.Interval)
		}
		s.table.add(clean(cmp.Or(y.Program, y.Key)), clean(y.Version), clean(y.Setting), interval)
	}
	s.config = r.Systems
	return s
}

// event is the table of one event. A system without runs has a note that says why.
func (r *Report) event(e Event) section {
	limited := e.Key == CablePulled || e.Key == FramesDropped
	head := []string{
		"system", "runs", "outage\nmedian", "outage\np95", "outage\nmax", "two holders\nmax", "two holders\nmedian",
		"none\nmedian", "moves\nmed/max", "vs topdog\nsame H", "vs topdog\ndefault",
	}
	if limited {
		head = append(head, "vs\nlimit")
	}
	probed := r.probed(e.Key)
	if probed {
		head = slices.Insert(head, columnTwoAnswer, "two answer\nmax", "two answer\nmedian")
	}
	beside, more := besides[e.Key]
	if more {
		head = append(head, beside.title+"\nmedian", beside.title+"\np95", beside.title+"\nmax")
	}
	s := section{title: r.title(e.Key), level: 2, table: newTable(0, []int{0}, head...)}
	var unmeasured, lateness []string
	for _, y := range r.Systems {
		if y.Service != e.Service {
			continue
		}
		f, _ := r.failure(y.Key, e.Key)
		switch {
		case f.Unable != "":
			s.notes = append(s.notes, fmt.Sprintf("%s has no such event: %s", y.name(), clean(f.Unable)))
			continue
		case len(f.Runs) == 0:
			unmeasured = append(unmeasured, y.name())
			continue
		}
		row := r.row(y, e.Key, f.Runs, limited)
		if probed {
			row = slices.Insert(row, columnTwoAnswer, rank(f.Runs, twoAnswer, 100).cell(), rank(f.Runs, twoAnswer, 50).cell())
		}
		if more {
			row = append(row, rank(f.Runs, beside.pick, 50).cell(), rank(f.Runs, beside.pick, 95).cell(), rank(f.Runs, beside.pick, 100).cell())
		}
		s.table.add(row...)
		s.notes = append(s.notes, unendedNotes(y, f.Runs)...)
		lateness = append(lateness, tardy(y, f.Runs)...)
	}
	s.notes = append(s.notes, lateNote(lateness)...)
	if len(unmeasured) > 0 {
		s.notes = append(s.notes, "Not measured: "+strings.Join(unmeasured, ", ")+".")
	}
	return s
}

// besides are the times that are measured for one event only.
var besides = map[string]struct {
	title string
	pick  func(Run) bound
}{
	Hook:        {"hook", hook},
	PagesPulled: {"pages", pages},
}

// columnTwoAnswer is where the columns of boards that answer stand, if they were asked.
const columnTwoAnswer = 7

// probed says whether the boards were asked in the runs of an event.
func (r *Report) probed(event string) bool {
	for _, f := range r.Failures {
		if f.Event == event && slices.ContainsFunc(f.Runs, func(r Run) bool { return r.Probed }) {
			return true
		}
	}
	return false
}

func (r *Report) row(y System, event string, runs []Run, limited bool) []string {
	median := rank(runs, outage, 50)
	cells := []string{
		y.name(), fmt.Sprint(len(runs)),
		median.cell(), rank(runs, outage, 95).cell(), rank(runs, outage, 100).cell(),
		rank(runs, two, 100).cell(), rank(runs, two, 50).cell(), rank(runs, none, 50).cell(),
		fmt.Sprintf("%d/%d", rank(runs, moves, 50).Time, rank(runs, moves, 100).Time),
	}
	ours := func(y System) (bound, bool) {
		f, _ := r.failure(y.Key, event)
		return nearestRank(of(f.Runs, outage), 50)
	}
	cells = append(cells, r.besides(y, median, ours)...)
	if limited {
		over := nothing
		limit := bound{Time: y.Interval/2 + rank(runs, trip, 50).Time}
		if q, least, ok := ratio(median, limit); ok && y.Interval > 0 {
			over = times(q, least)
		}
		cells = append(cells, over)
	}
	return cells
}

// besides sets a median against that of topdog at the same interval, and at its
// default. topdog itself is set against its default only.
func (r *Report) besides(y System, median bound, ours func(System) (bound, bool)) []string {
	same, unset := nothing, nothing
	for _, t := range r.Systems {
		if t.Program != topdog || t.Key == y.Key {
			continue
		}
		own, ok := ours(t)
		if !ok {
			continue
		}
		q, least, ok := ratio(median, own)
		if !ok {
			continue
		}
		if same == nothing && y.Program != topdog && t.Interval == y.Interval {
			same = times(q, least)
		}
		if unset == nothing && t.unset() {
			unset = times(q, least)
		}
	}
	return []string{same, unset}
}

// unendedNotes say of how many runs only the least is known.
func unendedNotes(y System, runs []Run) []string {
	var list []string
	open := func(figure func(Run) bound, what string) {
		n := 0
		for _, b := range of(runs, figure) {
			if b.AtLeast {
				n++
			}
		}
		if n > 0 {
			list = append(list, fmt.Sprintf("%s: in %d of %s %s when the bench stopped waiting.", y.name(), n, count(len(runs), "run", "runs"), what))
		}
	}
	open(outage, "the outage had not ended")
	open(two, "two boards still had the address")
	return list
}

func tardy(y System, runs []Run) []string {
	if b := rank(runs, late, 100); b.Time > lateEnough {
		return []string{fmt.Sprintf("%s ms with %s", millis(b.Time), y.name())}
	}
	return nil
}

func lateNote(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return []string{"The client itself was late by up to " + strings.Join(list, ", ") + ": what differs by less means nothing."}
}

func (r *Report) calm() section {
	s := section{
		title: "Steady state", level: 1,
		intro: "Packets of the whole group on the LAN, with Ethernet's header. Processor is of one core; memory in MB (1,000,000 " +
			"bytes), all processes of a board together: RSS counts what they share more than once, PSS once. Followers are the mean of all.",
	}
	return r.costs(s, r.Calm)
}

func (r *Report) checked() section {
	return r.costs(section{
		title: "Checks", level: 1,
		intro: "Every board looks at its service by five checks a second: topdog by asking it for a name, keepalived by five scripts that do (dig). " +
			"The columns are those of the steady state. What the scripts need is with what keepalived needs, and the service is with nobody.",
	}, r.Checked)
}

// costs is the table of what groups need that do nothing but their duty.
func (r *Report) costs(s section, groups []Calm) section {
	if len(groups) == 0 {
		s.notes = []string{"Not measured."}
		return s
	}
	s.table = newTable(1, []int{1}, "boards", "system", "for", "packets\na second", "packets\nbytes",
		"leader\nCPU", "leader\nRSS", "leader\nPSS", "follower\nCPU", "follower\nRSS", "follower\nPSS")
	list := slices.Clone(groups)
	slices.SortStableFunc(list, func(a, b Calm) int { return cmp.Compare(a.Boards, b.Boards) })
	for _, c := range list {
		a, b := c.Leader, c.Follower
		s.table.add(fmt.Sprint(c.Boards), r.system(c.System).name(), span(c.For), c.rate(), c.size(),
			a.share(), memory(a.RSS), memory(a.PSS), b.share(), memory(b.RSS), memory(b.PSS))
	}
	return s
}

// perSecond is the number of packets per second.
func (c Calm) perSecond() (float64, bool) {
	if c.For <= 0 {
		return 0, false
	}
	return float64(c.Packets) / c.For.Seconds(), true
}

func (c Calm) rate() string {
	if p, ok := c.perSecond(); ok {
		return fmt.Sprintf("%.1f", p)
	}
	return nothing
}

func (c Calm) size() string {
	if c.Packets == 0 {
		return nothing
	}
	return fmt.Sprintf("%.0f", float64(c.Bytes)/float64(c.Packets))
}

// looked says whether somebody has looked at the processes: they cannot be without memory.
func (c Cost) looked() bool { return c.RSS > 0 }

func (c Cost) share() string {
	if !c.looked() {
		return nothing
	}
	return percent(c.Processor)
}

func memory(bytes uint64) string {
	if bytes == 0 {
		return nothing
	}
	return megabytes(bytes)
}

func (r *Report) lossy() section {
	s := section{
		title: "Loss", level: 1,
		intro: "Every receiver loses so many of the packets, each by itself. First nobody fails, and every move of the address is one for nothing. " +
			"Then the leader's cable is pulled under the same loss: the outage in ms.",
	}
	if len(r.Lossy) == 0 {
		s.notes = []string{"Not measured."}
		return s
	}
	s.table = newTable(1, []int{1}, "loss", "system", "nobody fails\nfor", "nobody fails\nmoves", "nobody fails\ntwo, ms", "nobody fails\nunanswered, ms",
		"leader dies\nruns", "leader dies\nmedian", "leader dies\np95", "leader dies\nmax", "leader dies\ntwo, max")
	list := slices.Clone(r.Lossy)
	slices.SortStableFunc(list, func(a, b Lossy) int { return cmp.Compare(a.Loss, b.Loss) })
	var lateness []string
	for _, l := range list {
		y := r.system(l.System)
		cells := []string{percent(l.Loss), y.name(), span(l.For), fmt.Sprint(l.Moves), millis(l.Two), millis(l.Unanswered), fmt.Sprint(len(l.Runs)),
			nothing, nothing, nothing, nothing}
		if l.For <= 0 {
			cells[2], cells[3], cells[4], cells[5] = nothing, nothing, nothing, nothing
		}
		if len(l.Runs) > 0 {
			for i, p := range []int{50, 95, 100} {
				cells[7+i] = rank(l.Runs, outage, p).cell()
			}
			cells[10] = rank(l.Runs, two, 100).cell()
			for _, n := range unendedNotes(y, l.Runs) {
				s.notes = append(s.notes, fmt.Sprintf("%s loss, %s", percent(l.Loss), n))
			}
			for _, n := range tardy(y, l.Runs) {
				lateness = append(lateness, fmt.Sprintf("%s at %s loss", n, percent(l.Loss)))
			}
		}
		s.table.add(cells...)
	}
	s.notes = append(s.notes, lateNote(lateness)...)
	return s
}

func (r *Report) starts() section {
	s := section{
		title: "Cold start", level: 1,
		intro: "Milliseconds from the start of the last daemon to the first answer of the address.",
	}
	ours := func(y System) (bound, bool) {
		for _, o := range r.Starts {
			if o.System == y.Key {
				return nearestRank(bounds(o.Took), 50)
			}
		}
		return bound{}, false
	}
	t := newTable(0, []int{0}, "system", "runs", "median", "p95", "max", "vs topdog\nsame H", "vs topdog\ndefault")
	for _, o := range r.Starts {
		y, took := r.system(o.System), bounds(o.Took)
		median, ok := nearestRank(took, 50)
		if !ok {
			s.notes = append(s.notes, "Not measured: "+y.name()+".")
			continue
		}
		cells := []string{y.name(), fmt.Sprint(len(took)), median.cell()}
		for _, p := range []int{95, 100} {
			b, _ := nearestRank(took, p)
			cells = append(cells, b.cell())
		}
		t.add(append(cells, r.besides(y, median, ours)...)...)
	}
	if len(t.rows) > 0 {
		s.table = t
	} else if len(s.notes) == 0 {
		s.notes = []string{"Not measured."}
	}
	return s
}

func (r *Report) missing() section {
	s := section{title: "Missing", level: 1}
	for _, m := range r.Missing {
		s.notes = append(s.notes, clean(m))
	}
	if len(s.notes) == 0 {
		s.notes = []string{"Nothing that was asked for."}
	}
	return s
}
