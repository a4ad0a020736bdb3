package explore

import (
	"fmt"
	"time"

	"topdog/election/silence"
	"topdog/wire"
)

// scope says which runs are explored.
type scope struct {
	size     int // how many boards there are
	interval time.Duration
	latency  time.Duration // of every datagram that is not late
	// drift is by how many millionths each clock runs fast, by board; missing ones are right.
	drift []int
	// kinds are the faults that may happen, and most is how many of them in one run.
	kinds fault
	most  int
	// from and until bound when they may, and end is when a run ends: all since the daemons
	// were started.
	from, until, end time.Duration
	// everywhere lets what a fault has stopped go on at any later step of anybody. Otherwise
	// it goes on at those after which that may make a difference.
	everywhere bool
	// tolerance is for how long two boards may answer at the same time.
	tolerance time.Duration
	// judgeLease also demands that no board answers when one lease has passed since it sent
	// its newest heartbeat.
	judgeLease bool
	// strict has the boards run the algorithm strict, with all of them as voters; else heir.
	strict bool
	// secondPath has the boards hear each other by a second path as well, to which nothing happens but to its datagrams.
	secondPath bool
	// resigns are when whoever leads is asked to resign, which is no fault.
	resigns []time.Duration
	bug     bug
}

func (s *scope) grace() time.Duration { return silence.DefaultGrace(s.interval) }

// result is what an exploration has found.
type result struct {
	runs, steps, states int
	// violation is empty if nothing was found; story is how it comes about.
	violation string
	story     []string
}

func (r *result) String() string {
	return fmt.Sprintf("%d runs, %d steps, %d states", r.runs, r.steps, r.states)
}

// decision is what was chosen before one step of a run.
type decision struct{ step, choice int }

// explorer searches the runs of one world.
type explorer struct {
	result
	seen    map[uint64]struct{} // the sums of all states in which there was a choice
	path    []decision          // to the present state
	choices [][]choice          // by length of the path
}

// explore searches all runs within a scope, and stops at the first violation.
func explore(s scope) result {
	x := explorer{seen: make(map[uint64]struct{})}
	if x.search(newWorld(&s), 0) {
		x.story = replay(&s, x.path)
	}
	return x.result
}

// newWorld returns a world in which all daemons were just started.
func newWorld(s *scope) *world {
	w := &world{scope: s, faults: s.most}
	for i := range w.boards[:s.size] {
		b := &w.boards[i]
		b.id = wire.ID(i + 1)
		b.clock.Origin = time.Duration(i+1) * time.Hour // no two clocks agree
		if i < len(s.drift) {
			b.clock.PPM = s.drift[i]
		}
		b.kernel.cable = true
		w.start(b)
	}
	return w
}

// search goes on from a world until its end, and wherever something else may happen it goes on
// from there as well. It reports whether a violation was found; the path leads to it.
func (x *explorer) search(w *world, steps int) bool {
	depth := len(x.path)
	if len(x.choices) <= depth {
		x.choices = append(x.choices, nil)
	}
	for ; ; steps++ {
		h := w.next()
		if h.kind == happensNothing || h.at > w.end {
			x.runs++
			return false
		}
		x.choices[depth] = w.choices(h, x.choices[depth])
		for i, c := range x.choices[depth] {
			branch := w.clone()
			branch.apply(h, c)
			branch.judge()
			if x.known(branch) {
				continue
			}
			x.path = append(x.path, decision{steps, i})
			if x.violated(branch) || x.search(branch, steps+1) {
				return true
			}
			x.path = x.path[:depth]
		}
		w.advance(h)
		x.steps++
		if x.violated(w) {
			return true
		}
		if w.undecided() && x.known(w) {
			return false
		}
	}
}

// undecided reports whether a world in which something has gone wrong has a choice left. Only
// such a world can be reached on two ways of which it is worth to go one.
func (w *world) undecided() bool {
	return w.faults < w.most && (w.faults > 0 || len(w.waits) > 0)
}

func (x *explorer) violated(w *world) bool {
	x.violation = w.violation
	return w.violation != ""
}

// known reports whether a world was explored before, and notes that it is.
func (x *explorer) known(w *world) bool {
	sum := w.hash()
	if _, ok := x.seen[sum]; ok {
		return true
	}
	x.seen[sum] = struct{}{}
	x.states++
	return false
}

// replay tells what happens on a path, from the first fault on.
func replay(s *scope, path []decision) []string {
	w := newWorld(s)
	t := &tracer{}
	for steps := 0; w.violation == ""; steps++ {
		h := w.next()
		if len(path) == 0 || path[0].step != steps {
			w.advance(h)
			continue
		}
		w.tracer = t
		w.apply(h, w.choices(h, nil)[path[0].choice])
		w.judge()
		path = path[1:]
	}
	w.tracef("VIOLATION: %s", w.violation)
	return t.lines
}
