package bench

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// record is all that one session has measured. It is written in the format of Go's benchmarks, a line for each run, so
// that benchstat compares two of them, and one system with another.
type record struct {
	facts   map[string]string // begun, form, machine, version of each system, and ipv6 if there was an IPv6 client
	missing []string
	samples []sample
}

// sample is one line: what was measured once.
type sample struct {
	bench  string // such as Failover
	of     labels
	values map[string]float64 // by unit
}

// labels say of what a sample is.
type labels map[string]string

// The benchmarks, and what their lines have beside the figures of a run of an event (Failover).
const (
	failover   = "Failover"
	start      = "Start"       // the time from the start of the last daemon to the first answer of the address
	calm       = "Calm"        // what a group costs that does nothing but its duty
	checks     = "Checks"      // the same with five checks a second on every board
	loss0      = "Loss"        // a group that loses packets, and in which nobody fails
	lossPulled = "LossPulled"  // the leader's cable is pulled under the same loss
	curve      = "Curve"       // a group in which nobody fails, amid something; see curve.go
	curvePull  = "CurvePulled" // the leader's cable is pulled in the same group, afterwards
	size       = "Size"        // of the program for a Raspberry Pi
)

// order is that of labels and units in a line. All others come last.
var order = []string{
	"system", "event", "amid", "loss", "boards",
	"start-ms", "watched-s", "outage-ms", "unended", "two-ms", "two-lasts", "two-answer-ms", "none-ms", "moves", "moves/min",
	"announcements", "hook-ms", "pages-ms", "unanswered-ms", "trip-ms", "late-ms", "packets/s", "bytes/packet",
	"leader-cpu-%", "follower-cpu-%", "leader-rss-MB", "leader-pss-MB", "follower-rss-MB", "follower-pss-MB", "MB",
}

func byOrder(a, b string) int {
	place := func(s string) int {
		name := strings.TrimPrefix(s, ipv6) // that of IPv6 stands behind it
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
}

// millis is a time as the lines have it.
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// String is the line.
func (s sample) String() string {
	var t strings.Builder
	t.WriteString("Benchmark" + s.bench)
	for _, key := range slices.SortedFunc(maps.Keys(s.of), byOrder) {
		t.WriteString("/" + key + "=" + s.of[key])
	}
	t.WriteString(" 1")
	for _, unit := range slices.SortedFunc(maps.Keys(s.values), byOrder) {
		fmt.Fprintf(&t, " %s %s", strconv.FormatFloat(math.Round(s.values[unit]*1e6)/1e6, 'f', -1, 64), unit)
	}
	return t.String()
}

// write writes the record. benchstat takes no notice of lines that begin with #.
func (r *record) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, key := range slices.Sorted(maps.Keys(r.facts)) {
		fmt.Fprintf(out, "# %s: %s\n", key, r.facts[key])
	}
	for _, m := range r.missing {
		fmt.Fprintf(out, "# missing: %s\n", m)
	}
	for _, s := range r.samples {
		fmt.Fprintln(out, s)
	}
	return out.Flush()
}

// read reads what write has written, and refuses what cannot have been measured.
func read(from io.Reader) (*record, error) {
	r := &record{facts: map[string]string{}}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		line := clean(lines.Text())
		if fact, ok := strings.CutPrefix(line, "# "); ok {
			key, value, _ := strings.Cut(fact, ": ")
			if key == "missing" {
				r.missing = append(r.missing, value)
			} else {
				r.facts[key] = value
			}
			continue
		}
		name, ok := strings.CutPrefix(line, "Benchmark")
		if !ok {
			continue
		}
		s, err := parseSample(strings.Fields(name))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		r.samples = append(r.samples, s)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(r.samples) == 0 {
		return nil, fmt.Errorf("there is no line of a benchmark in it")
	}
	return r, nil
}

func parseSample(words []string) (s sample, err error) {
	if len(words) < 4 || len(words)%2 != 0 {
		return s, fmt.Errorf("write: BenchmarkNAME/LABEL=VALUE 1 FIGURE UNIT …")
	}
	parts := strings.Split(words[0], "/")
	s = sample{parts[0], labels{}, map[string]float64{}}
	for _, part := range parts[1:] {
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" || s.of[key] != "" {
			return s, fmt.Errorf("%q is no label with a value", part)
		}
		s.of[key] = value
	}
	for i := 2; i < len(words); i += 2 {
		v, err := strconv.ParseFloat(words[i], 64)
		if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			return s, fmt.Errorf("%s of %s cannot have been measured", words[i], words[i+1])
		}
		if _, twice := s.values[words[i+1]]; twice {
			return s, fmt.Errorf("%s is there twice", words[i+1])
		}
		s.values[words[i+1]] = v
	}
	return s, nil
}

