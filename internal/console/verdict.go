package console

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// verdict is the answer to the question of `topdog status`: who has the address?
type verdict int

const (
	held      verdict = iota // a live board has it
	unguarded                // a live board has it, and no other could take over
	suspected                // a board has it, but its heartbeat or its address is late, so this board asks whether it lives
	silent                   // the board that had it counts as dead now
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
		return unknown // it has only begun to listen, or stays out
	case s.HeldBy == "" && s.MajorityUnheard:
		return unknown // the voters that it misses may have a leader
	case s.HeldBy == "", s.HeldBy == s.Board.ID && (!s.Holding || s.MajorityUnheard):
		return nobody
	case s.HeldBy != s.Board.ID && (holder == nil || !holder.live()):
		return silent
	case s.HeldBy != s.Board.ID && s.Role == RoleCandidate:
		return suspected
	case s.alone():
		return unguarded
	default:
		return held
	}
}

// Held reports whether a live leader that this board knows of holds the addresses. A leader that is late counts
// as alive until it has failed to answer, so that a late heartbeat alarms nobody.
func (s *Status) Held() bool {
	v := s.verdict()
	return v == held || v == suspected || v == unguarded
}

// headline says who has the address, and since when or why not.
func (s *Status) headline() string {
	what, is, was := s.addresses()
	holder := s.holderName(s.HeldBy)
	switch s.verdict() {
	case contested:
		var who []string
		for _, b := range s.leaders() {
			who = append(who, s.fullName(b.ID, b.Name))
		}
		return fmt.Sprintf("%s %s claimed by %d boards: %s", what, is, len(who), list(who))
	case unknown:
		return fmt.Sprintf("unknown who holds %s: %s", what, s.whyNotHeld())
	case nobody:
		if s.leaderHoldsSome() {
			what = "all of " + what
		}
		return fmt.Sprintf("nobody holds %s: %s", what, s.whyNotHeld())
	case silent:
		if b := s.board(s.HeldBy); s.SecondPath != nil && b != nil && b.heardElsewhere() {
			return fmt.Sprintf("%s %s held by %s, which this board hears on %s alone, so it does not know whether anybody reaches the address", what, is, holder, s.SecondPath.Interface)
		} else if b != nil && b.HeardMs != nil {
			text := fmt.Sprintf("%s %s last held by %s, which was last heard %s", what, was, holder, ago(*b.HeardMs))
			if s.MajorityUnheard {
				text += "; " + s.majorityUnheard()
			}
			return text
		}
		return fmt.Sprintf("%s %s last held by %s, of which nothing more is known", what, was, holder)
	case suspected:
		return fmt.Sprintf("%s %s held by %s, which has fallen silent: this board is asking whether it lives", what, is, holder)
	}
	if s.Holding && s.has(ProblemAddressNotHeld) {
		what, is = "some of "+what, "are"
	}
	text := fmt.Sprintf("%s %s held by %s", what, is, holder)
	next := ","
	if s.verdict() == unguarded {
		text += ", no fit board could take over"
		next = ";"
	}
	if s.LeaderSinceMs != nil && s.Leader == s.HeldBy {
		text += next + " leader for " + span(*s.LeaderSinceMs)
	}
	return text + fmt.Sprintf(", term%c%d", joint, s.Term)
}

// has reports whether there is a problem of that kind.
func (s *Status) has(kind ProblemKind) bool {
	return slices.ContainsFunc(s.Problems, func(p Problem) bool { return p.Kind == kind })
}

// leaderHoldsSome reports whether the configuration of the leader has some of the addresses of this board.
func (s *Status) leaderHoldsSome() bool {
	leader := s.board(s.Leader)
	return leader != nil && !leader.Self && slices.ContainsFunc(s.Addresses, func(prefix string) bool {
		address, _, _ := strings.Cut(prefix, "/")
		return slices.Contains(leader.Floating, address)
	})
}

// whyNotHeld says why nobody holds the address, or why this board cannot know.
func (s *Status) whyNotHeld() string {
	switch s.Role {
	case RoleIsolated:
		for _, p := range s.Problems {
			switch p.Kind {
			case ProblemFirewall:
				return "a firewall on this board drops the group's packets"
			case ProblemOwnAddress:
				return "another board has this board's own address"
			}
		}
		return "this board has no link"
	case RoleListener:
		return "this board is listening for a leader"
	case RoleBarred:
		return "this board stays out: " + cmp.Or(s.ReasonText, "unknown why")
	case RoleCandidate:
		if s.PortSilent {
			return "this board asks, and nothing arrives on its port: look at its cable and its switch"
		}
		if s.MajorityUnheard {
			return s.majorityUnheard()
		}
		if len(s.Voters) > 0 {
			return "this board is asking the voters whether it may lead"
		}
		return "this board is asking whether anybody leads"
	case RoleLeader:
		if s.MajorityUnheard {
			return "this board leads, but does not hear the majority of the voters, so it does not answer"
		}
		return "this board leads, but does not have it on " + cmp.Or(s.Interface, "its interface")
	case RoleFollower:
		if s.MajorityUnheard {
			return s.majorityUnheard()
		}
		if leader := s.board(s.Leader); leader != nil && len(leader.Floating) > 0 {
			return s.holderName(s.Leader) + " leads, and its configuration has " + list(leader.Floating)
		}
		if s.Leader != "" {
			return s.holderName(s.Leader) + " leads, but is not known to have it"
		}
		if s.Heir != "" {
			return "there is no leader, and " + s.holderName(s.Heir) + " is next"
		}
		return "there is no leader, and no board that could become one"
	default:
		return cmp.Or(s.ReasonText, "unknown why")
	}
}

