package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

// This makes the default of name independent of the machine that the tests run on.
func init() { hostname = func() (string, error) { return "pi3.example.org", nil } }

const good = "address = \"192.168.1.250\"\n"

// manyChecks are so many different checks.
func manyChecks(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("[[check]]\ntcp = \"127.0.0.1:%d\"\n", i+1)
	}
	return text
}

// badFile is one that Parse refuses.
type badFile struct{ name, text string }

// badFiles are those of testdata/errors.golden, each between a line === and a line ---.
func badFiles(t testing.TB) (files []badFile) {
	t.Helper()
	golden, err := os.ReadFile("testdata/errors.golden")
	assert.NoError(t, err)
	for section := range strings.SplitSeq(string(golden), "=== ") {
		name, rest, _ := strings.Cut(section, "\n")
		if text, _, found := strings.Cut(rest, "---\n"); found {
			files = append(files, badFile{name, text})
		}
	}
	return files
}

// strangeFiles have what an editor does not show, or not keep.
var strangeFiles = []badFile{
	{"control character in a text", good + "name = \"a\ab\"\n"},
	{"not UTF-8", good + "group = \"K\xfcche\"\n"},
	{"windows line ends and tabs", "address = \"192.168.1.250\"\r\n\tpriority\t=\t\"x\"\r\n"},
	{"long line", good + "name = \"" + strings.Repeat("n", 300) + "\"  # " + strings.Repeat("c", 300) + "\n"},
	{"check: too many", good + manyChecks(17)},
}

// What Parse says about a file is behind it in testdata/errors.golden, to be read as a whole: the messages are the work.
// A new file is written there, and go test -update adds the message.
func TestErrorMessages(t *testing.T) {
	var got strings.Builder
	refused := func(f badFile, shown string) {
		_, err := ParseGroups("topdog.toml", []byte(f.text))
		if err == nil {
			t.Errorf("%s: accepted:\n%s", f.name, f.text)
			return
		}
		checkProblems(t, err, f.text)
		fmt.Fprintf(&got, "=== %s\n%s%s\n\n", f.name, shown, err)
	}
	files := badFiles(t)
	for _, f := range files {
		refused(f, f.text+"---\n")
	}
	for _, f := range strangeFiles {
		refused(f, "")
	}
	if len(files) < 150 {
		t.Errorf("only %d files were found", len(files))
	}
	golden.Compare(t, "testdata/errors.golden", got.String())
}

// checkProblems holds every error to what Errors promises.
func checkProblems(t *testing.T, err error, text string) {
	t.Helper()
	var problems Errors
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("the error is not an Errors: %#v", err)
	}
	lines := 1 + strings.Count(text, "\n")
	for i, p := range problems {
		if p.Line < 1 || p.Line > lines || p.Column < 1 {
			t.Errorf("problem %d is outside the file of %d lines: %d:%d", i, lines, p.Line, p.Column)
		}
		if i > 0 && p.Line < problems[i-1].Line {
			t.Errorf("problem %d is not in the order of the lines", i)
		}
		if p.Message == "" || strings.ContainsAny(p.Message+p.Hint+p.source, "\n\x1b\x00") {
			t.Errorf("problem %d has a message that is empty or unfit for a terminal: %q %q %q", i, p.Message, p.Hint, p.source)
		}
		// Words of Go, or of go-toml's insides, do not belong in front of a user.
		for _, word := range []string{"struct", "config.", "unstable", "U+", "uint", "%!", "toml:"} {
			if strings.Contains(p.Message, word) && !strings.Contains(text, word) {
				t.Errorf("problem %d speaks of %q: %s", i, word, p.Message)
			}
		}
	}
	if len(problems) > maxProblems+1 {
		t.Errorf("%d problems are more than anyone reads", len(problems))
	}
}

// A key or password must not reach the journal by way of an error message.
func TestErrorsKeepSecrets(t *testing.T) {
	for _, text := range []string{
		good + "key = \"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"\n",
		good + "key_file = \"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"\n",
		good + "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n",
		good + "password = 00112233 hunter2\n",
		good + "secret: hunter2 # 00112233\n",
		good + "Pass-Phrase = \"hunter2, 00112233\"\n", // not a known name, and not hidden: see below
	} {
		_, err := ParseGroups("topdog.toml", []byte(text))
		if err == nil {
			t.Fatalf("accepted:\n%s", text)
		}
		if strings.Contains(text, "Pass-Phrase") {
			continue // the guard against a test that hides everything: this one shows its line
		}
		if strings.Contains(err.Error(), "00112233") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the message gives the secret away:\n%s", err)
		}
	}
}

func TestExcerptStaysUnderTheMark(t *testing.T) {
	line := strings.Repeat("a", 200) + "HERE" + strings.Repeat("b", 200)
	for column := 1; column <= len(line); column++ {
		shown, indent := excerpt(line, column)
		at := len([]rune(indent))
		if got, want := []rune(shown)[at], []rune(line)[column-1]; got != want {
			t.Fatalf("column %d: the mark is under %q, not %q", column, got, want)
		}
		if n := len([]rune(shown)); n > maxExcerpt+2 {
			t.Fatalf("column %d: the excerpt has %d characters", column, n)
		}
	}
}
