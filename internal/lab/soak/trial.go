package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	"topdog/internal/lab/scene"
)

// fault is a fault as it was drawn.
type fault struct {
	kind
	it    string // the board that it hits: leader, or pi1 and so on
	lasts time.Duration
	lines []scene.Timed
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

var (
	// gaps are times of calm between two trials. The longer one lets daemons forget what a fault has taught them.
	gaps = scene.Range{Least: 300 * time.Millisecond, Most: 3 * time.Second}
	// seconds are how much later a second fault begins.
	seconds = scene.Range{Most: 2 * time.Second}
)

// next draws the next trial.
func (c *chooser) next() (t trial, err error) {
	c.number++
	t = trial{number: c.number, gap: gaps.Draw(c.r)}
	kinds := c.r.Perm(len(c.kinds))
	for i := range min(1+c.r.IntN(c.atOnce), len(kinds)) {
		f := fault{kind: c.kinds[kinds[i]], it: "leader"}
		// Two of three faults hit the leader: most of what can go wrong begins there.
		if c.r.IntN(3) == 0 {
			f.it = scene.Name(1 + c.r.IntN(numBoards))
		}
		if f.lines, f.lasts, err = f.scene(c.r, f.it); err != nil {
			return t, err
		}
		if i > 0 {
			later := seconds.Draw(c.r)
			for i := range f.lines {
				f.lines[i].At += later
			}
			f.lasts += later
		}
		t.faults = append(t.faults, f)
	}
	return t, nil
}

// text is the trial as a scene. In the end every board runs, whatever another fault has kept from it.
func (t *trial) text() string {
	var lines []scene.Timed
	var lasts time.Duration
	for _, f := range t.faults {
		lines, lasts = append(lines, f.lines...), max(lasts, f.lasts)
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].At < lines[j].At })
	var text strings.Builder
	fmt.Fprintf(&text, "two may hold\nboards %d run\nagreed\nmeasure trial-%d %q\n", numBoards, t.number, t.String())
	for _, l := range append(lines, scene.Timed{At: lasts, Text: "measured"}) {
		fmt.Fprintf(&text, "at %v: %s\n", l.At, l.Text)
	}
	return text.String() + "all thaw\nall start\nagreed\n"
}

// String says which faults a trial has.
func (t trial) String() string {
	var names []string
	for _, f := range t.faults {
		names = append(names, f.key)
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}
