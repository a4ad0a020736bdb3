package report

import (
	"cmp"
	"slices"
	"time"
)

// Bound is a time that was measured, or, if AtLeast is set, the least that it can
// have been, because the bench stopped waiting before it ended.
type Bound struct {
	Time    time.Duration
	AtLeast bool
}

// Percentile returns the nearest-rank percentile of the times: the smallest of them
// that at least p percent of all are not above. With n times in ascending order that
// is the one of rank ceil(p/100 * n), counted from 1; p = 50 is the median (of an even
// number the lower of the two in the middle), p = 100 the longest, and p = 0 the
// shortest. Nothing is interpolated, so every figure is one that was measured. The
// 95th percentile of fewer than 20 times is the longest.
//
// A time that is only known to be at least so long could be anything above. So the
// percentile is looked up twice, with such times as short and as long as they can be:
// if the two are the same time it is that, otherwise it is at least the first.
//
// It returns false if there are no times. p is whole, and is taken as 0 or 100 if it is outside.
func Percentile(times []Bound, p int) (Bound, bool) {
	if len(times) == 0 {
		return Bound{}, false
	}
	rank := (min(max(p, 0), 100)*len(times) + 99) / 100
	at := max(rank, 1) - 1

	short := slices.SortedFunc(slices.Values(times), func(a, b Bound) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), after(a, b))
	})
	long := slices.SortedFunc(slices.Values(times), func(a, b Bound) int {
		return cmp.Or(after(a, b), cmp.Compare(a.Time, b.Time))
	})
	if least := short[at]; least.Time != long[at].Time || long[at].AtLeast {
		return Bound{Time: least.Time, AtLeast: true}, true
	}
	return long[at], true
}

// after puts times that have an end before those of which only the least is known.
func after(a, b Bound) int {
	switch {
	case a.AtLeast == b.AtLeast:
		return 0
	case a.AtLeast:
		return 1
	default:
		return -1
	}
}

// The figures of a run that percentiles are taken of.

func outage(r Run) Bound { return Bound{r.Outage, r.Censored} }
func two(r Run) Bound    { return Bound{r.Two, r.TwoLasts} }
func none(r Run) Bound   { return Bound{Time: r.None} }
func moves(r Run) Bound  { return Bound{Time: time.Duration(r.Moves)} }
func late(r Run) Bound   { return Bound{Time: r.Late} }
func trip(r Run) Bound   { return Bound{Time: r.RoundTrip} }

// of collects one figure of all runs.
func of(runs []Run, figure func(Run) Bound) []Bound {
	list := make([]Bound, len(runs))
	for i, r := range runs {
		list[i] = figure(r)
	}
	return list
}

// rank is the percentile of one figure of all runs; there must be a run.
func rank(runs []Run, figure func(Run) Bound, p int) Bound {
	b, _ := Percentile(of(runs, figure), p)
	return b
}

func bounds(times []time.Duration) []Bound {
	list := make([]Bound, len(times))
	for i, t := range times {
		list[i] = Bound{Time: t}
	}
	return list
}

// ratio says how many times as long a is as b, at least if only the least of a is
// known. There is none if b is nothing, or if b could be longer.
func ratio(a, b Bound) (times float64, atLeast, ok bool) {
	if b.Time <= 0 || b.AtLeast {
		return 0, false, false
	}
	return float64(a.Time) / float64(b.Time), a.AtLeast, true
}
