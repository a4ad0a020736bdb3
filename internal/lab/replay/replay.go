// Package replay plays again what a running board has recorded (package record of election, topdog trace --scene): it gives a
// core of this program the same state, and tells it the same.
package replay

import (
	"fmt"
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
	head, scenes, found := strings.Cut("\n"+text, "\n== ")
	if !found {
		return r, fmt.Errorf("there is no scene in it: a line that begins with == begins one")
	}
	var played strings.Builder
	fmt.Fprintln(&played, strings.TrimSpace(head))
	for scene := range strings.SplitSeq(scenes, "\n== ") {
		name, steps, _ := strings.Cut(scene, "\n")
		fmt.Fprintf(&played, "\n== %s\n", name)
		b := &board{}
		for _, step := range corescene.Play(steps, b.begin) {
			fmt.Fprintln(&played, step.Line)
			for _, did := range step.Does {
				fmt.Fprintf(&played, "\t%s\n", did)
			}
			r.Steps++
			if !step.Differs() {
				continue
			}
			if r.Different++; r.Different == 1 {
				r.First = step.Line
			}
			for _, says := range step.Says {
				fmt.Fprintf(&played, "\t# recorded: %s\n", says)
			}
			if len(step.Says) == 0 {
				fmt.Fprintln(&played, "\t# recorded: nothing")
			}
		}
		if b.err != nil {
			return r, b.err
		}
		r.Core = b.core
	}
	r.Text = played.String()
	return r, nil
}

// board is a core that gets a state, and is told what was recorded.
type board struct {
	core  *election.Core
	clock time.Duration
	err   error // the first mistake in the text; nothing is done after it
}

// begin makes a core of that configuration.
func (b *board) begin(words []string) corescene.Stage {
	var cfg election.Config
	if words[0] != "recorded" {
		b.err = fmt.Errorf("a scene to be played again begins with \"recorded\" and the configuration of its board, not with %q", words[0])
	}
	b.fail(corescene.SetWords(&cfg, "", words[1:]), words[0])
	if b.err == nil {
		if b.core, b.err = literature.NewCore(cfg, 0); b.err == nil {
			corescene.Clear(b.core, "cfg", "definition", "timetable")
		}
	}
	return b
}

// fail keeps the first mistake.
func (b *board) fail(err error, step string) {
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("%s: %w", step, err)
	}
}

// Does gives the core a part of its state, or tells it something.
func (b *board) Does(step string) (lines []string) {
	if b.err != nil {
		return nil
	}
	words := strings.Fields(step)
	if part, found := strings.CutPrefix(step, "state"); found {
		topic, words, _ := strings.Cut(part, ":")
		b.fail(corescene.SetWords(b.core, strings.TrimSpace(topic), strings.Fields(words)), step)
		return nil
	}
	if words[0] == "at" && len(words) > 2 {
		clock, err := corescene.Read[time.Duration](strings.TrimSuffix(words[1], ":"))
		b.fail(err, step)
		b.clock, words = clock, words[2:]
	}
	effects, refused, err := corescene.Tell[election.Effect](b.core, b.clock, words, message)
	b.fail(err, step)
	for i := range effects {
		lines = append(lines, string(effects[i].Append(nil)))
	}
	if refused != nil {
		lines = append(lines, "error: "+refused.Error())
	}
	return lines
}

// Is says what the board is, and whom it follows.
func (b *board) Is() string {
	if b.core == nil {
		return "nothing"
	}
	return fmt.Sprintf("%v of %v", b.core.Role(), b.core.Leader())
}

// message reads a message that was recorded, with all that a core looks at.
func message(words []string) (*wire.Message, error) {
	base := func(sender wire.ID, kind wire.Type) *wire.Message {
		return &wire.Message{Header: wire.Header{Sender: sender, Type: kind}}
	}
	return corescene.ReadMessage(words, base, func(m *wire.Message, word string) error { return corescene.SetWords(m, "", []string{word}) })
}
