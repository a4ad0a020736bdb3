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

// Scenes plays the scenes of testdata/scenes, each on a stage of its own. A scene begins with "==" and its name, and package
// corescene says what follows. The flag -update writes anew what is done in it.
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
			head, scenes, _ := strings.Cut(string(source), "\n== ")
			played := []string{head}
			for want := range strings.SplitSeq(scenes, "\n== ") {
				got := play(t, want, begin)
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" && !*golden.Update {
					name, _, _ := strings.Cut(want, "\n")
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
				played = append(played, got)
			}
			if *golden.Update {
				golden.Compare(t, path, strings.Join(played, "\n== "))
			}
		})
	}
}

// play plays a scene, and returns it with what is done now.
func play(t *testing.T, text string, begin func(t *testing.T, words []string) corescene.Stage) string {
	t.Helper()
	name, text, _ := strings.Cut(text, "\n")
	lines := []string{name}
	for _, step := range corescene.Play(text, func(words []string) corescene.Stage { return begin(t, words) }) {
		lines = append(lines, step.Line)
		for _, did := range step.Does {
			lines = append(lines, "\t"+did)
		}
	}
	return strings.Join(lines, "\n") + "\n"
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
