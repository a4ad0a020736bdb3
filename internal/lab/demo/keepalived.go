package demo

import (
	"time"

	"topdog/internal/lab/demopage"
)

// measuredFigure is what was measured of keepalived with its defaults, and of topdog in the same session, on other
// machines than this one. A test holds that docs/benchmarks.md says the same.
type measuredFigure struct {
	Event          string          `json:"event_text"` // as in docs/benchmarks.md
	Actions        []demopage.Verb `json:"actions"`    // what can be done here that is alike
	Runs           int             `json:"runs"`
	MedianNs       int64           `json:"median_ns"`        // outage of keepalived
	MostNs         int64           `json:"most_ns"`          // likewise, the longest of all runs
	TopdogMedianNs int64           `json:"topdog_median_ns"` // outage of topdog, there
	TwoHolders     string          `json:"two_holders_text"` // for how long two boards have the address; "" for never
}

// keepalivedFigures are all of them.
var keepalivedFigures = []measuredFigure{
	{"the leader's cable is pulled", []demopage.Verb{demopage.CableOut, demopage.PowerOff}, 20, figure(2688), figure(3400), figure(68.8), ""},
	{"SIGKILL of the leader's daemon", []demopage.Verb{demopage.Kill}, 20, figure(6.1), figure(17.5), figure(2.0), "until repaired"},
	{"SIGSTOP of the leader's daemon for 10 s, then SIGCONT", []demopage.Verb{demopage.Freeze}, 20, figure(7.4), figure(20.7), figure(4.7), "as long as it is frozen"},
	{"SIGTERM (systemctl stop)", []demopage.Verb{demopage.Stop}, 20, figure(419), figure(421), figure(2.1), ""},
	{"hand-over by command", []demopage.Verb{demopage.Resign}, 20, figure(416), figure(421), figure(2.0), ""},
}

// figure is a number of milliseconds in nanoseconds.
func figure(ms float64) int64 { return int64(ms * float64(time.Millisecond)) }