// clean makes a line from outside fit for a terminal or a page: what steers a terminal becomes a question mark.
func clean(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\ufffd' || r == '\ufffe' || r == '\uffff':
			return '?'
		}
		return r
	}, line)
}

// series are the samples of one benchmark that have all labels in common.
type series struct {
	of      labels
	system  *system
	samples []sample
}

// series returns those of a benchmark that have some labels, in the order of the systems, and then as they were measured.
func (r *record) series(bench string, want labels) (all []*series) {
	for _, s := range r.samples {
		if s.bench != bench || !s.of.have(want) {
			continue
		}
		i := slices.IndexFunc(all, func(other *series) bool { return maps.Equal(other.of, s.of) })
		if i < 0 {
			i = len(all)
			all = append(all, &series{of: s.of, system: systemOf(s.of["system"])})
		}
		all[i].samples = append(all[i].samples, s)
	}
	slices.SortStableFunc(all, func(a, b *series) int { return cmp.Compare(a.system.place, b.system.place) })
	return all
}

// replace takes runs of events for those that there are of the same, unless there are fewer of them.
func (r *record) replace(by []sample) {
	for _, now := range (&record{samples: by}).series(failover, nil) {
		before := r.series(failover, now.of)
		if len(before) > 0 && len(before[0].samples) > len(now.samples) {
			continue
		}
		r.samples = append(without(r.samples, func(one sample) bool { return one.bench == failover && one.of.have(now.of) }), now.samples...)
	}
}

func (l labels) have(want labels) bool {
	for key, value := range want {
		if l[key] != value {
			return false
		}
	}
	return true
}

// systemOf finds a system by its key, also if it is another build, which stands behind this one in tables, or unknown, which
// comes last.
func systemOf(key string) *system {
	known, other := strings.CutPrefix(key, "other-")
	for i, s := range allSystems() {
		if s.key == known {
			s.key, s.other, s.place = key, other, 2*i
			if other {
				s.place++
			}
			return s
		}
	}
	return &system{program: &program{name: key}, key: key, place: math.MaxInt}
}

// figure is something that was measured, or if it is open the least that it can have been, because the bench stopped
// waiting.
type figure struct {
	value float64
	open  bool
}

// get returns a figure of the sample.
func (s sample) get(unit string) (f figure, ok bool) {
	f.value, ok = s.values[unit]
	name := strings.TrimPrefix(unit, ipv6)
	of := strings.TrimSuffix(unit, name)
	f.open = name == "outage-ms" && s.values[of+"unended"] > 0 || name == "two-ms" && s.values[of+"two-lasts"] > 0
	return f, ok
}

// rank returns the nearest-rank percentile of a figure: the smallest one that at least p percent of all are not above.
// Nothing is interpolated, so every figure is one that was measured. p = 50 is the median (of an even number the lower of
// the two in the middle), and the 95th percentile of fewer than 20 is the largest. What has no end comes last.
func (s *series) rank(unit string, p int) (figure, bool) {
	return s.rankOf(p, func(one sample) (figure, bool) { return one.get(unit) })
}

func (s *series) rankOf(p int, pick func(sample) (figure, bool)) (figure, bool) {
	var all []figure
	for _, one := range s.samples {
		if f, ok := pick(one); ok {
			all = append(all, f)
		}
	}
	if len(all) == 0 {
		return figure{}, false
	}
	slices.SortFunc(all, func(a, b figure) int {
		switch {
		case a.open == b.open:
			return cmp.Compare(a.value, b.value)
		case a.open:
			return 1
		}
		return -1
	})
	return all[max(1, (p*len(all)+99)/100)-1], true
}

// ratio says how many times as much a figure is as another one. There is none if that is nothing, or could be more.
func ratio(a, b figure) (f figure, ok bool) {
	if b.value <= 0 || b.open {
		return f, false
	}
	return figure{a.value / b.value, a.open}, true
}
