// Package documented compares the tables of names in a document with the names that a program has. Who writes a
// script against the JSON of topdog finds each of them there, and none that does not exist.
package documented

import (
	"cmp"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// Keys returns the names that a type has in JSON.
func Keys[T any]() (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if field.Anonymous {
			continue // its fields are listed themselves
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, cmp.Or(name, "no name: "+field.Name))
	}
	return names
}

// row is one of a table that begins with a name as in `name`.
var row = regexp.MustCompile("^\\| `([a-z_]+)` \\|")

// Tables returns what the first columns of the tables of a document say, by the heading above them: in the chapter of that
// heading, or everywhere if it is "".
func Tables(t testing.TB, path, chapter string) map[string][]string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	if chapter != "" {
		_, after, found := strings.Cut(text, "\n## "+chapter+"\n")
		if !found {
			t.Fatalf("%s has no chapter %q", path, chapter)
		}
		text, _, _ = strings.Cut(after, "\n## ")
	}
	tables, section := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			section = strings.TrimSpace(heading)
		}
		if name := row.FindStringSubmatch(line); name != nil {
			tables[section] = append(tables[section], name[1])
		}
	}
	return tables
}

// Compare fails the test if a table has other names than these, or if there is a table of names in another section.
func Compare(t testing.TB, path, chapter string, want map[string][]string) {
	t.Helper()
	tables := Tables(t, path, chapter)
	for section, names := range want {
		got := tables[section]
		delete(tables, section)
		slices.Sort(got)
		slices.Sort(names)
		if diff := gocmp.Diff(names, got); diff != "" {
			t.Errorf("%s, section %q (-exists +documented):\n%s", path, section, diff)
		}
	}
	for section := range tables {
		t.Errorf("%s has a table of names in the section %q, which this test does not know", path, section)
	}
}

var keyOfReference = regexp.MustCompile(`(?m)^#{0,2}([a-z_]+) = `)

// ConfigKeys returns the keys that the reference of the configuration has, in its order. It has all of them, as a test
// of package config holds.
func ConfigKeys(reference []byte) (keys []string) {
	for _, match := range keyOfReference.FindAllSubmatch(reference, -1) {
		keys = append(keys, string(match[1]))
	}
	return keys
}
