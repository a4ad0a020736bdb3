package manual

import (
	"errors"
	"os"
	"strings"
	"testing"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
)

func TestParseHelp(t *testing.T) {
	got, err := parseHelp(`Does a thing.

Really.

Usage:
  topdog thing [flags]
  topdog thing [command]

Examples:
  topdog thing --force

Available Commands:
  test        Try it
  show-all    Show it

Flags:
      --force        do it
  -s, --size bytes   how much,
                     at most
  -h, --help         help for thing

Global Flags:
      --config file   the file

Use "topdog thing [command] --help" for more information about a command.
`)
	want := help{
		about:    "Does a thing.\n\nReally.\n\n",
		usage:    "topdog thing [flags]",
		examples: "  topdog thing --force\n\n",
		commands: []option{{"test", "Try it"}, {"show-all", "Show it"}},
		flags:    []option{{"--force", "do it"}, {"-s, --size bytes", "how much,\nat most"}, {"-h, --help", "help for thing"}},
	}
	assert.NoError(t, err)
	assert.Equal(t, want, got, "")
	for _, text := range []string{"", "Usage:\n", "Usage:\n  x\n\nFlags:\n  what is this\n"} {
		if _, err := parseHelp(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// A command has a page, and in it a part for each command below it.
func TestCommandPages(t *testing.T) {
	texts := map[string]string{
		"":         "About.\n\nUsage:\n  topdog\n\nAvailable Commands:\n  help  Not here\n  led         Try the light\n\nFlags:\n      --config file   where\n",
		"led":      "The light.\n\nUsage:\n  topdog led\n\nAvailable Commands:\n  test  x\n",
		"led test": "Walk.\n\nUsage:\n  topdog led test [flags]\n\nFlags:\n      --pin name   which\n",
	}
	ask := func(command ...string) (string, error) {
		text, ok := texts[strings.Join(command, " ")]
		if !ok {
			return "", errors.New("not asked for")
		}
		return text, nil
	}
	pages, err := commandPages(foot{"1", "2026-01-01"}, ask, []option{{"0", "well"}})
	assert.NoError(t, err)
	assert.Is(t, 2, len(pages), "pages, which are topdog and topdog-led")
	for name, wants := range map[string][]string{
		"topdog": {".TP\n.BR topdog\\-led (1)\nTry the light\n", ".SH EXIT STATUS\n.TP\n.B 0\nwell\n"},
		"topdog-led": {
			".SH NAME\ntopdog\\-led \\- try the light\n.SH SYNOPSIS\ntopdog led command [option ...]\n.SH DESCRIPTION\nThe light.\n",
			".SH COMMANDS\n.SS topdog led test\nWalk.\n.TP\n.B \\-\\-pin name\nwhich\n",
			".SH OPTIONS\n.TP\n.B \\-\\-config file\nwhere\n",
		},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[name], want) {
				t.Errorf("%s lacks %q:\n%s", name, want, pages[name])
			}
		}
	}
	if _, err := commandPages(foot{}, func(...string) (string, error) { return "", errors.New("no") }, nil); err == nil {
		t.Error("no error where the program gives none of its help")
	}
}

// The page of topdog-lab has all of its commands.
func TestLabPage(t *testing.T) {
	texts := map[string]string{
		"":     "About.\n\nUsage:\n  topdog-lab\n\nAvailable Commands:\n  help  Not here\n  demo         x\n",
		"demo": "Boards.\n\nUsage:\n  topdog-lab demo [flags]\n\nFlags:\n      --boards int   how many\n",
	}
	page, err := labPage(foot{"1", "2026-01-01"}, func(command ...string) (string, error) {
		return texts[strings.Join(command, " ")], nil
	})
	assert.NoError(t, err)
	for _, want := range []string{
		".SH NAME\ntopdog\\-lab \\- watch and simulate the elections of topdog\n.SH SYNOPSIS\ntopdog\\-lab command [option ...]\n",
		".SS topdog\\-lab demo\nBoards.\n", ".B \\-\\-boards int\nhow many\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %q:\n%s", want, page)
		}
	}
}

func TestText(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"One\nline.\n\nAnother.", "One\nline.\n.PP\nAnother.\n"},
		{"See:\n\n    a \\ b\n\n    -c\n\nDone.", "See:\n.PP\n.RS 4\n.nf\na \\e b\n\n\\-c\n.fi\n.RE\n.PP\nDone.\n"},
		{".TH is 'text'", "\\&.TH is \\(aqtext\\(aq\n"},
		{"See:\n  a\n     b\n c", "See:\n.PP\n.RS 4\n.nf\na\n   b\n.fi\n.RE\n.PP\nc\n"},
		{"Try:   a\nSet:   b", "Try:   a\n.br\nSet:   b\n.br\n"},
		{"", ""},
	} {
		var p page
		p.text(tt.text)
		assert.Equal(t, tt.want, p.String(), "%q", tt.text)
	}
}

// What is drawn in an item stands below it.
func TestItem(t *testing.T) {
	var p page
	p.item("-x", "See:\n  a\n    b\n\nMore.\n\nAnd more.")
	assert.Equal(t, ".TP\n.B \\-x\nSee:\n.sp\n.RS 11\n.nf\na\n  b\n.fi\n.RE\n.IP\nMore.\n.IP\nAnd more.\n", p.String(), "")
}

// Every key of the annotated configuration is in the manual.
func TestConfigPage(t *testing.T) {
	reference := string(config.Reference())
	page, err := configPage(foot{"1", "2026-01-01"}, reference)
	assert.NoError(t, err)
	keys := 0
	for line := range strings.Lines(reference) {
		if m := setting.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			keys++
			if !strings.Contains(page, ".TP\n.B "+escape(m[2])+"\n") {
				t.Errorf("the page lacks %s", m[2])
			}
		}
	}
	if keys < 10 {
		t.Errorf("%d keys in the annotated configuration: this test does not see them any more", keys)
	}
	for _, bad := range []string{"", "address = 1\n", "# About.\n\n# A comment on nothing.\n", "# About.\n\nwhat\n"} {
		if _, err := configPage(foot{}, bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestExitStatuses(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	assert.NoError(t, err)
	statuses, err := exitStatuses(string(text))
	assert.NoError(t, err)
	found := map[string]bool{}
	for _, s := range statuses {
		found[s.name] = s.meaning != ""
	}
	for _, number := range []string{"0", "1", "2", "78"} {
		if !found[number] {
			t.Errorf("docs/operations.md: no row on exit status %s", number)
		}
	}
	if _, err := exitStatuses("| status | meaning |\n"); err == nil {
		t.Error("no error without a table")
	}
}
