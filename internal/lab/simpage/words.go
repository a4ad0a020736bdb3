package simpage

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"topdog/election"
	"topdog/internal/lab/draw"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// vocabulary is what the page says of algorithms and of what happens, beside the plain facts. words.toml explains its parts.
type vocabulary struct {
	Papers     map[string]string
	Messages   map[string]string
	Roles      map[string]string
	Says       map[string]string
	Means      map[string]string
	Algorithms []algorithm `toml:"algorithm"`
}

// algorithm is what the page says of an algorithm.
type algorithm struct {
	Name     string            `json:"name" toml:"name"`
	Leads    string            `json:"leads_text" toml:"leads_text"`
	Idea     string            `json:"idea_text" toml:"idea_text"`
	Steps    []string          `json:"steps_text" toml:"steps_text"`
	Cost     string            `json:"cost_text" toml:"cost_text"` // in messages, with n boards, of which the leader has failed
	Weakness string            `json:"weakness_text" toml:"weakness_text"`
	Paper    string            `json:"paper_text" toml:"paper_text"`
	Messages map[string]string `json:"-" toml:"messages"` // what a message means here, if that is particular
}

//go:embed words.toml
var wordsFile []byte

// words are read once, when somebody wants to see something.
var words = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{}
	if err := toml.Unmarshal(wordsFile, v); err != nil {
		panic(fmt.Sprintf("words.toml: %v", err)) // it is a part of the program, and of its tests
	}
	for i := range v.Algorithms {
		for number, title := range v.Papers {
			v.Algorithms[i].Paper = strings.ReplaceAll(v.Algorithms[i].Paper, "{"+number+"}", title)
		}
	}
	return v
})

// describe returns what is said of an algorithm.
func describe(name string) algorithm {
	all := words().Algorithms
	return all[slices.IndexFunc(all, func(a algorithm) bool { return a.Name == name })]
}

// sentence says what a step is, and what it means.
func sentence(algorithm wire.Algorithm, boards int, e *draw.Step) (text, why string) {
	who := "The LAN"
	if e.Board != nil {
		who = "Board " + e.Board.Label
	}
	switch {
	case e.Message != nil:
		return message(who, boards, e), meaning(algorithm, e)
	case e.Kind == sim.EventChange:
		return role(who, e.Change), words().Roles[e.Change.To.String()]
	case e.Kind == sim.EventNotice:
		return who + " gives a " + e.What + ".", ""
	case e.Board == nil:
		return strings.ToUpper(e.What[:1]) + e.What[1:] + ".", begun(e.What)
	default:
		return act(who, e.What), begun(e.What)
	}
}

// meaning is what a message means in an algorithm. Some kinds of one type mean different things.
func meaning(a wire.Algorithm, e *draw.Step) string {
	m, name, kind := e.Message, e.Message.Type.String(), e.Counted.Identifier()
	switch {
	case m.Type == wire.TypeAnswer && m.Answer.Leader != wire.Nobody:
		kind = "ANSWER_HEARD"
	case m.Type == wire.TypeVote && m.Vote.Ballot != wire.BallotRequest:
		kind = "VOTE_OTHER"
	}
	if text := words().Messages[kind]; text != "" && kind != name {
		return text
	}
	if text := describe(a.String()).Messages[name]; text != "" {
		return text
	}
	return words().Messages[name]
}

// begun is what something means that boards or the LAN do or suffer. Of several beginnings the longest counts.
func begun(what string) (text string) {
	most := 0
	for begin, means := range words().Means {
		if strings.HasPrefix(what, begin) && len(begin) > most {
			text, most = means, len(begin)
		}
	}
	return text
}

// message says who sends what to whom.
func message(who string, boards int, e *draw.Step) string {
	var to []wire.ID
	for _, b := range e.Concerned {
		to = append(to, b.Config.ID)
	}
	receivers := "nobody"
	switch n := len(to); {
	case n == 0:
	case n == 1:
		receivers = "board " + to[0].String()
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
		var known []wire.ID
		for _, s := range m.Report.Standings {
			known = append(known, s.ID)
		}
		return "it knows " + ranges(known)
	case wire.TypeOK:
		return fmt.Sprintf("round %d, trusts %s", m.OK.Round, ranges(m.OK.Trust))
	}
	return sim.Details(m)
}

// ranges writes boards in their order: "1, 3 to 6", or "1 and 3".
func ranges(boards []wire.ID) string {
	all := slices.Sorted(slices.Values(boards))
	var words []string
	for i, j := 0, 0; i < len(all); i = j {
		for j = i + 1; j < len(all) && all[j] == all[j-1]+1; j++ {
		}
		if j-i > 2 {
			words = append(words, fmt.Sprintf("%v to %v", all[i], all[j-1]))
			continue
		}
		for _, n := range all[i:j] {
			words = append(words, n.String())
		}
	}
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// act says what a board does or suffers.
func act(who, what string) string {
	if better := words().Says[what]; better != "" {
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
	what := cmp.Or(words().Says[c.To.String()], "is "+c.To.String())
	if c.To == election.Follower && c.NewLeader != wire.Nobody {
		what = fmt.Sprintf("follows board %v", c.NewLeader)
	}
	if c.To == election.Leader && c.Reason == election.ReasonCalledUpon {
		return who + " " + what + "." // that was why it held the election, and not why it has won
	}
	return fmt.Sprintf("%s %s: %v.", who, what, c.Reason)
}
