package manual

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// help is what `topdog COMMAND --help` says.
type help struct {
	about    string   // what it is for
	usage    string   // the command line
	examples string   // command lines, indented
	commands []option // below this one, with what they are for
	flags    []option
}

type option struct{ name, meaning string }

var (
	optionLine  = regexp.MustCompile(`^ +((?:-\w, )?--[\w-]+(?: \S+)*) {2,}(.*)$`)
	commandLine = regexp.MustCompile(`^  ([\w-]+) +(\S.*)$`)
)

// parseHelp takes a help text apart. Its parts begin with a word and a colon on a
// line of their own.
func parseHelp(text string) (h help, err error) {
	part := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch line {
		case "Usage:", "Examples:", "Available Commands:", "Flags:", "Global Flags:":
			part = line
			continue
		}
		switch part {
		case "":
			h.about += line + "\n"
		case "Usage:":
			if h.usage == "" {
				h.usage = strings.TrimSpace(line)
			}
		case "Examples:":
			h.examples += line + "\n"
		case "Available Commands:":
			if m := commandLine.FindStringSubmatch(line); m != nil {
				h.commands = append(h.commands, option{m[1], m[2]})
			}
		case "Flags:":
			m := optionLine.FindStringSubmatch(line)
			switch {
			case m != nil:
				h.flags = append(h.flags, option{m[1], m[2]})
			case strings.HasPrefix(line, "      ") && len(h.flags) > 0: // the line before goes on
				h.flags[len(h.flags)-1].meaning += "\n" + strings.TrimSpace(line)
			case line == "" || strings.HasPrefix(line, "Use \""):
			default:
				return h, fmt.Errorf("%q is not an option as the help has them", line)
			}
		}
	}
	if h.usage == "" {
		return h, errors.New("the help has no line of usage")
	}
	return h, nil
}

// asker returns what `topdog COMMAND --help` prints.
type asker func(command ...string) (string, error)

func (ask asker) help(command []string) (help, error) {
	text, err := ask(command...)
	if err != nil {
		return help{}, err
	}
	h, err := parseHelp(text)
	if err != nil {
		return h, fmt.Errorf("%s: %w", strings.Join(append([]string{"topdog"}, command...), " "), err)
	}
	return h, nil
}

