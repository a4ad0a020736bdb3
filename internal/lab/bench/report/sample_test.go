package report

import (
	"time"
)

const (
	ms = time.Millisecond
	us = time.Microsecond
)

// evenly makes runs whose outages are spread evenly from one time to another, in an
// order that is not theirs.
func evenly(n int, from, to time.Duration, more ...func(i int, r *Run)) []Run {
	runs := make([]Run, n)
	for i := range runs {
		at := time.Duration(i * 7 % n)
		r := Run{
			Outage: from + (to-from)*at/time.Duration(max(1, n-1)),
			Moves:  1, Late: 300 * us, RoundTrip: 180 * us,
		}
		r.None = r.Outage * 9 / 10
		for _, f := range more {
			f(i, &r)
		}
		runs[i] = r
	}
	return runs
}

func twoFor(t time.Duration) func(int, *Run) { return func(_ int, r *Run) { r.Two = t } }

// sample is a report that has everything that can be in one: a peer that is missing,
// runs that did not end, events that a system does not have, none that were
// run, and figures that are nothing. The times are near to what was measured, and invented.
func sample() *Report {
	r := &Report{
		Made: "2026-05-04T13:00:00Z",
		Form: "quick",
		Machine: Machine{
			Processors: 2, Model: "Intel Xeon | KVM", Memory: 24_000_000_000,
			Kernel: "Linux 6.18.44", Go: "go1.26.8",
		},
		Systems: []System{
			{Key: "topdog-100ms", Program: "topdog", Version: "1.2.0", Setting: "default", Interval: 100 * ms, Config: "interface = \"eth0\"\naddress = \"10.77.0.100/24\"\n"},
			{Key: "topdog-10ms", Program: "topdog", Version: "1.2.0", Setting: "10 ms", Interval: 10 * ms},
			{Key: "keepalived-1s", Program: "keepalived", Version: "v2.2.7", Setting: "default", Interval: time.Second, Config: "vrrp_instance pi {\n\tinterface eth0\n}\n```\n"},
			{Key: "keepalived-100ms", Program: "keepalived", Version: "v2.2.7", Setting: "100 ms", Interval: 100 * ms},
			{Key: "keepalived-hasty", Program: "keepalived", Version: "v2.2.7", Setting: "100 ms, one missed advert", Interval: 100 * ms},
			{Key: "keepalived-10ms", Program: "keepalived", Version: "v2.2.7", Setting: "fastest sensible, 10 ms, no preemption", Interval: 10 * ms},
			{Key: "carp", Program: "carp<d>", Version: "0_9", Setting: "*its* own", Interval: 0},
		},
		Missing: []string{"ucarp: not installed; apt-get install ucarp", "50 boards: the quick form leaves them out"},
		Events: []Event{
			{Key: CablePulled, Title: "cable pulled"}, {Key: FramesDropped, Title: "the switch drops the leader's frames, the carrier stays"}, {Key: PathHealed, Title: "the path heals"},
			{Key: Killed, Title: "SIGKILL of the daemon"}, {Key: Stopped, Title: "SIGSTOP for 10 s, then SIGCONT"},
			{Key: BothFrozen, Title: "SIGSTOP of all of the board"}, {Key: Terminated, Title: "SIGTERM"},
			{Key: Resigned, Title: "hand-over by command"}, {Key: Preempted, Title: "the old leader takes over again"},
			{Key: CableFlaps, Title: "the cable is out for 500 ms and in for 500 ms, ten times (outage: the sum)"}, {Key: "never-run", Title: "an event that nobody had time for"},
			{Key: Hook, Title: "hand-over by command, with a script"},
			{Key: PagesPulled, Title: "the cable is pulled while pages are open"},
		},
		Binary: 9_700_000,
	}
	fail := func(system, event string, runs []Run) {
		r.Failures = append(r.Failures, Failure{System: system, Event: event, Runs: runs})
	}
	endless := func(i int, r *Run) {
		if i%10 == 3 {
			r.Outage, r.Censored, r.None = 10*time.Second, true, 10*time.Second
		}
	}
	forEver := func(_ int, r *Run) { r.Two, r.TwoLasts = 5*time.Second, true }

	fail("topdog-100ms", CablePulled, evenly(20, 14*ms, 112*ms, func(i int, r *Run) { r.Late = time.Duration(i%5) * ms }))
	fail("topdog-10ms", CablePulled, evenly(20, 4*ms, 17*ms))
	fail("keepalived-1s", CablePulled, evenly(20, 2700*ms, 3600*ms))
	fail("keepalived-100ms", CablePulled, evenly(20, 260*ms, 350*ms, twoFor(20*us)))
	fail("keepalived-hasty", CablePulled, evenly(20, 70*ms, 180*ms))
	fail("keepalived-10ms", CablePulled, evenly(5, 30*ms, 36*ms))
	fail("carp", CablePulled, evenly(3, 900*ms, 2400*ms, endless))

	fail("topdog-100ms", FramesDropped, evenly(20, 20*ms, 155*ms, endless))
	fail("topdog-10ms", FramesDropped, evenly(1, 9*ms, 9*ms))
	fail("keepalived-1s", FramesDropped, evenly(20, 2700*ms, 3600*ms, endless))
	fail("keepalived-100ms", FramesDropped, evenly(20, 260*ms, 350*ms))

	fail("topdog-100ms", PathHealed, evenly(20, 1*ms, 4*ms, twoFor(8*ms)))
	fail("keepalived-100ms", PathHealed, evenly(20, 200*ms, 1900*ms, twoFor(29*ms)))

	fail("topdog-100ms", Killed, evenly(20, 3*ms, 19*ms))
	fail("keepalived-100ms", Killed, evenly(20, 1*ms, 2*ms, forEver))

	fail("topdog-100ms", Stopped, evenly(20, 30*ms, 120*ms, func(i int, r *Run) { r.Two = time.Duration(i%3) * 4 * ms }))
	fail("keepalived-100ms", Stopped, evenly(20, 1*ms, 2*ms, forEver))

	fail("topdog-100ms", BothFrozen, evenly(20, 30*ms, 120*ms, twoFor(time.Second), func(i int, r *Run) {
		r.Probed, r.TwoAnswer, r.Announced = true, time.Duration(i%2)*ms, 2
	}))

	fail("topdog-100ms", Terminated, evenly(20, 1*ms, 2800*us))
	fail("topdog-10ms", Terminated, evenly(20, 1*ms, 2500*us))
	fail("keepalived-100ms", Terminated, evenly(20, 40*ms, 80*ms))

	fail("topdog-100ms", Resigned, evenly(20, 0, 0, func(_ int, r *Run) { r.RoundTrip = 0 }))
	for _, peer := range []string{"keepalived-1s", "keepalived-100ms"} {
		r.Failures = append(r.Failures, Failure{System: peer, Event: Resigned, Unable: "it has no command for a hand-over"})
	}
	r.Failures = append(r.Failures, Failure{System: "topdog-100ms", Event: Preempted})

	fail("topdog-100ms", CableFlaps, evenly(3, 60*ms, 90*ms, func(i int, r *Run) { r.Moves = i }))
	fail("keepalived-100ms", CableFlaps, evenly(3, 300*ms, 400*ms, func(i int, r *Run) { r.Moves = 20 - i }))

	fail("topdog-100ms", Hook, evenly(3, 1*ms, 3*ms, func(i int, r *Run) { r.Hook = time.Duration(i+2) * ms }))
	fail("topdog-100ms", PagesPulled, evenly(3, 15*ms, 114*ms, func(i int, r *Run) { r.Pages = time.Duration(i+5) * 100 * ms }))
	r.Checked = []Calm{
		{System: "topdog-100ms", Boards: 3, For: 10 * time.Second, Packets: 140, Bytes: 140 * 84, Leader: Cost{0.007, 25_400_000, 9_300_000, 3}, Follower: Cost{0.005, 25_100_000, 8_900_000, 3}},
		{System: "keepalived-1s", Boards: 3, For: 10 * time.Second, Packets: 10, Bytes: 540, Leader: Cost{0.063, 13_600_000, 3_600_000, 2}, Follower: Cost{0.069, 13_800_000, 3_700_000, 2}},
	}
	r.Calm = []Calm{
		{System: "topdog-100ms", Boards: 10, For: 30 * time.Second, Packets: 570, Bytes: 570 * 98, Leader: Cost{0.0051, 11_900_000, 8_000_000, 2}, Follower: Cost{0.0028, 11_000_000, 7_000_000, 2}},
		{System: "topdog-100ms", Boards: 3, For: time.Minute, Packets: 804, Bytes: 804 * 96, Leader: Cost{0.0042, 11_800_000, 7_900_000, 2}, Follower: Cost{0.0026, 10_900_000, 7_100_000, 2}},
		{System: "keepalived-100ms", Boards: 3, For: time.Minute, Packets: 600, Bytes: 600 * 54, Leader: Cost{0.0011, 9_300_000, 4_100_000, 2}, Follower: Cost{0.0007, 9_200_000, 4_000_000, 2}},
		{System: "carp", Boards: 3},
	}
	r.Lossy = []Lossy{
		{System: "topdog-100ms", Loss: 0.4, For: 10 * time.Minute, Runs: evenly(20, 90*ms, 480*ms)},
		{System: "keepalived-100ms", Loss: 0.4, For: 10 * time.Minute, Moves: 71, Two: 4100 * ms, Unanswered: 22300 * ms, Runs: evenly(20, 250*ms, 800*ms, endless)},
		{System: "topdog-100ms", Loss: 0.2, For: time.Minute},
		{System: "keepalived-100ms", Loss: 0.2, For: time.Minute, Moves: 1, Two: 20 * ms},
		{System: "topdog-10ms", Loss: 0, For: 10 * time.Minute, Moves: 2},
		{System: "topdog-10ms", Loss: 0.05, For: 10 * time.Minute, Moves: 3},
		{System: "carp", Loss: 0.05},
	}
	r.Starts = []Start{
		{System: "topdog-100ms", Took: []time.Duration{310 * ms, 290 * ms, 455 * ms}},
		{System: "topdog-10ms"},
		{System: "keepalived-100ms", Took: []time.Duration{3200 * ms, 3150 * ms, 3300 * ms}},
	}
	return r
}
