package soak

import (
	"math/rand/v2"
	"sort"
	"time"
)

// aim is which board a fault hits.
type aim struct {
	leader bool // whoever leads then
	board  int  // else the one of this number, counted from 0, modulo the number of boards
}

// fault is a fault as it was drawn.
type fault struct {
	kind
	aim
	after time.Duration // its beginning, after that of the trial
	lasts time.Duration
	plan  []act
}

// trial is what is done to the group before it is judged: one fault, or two at once.
type trial struct {
	number int // from 1
	faults []fault
	gap    time.Duration // of calm, afterwards
}

// chooser draws trials. The same seed, mode and kinds give the same ones.
type chooser struct {
	r      *rand.Rand
	kinds  []kind
	atOnce int // faults at most
	number int
}

func newChooser(seed uint64, kinds []kind, atOnce int) *chooser {
	return &chooser{r: rand.New(rand.NewPCG(seed, 0)), kinds: kinds, atOnce: atOnce}
}

// Times of calm between two trials. The longer one lets daemons forget what a fault has taught them.
const (
	shortestGap = 300 * time.Millisecond
	longestGap  = 3 * time.Second
)

// next draws the next trial.
func (c *chooser) next() trial {
	c.number++
	t := trial{number: c.number, gap: between(c.r, shortestGap, longestGap)}
	kinds := c.r.Perm(len(c.kinds))
	for i := range min(1+c.r.IntN(c.atOnce), len(kinds)) {
		t.faults = append(t.faults, c.draw(c.kinds[kinds[i]], i))
	}
	return t
}

// draw draws a fault of a kind, the n-th of its trial.
func (c *chooser) draw(k kind, n int) fault {
	f := fault{kind: k, lasts: between(c.r, k.shortest, k.longest)}
	// Two of three faults hit the leader: most of what can go wrong begins there.
	f.aim = aim{leader: c.r.IntN(3) > 0, board: c.r.IntN(numBoards)}
	if n > 0 {
		f.after = time.Duration(c.r.Int64N(int64(latestSecond)))
	}
	f.plan = k.acts(c.r, f.lasts)
	return f
}

// latestSecond is how much later a second fault begins at most.
const latestSecond = 2 * time.Second

// step is an act of one of a trial's faults, on the board that it hits.
type step struct {
	at    time.Duration
	fault int // its place in the trial
	do    doing
}

// steps are all acts of a trial in the order of time.
func (t trial) steps() (steps []step) {
	for i, f := range t.faults {
		for _, a := range f.plan {
			steps = append(steps, step{f.after + a.at, i, a.do})
		}
	}
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].at < steps[j].at })
	return steps
}