// commandPages returns topdog(1), and a page for each command, by their names.
func commandPages(f foot, ask asker, statuses []option) (map[string]string, error) {
	root, err := ask.help(nil)
	if err != nil {
		return nil, err
	}
	pages := map[string]string{"topdog": overview(f, root, statuses)}
	for _, c := range root.commands {
		if c.name == "help" {
			continue // of the command-line library
		}
		if pages["topdog-"+c.name], err = commandPage(f, ask, root, c, c.name); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// overview is topdog(1).
func overview(f foot, root help, statuses []option) string {
	p := newPage(f, "topdog", "1", "User Commands")
	p.section("NAME")
	p.line("topdog - keep one IP address alive on a LAN of small boards")
	p.section("SYNOPSIS")
	p.WriteString(".B topdog\n[\\fB\\-\\-config\\fR \\fIfile\\fR]\n\\fIcommand\\fR\n[\\fIargument\\fR ...]\n")
	p.section("DESCRIPTION")
	p.text(root.about)
	p.section("COMMANDS")
	for _, c := range root.commands {
		if c.name != "help" {
			p.WriteString(".TP\n")
			p.reference("topdog-"+c.name, "1")
			p.text(c.meaning)
		}
	}
	p.section("OPTIONS")
	for _, o := range root.flags {
		p.item(o.name, o.meaning)
	}
	p.section("EXIT STATUS")
	for _, s := range statuses {
		p.item(s.name, s.meaning)
	}
	p.section("FILES")
	for _, f := range files {
		p.item(f.name, f.meaning)
	}
	p.section("SEE ALSO")
	p.WriteString(".BR topdog.toml (5),\n.BR systemctl (1),\n.BR journalctl (1),\n.BR ip\\-address (8)\n.PP\n/usr/share/doc/topdog/\n")
	return p.String()
}

// labPage is topdog-lab(1), which has all of that program.
func labPage(f foot, ask asker) (string, error) {
	return commandPage(f, ask, help{}, option{"lab", "Watch and simulate the elections of topdog"})
}

// commandPage is the page of one command, and of what is below it.
func commandPage(f foot, ask asker, root help, c option, command ...string) (string, error) {
	h, err := ask.help(command)
	if err != nil {
		return "", err
	}
	p := newPage(f, "topdog-"+c.name, "1", "User Commands")
	p.section("NAME")
	p.line("topdog-" + c.name + " - " + strings.ToLower(c.meaning[:1]) + c.meaning[1:])
	p.section("SYNOPSIS")
	p.line(synopsis(h))
	p.section("DESCRIPTION")
	p.text(h.about)
	if len(h.commands) > 0 {
		p.section("COMMANDS")
		if err := p.commands(ask, command, h.commands); err != nil {
			return "", err
		}
	}
	if len(root.flags) > 0 {
		p.section("OPTIONS")
		p.options(h)
		p.options(root)
	}
	if h.examples != "" {
		p.section("EXAMPLES")
		p.text(h.examples)
	}
	p.section("SEE ALSO")
	p.WriteString(".BR topdog (1),\n.BR topdog.toml (5)\n.PP\n/usr/share/doc/topdog/\n")
	return p.String(), nil
}

// synopsis is the command line of a command. That of one with commands below it names no argument.
func synopsis(h help) string {
	line := strings.TrimSuffix(h.usage, " [flags]")
	if len(h.commands) > 0 {
		return line + " command [option ...]"
	}
	return line + " [option ...]"
}

var files = []option{
	{"/etc/topdog/topdog.toml", "the configuration, which topdog init writes"},
	{"/etc/topdog/key", "the group's key, which the daemon's user alone may read"},
	{"/run/topdog/topdog.sock", "where the commands of root and of the group topdog reach the daemon"},
	{"/run/topdog/topdog.sock.public", "where everybody may look"},
	{"/etc/topdog/hooks.d/", "scripts that topdog-hooks.service runs when this board begins or ceases to lead"},
	{"/usr/lib/systemd/system/topdog.service", "the unit; systemctl edit topdog changes it"},
	{"/usr/share/doc/topdog/examples/", "every key of the configuration, and a drop-in for systemd-networkd"},
}

// commands describes the commands below the command above, and those below them.
func (p *page) commands(ask asker, above []string, below []option) error {
	for _, c := range below {
		if c.name == "help" {
			continue
		}
		command := append(above[:len(above):len(above)], c.name)
		h, err := ask.help(command)
		if err != nil {
			return err
		}
		p.subsection(strings.TrimSuffix(h.usage, " [flags]"))
		p.text(h.about)
		p.options(h)
		if h.examples != "" {
			p.WriteString(".PP\nFor example:\n")
			p.text(h.examples)
		}
		if err := p.commands(ask, command, h.commands); err != nil {
			return err
		}
	}
	return nil
}

// options lists the flags of a command.
func (p *page) options(h help) {
	for _, o := range h.flags {
		if !strings.HasPrefix(o.name, "-h, --help") {
			p.item(o.name, o.meaning)
		}
	}
}

var statusRow = regexp.MustCompile(`^\| (\d+) \| (.*) \|$`)

// exitStatuses finds the table of the exit statuses in a Markdown text: the rows
// that begin with a number.
func exitStatuses(markdown string) (statuses []option, err error) {
	for line := range strings.Lines(markdown) {
		if m := statusRow.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			statuses = append(statuses, option{m[1], strings.ReplaceAll(m[2], "`", "")})
		}
	}
	if len(statuses) == 0 {
		return nil, errors.New(`no table of exit statuses, with rows like "| 0 | all is well |"`)
	}
	return statuses, nil
}
