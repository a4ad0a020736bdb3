//go:build !board

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
	"topdog/internal/lab/assert"
	"topdog/internal/lab/scenario"
)

// simPages are the pages of which this file holds that they are true.
var simPages = []string{"algorithms.md", "simulator.md"}

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
	if err := optionalValue(&r.Trace, scenario.Formats()[0], c.Flags().Args()); err != nil {
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
		assert.NoError(t, err)
		var now bytes.Buffer
		assert.NoError(t, play.Draw(&now, r.Trace))
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
