package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"topdog/internal/lab/scene"
)

// kind is a kind of fault.
type kind struct {
	key, title string
	lasts      scene.Range
	// lines are a scene in which IT is the board that is hit, LASTS for how long, and APART the machines on one side of the LAN.
	lines string
	// all is true for a fault of the whole LAN or of all boards, whichever board it names.
	all  bool
	cost scene.Cost
}

func (k kind) String() string { return k.key }

const ms = time.Millisecond

// allKinds are all kinds of faults, in the order of the table: those of scenes, and what follows.
func allKinds() (kinds []kind) {
	for _, f := range scene.Faults {
		if f.Lasts.Most == 0 {
			continue
		}
		k := kind{key: f.Name, title: f.Title, lasts: f.Lasts, all: f.Of != scene.OfBoards, cost: f.Cost}
		end := f.End
		begins := map[scene.Form]string{
			scene.OfBoards: "IT " + f.Name, scene.OfLAN: f.Name, scene.OfGroups: f.Name + " APART", scene.OfTwoGroups: f.Name + " IT / REST",
		}[f.Of]
		if f.Of == scene.OfBoards && end != "" {
			end = "IT " + end
		}
		if f.Of != scene.OfShare {
			k.lines = begins + "\nwait LASTS\n" + end
			kinds = append(kinds, k)
			continue
		}
		for _, percent := range []int{5, 20} {
			some := k
			some.key, some.title = fmt.Sprintf("%s-%d", f.Name, percent), fmt.Sprintf("%s: %d %%", f.Title, percent)
			some.lines = fmt.Sprintf("%s %d%%\nwait LASTS\n%s", f.Name, percent, end)
			kinds = append(kinds, some)
		}
	}
	return append(kinds, mixed...)
}

// mixed are kinds that are several faults.
var mixed = []kind{
	{key: "cable-flaps", title: "cable flaps", lasts: scene.Range{Least: 1000 * ms, Most: 5000 * ms},
		lines: repeated("IT pull", "20ms..300ms", "IT plug"),
		cost:  scene.Cost{Moves: 1, Needless: 4, Outage: scene.Takeover, Two: scene.NoTwo}},
	{key: "bursts", title: "bursts: nothing passes for 20 to 60 ms", lasts: scene.Range{Least: 2000 * ms, Most: 6000 * ms}, all: true,
		lines: repeated("halt", "20ms..60ms", "resume"),
		cost:  scene.Cost{Needless: 2, Outage: scene.Unnoticed, Two: scene.Found}},
	{key: "pauses", title: "the daemon stands still for 5 to 30 ms", lasts: scene.Range{Least: 2000 * ms, Most: 6000 * ms},
		lines: repeated("IT freeze-daemon", "5ms..30ms", "IT thaw"),
		cost:  scene.Cost{Needless: 2, Outage: scene.Unnoticed, Two: scene.NoTwo}},
	{key: "board-pauses", title: "the board stands still for 5 to 30 ms", lasts: scene.Range{Least: 2000 * ms, Most: 6000 * ms},
		lines: repeated("IT freeze", "5ms..30ms", "IT thaw"),
		cost:  scene.Cost{Needless: 2, Outage: scene.Unnoticed, Two: scene.NoTwo}},
	// It is killed when its address has gone or is fenced.
	{key: "frozen-killed", title: "all processes of a board stand still, then SIGKILL", lasts: scene.Range{Least: 300 * ms, Most: 1500 * ms},
		lines: "IT freeze\nwait LASTS\nIT kill\nwait LASTS\nIT start",
		cost:  scene.Cost{Moves: 1, Outage: scene.Takeover, Two: scene.NoTwo}},
	{key: "all-killed", title: "SIGKILL of all boards, and a start of all", lasts: scene.Range{Least: 150 * ms, Most: 1000 * ms}, all: true,
		lines: "all kill\nwait LASTS\nIT start\nwait 0s..500ms\npi1 start\nwait 0s..500ms\nall start",
		cost:  scene.Cost{Moves: 1, Needless: 1, Outage: 3 * time.Second, Lasting: true, Two: scene.NoTwo}},
}

// repeated does two things alternately until the time is over: a group that has just been disturbed is disturbed again.
func repeated(begin, lasts, end string) string {
	return strings.Join([]string{"repeat for LASTS", begin, "wait " + lasts, end, "wait 150ms..450ms", "end"}, "\n")
}

// scene draws a scene of the fault, in which a board is hit.
func (k *kind) scene(r *rand.Rand, it string) (lines []scene.Timed, lasts time.Duration, err error) {
	rest := slices.DeleteFunc(boardNames(), func(name string) bool { return name == it })
	text := strings.NewReplacer(
		"IT", it, "LASTS", k.lasts.Draw(r).String(), "APART", apart(r, it, rest), "REST", strings.Join(rest, ","),
	).Replace(k.lines)
	s, err := scene.Parse(k.key, text)
	if err != nil {
		return nil, 0, err
	}
	lines, lasts = s.Draw(r)
	return lines, lasts, nil
}

// apart draws who is on one side of a LAN that falls in two. The board that is hit is alone or not; the client and one place are on one
// side, by chance, and the other place on the other one.
func apart(r *rand.Rand, it string, rest []string) string {
	side := []string{it}
	for _, name := range rest[1:] { // one stays
		if r.IntN(2) == 1 {
			side = append(side, name)
		}
	}
	if r.IntN(2) == 1 {
		return strings.Join(append(side, scene.Name(scene.Client), scene.Name(scene.Machine1)), ",")
	}
	return strings.Join(append(side, scene.Name(scene.Machine1-1)), ",")
}

func boardNames() (names []string) {
	for n := range numBoards {
		names = append(names, scene.Name(n+1))
	}
	return names
}
