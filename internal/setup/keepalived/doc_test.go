package keepalived

import (
	"os"
	"path"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// manualTable is the table of all keywords as docs/keepalived.md has it.
func manualTable() string {
	var b strings.Builder
	b.WriteString("| keepalived | | topdog |\n|---|---|---|\n")
	for _, e := range entries {
		b.WriteString("| `" + strings.Join(strings.Fields(e.keywords), "` `") + "` | " + [...]string{"converted", "nothing to do", "look at it"}[e.fate] + " | " + e.text + " |\n")
	}
	return b.String()
}

// The manual has the table, with the texts that the converter prints.
func TestManualHasTheTable(t *testing.T) {
	manual, err := os.ReadFile("../../../docs/keepalived.md")
	assert.NoError(t, err)
	if !strings.Contains(string(manual), manualTable()) {
		t.Errorf("docs/keepalived.md lacks this:\n%s", manualTable())
	}
}

// A keyword that is written out is that of its own entry, patterns are right, and no text would break the table.
func TestKeywordsStandOnce(t *testing.T) {
	for _, e := range entries {
		if strings.ContainsAny(e.text, "|\n") || e.text == "" {
			t.Errorf("%s: %q", e.keywords, e.text)
		}
		for _, k := range strings.Fields(e.keywords) {
			if _, err := path.Match(k, ""); err != nil {
				t.Errorf("%s: %v", k, err)
			}
			if found, _ := find(k); !strings.Contains(k, "*") && found != e {
				t.Errorf("%s is in the entry %s too", k, found.keywords)
			}
		}
	}
}
