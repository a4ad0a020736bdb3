package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/golden"
)

// best is a report by which every goal holds that a report can speak of, most of them just.
func best() *Report {
	r := &Report{
		Made: "2026-05-04T13:00:00Z",
		Systems: []System{
			{Key: "t", Program: "topdog", Setting: "default", Interval: 100 * ms},
			{Key: "t10", Program: "topdog", Setting: "10 ms", Interval: 10 * ms},
			{Key: "k", Program: "keepalived", Setting: "default", Interval: time.Second},
			{Key: "k100", Program: "keepalived", Setting: "100 ms", Interval: 100 * ms},
			{Key: "u", Program: "ucarp", Setting: "default", Interval: time.Second},
		},
		Binary: 11_000_000,
	}
	fail := func(system, event string, outage, two time.Duration, more ...func(int, *Run)) {
		runs := evenly(20, outage, outage, append(more, twoFor(two))...)
		r.Failures = append(r.Failures, Failure{System: system, Event: event, Runs: runs})
	}
	moves := func(n int) func(int, *Run) { return func(_ int, r *Run) { r.Moves = n } }
	for _, e := range []string{CablePulled, FramesDropped} {
		fail("t", e, 75*ms, 0)
		fail("t10", e, 15*ms, 0)
		fail("k", e, 30*75*ms, 0)
		fail("k100", e, 4*75*ms, 0)
		fail("u", e, 30*75*ms, 0)
	}
	for _, e := range []string{Terminated, Resigned, Preempted} {
		fail("t", e, 3*ms, 0)
	}
	fail("t", Killed, 20*ms, 5*ms)
	fail("t", Stopped, 75*ms, 5*ms)
	fail("t", BothFrozen, 130*ms, 2250*ms, func(_ int, r *Run) { r.Announced, r.Probed = 3, true })
	fail("t", PathHealed, 5*ms, 10*ms)
	fail("t", CableFlaps, 60*ms, 0)
	fail("t", Bursts, time.Second, time.Second, moves(3))
	fail("t", BurstsAgain, time.Second, time.Second, moves(0))
	fail("t", Pauses, time.Second, time.Second)
	fail("t", Deaf, 1500*ms, 50*ms, moves(5))
	fail("t", Mute, 75*ms, 50*ms, moves(5))
	fail("t", CutShort, time.Second, 5*ms)
	fail("t", CutLong, time.Second, 5*ms)
	for _, e := range []string{MulticastDies, MulticastDead} {
		fail("t", e, time.Second, 0, moves(0))
	}
	for _, e := range []string{SwitchOff, SwitchOffLong} {
		fail("t", e, time.Minute, 0, moves(0))
	}
	for _, e := range []string{SwitchBack, SwitchBackLong} {
		fail("t", e, 500*ms, 0, moves(5))
	}
	fail("t", PagesPulled, 85*ms, 0, func(_ int, r *Run) { r.Pages = 1500 * ms })
	fail("t", ServiceKilled, 15*ms, 0)
	fail("t", ServiceFrozen, 450*ms, 0)
	for _, e := range []string{ServiceRestarts, ServiceRestartsPreempt} {
		fail("t", e, time.Second, time.Second, moves(2))
	}
	fail("t", ServiceNowhere, 0, 0, moves(0))
	fail("t", ServiceFirst, time.Minute, 0)
	fail("t", LeaderReboots, 5*ms, 0)
	fail("t", LeaderRebootsPreempt, 5*ms, 0, moves(2))
	fail("t", FollowerReboots, 0, 0, moves(0))
	fail("t", Hook, 3*ms, 0, func(_ int, r *Run) { r.Hook = 20 * ms })
	r.Checked = []Calm{
		{System: "t", Boards: 3, For: 10 * time.Second, Leader: Cost{0.01, 1, 1, 3}, Follower: Cost{0.004, 1, 1, 3}},
		{System: "k", Boards: 3, For: 10 * time.Second, Leader: Cost{0.06, 1, 1, 2}, Follower: Cost{0.07, 1, 1, 2}},
	}
	for _, boards := range []int{3, 10, 50} {
		r.Calm = append(r.Calm, Calm{
			System: "t", Boards: boards, For: 10 * time.Second, Packets: 200, Bytes: 20000,
			Leader: Cost{0.005, 15_000_000, 9_000_000, 2}, Follower: Cost{0.003, 14_000_000, 8_000_000, 2},
		})
	}
	r.Lossy = []Lossy{
		{System: "t", Loss: 0.2, For: 10 * time.Minute},
		{System: "t10", Loss: 0, For: 10 * time.Minute, Moves: 1},
		{System: "t", Loss: 0.4, For: 10 * time.Minute, Runs: evenly(20, 500*ms, 500*ms)},
		{System: "k100", Loss: 0.4, For: 10 * time.Minute, Moves: 9},
	}
	r.Starts = []Start{{System: "t", Took: []time.Duration{500 * ms, 400 * ms}}}
	return r
}

