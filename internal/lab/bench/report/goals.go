package report

import (
	"fmt"
	"time"
)

const (
	topdog     = "topdog"
	keepalived = "keepalived"
	ucarp      = "ucarp"
)

// The limits that several goals set.
const (
	fast        = 100 * time.Millisecond // the interval that most goals are about
	faster      = 10 * time.Millisecond
	lossWatch   = 10 * time.Minute // how long nobody must move under loss
	kernelHold  = time.Second      // the lifetime of the address: docs/address.md
	kernelSweep = 1250 * time.Millisecond
)

// goal is one thing that must hold of topdog. Of several settings the worst counts.
type goal struct {
	about  string // what happens: the key of an event, or words
	of     settings
	text   string // what is looked at
	figure figure
	limit  limit
}

// goals are what topdog is to be, in the order in which people read them.
var goals = []goal{
	// A leader of which nothing is heard any more.
	{CablePulled, at100ms, "median outage", percentile(outage, 50), atMost(75 * time.Millisecond)},
	{CablePulled, at100ms, "p95 of the outage", percentile(outage, 95), atMost(130 * time.Millisecond)},
	{CablePulled, at100ms, "keepalived at the same interval takes", timesAsLong(keepalived), atLeastTimes(4)},
	{CablePulled, byDefault, "keepalived takes, both at defaults", timesAsLong(keepalived), atLeastTimes(30)},
	{CablePulled, byDefault, "ucarp takes, both at defaults", timesAsLong(ucarp), atLeastTimes(30)},
	{FramesDropped, at100ms, "median outage", percentile(outage, 50), atMost(75 * time.Millisecond)},
	{FramesDropped, at100ms, "p95 of the outage", percentile(outage, 95), atMost(130 * time.Millisecond)},
	{FramesDropped, at100ms, "keepalived at the same interval takes", timesAsLong(keepalived), atLeastTimes(4)},
	{FramesDropped, byDefault, "keepalived takes, both at defaults", timesAsLong(keepalived), atLeastTimes(30)},
	{FramesDropped, byDefault, "ucarp takes, both at defaults", timesAsLong(ucarp), atLeastTimes(30)},
	{CablePulled, at10ms, "median outage", percentile(outage, 50), atMost(15 * time.Millisecond)},
	{FramesDropped, at10ms, "median outage", percentile(outage, 50), atMost(15 * time.Millisecond)},

	// A leader that goes on purpose.
	{Terminated, inAll, "median outage", percentile(outage, 50), atMost(3 * time.Millisecond)},
	{Terminated, inAll, "most time with two holders", percentile(two, 100), atMost(0)},
	{Resigned, inAll, "median outage", percentile(outage, 50), atMost(3 * time.Millisecond)},
	{Resigned, inAll, "most time with two holders", percentile(two, 100), atMost(0)},
	{Preempted, inAll, "median outage", percentile(outage, 50), atMost(3 * time.Millisecond)},
	{Preempted, inAll, "most time with two holders", percentile(two, 100), atMost(0)},

	// A leader whose processes end or freeze.
	{Killed, inAll, "median outage", percentile(outage, 50), atMost(20 * time.Millisecond)},
	{Killed, inAll, "most time with two holders", percentile(two, 100), atMost(5 * time.Millisecond)},
	{Stopped, at100ms, "median outage, as a pulled cable", percentile(outage, 50), atMost(75 * time.Millisecond)},
	{Stopped, at100ms, "p95 of the outage, as a pulled cable", percentile(outage, 95), atMost(130 * time.Millisecond)},
	{Stopped, inAll, "most time with two holders", percentile(two, 100), atMost(5 * time.Millisecond)},
	{BothFrozen, inAll, "most time with two holders (the kernel's lifetime, and its sweep)", percentile(two, 100), atMost(kernelHold + kernelSweep)},
	{BothFrozen, at100ms, "p95 of the outage, as a pulled cable", percentile(outage, 95), atMost(130 * time.Millisecond)},
	{BothFrozen, inAll, "most time for which two boards answer", ifProbed(percentile(twoAnswer, 100)), atMost(0)},
	{BothFrozen, inAll, "the new leader defends the address by announcing", unannounced, limit{words: "in every run"}},

	// What comes back.
	{PathHealed, inAll, "longest outage", percentile(outage, 100), atMost(5 * time.Millisecond)},
	{PathHealed, inAll, "most time with two holders", percentile(two, 100), atMost(10 * time.Millisecond)},
	{CableFlaps, inAll, "moves of the address", mostMoves, atMostMoves(1)},
	{"cold start", inAll, "longest time to the first answer", longestStart, atMost(500 * time.Millisecond)},

	// Nobody is dead, or a board is cut off and does not know it.
	{Bursts, at100ms, "moves of the address", mostMoves, atMostMoves(3)},
	{BurstsAgain, at100ms, "moves of the address", mostMoves, atMostMoves(0)},
	{Pauses, at100ms, "moves of the address", mostMoves, atMostMoves(1)},
	{Deaf, at100ms, "longest outage", percentile(outage, 100), atMost(1500 * time.Millisecond)},
	{Deaf, at100ms, "most time with two holders", percentile(two, 100), atMost(50 * time.Millisecond)},
	{Mute, at100ms, "median outage, as a pulled cable", percentile(outage, 50), atMost(75 * time.Millisecond)},
	{Mute, at100ms, "most time with two holders", percentile(two, 100), atMost(50 * time.Millisecond)},
	{CutShort, at100ms, "moves of the address", mostMoves, atMostMoves(1)},
	{CutShort, at100ms, "most time with two holders", percentile(two, 100), atMost(5 * time.Millisecond)},
	{CutLong, at100ms, "moves of the address", mostMoves, atMostMoves(1)},
	{CutLong, at100ms, "most time with two holders", percentile(two, 100), atMost(5 * time.Millisecond)},
	{MulticastDies, at100ms, "moves of the address", mostMoves, atMostMoves(0)},
	{MulticastDies, at100ms, "most time with two holders", percentile(two, 100), atMost(0)},
	{MulticastDead, at100ms, "moves of the address", mostMoves, atMostMoves(0)},
	{MulticastDead, at100ms, "most time with two holders", percentile(two, 100), atMost(0)},
	{SwitchOff, at100ms, "moves of the address", mostMoves, atMostMoves(0)},
	{SwitchOff, at100ms, "most time with two holders", percentile(two, 100), atMost(0)},
	{SwitchBack, at100ms, "longest time to one holder", percentile(outage, 100), atMost(500 * time.Millisecond)},
	{SwitchBack, at100ms, "most time with two holders", percentile(two, 100), atMost(0)},
	{SwitchOffLong, at100ms, "moves of the address", mostMoves, atMostMoves(0)},
	{SwitchOffLong, at100ms, "most time with two holders", percentile(two, 100), atMost(0)},
	{SwitchBackLong, at100ms, "longest time to one holder", percentile(outage, 100), atMost(500 * time.Millisecond)},
	{SwitchBackLong, at100ms, "most time with two holders", percentile(two, 100), atMost(0)},
	{PagesPulled, at100ms, "p95 of the outage", percentile(outage, 95), atMost(130 * time.Millisecond)},
	{PagesPulled, at100ms, "median outage, beside that without pages", medianBeside(CablePulled), limit{most: float64(10 * time.Millisecond), words: "at most 10 ms more"}},
	{PagesPulled, at100ms, "longest time until all pages are right", percentile(pages, 100), atMost(1500 * time.Millisecond)},

	// The service fails, and the board does not. All but a crash may be seen by asking it only.
	{ServiceKilled, at100ms, "median outage", percentile(outage, 50), atMost(15 * time.Millisecond)},
	{ServiceKilled, at100ms, "p95 of the outage", percentile(outage, 95), atMost(30 * time.Millisecond)},
	{ServiceFrozen, at100ms, "longest outage", percentile(outage, 100), atMost(450 * time.Millisecond)},
	{ServiceRestarts, at100ms, "moves of the address", mostMoves, atMostMoves(2)},
	{ServiceRestartsPreempt, at100ms, "moves of the address", mostMoves, atMostMoves(2)},
	{ServiceNowhere, at100ms, "moves of the address", mostMoves, atMostMoves(0)},
	{ServiceNowhere, at100ms, "most time without a holder", percentile(none, 100), atMost(0)},
	{ServiceFirst, at100ms, "the address goes to the first that answers", unended, limit{words: "in every run"}},
	{LeaderReboots, at100ms, "longest outage", percentile(outage, 100), atMost(5 * time.Millisecond)},
	{LeaderRebootsPreempt, at100ms, "longest outage", percentile(outage, 100), atMost(5 * time.Millisecond)},
	{FollowerReboots, at100ms, "longest outage", percentile(outage, 100), atMost(0)},
	{Hook, at100ms, "p95 of the time to the script", percentile(hook, 95), atMost(20 * time.Millisecond)},
	{"five checks a second", at100ms, "processor of a board's daemon and checker", costOfChecks, limit{most: 0.01, words: "at most 1 % of a core"}},

	// Loss.
	{"no loss, nobody fails", at10ms, "moves in ten minutes", movesForNothing(0), atMostMoves(1)},
	{"20 % loss, nobody fails", inAll, "moves in ten minutes", movesForNothing(0.2), atMostMoves(0)},
	{"40 % loss, nobody fails", inAll, "moves in ten minutes", movesForNothing(0.4), atMostMoves(0)},
	{"40 % loss, the leader dies", inAll, "median outage", outageUnderLoss(0.4), atMost(500 * time.Millisecond)},

	// What topdog costs while nothing happens. Ten packets a second are the HELLOs of all followers together.
	{"steady state, 3 boards", inAll, "packets a second", packetsBesideHeartbeats(3), limit{most: 10, words: "at most 1/H + 10"}},
	{"steady state, 10 boards", inAll, "packets a second", packetsBesideHeartbeats(10), limit{most: 10, words: "at most 1/H + 10"}},
	{"steady state, 50 boards", inAll, "packets a second", packetsBesideHeartbeats(50), limit{most: 10, words: "at most 1/H + 10"}},
	{"steady state", at100ms, "processor of a follower", cost(followerProcessor), limit{most: 0.003, words: "at most 0.3 % of a core"}},
	{"steady state", at100ms, "processor of the leader", cost(leaderProcessor), limit{most: 0.005, words: "at most 0.5 % of a core"}},
	{"steady state", inAll, "RSS of a board's processes together", cost(memoryOfBoard), limit{most: 15e6, words: "at most 15 MB"}},
	{"arm64 binary, stripped", inAll, "size", binarySize, limit{most: 11e6, words: "at most 11 MB"}},
}

