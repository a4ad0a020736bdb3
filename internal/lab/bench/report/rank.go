package report

import (
	"cmp"
	"slices"
	"time"
)

// bound is a time that was measured, or, if AtLeast is set, the least that it can
// have been, because the bench stopped waiting before it ended.
type bound struct {
	Time    time.Duration
	AtLeast bool
}

// nearestRank returns the nearest-rank percentile of the times: the smallest of them
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
func nearestRank(times []bound, p int) (bound, bool) {
	if len(times) == 0 {
		return bound{}, false
	}
	rank := (min(max(p, 0), 100)*len(times) + 99) / 100
	at := max(rank, 1) - 1

	short := slices.SortedFunc(slices.Values(times), func(a, b bound) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), after(a, b))
	})
	long := slices.SortedFunc(slices.Values(times), func(a, b bound) int {
		return cmp.Or(after(a, b), cmp.Compare(a.Time, b.Time))
	})
	if least := short[at]; least.Time != long[at].Time || long[at].AtLeast {
		return bound{Time: least.Time, AtLeast: true}, true
	}
	return long[at], true
}

// after puts times that have an end before those of which only the least is known.
func after(a, b bound) int {
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

func outage(r Run) bound    { return bound{r.Outage, r.Censored} }
func two(r Run) bound       { return bound{r.Two, r.TwoLasts} }
func twoAnswer(r Run) bound { return bound{Time: r.TwoAnswer} }
func none(r Run) bound      { return bound{Time: r.None} }
func moves(r Run) bound     { return bound{Time: time.Duration(r.Moves)} }
func late(r Run) bound      { return bound{Time: r.Late} }
func hook(r Run) bound      { return bound{Time: r.Hook} }
func pages(r Run) bound     { return bound{Time: r.Pages} }
func trip(r Run) bound      { return bound{Time: r.RoundTrip} }

// of collects one figure of all runs.
func of(runs []Run, figure func(Run) bound) []bound {
	list := make([]bound, len(runs))
	for i, r := range runs {
		list[i] = figure(r)
	}
	return list
}

// rank is the percentile of one figure of all runs; there must be a run.
func rank(runs []Run, figure func(Run) bound, p int) bound {
	b, _ := nearestRank(of(runs, figure), p)
	return b
}

func bounds(times []time.Duration) []bound {
	list := make([]bound, len(times))
	for i, t := range times {
		list[i] = bound{Time: t}
	}
	return list
}

// ratio says how many times as long a is as b, at least if only the least of a is
// known. There is none if b is nothing, or if b could be longer.
func ratio(a, b bound) (times float64, atLeast, ok bool) {
	if b.Time <= 0 || b.AtLeast {
		return 0, false, false
	}
	return float64(a.Time) / float64(b.Time), a.AtLeast, true
}
