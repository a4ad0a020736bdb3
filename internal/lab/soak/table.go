package soak

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"topdog/internal/lab/observe"
)

// row is what came of all trials with one kind of fault, or of all.
type row struct {
	trials, onLeader, moves, needless int
	outage                            time.Duration   // the sum of the longest of each trial
	outages                           []time.Duration // of those that hit the leader
	two, settled                      time.Duration   // the longest
}

func (r *row) add(v verdict, onLeader bool) {
	r.trials++
	r.moves += v.moves
	r.needless += v.needless()
	r.outage += v.outage
	r.two, r.settled = max(r.two, v.two.duration()), max(r.settled, v.settled)
	if onLeader {
		r.onLeader++
		r.outages = append(r.outages, v.outage)
	}
}

// table is what came of all trials.
type table struct {
	rows         map[string]*row // by kind
	all          row
	refused      []int // the numbers of the trials that a judge did not accept
	inconclusive int   // trials of whose moves a judge had no verdict
}

// add adds a trial. One with two faults stands in the rows of both.
func (t *table) add(v verdict) {
	if t.rows == nil {
		t.rows = map[string]*row{}
	}
	if v.inconclusive != "" {
		t.inconclusive++
	}
	if len(v.problems) > 0 {
		t.refused = append(t.refused, v.number)
	}
	t.all.add(v, false)
	for i, f := range v.faults {
		if t.rows[f.key] == nil {
			t.rows[f.key] = &row{}
		}
		t.rows[f.key].add(v, v.onLeader[i])
	}
}

// write writes the table, in the order of the kinds.
func (t *table) write(w io.Writer, kinds []kind) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "fault\ttrials\ton the leader\tmoves\tfor nothing\toutage: median\tp95\tlongest\ttwo holders\tone leader again after")
	for _, k := range kinds {
		r := t.rows[k.key]
		if r == nil {
			continue
		}
		slices.Sort(r.outages)
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", k.title, r.trials, r.onLeader, r.moves, r.needless,
			percentile(r.outages, 50), percentile(r.outages, 95), percentile(r.outages, 100), observe.Millis(r.two), observe.Millis(r.settled))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d trials, %d moves, %d of them for nothing; nobody answered for %s (the sum of the longest of each trial); longest two holders that could be reached from one place: %s; %d trials were inconclusive, since this machine was late\n",
		t.all.trials, t.all.moves, t.all.needless, observe.Millis(t.all.outage), observe.Millis(t.all.two), t.inconclusive)
	return err
}

// percentile is one of times in ascending order, as observe.Percentile has it, or "-" of none.
func percentile(ascending []time.Duration, p int) string {
	if len(ascending) == 0 {
		return "-"
	}
	return observe.Millis(observe.Percentile(ascending, p))
}
