package keepalived

import (
	"strings"

	"topdog/internal/config"
)

// hook returns the shell script that calls the notify scripts, or nil if there are none. Of several groups, each calls its own.
func (src *source) hook() []byte {
	var body string
	for _, c := range src.all {
		calls := c.calls()
		if calls != "" && len(src.all) > 1 {
			calls = config.ShellQuote(c.Name) + ")\n\t" + strings.ReplaceAll(strings.TrimSuffix(calls, "\n"), "\n", "\n\t") + "\n\t;;\n"
		}
		body += calls
	}
	switch {
	case body == "":
		return nil
	case len(src.all) > 1:
		body = "case $2 in\n" + body + "esac\n"
	}
	return []byte("#!/bin/sh\n" +
		"# Calls keepalived's notify scripts as keepalived did. Made by topdog init --from.\n" +
		"# $1 is INSTANCE, $2 the group, $3 MASTER, BACKUP, FAULT or STOP, and $4 the priority.\n" + body)
}

// calls returns the lines, for a shell, that call the notify scripts of a group with the arguments that keepalived gives them, or
// "". As with keepalived, the script of a state comes before the one for all.
func (c *conversion) calls() (lines string) {
	for _, state := range []string{"MASTER", "BACKUP", "FAULT", "STOP"} {
		if line := c.call("notify_" + strings.ToLower(state)); line != "" {
			lines += state + ")\n\t" + line + "\n\t;;\n"
		}
	}
	if lines != "" {
		lines = "case $3 in\n" + lines + "esac\n"
	}
	if line := c.call("notify"); line != "" {
		lines += line + " INSTANCE " + config.ShellQuote(c.instance.text(1)) + ` "$3" "$4"` + "\n"
	}
	return lines
}

// call returns the command line, for a shell, of the first script of a keyword, or "". keepalived runs no other one.
func (c *conversion) call(keyword string) (line string) {
	for i, s := range c.instance.block.all(keyword) {
		if i > 0 {
			c.look(s, "left out: keepalived runs one script for it, the first one. Let that one run this one, or write a hook of its own")
			continue
		}
		words, ok := c.command(s, "it is not run as %s: hooks run as the user topdog, and systemctl edit topdog-hooks can set User=root")
		if !ok {
			c.look(s, "left out: this is no command")
			continue
		}
		if needsShell(words) {
			c.look(s, "it looks like a line for a shell; as with keepalived 2, its words are arguments of the program")
		}
		line = shellLine(words)
	}
	return line
}

// shellLine quotes words for a shell.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = config.ShellQuote(w)
	}
	return strings.Join(quoted, " ")
}
