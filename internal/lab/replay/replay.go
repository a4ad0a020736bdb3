// Package replay plays again what a running board has recorded (package record of election, topdog trace --scene): it gives a
// core of this program the same state, and tells it the same.
package replay

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/corescene"
	"topdog/wire"
)

// Result is a recording that was played.
type Result struct {
	Text      string // as it was played; what was recorded stands behind a # where that is something else
	Steps     int
	Different int
	First     string // the first step that differs
	// Core is that of the last scene, as it is in the end.
	Core *election.Core
}

// Play plays all scenes of a recording.
func Play(text string) (r Result, err error) {
	var b *board
	steps, err := corescene.Play(text, func(words []string) (corescene.Stage, error) {
		b, err = begin(words)
		return b, err
	})
	if err == nil && b == nil {
		err = errors.New("there is no scene in it: a line that begins with == begins one")
	}
	if err != nil {
		return r, err
	}
	for i := range steps {
		step := &steps[i]
		if !step.Differs() {
			continue
		}
		if r.Different++; r.Different == 1 {
			r.First = step.Line
		}
		if len(step.Says) == 0 {
			step.Says = []string{"nothing"}
		}
		for _, says := range step.Says {
			step.Does = append(step.Does, "# recorded: "+says)
		}
	}
	r.Text, r.Steps, r.Core = corescene.Text(steps), len(steps), b.core
	return r, nil
}

// board is a core that gets a state, and is told what was recorded.
type board struct {
	core  *election.Core
	clock time.Duration
}

// begin makes a core of that configuration, without a state.
func begin(words []string) (*board, error) {
	if words[0] != "recorded" {
		return nil, errors.New(`a scene to be played again begins with "recorded" and the configuration of its board`)
	}
	var cfg election.Config
	if err := corescene.SetWords(&cfg, "", words[1:]); err != nil {
		return nil, err
	}
	core, err := literature.NewCore(cfg, 0)
	if err != nil {
		return nil, err
	}
	corescene.Clear(reflect.ValueOf(core).Elem(), "cfg", "definition", "timetable")
	return &board{core: core}, nil
}

// Does gives the core a part of its state, or tells it something.
func (b *board) Does(step string) (lines []string, err error) {
	if part, found := strings.CutPrefix(step, "state"); found {
		topic, words, _ := strings.Cut(part, ":")
		return nil, corescene.SetWords(b.core, strings.TrimSpace(topic), strings.Fields(words))
	}
	words := strings.Fields(step)
	if words[0] == "at" && len(words) > 2 {
		if b.clock, err = corescene.Read[time.Duration](strings.TrimSuffix(words[1], ":")); err != nil {
			return nil, err
		}
		words = words[2:]
	}
	effects, refused, err := corescene.Tell[election.Effect](b.core, b.clock, words, message)
	for i := range effects {
		lines = append(lines, string(effects[i].Append(nil)))
	}
	if refused != nil {
		lines = append(lines, "error: "+refused.Error())
	}
	return lines, err
}

// Is says what the board is, and whom it follows.
func (b *board) Is() string { return fmt.Sprintf("%v of %v", b.core.Role(), b.core.Leader()) }

// message reads a message that was recorded, with all that a core looks at.
func message(words []string) (*wire.Message, error) {
	base := func(sender wire.ID, kind wire.Type) *wire.Message {
		return &wire.Message{Header: wire.Header{Sender: sender, Type: kind}}
	}
	return corescene.ReadMessage(words, base, func(*wire.Message, string, string) bool { return false })
}
