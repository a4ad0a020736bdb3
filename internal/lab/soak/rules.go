package soak

import (
	"context"
	"fmt"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// The rules of docs/spec that the traces of the boards can show to be broken. A trace has neither the lease
// nor the sequence numbers, and it leaves out what is usual, so each rule asks only about one timeline in which
// nothing was left out.

// shortestPromise is the shortest time for which a GRANT or SUPPORT binds a voter: H and the grace at first.
var shortestPromise = election.DefaultInterval + election.DefaultGrace(election.DefaultInterval)

// breaches returns how a board has broken the rules, according to its trace.
func breaches(t console.Trace, strict bool) (found []string) {
	found = termsGrow(t)
	for _, c := range t.Changes {
		if c.Omitted > 0 {
			continue
		}
		found = append(found, releasesFirst(t.Board, c)...)
		if strict {
			found = append(found, electedByVotes(t.Board, c)...)
			found = append(found, onePromise(t.Board, c)...)
		}
	}
	return found
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
	for _, t := range types {
		if s.Message == t.String() {
			return true
		}
	}
	return false
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

// electedByVotes: a candidate asks the voters, and leads when at least one other of the three has granted its vote.
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
			// The other voter is enough, since a candidate votes for itself when it may.
			if candidate && len(grants)+1 < numBoards/2+1 {
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
		to    string // who has the promise
		since int64  // not later than when it was made
	)
	for i, s := range c.Steps {
		switch {
		case heard(s, wire.TypeResign, wire.TypeVote) && s.Board == to:
			to = "" // RESIGN or a withdrawal; a trace does not tell that from a request
		case sent(s, wire.TypeGrant, wire.TypeSupport):
			left := shortestPromise - time.Duration(s.AtNs-since)
			if to != "" && to != s.Board && left > 0 {
				found = append(found, breach(board, s, "sends %s to %s, and is bound to %s for %v", s.Message, s.Board, to, left))
			}
			// The promise was made before it was sent, and after what came before.
			if to, since = s.Board, s.AtNs; i > 0 {
				since = c.Steps[i-1].AtNs
			}
		}
	}
	return found
}

// traceTimeout is for a board that does not answer.
const traceTimeout = 2 * time.Second

// checkRules holds what the boards have traced against the rules. What a board has done is found once.
func (s *session) checkRules(v *verdict) {
	for _, b := range s.stage.boards {
		ctx, cancel := context.WithTimeout(context.Background(), traceTimeout)
		t, err := b.Client().Trace(ctx)
		cancel()
		if err != nil {
			b.Log.Note("trace: %v", err)
			continue
		}
		for _, text := range breaches(t, s.strict) {
			if !s.breaches[text] {
				s.breaches[text] = true
				v.fail("%s", text)
			}
		}
	}
}
