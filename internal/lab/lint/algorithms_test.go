package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"topdog/election/literature"
	"topdog/internal/lab/assert"
)

// simPages are the pages about algorithms and the simulator.
var simPages = []string{"algorithms.md", "simulator.md"}

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

var linked = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)

// TestLinks follows those links of the pages that do not lead out of the repository. All pictures
// must be there, and none without a page that shows it.
func TestLinks(t *testing.T) {
	shown := make(map[string]bool)
	for _, name := range simPages {
		for _, link := range linked.FindAllStringSubmatch(pageOf(t, name), -1) {
			path, anchor := link[1], link[2]
			if strings.HasPrefix(path, "https:") {
				continue
			}
			target := filepath.Join("../../../docs", path)
			if path == "" {
				target = filepath.Join("../../../docs", name)
			}
			text, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("docs/%s: %v", name, err)
				continue
			}
			shown[filepath.Base(path)] = true
			if anchor != "" && !slices.Contains(anchors(string(text)), anchor) {
				t.Errorf("docs/%s: there is no heading %q in %s", name, anchor, target)
			}
		}
	}
	pictures, err := filepath.Glob("../../../docs/algorithms/*")
	if err != nil || len(pictures) == 0 {
		t.Fatalf("%v, %v", pictures, err)
	}
	for _, p := range pictures {
		if !shown[filepath.Base(p)] {
			t.Errorf("%s is on no page", p)
		}
	}
}

// anchors makes of headings what GitHub makes of them.
func anchors(text string) []string {
	var all []string
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		a := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		all = append(all, strings.ReplaceAll(a, " ", "-"))
	}
	return all
}
