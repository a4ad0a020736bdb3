package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"topdog/election/literature"
	"topdog/internal/lab/assert"
)

// pageOf reads a page of the documentation.
func pageOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs", name))
	assert.NoError(t, err)
	return string(text)
}

// TestEveryAlgorithmHasASection also looks for the table of its measured cost.
func TestEveryAlgorithmHasASection(t *testing.T) {
	doc := pageOf(t, "algorithms.md")
	for _, name := range literature.Algorithms() {
		_, section, found := strings.Cut(doc, "\n## "+name+"\n")
		if !found {
			t.Errorf("docs/algorithms.md has no section on %s", name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, want := range []string{
			"(algorithms/" + name + ".svg)", "**Messages.**", "**Cost.**", "**Choose it**", "**What it can't survive.**",
			"**What is ours.**", "<!-- measured: cost " + name + " -->\n\n| boards |",
		} {
			if !strings.Contains(section, want) {
				t.Errorf("the section on %s does not have %q", name, want)
			}
		}
	}
}

// TestMeasuredTables holds that scripts/algorithm-pictures has filled each place that it has.
func TestMeasuredTables(t *testing.T) {
	places := regexp.MustCompile(`<!-- measured: (.+) -->\n\n?(.*)\n`).FindAllStringSubmatch(pageOf(t, "algorithms.md"), -1)
	const least = 6 // tables that are not about one algorithm
	if want := least + len(literature.Algorithms()); len(places) < want {
		t.Errorf("only %d measured tables were found, want %d", len(places), want)
	}
	for _, p := range places {
		if !strings.HasPrefix(p[2], "| ") {
			t.Errorf("the table %q is empty: run scripts/algorithm-pictures", p[1])
		}
	}
}

// TestPictures: every picture of the algorithms is on a page. That links lead somewhere is a test of scripts/packaging.
func TestPictures(t *testing.T) {
	pages := pageOf(t, "algorithms.md") + pageOf(t, "simulator.md")
	pictures, err := filepath.Glob("../../../docs/algorithms/*")
	if err != nil || len(pictures) == 0 {
		t.Fatalf("%v, %v", pictures, err)
	}
	for _, p := range pictures {
		if !strings.Contains(pages, "](algorithms/"+filepath.Base(p)+")") {
			t.Errorf("%s is on no page", p)
		}
	}
}
