package simpage

import (
	"cmp"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestEveryNameOfTheJSONIsDocumented holds that each table of docs/simulator.md has the names that
// programs can rely on, and none that does not exist.
func TestEveryNameOfTheJSONIsDocumented(t *testing.T) {
	tables := documented(t)
	for section, want := range map[string][]string{
		"Run":               keys[run](),
		"Choice":            keys[choice](),
		"Kinds of failures": failureNames(),
		"Lane":              keys[lane](),
		"State of a board":  keys[state](),
		"Step of a run":     keys[step](),
		"Kinds of steps":    append(slices.Collect(maps.Values(stepKinds)), kindLook),
		"Copies":            keys[copies](),
		"Fates":             slices.Collect(maps.Values(fates)),
		"End":               keys[end](),
		"Figure":            keys[figure](),
		"Comparison":        keys[comparison](),
	} {
		got := tables[section]
		delete(tables, section)
		slices.Sort(got)
		slices.Sort(want)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("docs/simulator.md, section %q (-exists +documented):\n%s", section, diff)
		}
	}
	for section := range tables {
		t.Errorf("docs/simulator.md has a table of names in the section %q, which this test does not know", section)
	}
}

// documented returns what the first columns of the tables say, by the heading above them.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, found := strings.Cut(string(text), "\n## In the browser\n")
	page, _, ends := strings.Cut(page, "\n## ")
	if !found || !ends {
		t.Fatal("docs/simulator.md has no section about the browser")
	}
	row := regexp.MustCompile("^\\| `([a-z_]+)` \\|")
	tables, section := map[string][]string{}, ""
	for line := range strings.Lines(page) {
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			section = strings.TrimSpace(heading)
		}
		if name := row.FindStringSubmatch(line); name != nil {
			tables[section] = append(tables[section], name[1])
		}
	}
	return tables
}

// keys returns the names that a type has in JSON.
func keys[T any]() (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, cmp.Or(name, "no name: "+field.Name))
	}
	return names
}
