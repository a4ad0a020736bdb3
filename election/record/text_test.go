package record

import (
	"strconv"
	"strings"
	"testing"
)

// TestQuoted: a name that another board has chosen is one word, steers no terminal, and is read back as it was.
func TestQuoted(t *testing.T) {
	for name, shown := range map[string]bool{
		"pi3": true, "Küche": true, "a b": false, "#": false, `"`: false, `\`: false,
		"\x1b[2J": false, "\u009b2J": false, "\u202eevil": false, "\u2028": false, "\xff\xfe": false, "\n== from": false,
	} {
		quoted := string(appendQuoted(nil, name))
		if read, err := strconv.Unquote(quoted); err != nil || read != name {
			t.Errorf("%q is read as %q: %v", name, read, err)
		}
		if strings.Contains(quoted, name) != shown && name != `"` && name != `\` {
			t.Errorf("%q is written as %s", name, quoted)
		}
		for _, r := range quoted {
			if !strconv.IsPrint(r) || r == ' ' || r == '#' {
				t.Errorf("%q is written with %q", name, r)
			}
		}
	}
}