// verdicts is what of a report does not hold, as lines.
func verdicts(r *Report) string {
	var lines strings.Builder
	for _, g := range judgements(r) {
		if g.Verdict != held {
			fmt.Fprintf(&lines, "\t%s | %s | %s | %s\n", g.Verdict, g.About, g.Text, g.Measured)
		}
	}
	return lines.String()
}

// runs are those of a system with an event.
func (r *Report) runs(system, event string) []Run {
	f, ok := r.failure(system, event)
	if !ok {
		panic(system + " has no " + event)
	}
	return f.Runs
}

// each changes all runs of a system with an event, and last changes one of them.
func each(system, event string, change func(*Run)) func(*Report) {
	return func(r *Report) {
		for i := range r.runs(system, event) {
			change(&r.runs(system, event)[i])
		}
	}
}

func last(system, event string, change func(*Run)) func(*Report) {
	return func(r *Report) { change(&r.runs(system, event)[19]) }
}

// slower makes all runs slower by a time, or faster.
func slower(system, event string, by time.Duration) func(*Report) {
	return each(system, event, func(r *Run) { r.Outage += by })
}

// TestGoals makes one figure after the other a little worse, or takes it away. What is said then of its goal, and of
// no other, is in a file.
func TestGoals(t *testing.T) {
	drop := func(system, event, unable string) func(*Report) {
		return func(r *Report) {
			for i, f := range r.Failures {
				if f.System == system && f.Event == event {
					r.Failures[i].Runs, r.Failures[i].Unable = nil, unable
				}
			}
		}
	}
	var said strings.Builder
	for _, c := range []struct {
		name   string
		change func(*Report)
	}{
		{"as good as can be", func(*Report) {}},
		{"keepalived is as fast at the same interval", slower("k100", CablePulled, -us)},
		{"keepalived is told more, and is faster", func(r *Report) {
			r.Systems = append(r.Systems, System{Key: "kh", Program: "keepalived", Setting: "100 ms, one missed advert", Interval: 100 * ms})
			r.Failures = append(r.Failures, Failure{System: "kh", Event: CablePulled, Runs: evenly(20, 150*ms, 150*ms)})
			slower("k100", CablePulled, -us)(r)
		}},
		{"only the one that is told more was measured", func(r *Report) {
			for i, s := range r.Systems {
				if s.Key == "k100" {
					r.Systems[i].Setting = "100 ms, one missed advert"
				}
			}
			r.Lossy = r.Lossy[:3]
		}},
		{"keepalived is as fast at defaults", slower("k", FramesDropped, -us)},
		{"ucarp is as fast at defaults", slower("u", CablePulled, -us)},
		{"ucarp cannot", drop("u", CablePulled, "no cable")},
		{"keepalived never ends", each("k100", CablePulled, func(r *Run) { r.Censored = true })},
		{"topdog is slower", slower("t", CablePulled, us)},
		{"two of 20 are slow", func(r *Report) {
			last("t", FramesDropped, func(r *Run) { r.Outage = 131 * ms })(r)
			r.runs("t", FramesDropped)[3].Outage = 131 * ms
		}},
		{"two of 20 never end", func(r *Report) {
			last("t", Stopped, func(r *Run) { r.Outage, r.Censored = 10*time.Second, true })(r)
			r.runs("t", Stopped)[3].Censored = true
		}},
		{"no topdog at 10 ms", drop("t10", FramesDropped, "")},
		{"slow at 10 ms", slower("t10", CablePulled, us)},
		{"two holders once on SIGTERM", last("t", Terminated, func(r *Run) { r.Two = us })},
		{"slow to resign", slower("t", Resigned, us)},
		{"no preemption", drop("t", Preempted, "")},
		{"two holders once on SIGKILL", last("t", Killed, func(r *Run) { r.Two += us })},
		{"two holders that last on SIGKILL", last("t", Killed, func(r *Run) { r.TwoLasts = true })},
		{"slow on SIGKILL", slower("t", Killed, us)},
		{"two holders once on SIGSTOP", last("t", Stopped, func(r *Run) { r.Two += us })},
		{"frozen for long", last("t", BothFrozen, func(r *Run) { r.Two += us })},
		{"two answer although all is frozen", last("t", BothFrozen, func(r *Run) { r.TwoAnswer = us })},
		{"nobody asked the boards", last("t", BothFrozen, func(r *Run) { r.Probed = false })},
		{"frozen, and slow to be replaced", slower("t", BothFrozen, us)},
		{"four moves in a series of bursts", last("t", Bursts, func(r *Run) { r.Moves = 4 })},
		{"not wiser in the second series", last("t", BurstsAgain, func(r *Run) { r.Moves = 1 })},
		{"two moves for pauses", last("t", Pauses, func(r *Run) { r.Moves = 2 })},
		{"deaf for ever", last("t", Deaf, func(r *Run) { r.Censored = true })},
		{"mute, and it goes on holding", last("t", Mute, func(r *Run) { r.Two += us })},
		{"a short cut moves it there and back", last("t", CutShort, func(r *Run) { r.Moves = 2 })},
		{"two holders after a long cut", last("t", CutLong, func(r *Run) { r.Two += us })},
		{"multicast dies, and the address moves", last("t", MulticastDies, func(r *Run) { r.Moves = 1 })},
		{"two start without multicast", last("t", MulticastDead, func(r *Run) { r.Two = us })},
		{"somebody claims while the switch restarts", last("t", SwitchOff, func(r *Run) { r.Two, r.Moves = us, 1 })},
		{"slow to agree when the switch forwards", last("t", SwitchBackLong, func(r *Run) { r.Outage += us })},
		{"open pages make it slower", slower("t", PagesPulled, us)},
		{"one page is not right for long", last("t", PagesPulled, func(r *Run) { r.Pages += us })},
		{"a service that is missed for long", slower("t", ServiceKilled, us)},
		{"two of 20 services are missed for long", func(r *Report) {
			last("t", ServiceKilled, func(r *Run) { r.Outage = 31 * ms })(r)
			r.runs("t", ServiceKilled)[3].Outage = 31 * ms
		}},
		{"a frozen service is found late once", last("t", ServiceFrozen, func(r *Run) { r.Outage += us })},
		{"a service drags the address along", last("t", ServiceRestartsPreempt, func(r *Run) { r.Moves = 3 })},
		{"nobody holds when no service runs", last("t", ServiceNowhere, func(r *Run) { r.None = us })},
		{"the first that answers is not noticed", last("t", ServiceFirst, func(r *Run) { r.Censored = true })},
		{"a reboot is noticed", last("t", LeaderReboots, func(r *Run) { r.Outage += us })},
		{"a follower's reboot is noticed", last("t", FollowerReboots, func(r *Run) { r.Outage += us })},
		{"hooks are late", each("t", Hook, func(r *Run) { r.Hook += us })},
		{"checks cost much", func(r *Report) { r.Checked[0].Follower.Processor = 0.014 }},
		{"moved twice at 10 ms, and nothing was lost", func(r *Report) { r.Lossy[1].Moves = 2 }},
		{"nobody looked at 10 ms", func(r *Report) { r.Lossy[1].System = "t" }},
		{"not announced once", last("t", BothFrozen, func(r *Run) { r.Announced = 0 })},
		{"a gap when it heals", last("t", PathHealed, func(r *Run) { r.Outage += us })},
		{"two holders when it heals", last("t", PathHealed, func(r *Run) { r.Two += us })},
		{"one move too many", last("t", CableFlaps, func(r *Run) { r.Moves = 2 })},
		{"no flaps", drop("t", CableFlaps, "")},
		{"slow to start once", func(r *Report) { r.Starts[0].Took[1] = 501 * ms }},
		{"no start", func(r *Report) { r.Starts[0].Took = nil }},
		{"moved once", func(r *Report) { r.Lossy[2].Moves = 1 }},
		{"moved once in a minute", func(r *Report) { r.Lossy[0].Moves, r.Lossy[0].For = 1, time.Minute }},
		{"watched for too short a time", func(r *Report) { r.Lossy[0].For-- }},
		{"no leader dies under loss", func(r *Report) { r.Lossy[2].Runs = nil }},
		{"slow under loss", func(r *Report) { r.Lossy[2].Runs = evenly(3, 501*ms, 501*ms) }},
		{"one packet too many", func(r *Report) { r.Calm[1].Packets++ }},
		{"no 50 boards", func(r *Report) { r.Calm = r.Calm[:2] }},
		{"no packet at all", func(r *Report) { r.Calm[0].Packets = 0 }},
		{"a busy follower", func(r *Report) { r.Calm[1].Follower.Processor += 0.0001 }},
		{"a busy leader", func(r *Report) { r.Calm[2].Leader.Processor += 0.0001 }},
		{"a big leader", func(r *Report) { r.Calm[2].Leader.RSS = 15_100_000 }},
		{"nobody looked at the processes", func(r *Report) {
			for i := range r.Calm {
				r.Calm[i].Leader, r.Calm[i].Follower = Cost{}, Cost{}
			}
		}},
		{"a big binary", func(r *Report) { r.Binary += 100_000 }},
		{"no binary", func(r *Report) { r.Binary = 0 }},
	} {
		r := best()
		c.change(r)
		fmt.Fprintf(&said, "%s\n%s", c.name, verdicts(r))
	}
	golden.Compare(t, "testdata/goals.txt", said.String())
}

