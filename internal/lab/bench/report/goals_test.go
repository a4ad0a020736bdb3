package report

import (
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
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
	fail := func(system, event string, outage, two time.Duration) {
		runs := evenly(20, outage, outage, twoFor(two))
		r.Failures = append(r.Failures, Failure{System: system, Event: event, Runs: runs})
	}
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
	fail("t", BothFrozen, 130*ms, 2250*ms)
	for i := range r.Failures[len(r.Failures)-1].Runs {
		r.Failures[len(r.Failures)-1].Runs[i].Announced = 3
		r.Failures[len(r.Failures)-1].Runs[i].Probed = true
	}
	fail("t", PathHealed, 5*ms, 10*ms)
	fail("t", CableFlaps, 60*ms, 0)
	moving := func(event string, moves int, outage, two time.Duration) {
		fail("t", event, outage, two)
		for i := range r.Failures[len(r.Failures)-1].Runs {
			r.Failures[len(r.Failures)-1].Runs[i].Moves = moves
		}
	}
	moving(Bursts, 3, time.Second, time.Second)
	moving(BurstsAgain, 0, time.Second, time.Second)
	moving(Pauses, 1, time.Second, time.Second)
	moving(Deaf, 5, 1500*ms, 50*ms)
	moving(Mute, 5, 75*ms, 50*ms)
	moving(CutShort, 1, time.Second, 5*ms)
	moving(CutLong, 1, time.Second, 5*ms)
	moving(MulticastDies, 0, time.Second, 0)
	moving(MulticastDead, 0, time.Second, 0)
	for _, e := range []string{SwitchOff, SwitchOffLong} {
		moving(e, 0, time.Minute, 0)
	}
	for _, e := range []string{SwitchBack, SwitchBackLong} {
		moving(e, 5, 500*ms, 0)
	}
	moving(PagesPulled, 1, 85*ms, 0)
	for i := range r.Failures[len(r.Failures)-1].Runs {
		r.Failures[len(r.Failures)-1].Runs[i].Pages = 1500 * ms
	}
	moving(ServiceKilled, 1, 15*ms, 0)
	moving(ServiceFrozen, 1, 450*ms, 0)
	for _, e := range []string{ServiceRestarts, ServiceRestartsPreempt} {
		moving(e, 2, time.Second, time.Second)
	}
	moving(ServiceNowhere, 0, 0, 0)
	for i := range r.Failures[len(r.Failures)-1].Runs {
		r.Failures[len(r.Failures)-1].Runs[i].None = 0
	}
	moving(ServiceFirst, 1, time.Minute, 0)
	moving(LeaderReboots, 1, 5*ms, 0)
	moving(LeaderRebootsPreempt, 2, 5*ms, 0)
	moving(FollowerReboots, 0, 0, 0)
	moving(Hook, 1, 3*ms, 0)
	for i := range r.Failures[len(r.Failures)-1].Runs {
		r.Failures[len(r.Failures)-1].Runs[i].Hook = 20 * ms
	}
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
func verdicts(r *Report) []string {
	var list []string
	for _, g := range judgements(r) {
		if g.Verdict != held {
			list = append(list, g.Verdict.String()+" | "+g.About+" | "+g.Text+" | "+g.Measured)
		}
	}
	return list
}

// TestGoals makes one figure after the other a little worse, or takes it away, and
// holds that this is said of its goal, and of no other.
func TestGoals(t *testing.T) {
	runs := func(r *Report, system, event string) []Run {
		f, ok := r.failure(system, event)
		if !ok {
			t.Fatalf("%s has no %s", system, event)
		}
		return f.Runs
	}
	// slower makes all runs of an event slower by a microsecond, or faster.
	slower := func(system, event string, by time.Duration) func(*Report) {
		return func(r *Report) {
			for i := range runs(r, system, event) {
				runs(r, system, event)[i].Outage += by
			}
		}
	}
	last := func(system, event string, change func(*Run)) func(*Report) {
		return func(r *Report) { change(&runs(r, system, event)[19]) }
	}
	drop := func(system, event, unable string) func(*Report) {
		return func(r *Report) {
			for i, f := range r.Failures {
				if f.System == system && f.Event == event {
					r.Failures[i].Runs, r.Failures[i].Unable = nil, unable
				}
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*Report)
		want   []string
	}{
		{"as good as can be", func(*Report) {}, nil},
		{"keepalived is as fast at the same interval", slower("k100", CablePulled, -us), []string{
			"MISSED | cable-pulled, H = 100 ms | keepalived at the same interval takes | x 4.0: keepalived 100 ms 299.999 ms, topdog default 75 ms"}},
		{"keepalived is told more, and is faster", func(r *Report) {
			r.Systems = append(r.Systems, System{Key: "kh", Program: "keepalived", Setting: "100 ms, one missed advert", Interval: 100 * ms})
			r.Failures = append(r.Failures, Failure{System: "kh", Event: CablePulled, Runs: evenly(20, 150*ms, 150*ms)})
			slower("k100", CablePulled, -us)(r)
		}, []string{
			"MISSED | cable-pulled, H = 100 ms | keepalived at the same interval takes | x 4.0: keepalived 100 ms 299.999 ms, " +
				"topdog default 75 ms; keepalived 100 ms, one missed advert: x 2.0"}},
		{"only the one that is told more was measured", func(r *Report) {
			for i, s := range r.Systems {
				if s.Key == "k100" {
					r.Systems[i].Setting = "100 ms, one missed advert"
				}
			}
			r.Lossy = r.Lossy[:3]
		}, []string{
			"not measured | cable-pulled, H = 100 ms | keepalived at the same interval takes | no such system in this report",
			"not measured | frames-dropped, H = 100 ms | keepalived at the same interval takes | no such system in this report"}},
		{"keepalived is as fast at defaults", slower("k", FramesDropped, -us), []string{
			"MISSED | frames-dropped, H = 100 ms | keepalived takes, both at defaults | x 30: keepalived default 2249.999 ms, topdog default 75 ms"}},
		{"ucarp is as fast at defaults", slower("u", CablePulled, -us), []string{
			"MISSED | cable-pulled, H = 100 ms | ucarp takes, both at defaults | x 30: ucarp default 2249.999 ms, topdog default 75 ms"}},
		{"ucarp cannot", drop("u", CablePulled, "no cable"), []string{
			"not measured | cable-pulled, H = 100 ms | ucarp takes, both at defaults | ucarp default: no cable"}},
		{"keepalived never ends", func(r *Report) {
			for i := range runs(r, "k100", CablePulled) {
				runs(r, "k100", CablePulled)[i].Censored = true
			}
		}, nil},
		{"topdog is slower", slower("t", CablePulled, us), []string{
			"MISSED | cable-pulled, H = 100 ms | median outage | 75.001 ms: topdog default, 20 runs",
			"MISSED | cable-pulled, H = 100 ms | keepalived at the same interval takes | x 4.0: keepalived 100 ms 300 ms, topdog default 75.001 ms",
			"MISSED | cable-pulled, H = 100 ms | keepalived takes, both at defaults | x 30: keepalived default 2250 ms, topdog default 75.001 ms",
			"MISSED | cable-pulled, H = 100 ms | ucarp takes, both at defaults | x 30: ucarp default 2250 ms, topdog default 75.001 ms"}},
		{"two of 20 are slow", func(r *Report) {
			last("t", FramesDropped, func(r *Run) { r.Outage = 131 * ms })(r)
			runs(r, "t", FramesDropped)[3].Outage = 131 * ms
		}, []string{"MISSED | frames-dropped, H = 100 ms | p95 of the outage | 131 ms: topdog default, 20 runs"}},
		{"two of 20 never end", func(r *Report) {
			last("t", Stopped, func(r *Run) { r.Outage, r.Censored = 10*time.Second, true })(r)
			runs(r, "t", Stopped)[3].Censored = true
		}, []string{"MISSED | sigstop, H = 100 ms | p95 of the outage, as a pulled cable | more than 75 ms: topdog default, 20 runs"}},
		{"no topdog at 10 ms", drop("t10", FramesDropped, ""), []string{
			"not measured | frames-dropped, H = 10 ms | median outage | topdog 10 ms: no runs"}},
		{"slow at 10 ms", slower("t10", CablePulled, us), []string{
			"MISSED | cable-pulled, H = 10 ms | median outage | 15.001 ms: topdog 10 ms, 20 runs"}},
		{"two holders once on SIGTERM", last("t", Terminated, func(r *Run) { r.Two = us }), []string{
			"MISSED | sigterm | most time with two holders | 0.001 ms: topdog default, 20 runs"}},
		{"slow to resign", slower("t", Resigned, us), []string{"MISSED | resign | median outage | 3.001 ms: topdog default, 20 runs"}},
		{"no preemption", drop("t", Preempted, ""), []string{
			"not measured | preempt | median outage | topdog 10 ms: no runs",
			"not measured | preempt | most time with two holders | topdog 10 ms: no runs"}},
		{"two holders once on SIGKILL", last("t", Killed, func(r *Run) { r.Two += us }), []string{
			"MISSED | sigkill | most time with two holders | 5.001 ms: topdog default, 20 runs"}},
		{"two holders that last on SIGKILL", last("t", Killed, func(r *Run) { r.TwoLasts = true }), []string{
			"MISSED | sigkill | most time with two holders | more than 5 ms: topdog default, 20 runs"}},
		{"slow on SIGKILL", slower("t", Killed, us), []string{"MISSED | sigkill | median outage | 20.001 ms: topdog default, 20 runs"}},
		{"two holders once on SIGSTOP", last("t", Stopped, func(r *Run) { r.Two += us }), []string{
			"MISSED | sigstop | most time with two holders | 5.001 ms: topdog default, 20 runs"}},
		{"frozen for long", last("t", BothFrozen, func(r *Run) { r.Two += us }), []string{
			"MISSED | both-frozen | most time with two holders (the kernel's lifetime, and its sweep) | 2250.001 ms: topdog default, 20 runs"}},
		{"two answer although all is frozen", last("t", BothFrozen, func(r *Run) { r.TwoAnswer = us }), []string{
			"MISSED | both-frozen | most time for which two boards answer | 0.001 ms: topdog default, 20 runs"}},
		{"nobody asked the boards", last("t", BothFrozen, func(r *Run) { r.Probed = false }), []string{
			"not measured | both-frozen | most time for which two boards answer | topdog default: the boards were not asked in every run"}},
		{"frozen, and slow to be replaced", slower("t", BothFrozen, us), []string{
			"MISSED | both-frozen, H = 100 ms | p95 of the outage, as a pulled cable | 130.001 ms: topdog default, 20 runs"}},
		{"four moves in a series of bursts", last("t", Bursts, func(r *Run) { r.Moves = 4 }), []string{
			"MISSED | bursts, H = 100 ms | moves of the address | 4: topdog default, most of 20 runs"}},
		{"not wiser in the second series", last("t", BurstsAgain, func(r *Run) { r.Moves = 1 }), []string{
			"MISSED | bursts-again, H = 100 ms | moves of the address | 1: topdog default, most of 20 runs"}},
		{"two moves for pauses", last("t", Pauses, func(r *Run) { r.Moves = 2 }), []string{
			"MISSED | pauses, H = 100 ms | moves of the address | 2: topdog default, most of 20 runs"}},
		{"deaf for ever", last("t", Deaf, func(r *Run) { r.Censored = true }), []string{
			"MISSED | deaf, H = 100 ms | longest outage | more than 1500 ms: topdog default, 20 runs"}},
		{"mute, and it goes on holding", last("t", Mute, func(r *Run) { r.Two += us }), []string{
			"MISSED | mute, H = 100 ms | most time with two holders | 50.001 ms: topdog default, 20 runs"}},
		{"a short cut moves it there and back", last("t", CutShort, func(r *Run) { r.Moves = 2 }), []string{
			"MISSED | cut-300ms, H = 100 ms | moves of the address | 2: topdog default, most of 20 runs"}},
		{"two holders after a long cut", last("t", CutLong, func(r *Run) { r.Two += us }), []string{
			"MISSED | cut-3s, H = 100 ms | most time with two holders | 5.001 ms: topdog default, 20 runs"}},
		{"multicast dies, and the address moves", last("t", MulticastDies, func(r *Run) { r.Moves = 1 }), []string{
			"MISSED | multicast-dies, H = 100 ms | moves of the address | 1: topdog default, most of 20 runs"}},
		{"two start without multicast", last("t", MulticastDead, func(r *Run) { r.Two = us }), []string{
			"MISSED | multicast-dead, H = 100 ms | most time with two holders | 0.001 ms: topdog default, 20 runs"}},
		{"somebody claims while the switch restarts", last("t", SwitchOff, func(r *Run) { r.Two, r.Moves = us, 1 }), []string{
			"MISSED | switch-5s, H = 100 ms | moves of the address | 1: topdog default, most of 20 runs",
			"MISSED | switch-5s, H = 100 ms | most time with two holders | 0.001 ms: topdog default, 20 runs"}},
		{"slow to agree when the switch forwards", last("t", SwitchBackLong, func(r *Run) { r.Outage += us }), []string{
			"MISSED | switch-35s-back, H = 100 ms | longest time to one holder | 500.001 ms: topdog default, 20 runs"}},
		{"open pages make it slower", slower("t", PagesPulled, us), []string{
			"MISSED | cable-pulled-pages, H = 100 ms | median outage, beside that without pages | 85.001 ms, and 75 ms without: topdog default, 20 runs"}},
		{"one page is not right for long", last("t", PagesPulled, func(r *Run) { r.Pages += us }), []string{
			"MISSED | cable-pulled-pages, H = 100 ms | longest time until all pages are right | 1500.001 ms: topdog default, 20 runs"}},
		{"a service that is missed for long", slower("t", ServiceKilled, us), []string{
			"MISSED | service-killed, H = 100 ms | median outage | 15.001 ms: topdog default, 20 runs"}},
		{"two of 20 services are missed for long", func(r *Report) {
			last("t", ServiceKilled, func(r *Run) { r.Outage = 31 * ms })(r)
			runs(r, "t", ServiceKilled)[3].Outage = 31 * ms
		}, []string{"MISSED | service-killed, H = 100 ms | p95 of the outage | 31 ms: topdog default, 20 runs"}},
		{"a frozen service is found late once", last("t", ServiceFrozen, func(r *Run) { r.Outage += us }), []string{
			"MISSED | service-frozen, H = 100 ms | longest outage | 450.001 ms: topdog default, 20 runs"}},
		{"a service drags the address along", last("t", ServiceRestartsPreempt, func(r *Run) { r.Moves = 3 }), []string{
			"MISSED | service-restarts-preempt, H = 100 ms | moves of the address | 3: topdog default, most of 20 runs"}},
		{"nobody holds when no service runs", last("t", ServiceNowhere, func(r *Run) { r.None = us }), []string{
			"MISSED | service-nowhere, H = 100 ms | most time without a holder | 0.001 ms: topdog default, 20 runs"}},
		{"the first that answers is not noticed", last("t", ServiceFirst, func(r *Run) { r.Censored = true }), []string{
			"MISSED | service-first, H = 100 ms | the address goes to the first that answers | in 19 of 20 runs: topdog default"}},
		{"a reboot is noticed", last("t", LeaderReboots, func(r *Run) { r.Outage += us }), []string{
			"MISSED | leader-reboots, H = 100 ms | longest outage | 5.001 ms: topdog default, 20 runs"}},
		{"a follower's reboot is noticed", last("t", FollowerReboots, func(r *Run) { r.Outage += us }), []string{
			"MISSED | follower-reboots, H = 100 ms | longest outage | 0.001 ms: topdog default, 20 runs"}},
		{"hooks are late", func(r *Report) {
			for i := range runs(r, "t", Hook) {
				runs(r, "t", Hook)[i].Hook += us
			}
		}, []string{"MISSED | hook, H = 100 ms | p95 of the time to the script | 20.001 ms: topdog default, 20 runs"}},
		{"checks cost much", func(r *Report) { r.Checked[0].Follower.Processor = 0.014 }, []string{
			"MISSED | five checks a second, H = 100 ms | processor of a board's daemon and checker | 1.4 %: topdog default; keepalived default 7 %, x 5.0"}},
		{"moved twice at 10 ms, and nothing was lost", func(r *Report) { r.Lossy[1].Moves = 2 }, []string{
			"MISSED | no loss, nobody fails, H = 10 ms | moves in ten minutes | 2 in 10 min: topdog 10 ms"}},
		{"nobody looked at 10 ms", func(r *Report) { r.Lossy[1].System = "t" }, []string{
			"not measured | no loss, nobody fails, H = 10 ms | moves in ten minutes | topdog was not measured at this loss"}},
		{"not announced once", last("t", BothFrozen, func(r *Run) { r.Announced = 0 }), []string{
			"MISSED | both-frozen | the new leader defends the address by announcing | heard at least 0 times in each of 20 runs"}},
		{"a gap when it heals", last("t", PathHealed, func(r *Run) { r.Outage += us }), []string{
			"MISSED | path-healed | longest outage | 5.001 ms: topdog default, 20 runs"}},
		{"two holders when it heals", last("t", PathHealed, func(r *Run) { r.Two += us }), []string{
			"MISSED | path-healed | most time with two holders | 10.001 ms: topdog default, 20 runs"}},
		{"one move too many", last("t", CableFlaps, func(r *Run) { r.Moves = 2 }), []string{
			"MISSED | cable-flaps | moves of the address | 2: topdog default, most of 20 runs"}},
		{"no flaps", drop("t", CableFlaps, ""), []string{"not measured | cable-flaps | moves of the address | topdog 10 ms: no runs"}},
		{"slow to start once", func(r *Report) { r.Starts[0].Took[1] = 501 * ms }, []string{
			"MISSED | cold start | longest time to the first answer | 501 ms: topdog default, 2 runs"}},
		{"no start", func(r *Report) { r.Starts[0].Took = nil }, []string{
			"not measured | cold start | longest time to the first answer | no cold start of topdog in this report"}},
		{"moved once", func(r *Report) { r.Lossy[2].Moves = 1 }, []string{
			"MISSED | 40 % loss, nobody fails | moves in ten minutes | 1 in 10 min: topdog default (keepalived 100 ms 9 in 10 min)"}},
		{"moved once in a minute", func(r *Report) { r.Lossy[0].Moves, r.Lossy[0].For = 1, time.Minute }, []string{
			"MISSED | 20 % loss, nobody fails | moves in ten minutes | 1 in 1 min: topdog default"}},
		{"watched for too short a time", func(r *Report) { r.Lossy[0].For-- }, []string{
			"not measured | 20 % loss, nobody fails | moves in ten minutes | 0 in 600 s: topdog default"}},
		{"no leader dies under loss", func(r *Report) { r.Lossy[2].Runs = nil }, []string{
			"not measured | 40 % loss, the leader dies | median outage | no leader of topdog died at this loss"}},
		{"slow under loss", func(r *Report) { r.Lossy[2].Runs = evenly(3, 501*ms, 501*ms) }, []string{
			"MISSED | 40 % loss, the leader dies | median outage | 501 ms: topdog default, 3 runs"}},
		{"one packet too many", func(r *Report) { r.Calm[1].Packets++ }, []string{
			"MISSED | steady state, 10 boards | packets a second | 20.1 of 20: topdog default"}},
		{"no 50 boards", func(r *Report) { r.Calm = r.Calm[:2] }, []string{
			"not measured | steady state, 50 boards | packets a second | topdog was not measured with so many boards"}},
		{"no packet at all", func(r *Report) { r.Calm[0].Packets = 0 }, []string{
			"not measured | steady state, 3 boards | packets a second | topdog was not measured with so many boards"}},
		{"a busy follower", func(r *Report) { r.Calm[1].Follower.Processor += 0.0001 }, []string{
			"MISSED | steady state, H = 100 ms | processor of a follower | 0.31 %: topdog default, 10 boards"}},
		{"a busy leader", func(r *Report) { r.Calm[2].Leader.Processor += 0.0001 }, []string{
			"MISSED | steady state, H = 100 ms | processor of the leader | 0.51 %: topdog default, 50 boards"}},
		{"a big leader", func(r *Report) { r.Calm[2].Leader.RSS = 15_100_000 }, []string{
			"MISSED | steady state | RSS of a board's processes together | 15.1 MB (PSS 9.0 MB): topdog default, 50 boards"}},
		{"nobody looked at the processes", func(r *Report) {
			for i := range r.Calm {
				r.Calm[i].Leader, r.Calm[i].Follower = Cost{}, Cost{}
			}
		}, []string{
			"not measured | steady state, H = 100 ms | processor of a follower | topdog's processes were not measured",
			"not measured | steady state, H = 100 ms | processor of the leader | topdog's processes were not measured",
			"not measured | steady state | RSS of a board's processes together | topdog's processes were not measured"}},
		{"a big binary", func(r *Report) { r.Binary += 100_000 }, []string{"MISSED | arm64 binary, stripped | size | 11.1 MB"}},
		{"no binary", func(r *Report) { r.Binary = 0 }, []string{"not measured | arm64 binary, stripped | size | nobody has built it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := best()
			c.change(r)
			assert.Equal(t, c.want, verdicts(r), "what does not hold")
		})
	}
}

// TestDisturbed lets this machine stand still while something is measured.
func TestDisturbed(t *testing.T) {
	at := func(r *Report, system, event string, by, late time.Duration) {
		for i, f := range r.Failures {
			if f.System == system && f.Event == event {
				for k := range f.Runs {
					r.Failures[i].Runs[k].Outage += by
					r.Failures[i].Runs[k].Late = late
				}
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*Report)
		want   []string
		steps  []Step
	}{
		{"missed by twice as much as it stood still", func(r *Report) { at(r, "t", Terminated, 4*ms, 2*ms) }, []string{
			"disturbed | sigterm | median outage | 7 ms: topdog default, 20 runs; this machine stood still for up to 2.0 ms"},
			[]Step{{"t", Terminated}}},
		{"missed by more", func(r *Report) { at(r, "t", Terminated, 4*ms+us, 2*ms) }, []string{
			"MISSED | sigterm | median outage | 7.001 ms: topdog default, 20 runs"}, nil},
		{"not worth a word", func(r *Report) { at(r, "t", Terminated, us, time.Millisecond) }, []string{
			"MISSED | sigterm | median outage | 3.001 ms: topdog default, 20 runs"}, nil},
		{"held all the same", func(r *Report) { at(r, "t", Terminated, 0, 50*ms) }, nil, nil},
		{"it stood still in one run, and the median is of others", func(r *Report) {
			at(r, "t", Terminated, us, 0)
			r.Failures[10].Runs[3].Late = 50 * ms
		}, []string{"MISSED | sigterm | median outage | 3.001 ms: topdog default, 20 runs"}, nil},
		{"two holders in one run in which it stood still", func(r *Report) {
			f, _ := r.failure("t", PathHealed)
			f.Runs[7].Two, f.Runs[7].Late = 15*ms, 3*ms
		}, []string{"disturbed | path-healed | most time with two holders | 15 ms: topdog default, 20 runs; this machine stood still for up to 3.0 ms"},
			[]Step{{"t", PathHealed}}},
		{"an outage that did not end", func(r *Report) {
			f, _ := r.failure("t", PathHealed)
			f.Runs[7].Late, f.Runs[7].Censored = 50*ms, true
		}, []string{"MISSED | path-healed | longest outage | more than 5 ms: topdog default, 20 runs"}, nil},
		{"one setting is disturbed, and another misses", func(r *Report) {
			r.Failures = append(r.Failures, Failure{System: "t10", Event: Terminated, Runs: evenly(20, 4*ms, 4*ms)})
			at(r, "t", Terminated, 5*ms, 50*ms)
		}, []string{"MISSED | sigterm | median outage | 4 ms: topdog 10 ms, 20 runs"}, nil},
		{"a peer is not slower by so much", func(r *Report) { at(r, "t", CablePulled, 5*ms, 3*ms) }, []string{
			"disturbed | cable-pulled, H = 100 ms | median outage | 80 ms: topdog default, 20 runs; this machine stood still for up to 3.0 ms",
			"disturbed | cable-pulled, H = 100 ms | keepalived at the same interval takes | x 3.8: keepalived 100 ms 300 ms, topdog default 80 ms; this machine stood still for up to 3.0 ms",
			"disturbed | cable-pulled, H = 100 ms | keepalived takes, both at defaults | x 28: keepalived default 2250 ms, topdog default 80 ms; this machine stood still for up to 3.0 ms",
			"disturbed | cable-pulled, H = 100 ms | ucarp takes, both at defaults | x 28: ucarp default 2250 ms, topdog default 80 ms; this machine stood still for up to 3.0 ms"},
			[]Step{{"t", CablePulled}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := best()
			c.change(r)
			assert.Equal(t, c.want, verdicts(r), "what does not hold")
			assert.Equal(t, c.steps, DisturbedSteps(r), "what is to be measured again")
			s := r.goalSection()
			if note := s.notes[0]; strings.Contains(note, "disturbed") != (c.steps != nil) {
				t.Errorf("the goals are counted as %q", note)
			}
		})
	}
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
