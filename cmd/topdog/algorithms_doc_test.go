package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"topdog/election/literature"
	"topdog/internal/lab/scenario"
)

// simPages are the pages of which this file holds that they are true.
var simPages = []string{"algorithms.md", "simulator.md"}

// pageOf reads a page of the documentation.
func pageOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
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
			target := filepath.Join("../../docs", path)
			if path == "" {
				target = filepath.Join("../../docs", name)
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
	pictures, err := filepath.Glob("../../docs/algorithms/*")
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

// simLines returns the command lines of a page, without the word topdog.
func simLines(t *testing.T, name string) [][]string {
	t.Helper()
	var all [][]string
	for _, line := range regexp.MustCompile(`(?m)^ *topdog (sim .*)$`).FindAllStringSubmatch(pageOf(t, name), -1) {
		all = append(all, strings.Fields(line[1]))
	}
	if len(all) < 3 {
		t.Fatalf("docs/%s has only %d command lines", name, len(all))
	}
	return all
}

// readRun reads a command line of `topdog sim run` without running it.
func readRun(args []string) (*scenario.Request, error) {
	r := scenario.NewRequest()
	c := &cobra.Command{}
	simRunFlags(c, r)
	if err := c.ParseFlags(args); err != nil {
		return nil, err
	}
	if err := traceFormat(r, c.Flags().Args()); err != nil {
		return nil, err
	}
	return r, r.Read()
}

// TestDocumentedCommands reads every command line of the pages.
func TestDocumentedCommands(t *testing.T) {
	for _, name := range simPages {
		for _, args := range simLines(t, name) {
			line := strings.Join(args, " ")
			var err error
			switch args[1] {
			case "run":
				_, err = readRun(args[2:])
			case "compare":
				err = simCompareCommand().ParseFlags(args[2:])
			case "--page":
				err = simCommand().ParseFlags(args[1:])
			case "tables":
				err = simTablesCommand().ParseFlags(args[2:])
			default:
				t.Errorf("docs/%s: what is %q?", name, line)
			}
			if err != nil {
				t.Errorf("docs/%s: topdog %s: %v", name, line, err)
			}
		}
	}
}

// TestPicturesAreUpToDate draws the pictures anew, with the commands beside them.
func TestPicturesAreUpToDate(t *testing.T) {
	drawn := 0
	for _, args := range simLines(t, "algorithms.md") {
		if args[1] != "run" || !slices.Contains(args, "docs/algorithms/"+filepath.Base(args[len(args)-1])) {
			continue
		}
		drawn++
		r, err := readRun(args[2:])
		if err != nil {
			t.Errorf("topdog %s: %v", strings.Join(args, " "), err)
			continue
		}
		play, err := r.Scenario.Run(context.Background(), scenario.Options{Record: true, All: r.All})
		if err != nil {
			t.Fatal(err)
		}
		var now bytes.Buffer
		if err := play.Draw(&now, r.Trace); err != nil {
			t.Fatal(err)
		}
		then, err := os.ReadFile(filepath.Join("../..", r.Out))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(then, now.Bytes()) {
			t.Errorf("%s is not what is drawn now: run scripts/algorithm-pictures --pictures, and look at it", r.Out)
		}
	}
	if want := len(literature.Algorithms()); drawn < want {
		t.Errorf("only %d pictures are drawn, want at least one for each of %d algorithms", drawn, want)
	}
}
