package soak

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"topdog/election"
	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/internal/console"
	"topdog/wire"
)

// The rules of docs/spec that the traces of the boards can show to be broken. A trace has neither the lease
// nor the sequence numbers, and it leaves out what is usual, so each rule asks only about one timeline in which
// nothing was left out.

// shortestPromise is the shortest time for which a GRANT or SUPPORT binds a voter: H and the grace at first.
var shortestPromise = election.DefaultInterval + silence.DefaultGrace(election.DefaultInterval)

// longestPromise is the longest time for which it does, with all that a group may learn.
var longestPromise = lease.PromiseMax(election.DefaultInterval, silence.DefaultPatience(election.DefaultInterval))

// breachesOfAll returns how boards have broken the rules, according to their traces. All have the clock of this machine.
func breachesOfAll(traces []console.Trace, strict bool) (found []string) {
	for _, t := range traces {
		found = append(found, breaches(t, strict)...)
	}
	if strict {
		found = append(found, oneLeader(traces)...)
	}
	return found
}

// breaches returns how a board has broken the rules, according to its trace.
func breaches(t console.Trace, strict bool) (found []string) {
	found = termsGrow(t)
	for _, c := range t.Changes {
		if c.Omitted > 0 {
			continue
		}
		c.Steps = asHandled(c.Steps)
		found = append(found, releasesFirst(t.Board, c)...)
		if strict {
			found = append(found, electedByVotes(t.Board, c)...)
			found = append(found, onePromise(t.Board, c)...)
		}
	}
	return found
}

// asHandled returns steps in the order in which the daemon came to them. A trace has messages where they were
// read from the socket.
func asHandled(steps []console.TraceStep) []console.TraceStep {
	steps = slices.Clone(steps)
	for i := range steps {
		if at := steps[i].HandledNs; at != nil {
			steps[i].AtNs = *at
		}
	}
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].AtNs < steps[j].AtNs })
	return steps
}

// breach says which step breaks a rule.
func breach(board string, s console.TraceStep, format string, args ...any) string {
	return fmt.Sprintf("board %s, at %d ns: %s", board, s.AtNs, fmt.Sprintf(format, args...))
}

func leads(s console.TraceStep) bool {
	return s.Step == console.StepRole && s.Role == election.Leader.String()
}

func sent(s console.TraceStep, types ...wire.Type) bool {
	return s.Step == console.StepSent && isOf(s, types)
}

func heard(s console.TraceStep, types ...wire.Type) bool {
	return s.Step == console.StepHeard && isOf(s, types)
}

func isOf(s console.TraceStep, types []wire.Type) bool {
	return slices.ContainsFunc(types, func(t wire.Type) bool { return s.Message == t.String() })
}

// termsGrow: each claim of a board has a higher term than its claim before.
func termsGrow(t console.Trace) (found []string) {
	var last uint32
	for i := len(t.Changes) - 1; i >= 0; i-- { // the newest is first
		for _, s := range t.Changes[i].Steps {
			if !leads(s) {
				continue
			}
			if s.Term <= last {
				found = append(found, breach(t.Board, s, "leads in term %d, and has led in term %d before", s.Term, last))
			}
			last = s.Term
		}
	}
	return found
}

// releasesFirst: a leader releases the address before it says that it does not lead.
func releasesFirst(board string, c console.TracedChange) (found []string) {
	holds := false
	for _, s := range c.Steps {
		switch {
		case s.Step == console.StepAcquireEnded && !s.Failed:
			holds = true
		case s.Step == console.StepReleaseEnded:
			holds = false
		case s.Step == console.StepRole && !leads(s) && holds:
			found = append(found, breach(board, s, "becomes %s, and still has the address", s.Role))
		case sent(s, wire.TypeResign) && holds:
			found = append(found, breach(board, s, "sends RESIGN, and still has the address"))
		}
	}
	return found
}

// electedByVotes: a candidate leads only after at least one other of the three voters has granted its vote.
func electedByVotes(board string, c console.TracedChange) (found []string) {
	candidate, grants := false, map[string]bool{}
	for _, s := range c.Steps {
		switch {
		case s.Step == console.StepRole && s.Role == election.Candidate.String():
			candidate = true
			clear(grants)
		case heard(s, wire.TypeGrant) && s.Board != board:
			grants[s.Board] = true
		case leads(s):
			// Its own vote is not in the trace, so two of three voters are one GRANT.
			if candidate && len(grants) == 0 {
				found = append(found, breach(board, s, "leads in term %d with no other vote than its own", s.Term))
			}
			candidate = false
		}
	}
	return found
}

