package corescene

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"topdog/wire"
)

// Core is what a core is told. E is an effect: election.Effect.
type Core[E any] interface {
	Step(now time.Duration, m *wire.Message) []E
	StepDirect(now time.Duration, m *wire.Message) []E
	StepBySecondPath(now time.Duration, m *wire.Message) []E
	DuplicateID(now time.Duration, m *wire.Message) []E
	HeardMulticast(now time.Duration, sender wire.ID)
	OtherVersion(now time.Duration, board wire.ID) []E
	Wake(now time.Duration) []E
	Suspect(now time.Duration) []E
	LostPackets(now time.Duration) []E
	Link(now time.Duration, up bool) []E
	Probed(now time.Duration, inUse bool) []E
	AddressAnswered(now, askedAt time.Duration) []E
	AddressMissed(now, since time.Duration) []E
	AddressReturned(now time.Duration) []E
	Evidence(now time.Duration) []E
	FramesHeard(now time.Duration) []E
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

// verbs has what a core is told besides messages: the method for each verb. What it takes beside the time stands behind the verb.
func verbs[E any](c Core[E]) map[string]any {
	return map[string]any{
		"wake":      c.Wake,
		"suspect":   c.Suspect,
		"lost":      c.LostPackets,
		"link":      c.Link,
		"probed":    c.Probed,
		"answered":  c.AddressAnswered,
		"missed":    c.AddressMissed,
		"returned":  c.AddressReturned,
		"evidence":  c.Evidence,
		"frames":    c.FramesHeard,
		"lapsed":    c.LeaseLapsed,
		"expired":   c.LeaseExpired,
		"clock":     c.ClockTrusted,
		"priority":  c.Reprioritise,
		"grade":     c.SetGrade,
		"score":     c.SetScore,
		"key":       c.KeyDropped,
		"resign":    c.Resign,
		"stop":      c.Stop,
		"pause":     c.Pause,
		"unpause":   c.Unpause,
		"version":   c.OtherVersion,
		"multicast": c.HeardMulticast,
		"delay":     func(_, delay time.Duration) { c.DelayPreemption(delay) },
		"named":     func(_ time.Duration, id wire.ID) { c.SuccessorNamed(id) },
		"sent":      func(_ time.Duration, beat uint32, sequence wire.Sequence) { c.Sent(beat, sequence) },
	}
}

// flags has the words for false and true behind a verb.
var flags = map[string][]string{"link": {"down", "up"}, "probed": {"free", "taken"}, "clock": {"bad", "good"}, "priority": {"stay", "preempt"}}

// Message reads a message: who says what, and more.
type Message = func(words []string) (*wire.Message, error)

// Tell tells a core at a time what the words of a step say. refused is why the core does not do what it was asked for, and err is
// about words that mean nothing.
func Tell[E any](c Core[E], now time.Duration, words []string, message Message) (effects []E, refused, err error) {
	method := reflect.ValueOf(verbs(c)[words[0]])
	if !method.IsValid() {
		effects, err = hear(c, now, words, message)
		return effects, nil, err
	}
	arguments := []reflect.Value{reflect.ValueOf(now)}
	if takes := method.Type().NumIn() - len(arguments); takes != len(words)-1 {
		return nil, nil, fmt.Errorf("%s takes %d words", words[0], takes)
	}
	for _, word := range words[1:] {
		v, text := reflect.New(method.Type().In(len(arguments))).Elem(), word
		if v.Kind() == reflect.Bool {
			text = strconv.Itoa(slices.Index(flags[words[0]], word)) // -1 is neither
		}
		if err := parse(v, text); err != nil {
			return nil, nil, fmt.Errorf("%q: %w", word, err)
		}
		arguments = append(arguments, v)
	}
	for _, result := range method.Call(arguments) {
		switch result := result.Interface().(type) {
		case []E:
			effects = result
		case error:
			refused = result
		}
	}
	return effects, refused, nil
}

// hear has a core hear a message. One with the id of this board is of another one that has the same.
func hear[E any](c Core[E], now time.Duration, words []string, message Message) ([]E, error) {
	way := words[0] // by which it comes, if that is not multicast
	if way == "direct" || way == "second" {
		words = words[1:]
	}
	m, err := message(words)
	switch {
	case err != nil:
		return nil, err
	case m.Sender == c.Signature().Sender:
		return c.DuplicateID(now, m), nil
	case way == "direct":
		return c.StepDirect(now, m), nil
	case way == "second":
		return c.StepBySecondPath(now, m), nil
	}
	return c.Step(now, m), nil
}
