package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

const (
	pages       = "../../../docs/recipes"
	topdogTOML  = "/etc/topdog/topdog.toml"
	fence       = "```"
	indexPage   = "README.md"
	floating    = "192.168.1.250" // the floating address in all recipes
	boardPrefix = "192.168.1."    // and what their other addresses begin with
)

// files reads the files that a recipe tells people to write: of each fenced block with a path
// behind its language, the text.
func files(t testing.TB, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pages, page))
	assert.NoError(t, err)
	found := map[string]string{}
	var path string
	inside := false
	for line := range strings.Lines(string(text)) {
		rest, isFence := strings.CutPrefix(strings.TrimSpace(line), fence)
		switch {
		case isFence && inside:
			inside, path = false, ""
		case isFence:
			inside = true
			if _, path, _ = strings.Cut(rest, " "); path == "" {
				continue
			}
			if _, again := found[path]; again {
				t.Errorf("%s has two blocks of %s: people copy the first", page, path)
			}
			// The path in the first line of a block is not shown where the page is rendered.
			if before, _, _ := strings.Cut(string(text), fence+rest); !strings.Contains(before, "`"+path+"`") {
				t.Errorf("%s does not say that the block of %s is that file", page, path)
			}
			found[path] = ""
		case inside && path != "":
			found[path] += line
		}
	}
	if inside {
		t.Errorf("%s: a block has no end", page)
	}
	return found
}

// allPages returns the names of the recipes' pages.
func allPages(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(pages, "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recipes in %s: %v", pages, err)
	}
	var names []string
	for _, path := range paths {
		if name := filepath.Base(path); name != indexPage {
			names = append(names, name)
		}
	}
	return names
}
