package wire

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	goldenfile "topdog/internal/lab/golden"
)

// stage is where the scenes of testdata/guard.txt are played, whose beginning says what the lines mean.
type stage struct {
	t        testing.TB
	guard    *Guard
	now      time.Duration
	speakers map[string]*speaker
	kept     map[string]*Message
}

func newStage(t testing.TB, authenticated bool) *stage {
	return &stage{
		t: t, guard: newGuard(authenticated), kept: map[string]*Message{},
		speakers: map[string]*speaker{
			"a": newSpeaker(2, 20), "a2": newSpeaker(2, 21), "b": newSpeaker(3, 30),
			"us": newSpeaker(us, ourInc), "us2": newSpeaker(us, ourInc+1), "twin": newSpeaker(us, 20), "neighbour": newSpeaker(us+1, ourInc),
			"double": newSpeaker(2, 20), "thief": {contact{2, 20}, ^Sequence(0) - 1, keyA},
		},
	}
}

// keyOf is the key of this name.
func keyOf(name string) Fingerprint { return map[string]Fingerprint{"A": keyA, "B": keyB}[name] }

// message makes what the speaker says by these words, and returns the words that are left.
func (s *stage) message(who *speaker, words []string) (*Message, []string) {
	m := who.says(0)
	for m.Type = range Type(len(types)) {
		if types[m.Type].name == words[0] {
			break
		}
	}
	if m.Type.String() != words[0] {
		s.t.Fatalf("there is no message %s", words[0])
	}
	words = words[1:]
	switch m.Type {
	case TypeChallenge:
		target := s.speakers[words[0]]
		m.Challenge = Challenge{Target: target.id, Incarnation: target.incarnation, Nonce: Nonce{0xcc, 15: byte(m.Sequence)}}
		words = words[1:]
	case TypeProof:
		nonce, err := strconv.Atoi(words[0])
		assert.NoError(s.t, err)
		m.Proof.Nonce = Nonce{15: byte(nonce)}
		words = words[1:]
	}
	if len(words) > 0 && keyOf(words[0]) != 0 {
		m.Key = keyOf(words[0])
		words = words[1:]
	}
	return m, words
}

// play does what a line says, and returns what the guard says to it.
func (s *stage) play(words []string) string {
	if now, err := time.ParseDuration(words[0]); err == nil {
		s.now, words = now, words[1:]
	}
	if times, err := strconv.Atoi(words[0]); err == nil {
		said := s.play(words[1:])
		for range times - 1 {
			if again := s.play(words[1:]); again != said {
				return said + "; then " + again
			}
		}
		return said
	}
	if words[0] == "accepts" {
		keys := Keys{Signs: keyOf(words[1])}
		if len(words) > 2 {
			keys.Also = keyOf(words[2])
		}
		s.guard.AcceptKeys(keys)
		return ""
	}
	source := here
	if words[len(words)-1] == "elsewhere" {
		source, words = elsewhere, words[:len(words)-1]
	}
	if m := s.kept[words[0]]; m != nil { // again
		return s.verdict(m, s.guard.Admit(s.now, source, m))
	}
	who := s.speakers[words[0]]
	switch words[1] {
	case "listened?":
		return fmt.Sprint(s.guard.listensTo(who.contact))
	case "meets":
		if key := keyOf(words[len(words)-1]); key != 0 {
			who.key = key
		}
		m := who.proves(s.t, s.guard.Admit(s.now, source, who.says(TypeHello)))
		who.key = keyA
		return s.verdict(m, s.guard.Admit(s.now, source, m))
	case "keeps":
		m, rest := s.message(who, words[2:])
		s.kept[rest[1]] = m
		return ""
	}
	m, rest := s.message(who, words[1:])
	if len(rest) > 0 {
		s.kept[rest[1]] = m
	}
	return s.verdict(m, s.guard.Admit(s.now, source, m))
}

// verdict says all that is in it.
func (s *stage) verdict(m *Message, v Verdict) string {
	said := []string{v.Drop.String()}
	if v.Namesake {
		said = append(said, "a namesake")
	}
	if v.ReplyByMulticast {
		said = append(said, "by multicast")
	}
	for _, reply := range v.Replies {
		if reply.Type == TypeProof {
			expect(s.t, "the answer to "+m.String(), Verdict{Replies: []Message{reply}}, Verdict{Replies: []Message{proofOf(m)}})
			said = append(said, "proof")
			continue
		}
		nonce := reply.Challenge.Nonce[15]
		want := challengeTo(&speaker{contact: contact{m.Sender, m.Incarnation}}, nonce)
		expect(s.t, "the question to "+m.String(), Verdict{Replies: []Message{reply}}, Verdict{Replies: []Message{want}})
		said = append(said, fmt.Sprintf("challenge %d", nonce))
	}
	return strings.Join(said, ", ")
}

func TestGuardScenes(t *testing.T) {
	const path = "testdata/guard.txt"
	script, err := os.ReadFile(path)
	assert.NoError(t, err)
	var played strings.Builder
	var s *stage
	for line := range strings.Lines(string(script)) {
		line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " -> ")
		said := ""
		switch words := strings.Fields(line); {
		case len(words) == 0 || words[0] == "#":
		case line == "plain" || line == "authenticated":
			s = newStage(t, line == "authenticated")
		default:
			said = s.play(words)
		}
		played.WriteString(line)
		if said != "" {
			fmt.Fprintf(&played, " -> %s", said)
		}
		played.WriteString("\n")
	}
	goldenfile.Compare(t, path, played.String())
}
