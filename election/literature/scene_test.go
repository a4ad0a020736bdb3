package literature

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
	"topdog/wire"
)

// TestScenes plays the scenes of testdata/scenes, each on a board of its own. A scene begins with "==" and its name,
// and goes on with what happens to the board, a line for each step. Below a step and indented is what the board does
// then, and in the end what it is. The flag -update writes these lines anew.
func TestScenes(t *testing.T) {
	paths, err := filepath.Glob("testdata/scenes/*.txt")
	assert.NoError(t, err)
	if len(paths) == 0 {
		t.Fatal("there are no scenes")
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			source, err := os.ReadFile(path)
			assert.NoError(t, err)
			head, scenes, _ := strings.Cut(string(source), "\n== ")
			played := []string{head}
			for want := range strings.SplitSeq(scenes, "\n== ") {
				got := playScene(t, want)
				if !*golden.Update {
					name, _, _ := strings.Cut(want, "\n")
					assert.Equal(t, strings.Split(want, "\n"), strings.Split(got, "\n"), "%s", name)
				}
				played = append(played, got)
			}
			if *golden.Update {
				golden.Compare(t, path, strings.Join(played, "\n== "))
			}
		})
	}
}

// playScene plays a scene, and returns it with what the board does now.
func playScene(t *testing.T, text string) string {
	t.Helper()
	name, text, _ := strings.Cut(text, "\n")
	lines := []string{name}
	var s *scene
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "\t") || line == "" {
			continue
		}
		lines = append(lines, line)
		step, _, _ := strings.Cut(line, "#")
		words := strings.Fields(step)
		switch {
		case len(words) == 0:
		case s == nil:
			s = &scene{board: start(t, words[0], words[1:])}
		default:
			for _, did := range s.does(words) {
				lines = append(lines, "\t"+did)
			}
		}
	}
	return strings.Join(append(lines, "\t= "+s.is()), "\n") + "\n"
}

// scene is a board that a scene is played on.
type scene struct {
	*board
	kept *wire.Message // of another board, which others overtake
}

// start returns the board that a scene begins with.
func start(t *testing.T, kind string, options []string) *board {
	t.Helper()
	change := func(c *election.Config) {
		for _, option := range options {
			name, value, _ := strings.Cut(option, "=")
			ok := true
			switch name {
			case "id":
				c.ID = number[wire.ID](t, value)
			case "priority":
				c.Priority = number[uint8](t, value)
			case "fanout":
				c.Fanout, ok = election.FanoutNamed(value)
			case "source":
				c.ScoreSource, ok = election.ScoreSourceNamed(value)
			case "detector":
				c.Detector, ok = election.DetectorNamed(value)
			}
			if !ok {
				t.Fatalf("%s is not known", option)
			}
		}
	}
	named := func(value string) wire.Algorithm {
		a, ok := AlgorithmNamed(value)
		if !ok {
			t.Fatalf("there is no algorithm %s", value)
		}
		return a
	}
	switch kind {
	case "agents":
		return agentsBoard(t, change)
	case "scored":
		return newScoreBoard(t, change)
	case "divided":
		return newDivided(t, number[wire.ID](t, options[0]))
	case "called":
		return newCalled(t, named(options[0]))
	case "family":
		return newFamilyBoard(t, named(options[0]), change)
	case "member": // of a group: the algorithm, the id of this board, that of the leader, and the others
		ids := numbers[wire.ID](t, strings.Join(options[1:], ","))
		return newMember(t, named(options[0]), ids[0], ids[1], ids[2:]...)
	default:
		return newBoard(t, named(kind), change)
	}
}

// does has the board go through a step, and says what it does.
func (s *scene) does(words []string) []string {
	s.t.Helper()
	argument := ""
	if len(words) > 1 {
		argument = words[1]
	}
	var effects []election.Effect
	switch words[0] {
	case "pass":
		effects = s.sleep(s.duration(argument))
	case "oversleep":
		s.clock += s.duration(argument)
		effects = s.Wake(s.clock)
	case "follow":
		s.follow(number[wire.ID](s.t, argument))
	case "lead":
		s.lead()
	case "suspect":
		effects = s.Suspect(s.clock)
	case "probed":
		effects = s.Probed(s.clock, false)
	case "expired":
		effects = s.LeaseExpired(s.clock)
	case "stand":
		s.stand(election.ReasonSilence)
	case "link":
		effects = s.Link(s.clock, argument == "up")
	case "priority":
		effects = s.Reprioritise(s.clock, number[uint8](s.t, argument), false)
	case "score":
		effects = s.SetScore(s.clock, number[uint32](s.t, argument))
	case "know": // what is known of a board's score
		p, _ := s.Peer(number[wire.ID](s.t, argument))
		return []string{fmt.Sprintf("score %d, known: %v", p.Score, p.ScoreKnown)}
	case "keep": // a message, which comes later
		s.kept = s.message(words[1:])
	case "arrives":
		effects = s.Step(s.clock, s.kept)
	default:
		effects = s.Step(s.clock, s.message(words))
	}
	return tally(effects)
}

