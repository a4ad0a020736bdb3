package keepalived

import (
	"slices"
	"strings"

	"topdog/internal/config"
)

// states are the keywords of scripts that run in one state, and what the state is called.
var states = []struct{ keyword, state string }{
	{"notify_master", "MASTER"}, {"notify_backup", "BACKUP"}, {"notify_fault", "FAULT"}, {"notify_stop", "STOP"},
}

// hook returns the shell script that calls the notify scripts, with the arguments that keepalived gives
// them, or nil if there are none. As with keepalived, the script of a state comes before the one for all,
// and those of instances come before those of their group.
func (c *conversion) hook(chosen selection) []byte {
	var body strings.Builder
	for _, block := range chosen.blocks() {
		c.stateScripts(&body, block)
		if line, ok := c.firstCall(block, "notify"); ok {
			// keepalived says 0 for the priority of a group.
			kind, priority := "INSTANCE", `"$4"`
			if block == chosen.group {
				kind, priority = "GROUP", "0"
			}
			body.WriteString(line + " " + kind + " " + config.ShellQuote(block.text(1)) + ` "$3" ` + priority + "\n")
		}
	}
	if body.Len() == 0 {
		return nil
	}
	return []byte("#!/bin/sh\n" +
		"# Calls keepalived's notify scripts as keepalived did. Made by topdog init --from.\n" +
		"# $1 is INSTANCE, $2 the group, $3 MASTER, BACKUP, FAULT or STOP, and $4 the priority.\n" +
		body.String())
}

// stateScripts writes the calls of scripts for one state.
func (c *conversion) stateScripts(body *strings.Builder, block *statement) {
	var cases strings.Builder
	for _, state := range states {
		if line, ok := c.firstCall(block, state.keyword); ok {
			cases.WriteString(state.state + ")\n\t" + line + "\n\t;;\n")
		}
	}
	if cases.Len() > 0 {
		body.WriteString("case $3 in\n" + cases.String() + "esac\n")
	}
}

// firstCall returns the command line of the first script of a keyword. keepalived runs no other one.
func (c *conversion) firstCall(block *statement, keyword string) (line string, ok bool) {
	for i, s := range under(block.block, keyword) {
		if i == 0 {
			line, ok = c.call(s)
		} else {
			c.look(s, "left out: keepalived runs one script for it, the first one. Let that one run this one, or write a hook of its own")
		}
	}
	return line, ok
}

// call returns the command line of a script, for a shell.
func (c *conversion) call(s *statement) (line string, ok bool) {
	words, ok := c.quotedWords(s)
	if !ok || slices.ContainsFunc(words, func(w string) bool { return strings.ContainsAny(w, "\x00\n") }) {
		c.look(s, "left out: this is no command")
		return "", false
	}
	if outer, _ := split(s.raw, false); len(outer) > 1 {
		c.look(s, "it is not run as %s: hooks run as the user topdog, and systemctl edit topdog-hooks can set User=root", printable(strings.Join(outer[1:], " ")))
	}
	if !isShell(words) && slices.ContainsFunc(words, shell.MatchString) {
		c.look(s, "it looks like a line for a shell; as with keepalived 2, its words are arguments of the program")
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = config.ShellQuote(w)
	}
	return strings.Join(quoted, " "), true
}
