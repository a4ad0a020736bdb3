package bench

import (
	"slices"
	"time"
)

// plan says what is measured, and for how long.
type plan struct {
	form    string // quick or long
	systems []system
	events  []event
	parts   []part

	check    bool             // that each system works at all, before all else
	binary   bool             // the size of topdog for arm64
	runs     int              // of each event
	seldom   int              // of each event that takes long
	repeats  int              // of an event that was disturbed
	replicas func(system) int // groups of one system that run beside each other
	starts   int              // cold starts
	boards   []int            // in a calm group
	rest     time.Duration    // before, until what boards do only when they meet is over
	calm     time.Duration    // how long each of them is watched
	together bool             // calm groups of all systems at once
	losses   []float64
	lossFor  time.Duration // how long a group is watched while nobody fails
	lossRuns int           // pulled cables under each loss
	idleFor  time.Duration // how long a group is watched that loses nothing
	logs     string        // the directory for what boards print, or ""
}

// part is one of the things that a session is made of.
type part string

func (p part) String() string { return string(p) }

const (
	partFailures part = "failures"
	partStarts   part = "starts"
	partCalm     part = "calm"
	partLoss     part = "loss"
	partIdle     part = "idle"
	partService  part = "service"
	partChecks   part = "checks"
)

var allParts = []part{partFailures, partStarts, partCalm, partLoss, partIdle, partService, partChecks}

// servedSystems are those that look at services, or all others.
func (p *plan) servedSystems(look bool) []system {
	return slices.DeleteFunc(slices.Clone(p.systems), func(s system) bool { return served(s) != look })
}

// setRuns changes the number of runs of everything that is run several times.
func (p *plan) setRuns(n int) {
	p.runs, p.seldom = n, n
	p.starts = min(p.starts, n)
	p.lossRuns = min(p.lossRuns, n)
}

// fit leaves out the systems and events that no part of the plan is about.
func (p *plan) fit() {
	ofServices := []part{partService, partChecks}
	services := slices.ContainsFunc(p.parts, func(one part) bool { return slices.Contains(ofServices, one) })
	others := slices.ContainsFunc(p.parts, func(one part) bool { return !slices.Contains(ofServices, one) })
	p.systems = slices.DeleteFunc(slices.Clone(p.systems), func(s system) bool { return served(s) && !services || !served(s) && !others })
	p.events = slices.DeleteFunc(slices.Clone(p.events), func(e event) bool { return e.served && !services || !e.served && !others })
}

// runsOf is how often an event is run.
func (p *plan) runsOf(e event) int {
	if e.seldom {
		return p.seldom
	}
	return p.runs
}

// quickPlan is for a laptop: it says in seven to ten minutes whether topdog does what it
// promises, and not much about rare cases.
func quickPlan() plan {
	return plan{
		form: "quick",
		systems: named(allSystems(), "topdog-100ms", "topdog-10ms", "keepalived-1s", "keepalived-100ms", "keepalived-20ms", "ucarp-1s",
			"topdog-service", "keepalived-1s-process", "keepalived-1s-script"),
		events: named(allEvents(), "cable-pulled", "frames-dropped", "sigkill", "sigterm",
			"both-frozen", "bursts", "pauses", "deaf", "mute", "cut-300ms", "cut-3s",
			"service-killed", "service-frozen"),
		parts:   []part{partFailures, partStarts, partCalm, partLoss, partService, partChecks},
		runs:    5,
		seldom:  2,
		repeats: 2,
		replicas: func(s system) int {
			if slow(s) {
				return 7
			}
			return 2
		},
		starts:   1,
		boards:   []int{3},
		calm:     10 * time.Second,
		together: true,
		losses:   []float64{0.4},
		lossFor:  12 * time.Second,
		idleFor:  time.Minute,
	}
}

// longPlan is everything.
func longPlan() plan {
	return plan{
		form:    "long",
		systems: allSystems(),
		events:  allEvents(),
		parts:   allParts,
		check:   true,
		binary:  true,
		runs:    20,
		seldom:  10,
		replicas: func(s system) int {
			if slow(s) || served(s) {
				return 4
			}
			return 2
		},
		starts:   10,
		boards:   []int{3, 10, 50},
		rest:     30 * time.Second,
		calm:     15 * time.Second,
		losses:   []float64{0.05, 0.2, 0.4},
		lossFor:  10 * time.Minute,
		idleFor:  10 * time.Minute,
		lossRuns: 20,
	}
}

// slow reports whether a system takes seconds where others take milliseconds.
func slow(s system) bool { return s.info().Interval >= 500*time.Millisecond }