// whyNoSpare says why a board could not take over from the leader: "is failing". It is "" if the board could.
func (s *Status) whyNoSpare(b *Board) string {
	switch {
	case b.Gone:
		return "has left, or was replaced"
	case b.Stale:
		return "is not heard any more"
	case b.Priority == 0:
		return "has the priority 0"
	case b.Grade != gradePassing && b.Grade != gradeProbation:
		return "is " + b.Grade
	case b.Self && (s.Role == RoleIsolated || s.Role == RoleBarred || s.Role == RoleListener):
		return "is " + s.Role
	}
	return ""
}

// CountSpares counts the boards that could take over from the leader now. If there are voters, a majority of them must be
// left without the leader.
func (s *Status) CountSpares() (n int) {
	if s.Paused || s.tooFewVoters() {
		return 0
	}
	for i := range s.Boards {
		if b := &s.Boards[i]; b.ID != s.Leader && s.whyNoSpare(b) == "" {
			n++
		}
	}
	return n
}

// tooFewVoters reports whether the voters without the leader would be no majority.
func (s *Status) tooFewVoters() bool {
	left := 0
	for _, v := range s.Voters {
		if v.ID != s.Leader && !v.Unheard && !v.Twice {
			left++
		}
	}
	return len(s.Voters) > 0 && left < len(s.Voters)/2+1
}

// alone reports whether the daemon says that no board could take over from the leader. An older version does not say.
func (s *Status) alone() bool { return s.Spares != nil && *s.Spares == 0 }

// NoSpare says that no board could take over from the leader, and why. It is "" if one could, or if nobody leads.
func (s *Status) NoSpare() string {
	if s.Leader == "" || !s.alone() || s.Role != RoleLeader && s.Role != RoleFollower {
		return ""
	}
	var others []string
	for i := range s.Boards {
		b := &s.Boards[i]
		if why := s.whyNoSpare(b); why != "" && b.ID != s.Leader {
			others = append(others, s.shortName(b.ID, b.Name)+" "+why)
		}
	}
	why := "no other board has been heard"
	switch {
	case s.Paused:
		why = "the group is paused"
	case s.tooFewVoters():
		why = "too few voters would be left without it"
	case len(others) > 0:
		why = strings.Join(others[:min(len(others), maxOthers)], ", ")
	}
	return fmt.Sprintf("no fit board could take over from %s: %s", s.holderName(s.Leader), why)
}

// maxOthers is how many boards NoSpare names. The table of the status lists all of them.
const maxOthers = 5

// leaders returns the live boards that say that they lead.
func (s *Status) leaders() []*Board {
	var found []*Board
	for i := range s.Boards {
		if b := &s.Boards[i]; s.leads(b) {
			found = append(found, b)
		}
	}
	return found
}

// leads reports whether a live board says that it leads. What it said before the present leader took over does not count,
// since the last message of a leader that was replaced still says that it leads.
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
	if i := slices.IndexFunc(s.Boards, func(b Board) bool { return b.ID == id }); i >= 0 {
		return &s.Boards[i]
	}
	return nil
}

// The exit statuses of `topdog status`. 2 is for a mistake in the command line.
const (
	exitHeld       = 0 // a live leader that this board knows of holds the address
	exitUnguarded  = 5 // a live leader holds it, and no board could take over
	exitNotHeld    = 1 // the daemon runs, but nobody holds it, or this board cannot tell who does
	exitNotRunning = 3 // no daemon runs here
	exitNoAnswer   = 4 // a daemon may run, but gave no usable answer: permission, time, garbage
)

// ExitStatus returns the exit status of `topdog status`, given the results of [Client.Status]. Problems do not count, or a
// board without an LED would never have the status 0.
func ExitStatus(s Status, err error) int {
	switch {
	case errors.Is(err, ErrNotRunning):
		return exitNotRunning
	case err != nil:
		return exitNoAnswer
	case s.verdict() == unguarded:
		return exitUnguarded
	case s.Held():
		return exitHeld
	default:
		return exitNotHeld
	}
}

// WorseExitStatus returns the worse of two exit statuses of `topdog status`.
func WorseExitStatus(a, b int) int {
	order := []int{exitHeld, exitUnguarded, exitNotHeld, exitNotRunning, exitNoAnswer}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}