// settings are those of topdog, or of a peer that is set beside it, that a goal is about.
type settings struct {
	interval time.Duration // or 0 for any
	unset    bool          // only those that were told nothing
	words    string
}

var (
	inAll     = settings{}
	at100ms   = settings{interval: fast, words: ", H = 100 ms"}
	at10ms    = settings{interval: faster, words: ", H = 10 ms"}
	byDefault = settings{unset: true, words: ", H = 100 ms"} // topdog's default interval
)

// include reports whether a system has such a setting.
func (s settings) include(y System) bool {
	return (s.interval == 0 || y.Interval == s.interval) && (!s.unset || y.unset())
}

// systems are those of a program.
func (s settings) systems(r *Report, program string) []System {
	var list []System
	for _, y := range r.Systems {
		if y.Program == program && s.include(y) {
			list = append(list, y)
		}
	}
	return list
}

// limit is what a figure must not be above; a factor must not be below it.
type limit struct {
	most  float64
	least float64 // of a factor, instead of most
	words string
}

func (l limit) allows(v float64) bool {
	if l.least > 0 {
		return v >= l.least
	}
	return v <= l.most
}

func atMost(t time.Duration) limit {
	if t == 0 {
		return limit{words: "none"}
	}
	return limit{most: float64(t), words: "at most " + span(t)}
}

func atMostMoves(n int) limit {
	if n == 0 {
		return limit{words: "none"}
	}
	return limit{most: float64(n), words: fmt.Sprintf("at most %d", n)}
}

func atLeastTimes(factor float64) limit {
	return limit{least: factor, words: fmt.Sprintf("at least %g times as long", factor)}
}
