package manual

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// setting is a line of the annotated configuration: "key = value" must be set,
// "#key = value" is a default, "##key = value" is an example.
var setting = regexp.MustCompile(`^(#{0,2})([a-z_]+) = (.*)$`)

// configPage is topdog.toml(5): the annotated configuration, in which comments
// stand above the key that they are about.
func configPage(f foot, reference string) (string, error) {
	p := newPage(f, "topdog.toml", "5", "File Formats")
	p.section("NAME")
	p.line("topdog.toml - configuration of topdog, the keeper of a floating IP address")
	p.section("SYNOPSIS")
	p.line("/etc/topdog/topdog.toml")

	// The first block of comments is about the file.
	var comment []string
	introduced, keys := false, 0
	for line := range strings.Lines(reference) {
		line = strings.TrimRight(line, "\n")
		m := setting.FindStringSubmatch(line)
		switch {
		case m != nil && introduced:
			p.key(m[1], m[2], m[3], comment)
			comment, keys = nil, keys+1
		case m != nil:
			return "", errors.New("the first key has no text before it that is about the whole file")
		case strings.HasPrefix(line, "#"):
			comment = append(comment, strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
		case line == "" && len(comment) == 0:
		case line == "" && !introduced:
			p.section("DESCRIPTION")
			p.text("The file is in the TOML format (https://toml.io). One line is enough; topdog init writes it:")
			p.text("    address = \"192.168.1.250\"\n")
			p.WriteString(".PP\n")
			p.text(introduction(comment))
			p.section("KEYS")
			comment, introduced = nil, true
		default:
			return "", fmt.Errorf("%q is neither a comment nor a key", line)
		}
	}
	if keys == 0 || len(comment) > 0 {
		return "", fmt.Errorf("%d keys, and %d lines of comment with no key below them", keys, len(comment))
	}
	p.section("SEE ALSO")
	p.WriteString(".BR topdog (1)\n.PP\n/usr/share/doc/topdog/docs/config.md\n")
	return p.String(), nil
}

// introduction is the comment on the whole file, without its title and without
// the sentence on how to read the "#" before a key, which this page does not show.
func introduction(comment []string) string {
	paragraphs := strings.Split(strings.Join(comment, "\n"), "\n\n")
	var kept []string
	for _, paragraph := range paragraphs[1:] {
		if !strings.Contains(paragraph, `"#key ="`) {
			kept = append(kept, paragraph)
		}
	}
	return "Only address is required.\n\n" + strings.Join(kept, "\n\n")
}

func (p *page) key(marks, name, value string, comment []string) {
	kind := map[string]string{"": "Required. For example", "#": "Default", "##": "For example"}[marks]
	p.item(name, strings.Join(comment, "\n"))
	fmt.Fprintf(p, ".IP\n%s: \\fB%s\\fR\n", kind, escape(value))
}
