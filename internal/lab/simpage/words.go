package simpage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"topdog/election"
	"topdog/internal/lab/draw"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// sentence says what a step is, and what it means.
func sentence(algorithm wire.Algorithm, boards int, e *draw.Step, to []string) (text, why string) {
	who := "The LAN"
	if e.Board != nil {
		who = "Board " + e.Board.Label
	}
	switch {
	case e.Message != nil:
		return message(who, boards, e, to), meaning(algorithm, e)
	case e.Kind == sim.EventChange:
		return role(who, e.Change), roleMeanings[e.Change.To]
	case e.Kind == sim.EventAddress:
		return act(who, e.What), addressMeaning(e.What)
	case e.Kind == sim.EventNotice:
		return who + " gives a " + e.What + ".", ""
	case e.Board == nil:
		return strings.ToUpper(e.What[:1]) + e.What[1:] + ".", faultMeaning(e.What)
	default:
		return act(who, e.What), faultMeaning(e.What)
	}
}

// message says who sends what to whom.
func message(who string, boards int, e *draw.Step, to []string) string {
	receivers := "nobody"
	switch n := len(to); {
	case n == 0:
	case n == 1:
		receivers = "board " + to[0]
	case n == boards-1:
		receivers = "all others"
	default:
		receivers = "boards " + ranges(to)
	}
	text := fmt.Sprintf("%s sends %v to %s", who, e.Message.Type, receivers)
	if details := details(e.Message); details != "" {
		text += ": " + details
	}
	return text + "."
}

// details is what a message says, where that is more than its name.
func details(m *wire.Message) string {
	switch m.Type {
	case wire.TypeElection:
		if m.Election.Round > 1 {
			return fmt.Sprintf("question %d", m.Election.Round)
		}
		return ""
	case wire.TypeAnswer:
		if m.Answer.Leader == wire.Nobody {
			return ""
		}
	case wire.TypeCoordinator:
		return fmt.Sprintf("board %v leads", m.Coordinator.Coordinator)
	case wire.TypeLeader:
		return fmt.Sprintf("board %v leads", m.Leader.Leader)
	case wire.TypeResign:
		if m.Resign.Successor != wire.Nobody {
			return fmt.Sprintf("board %v is next", m.Resign.Successor)
		}
		return ""
	case wire.TypeHalt, wire.TypeSupport, wire.TypeGrant, wire.TypeVote:
		return ""
	case wire.TypeReport:
		var known []string
		for _, s := range m.Report.Standings {
			known = append(known, s.ID.String())
		}
		return "it knows " + ranges(known)
	case wire.TypeOK:
		var trusted []string
		for _, id := range m.OK.Trust {
			trusted = append(trusted, id.String())
		}
		return fmt.Sprintf("round %d, trusts %s", m.OK.Round, ranges(trusted))
	}
	return sim.Details(m)
}

// ranges writes boards in their order: "1, 3 to 6", or "1 and 3".
func ranges(boards []string) string {
	var all []int
	for _, b := range boards {
		n, _ := strconv.Atoi(b) // boards of a run have such ids
		all = append(all, n)
	}
	slices.Sort(all)
	var words []string
	for i, j := 0, 0; i < len(all); i = j {
		for j = i + 1; j < len(all) && all[j] == all[j-1]+1; j++ {
		}
		if j-i > 2 {
			words = append(words, fmt.Sprintf("%d to %d", all[i], all[j-1]))
			continue
		}
		for _, n := range all[i:j] {
			words = append(words, strconv.Itoa(n))
		}
	}
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// acts are what boards do and suffer, where the simulator uses fewer words.
var acts = map[string]string{
	"cable out": "loses its cable", "cable in": "has its cable back",
	"frozen": "stands still", "thawed": "goes on", "stopped": "is stopped",
	"asks the LAN": "asks who answers at the address",
}

// act says what a board does or suffers.
func act(who, what string) string {
	if better := acts[what]; better != "" {
		what = better
	}
	if strings.HasPrefix(what, "its ") {
		return who + ": " + what + "."
	}
	return who + " " + what + "."
}

// looks reports whether an act concerning the address changes nothing.
func looks(what string) bool {
	return strings.HasPrefix(what, "asks") || strings.HasPrefix(what, "probes")
}

// role says what a board has become, and why.
func role(who string, c election.Change) string {
	what := "is " + c.To.String()
	switch {
	case c.To == election.Follower && c.NewLeader == wire.Nobody:
		what = "waits for a leader"
	case c.To == election.Follower:
		what = fmt.Sprintf("follows board %v", c.NewLeader)
	case c.To == election.Candidate:
		what = "holds an election"
	case c.To == election.Leader:
		what = "is the leader"
	case c.To == election.Listener:
		what = "listens before it says anything"
	case c.To == election.Isolated:
		what = "is alone"
	}
	if c.To == election.Leader && c.Reason == election.ReasonCalledUpon {
		return who + " " + what + "." // that was why it held the election, and not why it has won
	}
	return fmt.Sprintf("%s %s: %v.", who, what, c.Reason)
}
