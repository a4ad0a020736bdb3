package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Scene is what a scene is played on.
type Scene interface {
	// Does takes a step, and returns what is done then, a line each.
	Does(step string) []string
	// Is says what there is in the end.
	Is() string
}

// Scenes plays the scenes of testdata/scenes, each on a Scene of its own. A scene begins with "==" and its name. Its first line
// says what it begins with, and the others are steps. Below a step and indented is what is done then, and in the end what there is.
// The flag -update writes these lines anew.
func Scenes(t *testing.T, begin func(t *testing.T, words []string) Scene) {
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
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" && !*Update {
					name, _, _ := strings.Cut(want, "\n")
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
				played = append(played, got)
			}
			if *Update {
				Compare(t, path, strings.Join(played, "\n== "))
			}
		})
	}
}

// play plays a scene, and returns it with what is done now.
func play(t *testing.T, text string, begin func(t *testing.T, words []string) Scene) string {
	t.Helper()
	name, text, _ := strings.Cut(text, "\n")
	lines := []string{name}
	var s Scene
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "\t") || line == "" {
			continue
		}
		lines = append(lines, line)
		step, _, _ := strings.Cut(line, "#")
		switch words := strings.Fields(step); {
		case len(words) == 0:
		case s == nil:
			s = begin(t, words)
		default:
			for _, did := range s.Does(step) {
				lines = append(lines, "\t"+did)
			}
		}
	}
	return strings.Join(append(lines, "\t= "+s.Is()), "\n") + "\n"
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

// Number reads a number of a scene.
func Number[T ~uint8 | ~uint32](t *testing.T, text string) T {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return T(n)
}
