package report

import (
	"slices"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// TestPercentile holds the nearest rank against examples that were counted by hand.
func TestPercentile(t *testing.T) {
	ended := func(list ...time.Duration) []bound { return bounds(list) }
	hundred := make([]bound, 100)
	for i := range hundred {
		hundred[i] = bound{Time: time.Duration(100 - i)}
	}
	open := func(t time.Duration) bound { return bound{t, true} }
	for _, c := range []struct {
		name  string
		times []bound
		p     int
		want  bound
		none  bool
	}{
		{name: "nothing", p: 50, none: true},
		{name: "one, lowest", times: ended(7), p: 0, want: bound{Time: 7}},
		{name: "one, median", times: ended(7), p: 50, want: bound{Time: 7}},
		{name: "one, p95", times: ended(7), p: 95, want: bound{Time: 7}},
		{name: "two, median is the lower", times: ended(9, 3), p: 50, want: bound{Time: 3}},
		{name: "two, p51", times: ended(9, 3), p: 51, want: bound{Time: 9}},
		{name: "three", times: ended(9, 3, 5), p: 50, want: bound{Time: 5}},
		{name: "four, p25", times: ended(4, 3, 2, 1), p: 25, want: bound{Time: 1}},
		{name: "four, p26", times: ended(4, 3, 2, 1), p: 26, want: bound{Time: 2}},
		{name: "19, p95 is the longest", times: hundred[81:], p: 95, want: bound{Time: 19}},
		{name: "20, p95 is the last but one", times: hundred[80:], p: 95, want: bound{Time: 19}},
		{name: "21, p95", times: hundred[79:], p: 95, want: bound{Time: 20}},
		{name: "100, p95", times: hundred, p: 95, want: bound{Time: 95}},
		{name: "100, median", times: hundred, p: 50, want: bound{Time: 50}},
		{name: "100, longest", times: hundred, p: 100, want: bound{Time: 100}},
		{name: "below", times: hundred, p: -5, want: bound{Time: 1}},
		{name: "above", times: hundred, p: 200, want: bound{Time: 100}},
		{name: "equal", times: ended(2, 2, 2), p: 50, want: bound{Time: 2}},
		{name: "zero", times: ended(0, 0), p: 50, want: bound{}},

		{name: "open above the rank", times: append(ended(1, 2), open(10)), p: 50, want: bound{Time: 2}},
		{name: "open at the rank", times: append(ended(1, 2), open(10)), p: 100, want: open(10)},
		{name: "open, and one that ended later", times: append(ended(1, 20), open(10)), p: 100, want: open(20)},
		{name: "open, could be above the rank", times: append(ended(1, 20), open(10)), p: 50, want: open(10)},
		{name: "open, below all", times: append(ended(5, 6), open(1)), p: 50, want: open(5)},
		{name: "all open", times: []bound{open(3), open(1), open(2)}, p: 50, want: open(2)},
		{name: "open and ended at the same", times: append(ended(4), open(4)), p: 50, want: bound{Time: 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := slices.Clone(c.times)
			got, ok := nearestRank(c.times, c.p)
			if ok == c.none {
				t.Errorf("there is one: %v, want %v", ok, !c.none)
			}
			assert.Equal(t, c.want, got, "p%d", c.p)
			assert.Equal(t, given, c.times, "it has sorted what is not its own")
		})
	}
}

// TestWords writes single figures.
func TestWords(t *testing.T) {
	type row struct{ got, want string }
	q := func(a, b bound) string {
		n, least, ok := ratio(a, b)
		if !ok {
			return "none"
		}
		return times(n, least)
	}
	at := func(t time.Duration) bound { return bound{Time: t} }
	for _, c := range []row{
		{millis(0), "0"}, {millis(1), "<0.01"}, {millis(20 * us), "0.02"}, {millis(994 * us), "0.99"}, {millis(996 * us), "1.0"},
		{millis(54123 * us), "54.1"}, {millis(99949 * us), "99.9"}, {millis(99951 * us), "100"}, {millis(3171 * ms), "3171"},
		{bound{10 * time.Second, true}.cell(), ">10 s"}, {bound{500 * ms, true}.cell(), ">500"}, {bound{2500 * ms, true}.cell(), ">2.5 s"},
		{bound{75 * ms, false}.String(), "75 ms"}, {bound{75*ms + us, false}.String(), "75.001 ms"}, {bound{0, true}.String(), "more than 0 ms"},
		{q(at(309*ms), at(55*ms)), "x 5.6"}, {q(at(3171*ms), at(55*ms)), "x 58"}, {q(at(5*ms), at(50*ms)), "x 0.10"},
		{q(at(996), at(1000)), "x 1.0"}, {q(at(5), at(0)), "none"}, {q(at(5), bound{5, true}), "none"}, {q(bound{30, true}, at(1)), "x >30"},
		{span(10 * time.Minute), "10 min"}, {span(90 * time.Second), "90 s"}, {span(100 * ms), "100 ms"}, {span(0), "0 ms"},
		{percent(0.4), "40 %"}, {percent(0.0028), "0.28 %"}, {megabytes(11_949_999), "11.9"},
		{tick(-2), "0.01"}, {tick(0), "1"}, {tick(4), "10\u2009000"}, {tick(6), "1\u2009000\u2009000"},
		{fence("a ```` b"), "`````"}, {fence(""), "```"},
		{mark("a|b*c_d`<e> \"f's\" & [g]\\"), "a\\|b\\*c\\_d\\`&lt;e&gt; \"f's\" &amp; \\[g\\]\\\\"},
	} {
		assert.Is(t, c.want, c.got, "")
	}
}
