// Package manual writes topdog's manual pages from texts that exist already, so that no text stands twice: topdog(1) and a
// page for each command from the commands themselves (cobra/doc) and from docs/operations.md, topdog.toml(5) from the
// annotated configuration.
//
// It is linked into a program with the tag manual only, which scripts/package builds and runs: boards need none of it.
package manual

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"topdog/internal/config"
)

// Foot is what stands at the bottom of a page.
type Foot struct {
	Version string
	Date    time.Time
}

// Write writes the pages of topdog or topdog-lab into man1 and man5 below a directory. It changes the texts of the
// commands. operations is docs/operations.md.
func Write(root *cobra.Command, operations string, foot Foot, dir string) error {
	for _, section := range []string{"man1", "man5"} {
		if err := os.MkdirAll(filepath.Join(dir, section), 0o755); err != nil {
			return err
		}
	}
	escapeTexts(root)
	root.Long += commandList(root)
	if root.Name() == "topdog" {
		statuses, err := exitStatuses(operations)
		if err != nil {
			return err
		}
		root.Long += statuses + filesOfTopdog
		page, err := configPage(string(config.Reference()), foot)
		if err != nil {
			return fmt.Errorf("the annotated configuration: %w", err)
		}
		if err := write(filepath.Join(dir, "man5/topdog.toml.5"), md2man.Render([]byte(page))); err != nil {
			return err
		}
	}
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "topdog " + foot.Version, Manual: "User Commands", Date: &foot.Date}
	man1 := filepath.Join(dir, "man1")
	if err := doc.GenManTree(root, header, man1); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(man1, "*.1"))
	if err != nil {
		return err
	}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		page = append(hang(page), `.PP
\fBtopdog.toml(5)\fP, /usr/share/doc/topdog/
`...)
		if err := write(name, page); err != nil {
			return err
		}
	}
	return nil
}

// flag is a flag as cobra/doc writes it, with its meaning behind a tab, which would indent only its first line.
var flag = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB-.*)\n\t`)

// hang makes the flags of a page terms, below which their meaning is indented as a whole.
func hang(page []byte) []byte { return flag.ReplaceAll(page, []byte(".TP\n$1\n")) }

func write(name string, page []byte) error {
	// No font but one for UTF-8 has an ellipsis.
	return os.WriteFile(name, []byte(strings.ReplaceAll(string(page), "…", "...")), 0o644)
}

// escapeTexts makes the texts of a command, and of those below it, Markdown, which cobra/doc takes them for.
func escapeTexts(c *cobra.Command) {
	c.Long = markdown(c.Long)
	escapeFlags := func(f *pflag.Flag) { f.Usage = markdown(f.Usage) }
	c.Flags().VisitAll(escapeFlags)
	c.PersistentFlags().VisitAll(escapeFlags)
	for _, below := range c.Commands() {
		escapeTexts(below)
	}
}

// special are the characters that have a meaning in Markdown. A word between ` is left as it is: it becomes bold.
var special = strings.NewReplacer(
	`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "#", `\#`, "~", `\~`)

// markdown makes a text Markdown. Lines that are indented, or that have columns, stay as they are.
func markdown(text string) string {
	var out strings.Builder
	drawn := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		draw := strings.HasPrefix(line, "  ") || strings.Contains(line, "   ")
		if draw != drawn && line != "" {
			out.WriteString("```\n")
			drawn = draw
		}
		if drawn {
			out.WriteString(strings.TrimPrefix(line, "  ") + "\n")
		} else {
			out.WriteString(special.Replace(line) + "\n")
		}
	}
	if drawn {
		out.WriteString("```\n")
	}
	return strings.TrimRight(out.String(), "\n")
}

// term is an item of a list of terms, and what it means.
func term(name, meaning string) string {
	return "\n**" + special.Replace(name) + "**\n: " + meaning + "\n"
}

func commandList(root *cobra.Command) string {
	list := "\n\n# COMMANDS\n"
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			list += term(root.Name()+"-"+c.Name()+"(1)", c.Short)
		}
	}
	return list
}

var statusRow = regexp.MustCompile(`(?m)^\| (\d+) \| (.*) \|$`)

// exitStatuses is a section of the table of the exit statuses in a Markdown text: the rows that begin with a number.
func exitStatuses(text string) (string, error) {
	section := "\n# EXIT STATUS\n"
	rows := statusRow.FindAllStringSubmatch(text, -1)
	for _, row := range rows {
		section += term(row[1], row[2])
	}
	if len(rows) == 0 {
		return "", errors.New(`docs/operations.md has no table of exit statuses, with rows like "| 0 | all is well |"`)
	}
	return section, nil
}

var filesOfTopdog = "\n# FILES\n" +
	term("/etc/topdog/topdog.toml", "the configuration, which topdog init writes") +
	term("/etc/topdog/key", "the group's key, which the daemon's user alone may read") +
	term("/run/topdog/topdog.sock", "where the commands of root and of the group topdog reach the daemon") +
	term("/run/topdog/topdog.sock.public", "where everybody may look") +
	term("/etc/topdog/hooks.d/", "scripts that topdog-hooks.service runs when this board begins or ceases to lead") +
	term("/usr/lib/systemd/system/topdog.service", "the unit; systemctl edit topdog changes it") +
	term("/usr/share/doc/topdog/examples/", "every key of the configuration, and a drop-in for systemd-networkd") +
	"\n"

// setting is a line of the annotated configuration: "key = value" must be set, "#key = value" is a default, and
// "##key = value" is an example. The comment on it stands above it.
var setting = regexp.MustCompile(`^(#{0,2})([a-z_]+) = (.*)$`)

const aboutConfig = `%% "TOPDOG.TOML" "5" "%s" "topdog %s" "File Formats"
# NAME
topdog.toml \- configuration of topdog, the keeper of a floating IP address

# SYNOPSIS
/etc/topdog/topdog.toml

# DESCRIPTION
The file is in the TOML format (https://toml.io). One line is enough; topdog init writes it:

    address = "192.168.1.250"

Only address is required. %s

# KEYS
`

// configPage is topdog.toml(5), in Markdown.
func configPage(reference string, foot Foot) (string, error) {
	about, keys, found := strings.Cut(reference, "\n\n")
	// The paragraphs before the last are the title, and how to read the "#" before a key, which this page does not show.
	paragraphs := strings.Split(uncommented(about), "\n\n")
	if !found || len(paragraphs) != 3 {
		return "", errors.New("it does not begin with three paragraphs of comment, the last on what the boards must agree on")
	}
	page := fmt.Sprintf(aboutConfig, foot.Date.Format("Jan 2006"), foot.Version, markdown(paragraphs[2]))
	comment := ""
	for line := range strings.Lines(keys) {
		m := setting.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			comment += line
			continue
		}
		kind := map[string]string{"": "Required. For example", "#": "Default", "##": "For example"}[m[1]]
		page += fmt.Sprintf("### %s\n%s\n\n%s: **%s**\n\n",
			special.Replace(m[2]), markdown(uncommented(comment)), kind, special.Replace(m[3]))
		comment = ""
	}
	if strings.TrimSpace(comment) != "" {
		return "", fmt.Errorf("a comment has no key below it: %q", comment)
	}
	return page + "# SEE ALSO\n**topdog(1)**, /usr/share/doc/topdog/docs/config.md\n", nil
}

var mark = regexp.MustCompile(`(?m)^# ?`)

func uncommented(text string) string { return strings.Trim(mark.ReplaceAllString(text, ""), "\n") }
