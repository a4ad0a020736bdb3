// Package scenetest has tests play the scenes of one core.
package scenetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/corescene"
	"topdog/internal/lab/golden"
)

// Scenes plays the scenes of testdata/scenes, each on a stage of its own. The flag -update writes anew what is done in them.
func Scenes(t *testing.T, begin func(t *testing.T, words []string) corescene.Stage) {
	paths, err := filepath.Glob("testdata/scenes/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no scenes: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			steps, err := corescene.Play(string(source), func(words []string) (corescene.Stage, error) { return begin(t, words), nil })
			if err != nil {
				t.Fatal(err)
			}
			scene := ""
			for _, step := range steps {
				if step.Names() {
					scene = step.Line
				}
				if step.Differs() && !*golden.Update {
					t.Errorf("%s: %s (-want +got):\n%s", scene, step.Line, cmp.Diff(step.Says, step.Does))
				}
			}
			if !t.Failed() {
				golden.Compare(t, path, corescene.Text(steps))
			}
		})
	}
}

// Tally makes equal lines one, with a count, at the place of the first.
func Tally(all []string) (lines []string) {
	times := make(map[string]int)
	for _, line := range all {
		if times[line]++; times[line] == 1 {
			lines = append(lines, line)
		}
	}
	for i, line := range lines {
		if n := times[line]; n > 1 {
			lines[i] = fmt.Sprintf("%s, %d times", line, n)
		}
	}
	return lines
}

// Read reads a value of a scene.
func Read[T any](t *testing.T, text string) T {
	t.Helper()
	value, err := corescene.Read[T](text)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
