package keepalived

import (
	"os"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// table is a section as docs/keepalived.md has it.
func (s section) table() string {
	var b strings.Builder
	b.WriteString("| keepalived | | topdog |\n|---|---|---|\n")
	for _, e := range s.entries {
		b.WriteString("| `" + strings.Join(strings.Fields(e.keywords), "` `") + "` | " + [...]string{"converted", "nothing to do", "look at it"}[e.fate] + " | " + e.text + " |\n")
	}
	return b.String()
}

// The manual has a table for each block, with the texts that the converter prints.
func TestManualHasTheTables(t *testing.T) {
	manual, err := os.ReadFile("../../../docs/keepalived.md")
	assert.NoError(t, err)
	for _, s := range sections {
		title := "### `" + s.block + "`\n"
		if s.block == "" {
			title = "### Outside of blocks\n"
		}
		_, part, found := strings.Cut(string(manual), title)
		if part, _, _ = strings.Cut(part, "\n### "); !found || !strings.Contains(part, s.table()) {
			t.Errorf("docs/keepalived.md lacks this below %q:\n%s", title, s.table())
		}
	}
}

// A keyword stands in one row of a table, and no text would break the table.
func TestKeywordsStandOnce(t *testing.T) {
	for _, s := range sections {
		seen := map[string]bool{}
		for _, e := range s.entries {
			if strings.ContainsAny(e.text, "|\n") || e.text == "" {
				t.Errorf("%s: %q", e.keywords, e.text)
			}
			for _, k := range strings.Fields(e.keywords) {
				if seen[k] {
					t.Errorf("%s: %s stands twice", s.block, k)
				}
				seen[k] = true
			}
		}
	}
}
