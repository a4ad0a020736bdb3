// Package compare makes the leader fail on the same simulated LAN with each algorithm,
// and measures the takeover: messages as the literature counts them, packets on a
// network with multicast, and time.
//
// In the papers' tables, one board is chosen to notice. Here every board notices when
// its failure detector does, as on a real LAN.
package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// Contestant is a way to elect a leader.
type Contestant struct {
	Name string
	// Fail lets the leader of n boards fail once and reports what it took until all
	// agreed on the next one. It gives up when ctx ends.
	Fail func(ctx context.Context, n int, seed uint64, c Conditions) (Outcome, error)
}

// Conditions are the same for all.
type Conditions struct {
	Interval time.Duration // between heartbeats
	Wire     sim.Wire
	Detector silence.DetectorKind // DetectorDefault: what suits each algorithm
	Fanout   election.Fanout
}

// Outcome is what one failure took.
type Outcome struct {
	Messages int           // from process to process, to the dead as well
	Packets  int           // one to all is one
	Time     time.Duration // from the failure to the first claim of the next leader
	Agreed   time.Duration // from the failure until all followed it
}

// core is an algorithm of topdog.
type core wire.Algorithm

// Settling is how long boards run before their leader fails: until they agree
// and have learned what they can of the network.
const Settling = 30 * time.Second

// agreeTimeout bounds an election.
const agreeTimeout = time.Minute

func (a core) fail(ctx context.Context, n int, seed uint64, c Conditions) (Outcome, error) {
	lan := sim.New(seed, c.Wire)
	for id := range wire.ID(n) {
		lan.Add(election.Config{
			ID: id + 1, Priority: election.DefaultPriority, Interval: c.Interval,
			Algorithm: wire.Algorithm(a), Detector: c.Detector, Fanout: c.Fanout,
		}).Start()
	}
	w := lan.Watch()
	ended := func() bool { return ctx.Err() != nil }
	if lan.RunUntil(ended, Settling) {
		return Outcome{}, ctx.Err()
	}
	if _, ok := w.Settled(); !ok {
		return Outcome{}, fmt.Errorf("they did not agree within %v", Settling)
	}
	w.Stop()
	lan.Run(time.Duration(lan.Rand().Int64N(int64(c.Interval)))) // at any moment of its rhythm
	lan.ResetCounts()
	w = lan.Watch()
	for _, b := range lan.Boards() {
		if b.Holding() {
			b.Crash()
		}
	}
	agreed := func() bool { _, ok := w.Settled(); return ok }
	lan.RunUntil(func() bool { return agreed() || ended() }, agreeTimeout)
	switch {
	case ended():
		return Outcome{}, ctx.Err()
	case !agreed():
		return Outcome{}, fmt.Errorf("they did not agree on a new leader within %v", agreeTimeout)
	}
	o := Outcome{}
	o.Time, _ = w.Acquired()
	o.Agreed, _ = w.Settled()
	for _, k := range lan.Counts.Kinds() {
		if !k.Routine() {
			o.Messages += lan.Counts[k].Messages()
			o.Packets += lan.Counts[k].Packets
		}
	}
	return o, nil
}

// Row is what one contestant took with one number of boards: medians.
type Row struct {
	Name     string        `json:"algorithm"`
	Boards   int           `json:"boards"`
	Failures int           `json:"failures"` // how many were measured
	Messages int           `json:"messages"`
	Packets  int           `json:"packets"`
	Time     time.Duration `json:"time_ns"`
	Longest  time.Duration `json:"longest_ns"` // of the times
	Agreed   time.Duration `json:"agreed_ns"`
}

// DefaultBoards are the numbers of boards that are compared.
var DefaultBoards = []int{3, 5, 10, 20, 50, 100, 150, 200, 250}

// Run measures until ctx ends. The same request gives the same rows.
func (r *Request) Run(ctx context.Context) ([]Row, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	var rows []Row
	for _, c := range append(r.contestants, r.Others...) {
		for _, n := range r.Boards {
			row, err := r.measure(ctx, c, n)
			if err != nil {
				return rows, err
			}
			rows = append(rows, row)
			if r.Progress != nil {
				r.Progress(row)
			}
		}
	}
	return rows, nil
}

// measure lets one contestant fail often. Large groups vary less, and take longer.
func (r *Request) measure(ctx context.Context, c Contestant, n int) (Row, error) {
	row := Row{Name: c.Name, Boards: n, Failures: max(3, min(r.Failures, r.Failures*20/n))}
	var all []Outcome
	for i := range uint64(row.Failures) {
		out, err := c.Fail(ctx, n, r.Seed+i, r.conditions)
		if err != nil {
			return Row{}, fmt.Errorf("%s, %d boards, seed %d: %w", c.Name, n, r.Seed+i, err)
		}
		all = append(all, out)
		row.Longest = max(row.Longest, out.Time)
	}
	row.Messages = median(all, func(o Outcome) int { return o.Messages })
	row.Packets = median(all, func(o Outcome) int { return o.Packets })
	row.Time = median(all, func(o Outcome) time.Duration { return o.Time })
	row.Agreed = median(all, func(o Outcome) time.Duration { return o.Agreed })
	return row, nil
}

func median[T cmp.Ordered](all []Outcome, of func(Outcome) T) T {
	var values []T
	for _, o := range all {
		values = append(values, of(o))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// Beaten lists where another contestant took less than the named one: fewer
// packets or less time.
func Beaten(rows []Row, name string) (list []string) {
	for _, mine := range rows {
		for _, other := range rows {
			if mine.Name != name || other.Name == name || other.Boards != mine.Boards {
				continue
			}
			less := func(took, than any) {
				list = append(list, fmt.Sprintf("%d boards: %s takes %v, %s %v", mine.Boards, other.Name, took, name, than))
			}
			if other.Packets < mine.Packets {
				less(fmt.Sprintf("%d packets", other.Packets), mine.Packets)
			}
			if other.Time < mine.Time {
				less(other.Time, mine.Time)
			}
		}
	}
	return list
}
