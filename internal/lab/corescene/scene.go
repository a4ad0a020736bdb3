// Package corescene has the language of scenes of one core: what one board is told, a line each, and below it what it does
// then. The golden files of the elections are written in it, and what a running board has recorded (package record of
// election). It does not import election, so that the tests of that package can use it.
package corescene

import (
	"fmt"
	"slices"
	"strings"
)

// Stage is what a scene is played on.
type Stage interface {
	// Does takes a step, and returns what is done then, a line each. An error says that the step means nothing.
	Does(step string) ([]string, error)
	// Is says what there is in the end.
	Is() string
}

// Step is a line of a text of scenes.
type Step struct {
	Line string
	Says []string // what is done then, as the text says
	Does []string // what is done now
}

// Names reports whether the line begins a scene: behind "== " is its name.
func (s *Step) Names() bool { return strings.HasPrefix(s.Line, "== ") }

// Differs reports whether something else is done than the text says.
func (s *Step) Differs() bool { return !slices.Equal(s.Says, s.Does) }

// Play plays the scenes of a text, each on a stage of its own. The line behind the name says what the stage begins with, and the
// others are steps. A # begins a comment. Below a step and indented is what is done then, and in the end what there is.
func Play(text string, begin func(words []string) (Stage, error)) (steps []Step, err error) {
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
		step := &steps[i]
		line, _, _ := strings.Cut(step.Line, "#")
		switch words := strings.Fields(line); {
		case len(words) == 0:
		case step.Names():
			stage = nil
		case stage == nil:
			stage, err = begin(words)
		default:
			step.Does, err = stage.Does(line)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.Line, err)
		}
		if stage != nil && (i == len(steps)-1 || steps[i+1].Names()) {
			step.Does = append(step.Does, "= "+stage.Is())
		}
	}
	return steps, nil
}

// Text returns the text of what was played, with what is done now.
func Text(steps []Step) string {
	var b strings.Builder
	for _, step := range steps {
		if step.Names() {
			fmt.Fprintln(&b)
		}
		fmt.Fprintln(&b, step.Line)
		for _, line := range step.Does {
			fmt.Fprintf(&b, "\t%s\n", line)
		}
	}
	return b.String()
}
