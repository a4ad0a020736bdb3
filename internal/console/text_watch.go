package console

import "fmt"

// The states of a watch (Watch.State) for which there are words: the identifiers of election.WatchState, and those of
// netio.WatchState for a watch that does not run as it should.
const (
	watchRuns     = "runs"
	watchOff      = "off"
	watchVotes    = "votes"
	watchPaused   = "paused"
	watchMissed   = "missed"
	watchNoAnswer = "no_answer"
	watchLate     = "late"
	watchLossy    = "lossy"
)

// watch says how the leader's kernel is asked for the address, what that costs and what it brings. Only the board that comes
// next asks, so it is the only one that has this line.
func (s *Status) watch() string {
	if s.Heir == "" || s.Heir != s.Board.ID {
		return ""
	}
	const instead = "so only a heartbeat that fails to come shows that a leader is dead"
	w, leader := &s.Watch, s.shortName(s.Leader, s.LeaderName)
	switch w.State {
	case watchRuns:
		if w.EveryNs == 0 {
			return fmt.Sprintf("begins to ask %s for the address", leader)
		}
		return fmt.Sprintf("asks %s for the address every %s, and has an answer %s: if it dies, it is replaced after %s on average, and not after %s. "+
			"That takes up to %.0f small packets a second", leader, ns(w.EveryNs), afterNs(w.RoundTripNs), span(s.replacedOnAverageMs()),
			span(s.HeartbeatMs/2+float64(s.Patience.GraceNs)/1e6), 2e9/float64(w.EveryNs))
	case watchMissed:
		return fmt.Sprintf("the address of %s does not answer", leader)
	case watchPaused:
		return fmt.Sprintf("pauses, since the address did not answer although %s was alive, %s", leader, instead)
	case watchNoAnswer:
		return fmt.Sprintf("none: %s does not answer ARP requests for the address, %s", leader, instead)
	case watchLate:
		return fmt.Sprintf("none: an answer takes %s, %s", ns(w.RoundTripNs), instead)
	case watchLossy:
		return fmt.Sprintf("none: %.0f %% of the answers are lost, %s", w.LostPercent, instead)
	case watchVotes:
		return "none: the voters have promised their support until after the next heartbeat, so it would gain nothing"
	case watchOff:
		if s.Algorithm != "heir" || s.Detector.Kind != "ask" { // nobody has switched it off
			return "none: only the algorithm heir with the detector ask has one"
		}
		return "off, " + instead
	}
	return ""
}

// ns is a time in nanoseconds for people.
func ns(d int64) string { return span(float64(d) / 1e6) }

// afterNs says after which time something comes. Times below 0.1 ms would read as 0 ms.
func afterNs(d int64) string {
	if d < 100_000 {
		return "within 0.1" + string(joint) + "ms"
	}
	return "after " + ns(d)
}

// replacedOnAverageMs is how long after its death a leader is replaced, on average.
func (s *Status) replacedOnAverageMs() float64 {
	every := s.HeartbeatMs
	if s.Watch.State == watchRuns && s.Watch.EveryNs > 0 {
		every = float64(s.Watch.EveryNs) / 1e6
	}
	return every/2 + float64(s.Patience.GraceNs)/1e6
}
