package packaging

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// Every link of the documentation that leads to no other machine leads somewhere,
// in the repository and in the package, whose layout is another one.
func TestLinks(t *testing.T) {
	t.Run("repository", func(t *testing.T) { checkLinks(t, root) })
	t.Run("package", func(t *testing.T) {
		checkLinks(t, filepath.Join(filesOf(t, ownArch), "usr/share/doc/topdog"))
	})
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// What is between these is shown as it is.
	literal = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
)

func checkLinks(t *testing.T, dir string) {
	var pages []string
	for _, pattern := range []string{"docs/*.md", "docs/recipes/*.md", "README.md", ".github/*.md", "SECURITY.md"} {
		some, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		pages = append(pages, some...)
	}
	const few = 30 // if it finds fewer, this test looks in the wrong place
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, m := range link.FindAllStringSubmatch(literal.ReplaceAllString(string(text), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			found++
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			switch content, err := os.ReadFile(file); {
			case err != nil:
				t.Errorf("%s: the link to %s: %v", filepath.Base(page), m[1], err)
			case anchor != "" && !anchors(string(content))[anchor]:
				t.Errorf("%s: the link to %s: no such heading there", filepath.Base(page), m[1])
			}
		}
	}
	if found < few {
		t.Errorf("only %d links were found", found)
	}
}

// anchors returns the names that a page's headings have as targets of links:
// small letters, hyphens for spaces, and no punctuation.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return all
}
