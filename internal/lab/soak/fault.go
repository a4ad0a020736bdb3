package soak

import (
	"math/rand/v2"
	"slices"
	"time"

	"topdog/election"
)

// kind is a kind of fault.
type kind struct {
	key   string
	title string
	// shortest and longest are for how long it lasts.
	shortest, longest time.Duration
	// acts says what is done when; the last act ends the fault. It draws what else is left to
	// chance, and does nothing itself.
	acts func(r *rand.Rand, lasts time.Duration) []act
	// all is true for a fault of the whole LAN or of all boards, whichever board it names.
	all bool
	// bounds are those of the default mode.
	bounds bounds
}

// act is one thing that is done to a stage, so long after the fault began. Acts of two faults
// at once come in the order of time.
type act struct {
	at time.Duration
	do func(s *stage, board int) error
}

// bounds are what a fault may cost in the default mode. They are those of a busy machine with
// two processors: what a fault costs on a quiet one is in docs/benchmarks.md.
type bounds struct {
	rightful int           // moves, if the leader is hit: the address had to go, or to come back
	needless int           // moves beyond those
	outage   time.Duration // beyond the fault's own time, if nobody can answer as long as it lasts
	lasting  bool          // nobody can answer as long as the fault lasts
	two      time.Duration // two holders that can be reached from one place
}

// allKinds are all kinds of faults, in the order of the table.
func allKinds() []kind {
	return slices.Concat(cableKinds(), switchKinds(), processKinds())
}

// Bounds that several kinds of faults share. A takeover takes H/2 + G, and G learns up to
// `patience`, 500 ms. Two holders need a late process: with the fence there is none.
const (
	takeover  = time.Second
	handover  = 500 * time.Millisecond
	unnoticed = 250 * time.Millisecond
	noTwo     = 20 * time.Millisecond
	// healed is when two leaders that can reach each other again are one: the one that has replaced the
	// other looks for it every 40 ms.
	healed = 50 * time.Millisecond
	// found is when they are where messages are lost, too: the next heartbeat of either tells the other.
	found = election.DefaultInterval
)

func cableKinds() []kind {
	return []kind{
		{key: "cable-pulled", title: "cable pulled", shortest: 300 * time.Millisecond, longest: 5 * time.Second,
			acts: twice((*stage).pull, (*stage).plug), bounds: bounds{rightful: 1, outage: takeover, two: noTwo}},
		{key: "cable-flaps", title: "cable flaps", shortest: time.Second, longest: 5 * time.Second,
			acts: cableFlaps, bounds: bounds{rightful: 1, needless: 4, outage: takeover, two: noTwo}},
		{key: "cut", title: "cut: the switch drops all of its frames", shortest: 300 * time.Millisecond, longest: 5 * time.Second,
			acts: twice((*stage).cut, (*stage).heal), bounds: bounds{rightful: 1, outage: takeover, two: healed}},
		{key: "deaf", title: "deaf: no frame comes in", shortest: 2 * time.Second, longest: 8 * time.Second,
			acts: twice((*stage).deafen, (*stage).hear), bounds: bounds{rightful: 1, outage: 2 * time.Second, two: found}},
		{key: "mute", title: "mute: no frame goes out", shortest: 300 * time.Millisecond, longest: 5 * time.Second,
			acts: twice((*stage).mute, (*stage).speak), bounds: bounds{rightful: 1, outage: takeover, two: found}},
	}
}

func switchKinds() []kind {
	return []kind{
		{key: "bursts", title: "bursts: nothing passes for 20 to 60 ms", shortest: 2 * time.Second, longest: 6 * time.Second, all: true,
			acts: bursts, bounds: bounds{needless: 2, outage: unnoticed, two: found}},
		{key: "loss-5", title: "5 % loss", shortest: 3 * time.Second, longest: 10 * time.Second, all: true,
			acts: lose(0.05), bounds: bounds{needless: 1, outage: unnoticed, two: found}},
		{key: "loss-20", title: "20 % loss", shortest: 3 * time.Second, longest: 10 * time.Second, all: true,
			acts: lose(0.2), bounds: bounds{needless: 1, outage: unnoticed, two: found}},
		{key: "multicast-dead", title: "multicast dead, unicast lives", shortest: 3 * time.Second, longest: 10 * time.Second, all: true,
			acts: twice((*stage).dropMulticast, (*stage).passMulticast), bounds: bounds{outage: unnoticed, two: noTwo}},
		{key: "switch-restarts", title: "the switch forwards nothing", shortest: time.Second, longest: 8 * time.Second, all: true,
			acts: twice((*stage).halt, (*stage).resume), bounds: bounds{rightful: 1, outage: takeover, lasting: true, two: healed}},
		{key: "split", title: "the LAN falls in two", shortest: time.Second, longest: 6 * time.Second, all: true,
			acts: split, bounds: bounds{rightful: 2, outage: takeover, two: healed}},
	}
}