// TestDisturbed lets this machine stand still while something is measured.
func TestDisturbed(t *testing.T) {
	late := func(event string, by, late time.Duration) func(*Report) {
		return each("t", event, func(r *Run) { r.Outage, r.Late = r.Outage+by, late })
	}
	var said strings.Builder
	for _, c := range []struct {
		name   string
		change func(*Report)
	}{
		{"missed by twice as much as it stood still", late(Terminated, 4*ms, 2*ms)},
		{"missed by more", late(Terminated, 4*ms+us, 2*ms)},
		{"not worth a word", late(Terminated, us, time.Millisecond)},
		{"held all the same", late(Terminated, 0, 50*ms)},
		{"it stood still in one run, and the median is of others", func(r *Report) {
			late(Terminated, us, 0)(r)
			r.Failures[10].Runs[3].Late = 50 * ms
		}},
		{"two holders in one run in which it stood still", func(r *Report) {
			run := &r.runs("t", PathHealed)[7]
			run.Two, run.Late = 15*ms, 3*ms
		}},
		{"an outage that did not end", func(r *Report) {
			run := &r.runs("t", PathHealed)[7]
			run.Late, run.Censored = 50*ms, true
		}},
		{"one setting is disturbed, and another misses", func(r *Report) {
			r.Failures = append(r.Failures, Failure{System: "t10", Event: Terminated, Runs: evenly(20, 4*ms, 4*ms)})
			late(Terminated, 5*ms, 50*ms)(r)
		}},
		{"a peer is not slower by so much", late(CablePulled, 5*ms, 3*ms)},
	} {
		r := best()
		c.change(r)
		steps := DisturbedSteps(r)
		fmt.Fprintf(&said, "%s\n%s\tto be measured again: %v\n", c.name, verdicts(r), steps)
		if note := r.goalSection().notes[0]; strings.Contains(note, "disturbed") != (len(steps) > 0) {
			t.Errorf("%s: the goals are counted as %q", c.name, note)
		}
	}
	golden.Compare(t, "testdata/disturbed.txt", said.String())
}

// TestNothingHolds holds that what was not measured does not pass.
func TestNothingHolds(t *testing.T) {
	for _, r := range []*Report{{}, {Systems: best().Systems}} {
		for _, g := range judgements(r) {
			if g.Verdict != unmeasured || strings.TrimSpace(g.Measured) == "" {
				t.Errorf("without any figure: %s, %s: %s %q", g.About, g.Text, g.Verdict, g.Measured)
			}
		}
	}
	if a, b := len(judgements(&Report{})), len(judgements(best())); a != b {
		t.Errorf("%d goals without figures, %d with", a, b)
	}
}
