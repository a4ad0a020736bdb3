package manual

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"

	"topdog/internal/lab/assert"
)

// What is drawn stays as it is, and no character of a text has a meaning in Markdown.
func TestMarkdown(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"One\nline.\n\nAnother `word`.", "One\nline.\n\n.PP\nAnother \\fBword\\fR\\&.\n"},
		{"*A*, _b_, [c](d), <e>, a~~b~~c:", "*A*, _b_, [c](d), <e>, a~~b~~c:\n"},
		{"See:\n  a \\ b\n\n    -c\nDone.", "See:\n\n.EX\na \\\\ b\n\n  -c\n.EE\n\n.PP\nDone.\n"},
		{"Try:   a\nSet:   b", ".EX\nTry:   a\nSet:   b\n.EE\n"},
		{".TH is text", "\\&.TH is text\n"},
	} {
		got := string(md2man.Render([]byte("# X\n\n# X\n" + markdown(tt.text))))
		assert.Equal(t, ".nh\n.TH X\n\n.SH X\n"+tt.want, got, "%q", tt.text)
	}
}

// The meaning of a flag is indented as a whole.
func TestHang(t *testing.T) {
	got := hang([]byte(".SH OPTIONS\n\\fB-a\\fP\n\tdo\nit\n\n.PP\n\\fB--b\\fP\n\tdo\n.PP\n\tno flag\n"))
	assert.Equal(t, ".SH OPTIONS\n.TP\n\\fB-a\\fP\ndo\nit\n\n.TP\n\\fB--b\\fP\ndo\n.PP\n\tno flag\n", string(got), "")
}

// A reference that the page would not show as it is, is an error.
func TestBadReference(t *testing.T) {
	const about = "# Title.\n#\n# How to read it.\n#\n# What must be the same.\n\n"
	for _, bad := range []string{"", "address = 1\n", about + "# A comment on nothing.\n", about + "what\n"} {
		if _, err := configPage(bad, Foot{}); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	page, err := configPage(about+"# Why.\n#key = 1\n", Foot{"1", time.Unix(0, 0).UTC()})
	assert.NoError(t, err)
	if want := "### key\nWhy.\n\nDefault: **1**\n"; !strings.Contains(page, want) {
		t.Errorf("the page lacks %q:\n%s", want, page)
	}
}

func TestExitStatuses(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	assert.NoError(t, err)
	section, err := exitStatuses(string(text))
	assert.NoError(t, err)
	for _, number := range []string{"0", "1", "2", "78"} {
		if !strings.Contains(section, "\n**"+number+"**\n: ") {
			t.Errorf("docs/operations.md: no row on exit status %s", number)
		}
	}
	if _, err := exitStatuses("| status | meaning |\n"); err == nil {
		t.Error("no error without a table")
	}
}
