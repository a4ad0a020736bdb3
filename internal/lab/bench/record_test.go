package bench

import (
	"bytes"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// seriesOf are runs of which each has one figure; > marks one that had not ended.
func seriesOf(texts string) *series {
	s := &series{}
	for text := range strings.FieldsSeq(texts) {
		number, open := strings.CutPrefix(text, ">")
		one, err := parseSample([]string{"Failover", "1", number, "outage-ms"})
		if err != nil {
			panic(err)
		}
		if open {
			one.values["unended"] = 1
		}
		s.samples = append(s.samples, one)
	}
	return s
}

// The nearest rank, by examples that were counted by hand.
func TestRank(t *testing.T) {
	twenty := "3 1 2 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"
	for _, c := range []struct {
		runs string
		p    int
		want string
	}{
		{"7", 0, "7.0"}, {"7", 50, "7.0"}, {"7", 95, "7.0"},
		{"9 3", 50, "3.0"}, {"9 3", 51, "9.0"}, {"9 3 5", 50, "5.0"}, {"4 3 2 1", 25, "1.0"}, {"4 3 2 1", 26, "2.0"},
		{twenty, 95, "19.0"}, {twenty + " 21", 95, "20.0"}, {"1 2 3", 95, "3.0"}, {twenty, 100, "20.0"}, {"0 0", 50, "0"},
		{"1 2 >10", 50, "2.0"}, {"1 2 >10", 100, ">10.0"}, {"1 20 >10", 100, ">10.0"}, {">3 >1 >2", 50, ">2.0"},
	} {
		f, ok := seriesOf(c.runs).rank("outage-ms", c.p)
		if got := cell("outage-ms", f); got != c.want || !ok {
			t.Errorf("p%d of %s is %s, want %s", c.p, c.runs, got, c.want)
		}
	}
	if _, ok := seriesOf("1").rank("two-ms", 50); ok {
		t.Error("there is a figure that nobody has measured")
	}
}

const someLines = `# begun: 2026-05-04T13:00:00Z
# form: quick
# machine: 2 processors (Intel Xeon | KVM), 24.0 GB of memory, Linux 6.18.44, go1.26.8
# version keepalived-1s: 2.2.7
# version topdog-100ms: 1.2.0
# missing: ucarp is not installed (Debian: apt install ucarp)
BenchmarkFailover/system=topdog-100ms/event=cable-pulled 1 68.2 outage-ms 0 two-ms 66.1 none-ms 1 moves 3 announcements 0.18 trip-ms 2.5 late-ms
BenchmarkFailover/system=topdog-100ms/event=cable-pulled 1 71 outage-ms 0.25 two-ms 66.1 none-ms 2 moves 3 announcements 0.18 trip-ms 0 late-ms
BenchmarkFailover/system=keepalived-1s/event=cable-pulled 1 9000 outage-ms 1 unended 2300 two-ms 1 two-lasts 9000 none-ms 0 moves 0 announcements 0.18 trip-ms 0 late-ms
BenchmarkFailover/system=topdog-100ms/event=both-frozen 1 4.6 outage-ms 817 two-ms 0 two-answer-ms 0 none-ms 1 moves 8 announcements 0.18 trip-ms 0 late-ms
BenchmarkFailover/system=topdog-service/event=hook 1 3 outage-ms 0 two-ms 0.2 none-ms 1 moves 3 announcements 5.7 hook-ms 0 late-ms
BenchmarkStart/system=topdog-100ms 1 385 start-ms
BenchmarkStart/system=keepalived-1s 1 3243 start-ms
BenchmarkCalm/system=topdog-100ms/boards=3 1 15.02 watched-s 13.7 packets/s 85 bytes/packet 0.24 leader-cpu-% 0.12 follower-cpu-% 14 leader-rss-MB 4.5 leader-pss-MB 13.5 follower-rss-MB 3.9 follower-pss-MB
BenchmarkChecks/system=topdog-service/boards=3 1 10 watched-s 13.7 packets/s 85 bytes/packet 0.81 leader-cpu-% 0.5 follower-cpu-%
BenchmarkChecks/system=keepalived-1s-script/boards=3 1 10 watched-s 1 packets/s 54 bytes/packet 6.4 leader-cpu-% 6.3 follower-cpu-%
BenchmarkLoss/system=topdog-100ms/loss=40% 1 600 watched-s 0 two-ms 0 moves 0 unanswered-ms
BenchmarkLoss/system=keepalived-100ms/loss=40% 1 600 watched-s 27779 two-ms 860 moves 12345.5 unanswered-ms
BenchmarkLossPulled/system=topdog-100ms/loss=40% 1 292 outage-ms 0 two-ms 290 none-ms 1 moves 2 announcements 24 late-ms
BenchmarkSize/system=topdog-100ms 1 8.91 MB
`

func recordOf(t *testing.T, text string) *record {
	t.Helper()
	r, err := read(strings.NewReader(text))
	assert.NoError(t, err)
	return r
}

// The figures of an IPv6 client stand in the table of the event, beside those of the other; without them there is no such column.
func TestTwoClients(t *testing.T) {
	const lines = "# form: quick\n# ipv6: yes\n# version topdog-100ms: 1\n" +
		"BenchmarkFailover/system=topdog-100ms/event=sigkill 1 5 outage-ms 6.5 v6-outage-ms 0 two-ms 7 v6-two-ms 1 v6-two-lasts\n"
	r := recordOf(t, lines)
	var b bytes.Buffer
	assert.NoError(t, r.write(&b))
	assert.Is(t, lines, b.String(), "what is written again")
	text := func(r *record) string {
		b.Reset()
		assert.NoError(t, r.report(&b, false))
		return b.String()
	}
	for _, want := range []string{
		"another one at an IPv6 address", "outage max | IPv6 outage median |", " 5.0 |                6.5 |", " >7.0 |", "in 1 of 1 run two boards still had the IPv6 address",
	} {
		if got := text(r); !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(text(recordOf(t, someLines)), "IPv6") {
		t.Error("a report of one client speaks of IPv6")
	}
}

// What was written is read again as it was, and written as it was.
func TestReadAndWrite(t *testing.T) {
	r := recordOf(t, someLines)
	var b bytes.Buffer
	assert.NoError(t, r.write(&b))
	assert.Equal(t, someLines, b.String(), "")
	for line, want := range map[string]string{
		"":                                        "no line of a benchmark",
		"PASS":                                    "no line of a benchmark",
		"BenchmarkFailover 1 5":                   "write: BenchmarkNAME",
		"BenchmarkFailover/system 1 5 outage-ms":  `"system" is no label`,
		"BenchmarkFailover/a=1/a=2 1 5 moves":     `"a=2" is no label`,
		"BenchmarkFailover/a=1 1 -5 moves":        "-5 of moves cannot have been measured",
		"BenchmarkFailover/a=1 1 NaN moves":       "NaN of moves cannot",
		"BenchmarkFailover/a=1 1 x moves":         "x of moves cannot",
		"BenchmarkFailover/a=1 1 5 moves 6 moves": "moves is there twice",
		"\nBenchmarkFailover/a=1 1 1e999 moves\n": "line 2: 1e999",
	} {
		_, err := read(strings.NewReader(line))
		assert.ErrorContains(t, err, want, "%q", line)
	}
}

// FuzzRead reads anything. What it takes can be written in every form, and read again.
func FuzzRead(f *testing.F) {
	f.Add("# version topdog-100ms: 1\nBenchmarkFailover/system=topdog-100ms/event=sigkill 1 5 outage-ms 1 two-ms\nBenchmarkStart/system=a 1 5 start-ms\n")
	f.Add("BenchmarkFailover/system=a/event=cable-pulled 1 9e15 outage-ms 1 unended 1 late-ms 2 trip-ms\nBenchmarkLoss/system=a/loss=1% 1 1 moves")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := read(strings.NewReader(text))
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		assert.NoError(t, r.write(&first))
		assert.NoError(t, recordOf(t, first.String()).write(&second))
		assert.Equal(t, first.String(), second.String(), "what was read again")
		assert.NoError(t, r.report(&second, true))
		for _, c := range charts {
			var b bytes.Buffer
			assert.NoError(t, c.draw(&b, r))
			wellFormed(t, b.Bytes())
		}
	})
}
