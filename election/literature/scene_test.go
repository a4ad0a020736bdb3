package literature

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/corescene"
	"topdog/internal/lab/corescene/scenetest"
	"topdog/wire"
)

// TestScenes plays the scenes of testdata/scenes, each on a board of its own.
func TestScenes(t *testing.T) {
	scenetest.Scenes(t, func(t *testing.T, words []string) corescene.Stage {
		return &scene{board: start(t, words[0], words[1:])}
	})
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
				c.ID = scenetest.Read[wire.ID](t, value)
			case "priority":
				c.Priority = scenetest.Read[uint8](t, value)
			case "fanout":
				c.Fanout, ok = election.FanoutNamed(value)
			case "source":
				c.ScoreSource, ok = election.ScoreSourceNamed(value)
			case "detector":
				c.Detector, ok = silence.DetectorNamed(value)
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
		return newDivided(t, scenetest.Read[wire.ID](t, options[0]))
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

// Does has the board go through a step, and says what it does.
func (s *scene) Does(step string) (lines []string, err error) {
	s.t.Helper()
	words := strings.Fields(step)
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
		s.follow(scenetest.Read[wire.ID](s.t, argument))
	case "lead":
		s.lead()
	case "stand":
		s.stand(election.ReasonSilence)
	case "know": // what is known of a board's score
		p, _ := s.Peer(scenetest.Read[wire.ID](s.t, argument))
		return []string{fmt.Sprintf("score %d, known: %v", p.Score, p.ScoreKnown)}, nil
	case "keep": // a message, which comes later
		s.kept = s.message(words[1:])
	case "arrives":
		effects = s.Step(s.clock, s.kept)
	default:
		effects, _, err = corescene.Tell(s.Core, s.clock, words, func(words []string) (*wire.Message, error) { return s.message(words), nil })
	}
	return tally(effects), err
}

// Is says what the board is, as far as it matters.
func (s *scene) Is() string {
	is := fmt.Sprintf("%v of %v", s.Role(), s.Leader())
	switch a := s.algorithm.(type) {
	case *agents:
		is += fmt.Sprintf(" in round %d, the judge is %v", a.current, a.judge)
		if a.judge == s.cfg.ID {
			is += fmt.Sprintf(" and trusts %v", s.Status(s.clock).Trust)
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
	m, err := corescene.ReadMessage(words, func(sender wire.ID, kind wire.Type) *wire.Message { return s.from(sender, kind) }, s.change)
	assert.NoError(s.t, err)
	return m
}

// change changes what a word says, and reports whether it does.
func (s *scene) change(m *wire.Message, name, value string) bool {
	s.t.Helper()
	switch name {
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
		m.Election.Suspect = scenetest.Read[wire.ID](s.t, value)
	case "round":
		n := scenetest.Read[uint32](s.t, value)
		m.Round.Number, m.OK.Round, m.Report.Round, m.Election.Round, m.Query.Round = n, n, n, uint8(n), uint8(n)
	case "trust":
		m.OK.Trust = numbers[wire.ID](s.t, value)
	case "at":
		m.Report.Timestamp = scenetest.Read[uint32](s.t, value)
	case "list": // the priorities of the boards 1, 2, and so on
		for i, p := range numbers[uint8](s.t, value) {
			m.Report.Standings = append(m.Report.Standings, wire.Standing{ID: wire.ID(i + 1), Priority: p})
		}
	case "names":
		id := scenetest.Read[wire.ID](s.t, value)
		m.Coordinator.Coordinator, m.Leader.Leader, m.Resign.Successor, m.Answer.Leader = id, id, id, id
	case "candidates":
		m.Coordinator.Candidates = numbers[wire.ID](s.t, value)
	case "score":
		n := scenetest.Read[uint32](s.t, value)
		m.Hello.Score, m.Election.Score, m.Coordinator.Score = n, n, n
	default:
		return false
	}
	return true
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

func numbers[T ~uint8 | ~uint32](t *testing.T, text string) (list []T) {
	t.Helper()
	for word := range strings.SplitSeq(text, ",") {
		list = append(list, scenetest.Read[T](t, word))
	}
	return list
}

// tally describes effects with what they say.
func tally(effects []election.Effect) []string { return scenetest.Tally(described(effects)) }
