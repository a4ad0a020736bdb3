// Package corescene has the language of scenes of one core: what one board is told, a line each, and below it what it does
// then. The golden files of the elections are written in it, and what a running board has recorded (package record of
// election). It does not import election, so that the tests of that package can use it.
package corescene

import (
	"fmt"
	"strings"
	"time"

	"topdog/wire"
)

// Stage is what a scene is played on.
type Stage interface {
	// Does takes a step, and returns what is done then, a line each.
	Does(step string) []string
	// Is says what there is in the end.
	Is() string
}

// Step is a line of a scene.
type Step struct {
	Line string
	Says []string // what is done then, as the text says
	Does []string // what is done now
}

// Differs reports whether something else is done than the text says.
func (s *Step) Differs() bool { return strings.Join(s.Says, "\n") != strings.Join(s.Does, "\n") }

// Play plays a scene: what follows its name. Its first line says what it begins with, and the others are steps. A # begins a
// comment. Below a step and indented is what is done then, and in the end what there is.
func Play(text string, begin func(words []string) Stage) (steps []Step) {
	for line := range strings.Lines(text) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "" || strings.HasPrefix(line, "\t#"):
		case line[0] != '\t':
			steps = append(steps, Step{Line: line})
		case len(steps) > 0:
			last := &steps[len(steps)-1]
			last.Says = append(last.Says, line[1:])
		}
	}
	var stage Stage
	for i := range steps {
		step, _, _ := strings.Cut(steps[i].Line, "#")
		switch words := strings.Fields(step); {
		case len(words) == 0:
		case stage == nil:
			stage = begin(words)
		default:
			steps[i].Does = stage.Does(step)
		}
	}
	if stage != nil {
		last := &steps[len(steps)-1]
		last.Does = append(last.Does, "= "+stage.Is())
	}
	return steps
}

// Core is what a core is told. E is an effect: election.Effect.
type Core[E any] interface {
	Step(now time.Duration, m *wire.Message) []E
	StepDirect(now time.Duration, m *wire.Message) []E
	DuplicateID(now time.Duration, m *wire.Message) []E
	HeardMulticast(now time.Duration, sender wire.ID)
	OtherVersion(now time.Duration, board wire.ID) []E
	Wake(now time.Duration) []E
	Suspect(now time.Duration) []E
	LostPackets(now time.Duration) []E
	Link(now time.Duration, up bool) []E
	Probed(now time.Duration, inUse bool) []E
	AddressAnswered(now, askedAt time.Duration) []E
	Evidence(now time.Duration) []E
	LeaseLapsed(now, end time.Duration) []E
	LeaseExpired(now time.Duration) []E
	ClockTrusted(now time.Duration, trusted bool) []E
	Reprioritise(now time.Duration, priority uint8, preempt bool) []E
	DelayPreemption(delay time.Duration)
	SetGrade(now time.Duration, grade wire.Grade) []E
	SetScore(now time.Duration, score uint32) []E
	KeyDropped(now time.Duration, key wire.Fingerprint) []E
	Resign(now time.Duration) ([]E, error)
	Stop(now time.Duration) []E
	Pause(now, length time.Duration) ([]E, error)
	Unpause(now time.Duration) ([]E, error)
	SuccessorNamed(id wire.ID)
	Sent(beat uint32, sequence wire.Sequence)
	Signature() wire.Header
}

// Message reads a message: who says what, and more.
type Message = func(words []string) (*wire.Message, error)

// Tell tells a core at a time what the words of a step say. refused is why the core does not do what it was asked for, and err is
// about words that mean nothing.
func Tell[E any](c Core[E], now time.Duration, words []string, message Message) (effects []E, refused, err error) {
	r := reader{words: words[1:]}
	switch words[0] {
	case "wake":
		effects = c.Wake(now)
	case "suspect":
		effects = c.Suspect(now)
	case "lost":
		effects = c.LostPackets(now)
	case "link":
		effects = c.Link(now, r.oneOf("down", "up"))
	case "probed":
		effects = c.Probed(now, r.oneOf("free", "taken"))
	case "answered":
		effects = c.AddressAnswered(now, read[time.Duration](&r))
	case "evidence":
		effects = c.Evidence(now)
	case "lapsed":
		effects = c.LeaseLapsed(now, read[time.Duration](&r))
	case "expired":
		effects = c.LeaseExpired(now)
	case "clock":
		effects = c.ClockTrusted(now, r.oneOf("bad", "good"))
	case "priority":
		priority := read[uint8](&r)
		effects = c.Reprioritise(now, priority, len(r.words) > 0 && r.oneOf("stay", "preempt"))
	case "delay":
		c.DelayPreemption(read[time.Duration](&r))
	case "grade":
		effects = c.SetGrade(now, read[wire.Grade](&r))
	case "score":
		effects = c.SetScore(now, read[uint32](&r))
	case "key":
		effects = c.KeyDropped(now, read[wire.Fingerprint](&r))
	case "resign":
		effects, refused = c.Resign(now)
	case "stop":
		effects = c.Stop(now)
	case "pause":
		effects, refused = c.Pause(now, read[time.Duration](&r))
	case "unpause":
		effects, refused = c.Unpause(now)
	case "named":
		c.SuccessorNamed(read[wire.ID](&r))
	case "sent":
		beat := read[uint32](&r)
		c.Sent(beat, read[wire.Sequence](&r))
	case "version":
		effects = c.OtherVersion(now, read[wire.ID](&r))
	case "multicast":
		c.HeardMulticast(now, read[wire.ID](&r))
	default:
		return hear(c, now, words, message)
	}
	return effects, refused, r.err
}

// hear has a core hear a message. One with the id of this board is of another one that has the same.
func hear[E any](c Core[E], now time.Duration, words []string, message Message) (effects []E, _, err error) {
	direct := words[0] == "direct" // it does not come by multicast
	if direct {
		words = words[1:]
	}
	m, err := message(words)
	switch {
	case err != nil:
	case m.Sender == c.Signature().Sender:
		effects = c.DuplicateID(now, m)
	case direct:
		effects = c.StepDirect(now, m)
	default:
		effects = c.Step(now, m)
	}
	return effects, nil, err
}

// reader reads the words behind a verb. A call with a word that was misread does no harm: the scene ends with the error.
type reader struct {
	words []string
	err   error
}

func (r *reader) next() string {
	if len(r.words) == 0 {
		r.err = fmt.Errorf("a word is missing")
		return ""
	}
	word := r.words[0]
	r.words = r.words[1:]
	return word
}

// oneOf reports whether the next word is the second one of two.
func (r *reader) oneOf(first, second string) bool {
	word := r.next()
	if word != first && word != second {
		r.err = fmt.Errorf("%q is neither %s nor %s", word, first, second)
	}
	return word == second
}

func read[T any](r *reader) (value T) {
	if word := r.next(); r.err == nil {
		value, r.err = Read[T](word)
	}
	return value
}