// is says what the board is, as far as it matters.
func (s *scene) is() string {
	is := fmt.Sprintf("%v of %v", s.Role(), s.Leader())
	switch a := s.algorithm.(type) {
	case *agents:
		is += fmt.Sprintf(" in round %d, the judge is %v", a.current, a.judge)
		if a.judge == s.cfg.ID {
			is += fmt.Sprintf(" and trusts %v", s.Trust())
		}
	case *modified:
		if a.halted() {
			is += ", halted"
		}
	}
	return is
}

// message reads a message of another board: who says what, and how it differs from others.
func (s *scene) message(words []string) *wire.Message {
	s.t.Helper()
	kind := wire.Type(1)
	for kind.String() != words[1] {
		if kind++; kind > wire.TypePause {
			s.t.Fatalf("there is no message %s", words[1])
		}
	}
	return s.from(number[wire.ID](s.t, words[0]), kind, func(m *wire.Message) {
		for _, word := range words[2:] {
			s.change(m, word)
		}
	})
}

func (s *scene) change(m *wire.Message, word string) {
	s.t.Helper()
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "leading":
		m.Leading = true
	case "reply":
		m.Reply = true
	case "ahead":
		m.Term++
	case "restarted":
		m.Incarnation++
	case "handover":
		m.Query.Purpose = wire.PurposeHandover
	case "suspecting":
		s.suspecting(m)
	case "before": // this board heard the leader
		m.Election.LastHeard--
	case "suspect":
		m.Election.Suspect = number[wire.ID](s.t, value)
	case "priority":
		m.Priority = number[uint8](s.t, value)
	case "round":
		n := number[uint32](s.t, value)
		m.Round.Number, m.OK.Round, m.Report.Round, m.Election.Round, m.Query.Round = n, n, n, uint8(n), uint8(n)
	case "trust":
		m.OK.Trust = numbers[wire.ID](s.t, value)
	case "at":
		m.Report.Timestamp = number[uint32](s.t, value)
	case "list": // the priorities of the boards 1, 2, and so on
		for i, p := range numbers[uint8](s.t, value) {
			m.Report.Standings = append(m.Report.Standings, wire.Standing{ID: wire.ID(i + 1), Priority: p})
		}
	case "names":
		id := number[wire.ID](s.t, value)
		m.Coordinator.Coordinator, m.Leader.Leader, m.Resign.Successor, m.Answer.Leader = id, id, id, id
	case "candidates":
		m.Coordinator.Candidates = numbers[wire.ID](s.t, value)
	case "score":
		n := number[uint32](s.t, value)
		m.Hello.Score, m.Election.Score, m.Coordinator.Score = n, n, n
	default:
		s.t.Fatalf("a message cannot be %s", word)
	}
}

// duration reads a time, or a sum of some: 10ms, or window-1ms, where window is how long the board listens,
// trial how long an election of its algorithm lasts, answer how long it waits for an answer, and suspicion how long it
// goes on to trust its leader.
func (s *scene) duration(text string) (sum time.Duration) {
	s.t.Helper()
	for term := range strings.SplitSeq(strings.ReplaceAll(text, "-", "+-"), "+") {
		switch term {
		case "window":
			sum += s.listenWindow()
		case "trial":
			sum += s.algorithm.ElectionDuration()
		case "answer":
			sum += s.seen.AnswerTimeout()
		case "suspicion":
			sum += s.seen.SuspectAt() - s.clock
		default:
			d, err := time.ParseDuration(term)
			assert.NoError(s.t, err)
			sum += d
		}
	}
	return sum
}

func number[T ~uint8 | ~uint32](t *testing.T, text string) T {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	assert.NoError(t, err)
	return T(n)
}

func numbers[T ~uint8 | ~uint32](t *testing.T, text string) (list []T) {
	t.Helper()
	for word := range strings.SplitSeq(text, ",") {
		list = append(list, number[T](t, word))
	}
	return list
}

// tally describes effects with what they say. What a board does several times in one step is one line, with a count.
func tally(effects []election.Effect) (lines []string) {
	times := make(map[string]int)
	for _, e := range effects {
		for _, line := range described([]election.Effect{e}) {
			line += detail(e)
			if times[line]++; times[line] == 1 {
				lines = append(lines, line)
			}
		}
	}
	for i, line := range lines {
		if n := times[line]; n > 1 {
			lines[i] = fmt.Sprintf("%s, %d times", line, n)
		}
	}
	return lines
}

// detail says what is said in a message, and whom it concerns.
func detail(e election.Effect) (says string) {
	m := &e.Message
	var score uint32
	switch m.Type {
	case wire.TypeHello:
		score = m.Hello.Score
	case wire.TypeElection:
		score = m.Election.Score
	case wire.TypeCoordinator:
		score = m.Coordinator.Score
		if m.Coordinator.Coordinator != m.Sender {
			says += fmt.Sprintf(" names %v", m.Coordinator.Coordinator)
		}
		if len(m.Coordinator.Candidates) > 0 {
			says += fmt.Sprintf(" candidates %v", m.Coordinator.Candidates)
		}
	case wire.TypeLeader:
		says += fmt.Sprintf(" names %v", m.Leader.Leader)
	case wire.TypeResign:
		says += fmt.Sprintf(" names %v", m.Resign.Successor)
	}
	if len(e.Audience) > 0 {
		says += fmt.Sprintf(" concerns %v", slices.Sorted(slices.Values(e.Audience)))
	}
	if score > 0 {
		says += fmt.Sprintf(" score %d", score)
	}
	return says
}
