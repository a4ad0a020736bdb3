package election

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
	kept  *wire.Message // of another board, which others overtake
	since Instant       // it was noted
}

// start returns the board that a scene begins with.
func start(t *testing.T, kind string, options []string) *board {
	t.Helper()
	change := func(c *Config) {
		for _, option := range options {
			name, value, _ := strings.Cut(option, "=")
			known := true
			switch name {
			case "priority":
				c.Priority = scenetest.Read[uint8](t, value)
			case "incarnation":
				c.Incarnation = scenetest.Read[wire.Incarnation](t, value)
			case "interval":
				c.Interval = scenetest.Read[time.Duration](t, value)
			case "patience":
				c.Patience = scenetest.Read[time.Duration](t, value)
			case "watch":
				if c.Watch = NoWatch; value != "off" {
					c.Watch = scenetest.Read[time.Duration](t, value)
				}
			case "second":
				c.SecondPath = true
			case "detector":
				c.Detector, known = silence.DetectorNamed(value)
			case "voters":
				c.Voters = nil
				for id := range strings.SplitSeq(value, ",") {
					c.Voters = append(c.Voters, scenetest.Read[wire.ID](t, id))
				}
			}
			if !known {
				t.Fatalf("%s is not known", option)
			}
		}
	}
	switch kind {
	case "board":
		return newBoard(t, change)
	case "leads":
		return leads(t, change)
	case "follower": // that has heard 20 heartbeats of board 3
		return followerOf3(t, 20, change)
	case "voter":
		return newVoter(t, change)
	case "elected":
		b, _ := elected(t, change)
		return b
	}
	t.Fatalf("nothing begins with %q", kind)
	return nil
}

// Does has the board go through a step, or through some several times, and says what it does.
func (s *scene) Does(step string) ([]string, error) {
	s.t.Helper()
	if times, steps, repeats := strings.Cut(step, " times: "); repeats {
		var effects []Effect
		for range scenetest.Read[uint32](s.t, times) {
			for step := range strings.SplitSeq(steps, ";") {
				did, _ := s.do(strings.Fields(step))
				effects = append(effects, did...)
			}
		}
		return tally(effects), nil
	}
	effects, says := s.do(strings.Fields(step))
	return append(tally(effects), says...), nil
}

// Is says what the board is, and whom it follows.
func (s *scene) Is() string { return fmt.Sprintf("%v of %v", s.role, s.leader) }

// do has the board go through a step. What it says is an error, or what is shown.
func (s *scene) do(words []string) (effects []Effect, says []string) {
	s.t.Helper()
	argument := ""
	if len(words) > 1 {
		argument = words[1]
	}
	switch words[0] {
	case "pass":
		effects = s.sleep(scenetest.Read[time.Duration](s.t, argument))
	case "stall": // the process does not run
		s.clock += scenetest.Read[time.Duration](s.t, argument)
	case "beat": // it wakes for its next heartbeat, perhaps late
		effects = s.wakesLate(scenetest.Read[time.Duration](s.t, argument))
	case "lead":
		s.takeLead()
	case "deaf": // no witness answers from now on
		s.deaf = true
	case "keep": // a message, which comes later
		s.kept = s.message(words[1:])
	case "arrives":
		effects = s.Step(s.clock, s.kept)
	case "note": // the time
		s.since = s.clock
	case "show":
		says = []string{s.show(argument)}
	default:
		var refused, err error
		effects, refused, err = corescene.Tell(s.Core, s.clock, words, func(words []string) (*wire.Message, error) { return s.message(words), nil })
		assert.NoError(s.t, err)
		if refused != nil {
			says = append(says, "error: "+refused.Error())
		}
		if _, bad := corescene.Read[wire.ID](words[0]); bad == nil { // a message
			effects = s.witnessed(effects)
		}
	}
	effects = slices.Clone(effects) // which the core would use again
	s.sendAll(effects)
	return effects, says
}

// show says something that a board does not tell. The end of a lease is counted from when the time was noted, or
// from the last heartbeat.
func (s *scene) show(what string) string {
	s.t.Helper()
	switch what {
	case "lease":
		end, ends := s.LeaseEnd()
		if !ends {
			return "it has no end"
		}
		if end <= s.clock {
			return "it has ended"
		}
		since := s.since
		if since == 0 {
			since = s.leading.sentAt
		}
		return fmt.Sprint("it ends after ", end-since)
	case "presigned":
		m, ok := s.PresignedResign()
		said := fmt.Sprintf("%v by %v, %v, priority %d, term %d", described([]Effect{{Kind: EffectSend, Message: m}})[0], m.Sender, m.Algorithm, m.Priority, m.Term)
		return fmt.Sprintf("%s, leading %v: %v", said, m.Leading, ok)
	case "watch":
		leader, every := s.Watch()
		return fmt.Sprintf("%v: %v every %v", s.WatchState(), leader, every)
	case "grace":
		return s.detector.Grace().String()
	case "learned":
		return s.grace.Learned.String()
	case "wishes":
		if s.role != Follower {
			return "0s"
		}
		return s.grace.Wished().String()
	case "lesson":
		p := s.Status(s.clock).Patience
		return fmt.Sprintf("%v, lesson %v of %v", p.Grace, p.Lesson.Kind, p.Lesson.Board)
	case "multicast":
		return fmt.Sprintf("it gets none: %v, and broadcasts: %v", s.Status(s.clock).NoMulticast, s.losesMulticast())
	case "barred":
		n := s.Status(s.clock).Counts
		return fmt.Sprintf("%d, %d, %d times", n[ReasonDuplicateID], n[ReasonOtherAlgorithm], n[ReasonOtherVersion])
	case "promise":
		p := &s.votes.promise
		if p.Free(s.clock) {
			return "none"
		}
		return fmt.Sprintf("to %v, for %v", p.To, p.Until-s.clock)
	case "fence":
		return fmt.Sprintf("closed: %v", s.leading.fence.closed)
	case "signature":
		return fmt.Sprintf("priority %d, grade %d", s.Signature().Priority, s.Signature().Grade)
	}
	s.t.Fatalf("nothing is called %s", what)
	return ""
}

// tally describes effects with what they say.
func tally(effects []Effect) []string { return scenetest.Tally(described(effects)) }
