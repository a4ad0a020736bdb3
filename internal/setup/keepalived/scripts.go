package keepalived

import (
	"net"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"topdog/internal/check"
	"topdog/internal/config"
)

// scriptWords returns the program and the arguments of a script, which are one word in keepalived's file.
func scriptWords(s *statement) (words []string, ok bool) {
	outer, ok := split(s.raw, false)
	if !ok || len(outer) == 0 {
		return nil, false
	}
	words, ok = split(outer[0], true)
	return words, ok && len(words) > 0
}

// quotedWords returns the words of a script with quotes behind backslashes, which keepalived's versions read differently. Up to 2.3.1, which
// most files are for, they hold words together; since then they are a part of their words, and a shell would find them unclosed.
func (c *conversion) quotedWords(s *statement) (words []string, ok bool) {
	words, ok = scriptWords(s)
	if !strings.Contains(s.raw, `\"`) {
		return words, ok
	}
	outer, complete := split(s.raw, true)
	if !complete || len(outer) == 0 {
		return words, ok
	}
	former, complete := split(outer[0], true)
	if !complete || len(former) == 0 || slices.Equal(former, words) {
		return words, ok && !strings.HasPrefix(words[0], `"`) // no program is called so: it is the quote before a whole command
	}
	quoted := make([]string, len(former))
	for i, w := range former {
		quoted[i] = config.ShellQuote(w)
	}
	c.look(s, `the quotes behind backslashes are read as keepalived does up to 2.3.1, as %s; from 2.3.2 on they are a part of the words`, printable(strings.Join(quoted, " ")))
	return former, true
}

var (
	devTCP = regexp.MustCompile(`^<? ?/dev/tcp/([0-9a-zA-Z.:-]+)/([0-9]+)$`)
	// shell are words that only a shell understands. keepalived 2 hands them to the program.
	shell = regexp.MustCompile("^[|&;<>]+$|^[0-9]?>|^[<>]|[|;&`]|\\$\\(|\\*")
)

// runs finds out what a script looks at. Where topdog has a check of its own for that, it becomes that check.
func (c *conversion) runs(made *Check, s *statement, words []string) {
	outer, _ := split(s.raw, false) // scriptWords has looked at it
	text := outer[0]
	if isShell(words) && len(words) == 3 && words[1] == "-c" {
		text = words[2]
	}
	if m := devTCP.FindStringSubmatch(text); m != nil {
		made.kind, made.words = check.TCP, []string{net.JoinHostPort(m[1], m[2])}
		made.leading = slices.ContainsFunc(c.Addresses, func(a string) bool { return strings.HasPrefix(a+"/", m[1]+"/") })
		return
	}
	if !isShell(words) && slices.ContainsFunc(words, shell.MatchString) {
		words = []string{"/bin/sh", "-c", text}
		c.look(s, "it looks like a line for a shell, so it is run by one; keepalived 2 runs none")
	}
	if unit, ok := asksSystemd(words); ok {
		made.kind, made.words = check.Unit, []string{unit}
		return
	}
	if name, ok := looksForProcess(words); ok {
		if !c.service(made, s, name) {
			c.look(s, noProcess, printable(name))
		}
		return
	}
	if program := c.machine.Program(words[0]); program != "" && !path.IsAbs(words[0]) {
		words[0] = program
	}
	if !path.IsAbs(words[0]) || strings.ContainsAny(words[0], blank) {
		// env looks for the program in PATH, as keepalived does.
		words = append([]string{"/usr/bin/env"}, words...)
	}
	if len(words) > config.MaxWords || slices.ContainsFunc(words, func(w string) bool { return !utf8.ValidString(w) || strings.ContainsRune(w, 0) }) {
		c.look(s, "left out: the command has more than %d words, or no text. Write it into a script", config.MaxWords)
		return
	}
	made.kind, made.words = check.Command, words
	c.look(s, "it runs as the daemon's user, in the sandbox of the unit, where the processes of others cannot be seen. When the daemon runs, sudo topdog check has it try that")
	if c.stopsKeepalived(words[0]) {
		c.look(s, "%s stops keepalived: let it end with status 1 instead", printable(words[0]))
	}
}

// isShell reports whether a command is a shell with what that is to do.
func isShell(words []string) bool {
	return slices.Contains([]string{"sh", "bash", "dash"}, path.Base(words[0]))
}

// stopping is what scripts do that have been told to make keepalived hand over.
var stopping = regexp.MustCompile(`(stop|kill|killall|pkill)\b[^\n]*\bkeepalived\b|\bkeepalived\b[^\n]*\bstop\b`)

// stopsKeepalived looks into a script, as far as it can be read.
func (c *conversion) stopsKeepalived(script string) bool {
	if !path.IsAbs(script) {
		return false
	}
	text, err := c.machine.ReadFile(script, maxBytes)
	return err == nil && stopping.Match(text)
}

// asksSystemd recognizes `systemctl is-active NAME`, and the like.
func asksSystemd(words []string) (unit string, ok bool) {
	if path.Base(words[0]) != "systemctl" {
		return "", false
	}
	for _, w := range words[1:] {
		switch {
		case strings.HasPrefix(w, "-"), w == "is-active", w == "status":
		case unit == "":
			unit = w
		default:
			return "", false
		}
	}
	if unit != "" && path.Ext(unit) == "" {
		unit += ".service"
	}
	return unit, unit != ""
}

// looksForProcess recognizes commands that only look whether a process is there.
func looksForProcess(words []string) (name string, ok bool) {
	program := path.Base(words[0])
	if !slices.Contains([]string{"killall", "pidof", "pgrep", "pkill"}, program) {
		return "", false
	}
	signal := program == "pidof" || program == "pgrep"
	for _, w := range words[1:] {
		switch {
		case w == "-0":
			signal = true
		case strings.HasPrefix(w, "-"):
		case name == "":
			name = w
		default:
			return "", false
		}
	}
	return name, signal && name != ""
}

// service makes a check of a process by its name: the service of systemd that has this name, or the program.
func (c *conversion) service(made *Check, s *statement, name string) bool {
	given := name
	name = path.Base(name)
	if unit := name + ".service"; c.machine.HasUnit(unit) {
		made.kind, made.words = check.Unit, []string{unit}
		c.look(s, "became unit = %s, because systemd has a service of that name. See whether it is the right one", config.Quote(unit))
		return true
	}
	program := c.machine.Program(name)
	if path.IsAbs(given) {
		program = given
	}
	if program != "" {
		made.kind, made.words = check.Exec, []string{program}
		c.look(s, "became exec = %s, because systemd has no service %s. The daemon needs ProtectProc=default for it (systemctl edit topdog)",
			config.Quote(program), printable(name))
		return true
	}
	return false
}

// noProcess is said of a process that is not on this board. The command as it is would always fail: the
// daemon does not see the processes of others.
const noProcess = "left out: this board has neither a service nor a program %s. Write a [[check]] with its unit"

// process converts a vrrp_track_process.
func (c *conversion) process(block *statement) *Check {
	if reversed(block) {
		c.look(block, "left out: it fails when the process is there (reverse). Use a [[check]] with a command")
		return nil
	}
	c.rest(block.block, trackProcess)
	named := under(block.block, "process")
	if named == nil {
		c.look(block, "left out: it names no process")
		return nil
	}
	s, made := named[0], &Check{} // keepalived takes the first one
	if !c.service(made, s, s.text(1)) {
		c.look(s, noProcess, printable(s.text(1)))
		return nil
	}
	return made
}
