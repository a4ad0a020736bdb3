package keepalived

import (
	"os"
	"path"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// The manual has the table that the converter reads.
func TestManualHasTheTable(t *testing.T) {
	page, err := os.ReadFile("../../../docs/keepalived.md")
	assert.NoError(t, err)
	if !strings.HasSuffix(string(page), "\n\n"+manual) {
		t.Error("docs/keepalived.md does not end with keywords.md")
	}
}

// Each row has three cells, and a keyword that is written out is that of its own row.
func TestKeywordsStandOnce(t *testing.T) {
	rows := strings.Split(strings.TrimSuffix(manual, "\n"), "\n")[2:]
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 3 || cells[1] != converted && cells[1] != refused && cells[1] != "nothing to do" {
			t.Errorf("this row has other cells: %s", row)
			continue
		}
		for _, k := range strings.Fields(strings.ReplaceAll(cells[0], "`", "")) {
			if _, err := path.Match(k, ""); err != nil {
				t.Errorf("%s: %v", k, err)
			}
			if !strings.Contains(k, "*") && textOf(k) != cells[2] {
				t.Errorf("%s is in another row too", k)
			}
		}
	}
	if len(rows) < 40 {
		t.Errorf("the table has only %d rows", len(rows))
	}
}