func processKinds() []kind {
	return []kind{
		{key: "pauses", title: "the daemon stands still for 5 to 30 ms", shortest: 2 * time.Second, longest: 6 * time.Second,
			acts: pauses((*stage).freezeDaemon), bounds: bounds{needless: 2, outage: unnoticed, two: noTwo}},
		{key: "board-pauses", title: "the board stands still for 5 to 30 ms", shortest: 2 * time.Second, longest: 6 * time.Second,
			acts: pauses((*stage).freezeBoard), bounds: bounds{needless: 2, outage: unnoticed, two: noTwo}},
		{key: "daemon-frozen", title: "the daemon stands still (SIGSTOP)", shortest: 300 * time.Millisecond, longest: 5 * time.Second,
			acts: twice((*stage).freezeDaemon, (*stage).thaw), bounds: bounds{rightful: 1, outage: handover, two: noTwo}},
		{key: "board-frozen", title: "all processes of a board stand still", shortest: 300 * time.Millisecond, longest: 5 * time.Second,
			acts: twice((*stage).freezeBoard, (*stage).thaw), bounds: bounds{rightful: 1, outage: takeover, two: noTwo}},
		{key: "daemon-killed", title: "SIGKILL of the daemon", shortest: 300 * time.Millisecond, longest: 3 * time.Second,
			acts: twice((*stage).killDaemon, (*stage).start), bounds: bounds{rightful: 1, outage: handover, two: noTwo}},
		{key: "holder-killed", title: "SIGKILL of the holder", shortest: 500 * time.Millisecond, longest: 2 * time.Second,
			acts: twice((*stage).killHolder, (*stage).start), bounds: bounds{rightful: 1, outage: handover, two: noTwo}},
		{key: "board-killed", title: "SIGKILL of daemon and holder", shortest: 300 * time.Millisecond, longest: 3 * time.Second,
			acts: twice((*stage).killBoard, (*stage).start), bounds: bounds{rightful: 1, outage: takeover, two: noTwo}},
		{key: "frozen-killed", title: "all processes of a board stand still, then SIGKILL", shortest: 600 * time.Millisecond, longest: 3 * time.Second,
			acts: frozenKilled, bounds: bounds{rightful: 1, outage: takeover, two: noTwo}},
		{key: "stopped", title: "SIGTERM, and a start later", shortest: 500 * time.Millisecond, longest: 3 * time.Second,
			acts: twice((*stage).terminate, (*stage).start), bounds: bounds{rightful: 1, outage: handover, two: noTwo}},
		{key: "restarted", title: "SIGTERM, and a start at once", shortest: 500 * time.Millisecond, longest: time.Second,
			acts: once((*stage).restart), bounds: bounds{rightful: 1, outage: handover, two: noTwo}},
		{key: "resigned", title: "topdog resign", shortest: 300 * time.Millisecond, longest: time.Second,
			acts: once((*stage).resign), bounds: bounds{rightful: 1, outage: handover, two: noTwo}},
		{key: "all-killed", title: "SIGKILL of all boards, and a start of all", shortest: 300 * time.Millisecond, longest: 2 * time.Second, all: true,
			acts: everyBoard, bounds: bounds{rightful: 1, needless: 1, outage: 3 * time.Second, lasting: true, two: noTwo}},
	}
}

// doing is something that is done to a board of a stage.
type doing = func(s *stage, board int) error

// once does one thing, and waits.
func once(do doing) func(*rand.Rand, time.Duration) []act { return twice(do, (*stage).nothing) }

// twice does one thing at the beginning and another at the end.
func twice(begin, end doing) func(*rand.Rand, time.Duration) []act {
	return func(_ *rand.Rand, lasts time.Duration) []act { return []act{{0, begin}, {lasts, end}} }
}

// frozenKilled freezes a board, kills it when its address has gone or is fenced, and starts it.
func frozenKilled(_ *rand.Rand, lasts time.Duration) []act {
	return []act{{0, (*stage).freezeBoard}, {lasts / 2, (*stage).killBoard}, {lasts, (*stage).start}}
}

// everyBoard kills all boards, and starts them at times that differ.
func everyBoard(r *rand.Rand, lasts time.Duration) []act {
	acts := []act{{0, onAll((*stage).killBoard)}}
	for n := range numBoards {
		at := lasts/2 + time.Duration(r.Int64N(int64(lasts/2)))
		acts = append(acts, act{at, func(s *stage, _ int) error { return s.startNth(n) }})
	}
	return append(acts, act{lasts, (*stage).nothing})
}

// onAll does to every board what is for one.
func onAll(do doing) doing {
	return func(s *stage, _ int) error {
		for _, b := range s.boards {
			if err := do(s, b.Number); err != nil {
				return err
			}
		}
		return nil
	}
}

// lose lets a share of topdog's packets be lost at every receiver.
func lose(share float64) func(*rand.Rand, time.Duration) []act {
	set := func(share float64) doing { return func(s *stage, _ int) error { return s.lose(share) } }
	return twice(set(share), set(0))
}

// split divides the boards by chance; each side has at least one of them.
func split(r *rand.Rand, lasts time.Duration) []act {
	side := r.Uint64()
	return []act{{0, func(s *stage, board int) error { return s.split(side, board) }}, {lasts, (*stage).join}}
}

// Times between short faults, and how long they are: a group that has just been disturbed is
// disturbed again.
const (
	againAfter, againUntil = 150 * time.Millisecond, 450 * time.Millisecond
)

// repeated does two things alternately until the time is over: the first lasts from one time to
// another.
func repeated(r *rand.Rand, lasts, from, to time.Duration, begin, end doing) (acts []act) {
	for at := time.Duration(0); ; {
		length := between(r, from, to)
		acts = append(acts, act{at, begin}, act{at + length, end})
		if at += length + between(r, againAfter, againUntil); at > lasts {
			return acts
		}
	}
}

func bursts(r *rand.Rand, lasts time.Duration) []act {
	return repeated(r, lasts, 20*time.Millisecond, 60*time.Millisecond, (*stage).halt, (*stage).resume)
}

func pauses(freeze doing) func(*rand.Rand, time.Duration) []act {
	return func(r *rand.Rand, lasts time.Duration) []act {
		return repeated(r, lasts, 5*time.Millisecond, 30*time.Millisecond, freeze, (*stage).thaw)
	}
}

func cableFlaps(r *rand.Rand, lasts time.Duration) []act {
	return repeated(r, lasts, 20*time.Millisecond, 300*time.Millisecond, (*stage).pull, (*stage).plug)
}

// between draws a time.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)+1))
}
