package soak

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/command"
	"topdog/internal/lab/golden"
)

// kindOf returns the kind of a key.
func kindOf(t *testing.T, key string) kind {
	t.Helper()
	kinds, err := command.Choose("--faults", key, nil, allKinds())
	assert.NoError(t, err)
	return kinds[0]
}

// judged is a verdict on faults of some kinds, on the leader or not.
func judged(t *testing.T, onLeader bool, keys ...string) verdict {
	t.Helper()
	v := verdict{lasted: 2 * time.Second}
	for _, key := range keys {
		v.faults = append(v.faults, fault{kind: kindOf(t, key), it: "pi3", lasts: v.lasted})
		v.onLeader = append(v.onLeader, onLeader)
	}
	return v
}

// bothFor is for how long two boards have answered.
func bothFor(one, other int, d time.Duration) overlap {
	return overlap{[2]int{one, other}, time.Unix(0, 0), time.Unix(0, 0).Add(d)}
}

func TestJudge(t *testing.T) {
	ms := time.Millisecond
	two := bothFor(1, 3, 60*ms)
	for _, test := range []struct {
		name     string
		key      string
		onLeader bool
		moves    int
		outage   time.Duration
		two      overlap
		late     string
		strict   bool
		want     string // in the problems; none if it is empty
		doubt    string // in what is inconclusive; nothing if it is empty
	}{
		{name: "a takeover", key: "pull", onLeader: true, moves: 1, outage: 60 * ms},
		{name: "and back", key: "pull", onLeader: true, moves: 2, outage: 60 * ms, want: "2 times: 1 for nothing"},
		{name: "of a follower", key: "pull", moves: 1, want: "1 times: 1 for nothing"},
		{name: "for nothing, and the machine was late", key: "bursts", onLeader: true, moves: 9, late: "a daemon waited", doubt: "9 times: 9 for nothing, and at most 2 may be; but a daemon waited"},
		{name: "two holders, and the machine was late", key: "cut", onLeader: true, moves: 9, two: two, late: "a daemon waited", want: "both answered", doubt: "9 times"},
		{name: "for too long", key: "pull", onLeader: true, moves: 1, outage: 1100 * ms, want: "nobody answered for 1100 ms: at most 1000 ms"},
		{name: "the switch passes nothing", key: "halt", onLeader: true, outage: 2900 * ms},
		{name: "and nothing afterwards", key: "halt", onLeader: true, outage: 3100 * ms, want: "at most 3000 ms"},
		{name: "two holders", key: "cut", onLeader: true, moves: 1, two: two, want: "boards 1 and 3 both answered at fd00:1::250 for 60 ms: at most 50 ms"},
		{name: "never two", key: "cut", strict: true, two: bothFor(1, 3, ms/2), want: "that must never be"},
		{name: "strict has no other bound", key: "cut", strict: true, moves: 9, outage: time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := judged(t, test.onLeader, test.key)
			v.moves, v.outage, v.two, v.late = test.moves, test.outage, test.two, test.late
			v.at = netip.MustParseAddr("fd00:1::250")
			if test.strict {
				v.judgeStrict()
			} else {
				v.judgeDefault()
			}
			got := strings.Join(v.problems, "; ")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("the judge says %q, want %q", got, test.want)
			}
			if test.doubt == "" && v.inconclusive != "" || !strings.Contains(v.inconclusive, test.doubt) {
				t.Errorf("inconclusive is %q, want %q", v.inconclusive, test.doubt)
			}
		})
	}
}

// The table of a short soak.
func TestTable(t *testing.T) {
	ms := time.Millisecond
	var tab table
	for i, outage := range []time.Duration{40, 60, 55, 120} {
		v := judged(t, true, "pull")
		v.number, v.moves, v.outage, v.settled = i+1, 1, outage*ms, 7*ms
		tab.add(v)
	}
	v := judged(t, false, "pull", "deafen")
	v.number, v.moves, v.outage, v.two = 5, 2, 300*ms, bothFor(1, 2, 45*ms)
	v.problems = []string{"too much"}
	tab.add(v)
	var text strings.Builder
	assert.NoError(t, tab.write(&text, allKinds()))
	golden.Compare(t, "testdata/table.golden", text.String())
	assert.Equal(t, []int{5}, tab.refused, "refused")
	assert.Is(t, "   5  pull of pi3 for 2000 ms and deafen of pi3 for 2000 ms: moves 2, nobody answered for 300 ms, two holders 45 ms, settled after 0 ms", v.String(), "the line")
}
