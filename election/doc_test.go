package election

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// TestDocumentedNames: what the documentation of this package calls a file is one, and the waiting times in its table are
// found in the code by the names that they have there.
func TestDocumentedNames(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	assert.NoError(t, err)
	for _, name := range regexp.MustCompile(`\b\w+\.go\b`).FindAllString(string(doc), -1) {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("doc.go names the file %s: %v", name, err)
		}
	}
	words := make(map[string]bool)
	for _, pattern := range []string{"*.go", "*/*.go"} {
		files, err := filepath.Glob(pattern)
		assert.NoError(t, err)
		for _, file := range files {
			if file == "doc.go" || strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			assert.NoError(t, err)
			for _, word := range regexp.MustCompile(`\w+`).FindAllString(string(source), -1) {
				words[word] = true
			}
		}
	}
	_, table, found := strings.Cut(string(doc), "// # Times\n")
	rows := regexp.MustCompile(`(?m)^//\t(?:[GHT] = )?([\w.]+)`).FindAllStringSubmatch(table, -1)
	if !found || len(rows) < 40 {
		t.Fatalf("the table of waiting times has %d rows", len(rows))
	}
	for _, row := range rows {
		for word := range strings.SplitSeq(row[1], ".") {
			if !words[word] {
				t.Errorf("the table has %s, and %s is not in the code", row[1], word)
			}
		}
	}
}
