package console

import "errors"

// verdict is the answer to the question that `topdog status` is asked: who has the address?
type verdict int

const (
	held      verdict = iota // a live board has it
	suspected                // a board has it whose heartbeat is late; it is being asked
	silent                   // a board had it that counts as dead
	contested                // several live boards say that they lead
	nobody                   // nobody has it
	unknown                  // this board cannot know
)

func (s *Status) verdict() verdict {
	if len(s.leaders()) > 1 {
		return contested
	}
	holder := s.board(s.HeldBy)
	switch {
	case s.Role == RoleIsolated || s.PortSilent:
		return unknown
	case s.HeldBy == "" && (s.Role == RoleListener || s.Role == RoleBarred):
		return unknown // it has only begun to listen, or others do not tell it
	case s.HeldBy == "" && s.MajorityUnheard:
		return unknown // the voters that it misses may have a leader
	case s.HeldBy == "", s.HeldBy == s.Board.ID && (!s.Holding || s.MajorityUnheard):
		return nobody
	case s.HeldBy == s.Board.ID:
		return held
	case holder == nil || !holder.live():
		return silent
	case s.Role == RoleCandidate:
		return suspected
	default:
		return held
	}
}

// Held reports whether a live leader that this board knows of holds the
// addresses. A leader whose heartbeat is late is alive until the questions about
// it have gone unanswered; a watcher that asks at that moment should not be alarmed.
func (s *Status) Held() bool {
	v := s.verdict()
	return v == held || v == suspected
}

// leaders are the live boards that say that they lead.
func (s *Status) leaders() []*Board {
	var found []*Board
	for i := range s.Boards {
		if b := &s.Boards[i]; s.leads(b) {
			found = append(found, b)
		}
	}
	return found
}

// leads reports whether a live board says that it leads. What one said before the
// present leader took over is history, not a rival's claim: a leader that is
// replaced has said of itself that it leads, in the last that was heard of it.
func (s *Status) leads(b *Board) bool {
	outdated := b.ID != s.Leader && b.HeardMs != nil && s.LeaderSinceMs != nil && *b.HeardMs >= *s.LeaderSinceMs
	return b.Role == RoleLeader && b.live() && !outdated
}

// board returns what is known of the board with that id, or nil.
func (s *Status) board(id string) *Board {
	if id == "" {
		return nil
	}
	if id == s.Board.ID {
		return &s.Board
	}
	for i := range s.Boards {
		if s.Boards[i].ID == id {
			return &s.Boards[i]
		}
	}
	return nil
}

// The exit statuses of `topdog status`. 2 is for a mistake in the command line.
const (
	exitHeld       = 0 // a live leader that this board knows of holds the address
	exitNotHeld    = 1 // the daemon runs, and nobody holds it, or it cannot be told who does
	exitNotRunning = 3 // no daemon runs here
	exitNoAnswer   = 4 // a daemon may run, but gave no usable answer: permission, time, garbage
)

// ExitStatus is what `topdog status` ends with, given what [Client.Status] returned.
// Problems do not count: a board without a light would never have the exit status 0.
func ExitStatus(s Status, err error) int {
	switch {
	case errors.Is(err, ErrNotRunning):
		return exitNotRunning
	case err != nil:
		return exitNoAnswer
	case s.Held():
		return exitHeld
	default:
		return exitNotHeld
	}
}
