package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// TestRecordings plays what boards have recorded. TestSceneOfATakeover of internal/daemon writes takeover.txt, and what boards on
// real networks have recorded can be put beside it.
func TestRecordings(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no recordings: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		assert.NoError(t, err)
		played, err := Play(string(text))
		assert.NoError(t, err)
		if played.Different > 0 || played.Steps < 10 {
			t.Errorf("%s: %d of %d steps differ, at first %s:\n%s", path, played.Different, played.Steps, played.First, played.Text)
		}
		if !strings.Contains(played.Text, "-> leader") {
			t.Errorf("%s: nobody takes over in it", path)
		}
	}
}