// onePromise: a voter that has promised one board its support promises it to no other while that lasts, unless
// the first one has said something that may release it.
func onePromise(board string, c console.TracedChange) (found []string) {
	var (
		to       string // who has the promise
		since    int64  // not later than when it was made
		mayEnd   int64  // it is over by then, unless it is made again
		released bool   // it may have been
		granted  bool   // it was made or repeated by a GRANT last
	)
	for i, s := range c.Steps {
		switch {
		case heard(s, wire.TypeResign, wire.TypeVote) && s.Board == to:
			released = true // RESIGN or a withdrawal; a trace does not tell that from a request
		case sent(s, wire.TypeGrant, wire.TypeSupport):
			left := shortestPromise - time.Duration(s.AtNs-since)
			if to != "" && to != s.Board && !released && left > 0 {
				found = append(found, breach(board, s, "sends %s to %s, and is bound to %s for %v", s.Message, s.Board, to, left))
			}
			// The promise was made before it was sent, and after what came before.
			made := s.AtNs
			if i > 0 {
				made = c.Steps[i-1].AtNs
			}
			// A GRANT to a candidate that asks again while it has the promise need not extend that: others may wait for
			// it (election, grantAgain).
			grants := sent(s, wire.TypeGrant)
			if again := to == s.Board && granted && grants && made < mayEnd; !again {
				since = made
			}
			to, mayEnd, released, granted = s.Board, s.AtNs+int64(longestPromise), false, grants
		}
	}
	return found
}

// reign is how a board came to lead, and when it ceased to. All times are those of the decisions.
type reign struct {
	board string
	step  console.TraceStep
	asked int64 // since when it is a candidate
	led   int64
	ended bool
	end   int64
}

// reigns are those of a trace whose candidacy is in the same timeline.
func reigns(t console.Trace) (found []reign) {
	for _, c := range t.Changes {
		if c.Omitted > 0 {
			continue
		}
		var now, asked int64
		leading := -1
		for _, s := range asHandled(c.Steps) {
			switch {
			case s.Step == console.StepHeard || s.Step == console.StepTimer || s.Step == console.StepAsked:
				now = s.AtNs // what follows was decided then
			case leads(s) && asked > 0:
				leading = len(found)
				found = append(found, reign{board: t.Board, step: s, asked: asked, led: now})
				asked = 0
			case s.Step == console.StepRole && !leads(s):
				if leading >= 0 && !found[leading].ended {
					found[leading].ended, found[leading].end = true, now
				}
				if s.Role == election.Candidate.String() {
					asked = now
				}
			}
		}
	}
	return found
}

// oneLeader: two majorities have a voter in common. So nobody comes to lead before the promises are over to the one
// that leads already, unless that one has stepped down. Promises to it are not older than its candidacy.
func oneLeader(traces []console.Trace) (found []string) {
	var all []reign
	for _, t := range traces {
		all = append(all, reigns(t)...)
	}
	for _, former := range all {
		for _, r := range all {
			bound := former.asked + int64(shortestPromise)
			steppedDown := former.ended && former.end <= r.led
			if r.board != former.board && r.led > former.led && r.led < bound && !steppedDown {
				found = append(found, breach(r.board, r.step, "leads, and the votes for %s are bound for %v",
					former.board, time.Duration(bound-r.led)))
			}
		}
	}
	return found
}

// traceTimeout is for a board that does not answer.
const traceTimeout = 2 * time.Second

// checkRules holds what the boards have traced against the rules. What a board has done is found once.
func (s *session) checkRules(v *verdict) {
	var traces []console.Trace
	for _, b := range s.Boards {
		ctx, cancel := context.WithTimeout(context.Background(), traceTimeout)
		t, err := b.Client().Trace(ctx)
		cancel()
		if err != nil {
			b.Log.Note("trace: %v", err)
			continue
		}
		traces = append(traces, t)
	}
	for _, text := range breachesOfAll(traces, s.strict) {
		if !s.breaches[text] {
			s.breaches[text] = true
			v.fail("%s", text)
		}
	}
}
