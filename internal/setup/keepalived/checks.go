package keepalived

import (
	"fmt"
	"net"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"topdog/internal/check"
	"topdog/internal/config"
)

// table is one [[check]] of topdog's configuration.
type table struct {
	from  string // what it was, with its place
	kind  check.Kind
	words []string

	every, timeout time.Duration // 0 if the file says nothing
	rise, fall     int           // 0 if the file says nothing
	leading        bool          // it is aimed at a floating address
}

// toml returns the table as it is written into a configuration.
func (t *table) toml() string {
	value := config.Quote(t.words[0])
	if t.kind == check.Command {
		value = list(t.words)
	}
	text := "# " + t.from + "\n[[check]]\n" + t.kind.String() + " = " + value + "\n"
	line := func(key string, is bool, value any) {
		if is {
			text += fmt.Sprintf("%s = %v\n", key, value)
		}
	}
	line("every", t.every != 0, config.Quote(t.every.String()))
	line("timeout", t.timeout != 0, config.Quote(t.timeout.String()))
	line("rise", t.rise != 0, t.rise)
	line("fall", t.fall != 0, t.fall)
	line("when", t.leading, config.Quote(check.Leading.String()))
	return text
}

// checks converts the scripts and processes that the chosen instances track. The others get a note.
func (c *conversion) checks(chosen selection) (text string, err error) {
	var all []*table
	tracked := map[string]bool{}
	for _, block := range chosen.blocks() {
		for _, kind := range []string{"track_script", "track_process"} {
			for _, list := range under(block.block, kind) {
				for _, s := range list.block {
					if c.trackWeight(s, block, kind) {
						tracked[kind+" "+s.keyword()] = true
					}
				}
			}
		}
	}
	for _, s := range c.file {
		var made *table
		switch name := s.text(1); {
		case s.keyword() != "vrrp_script" && s.keyword() != "vrrp_track_process":
			continue
		case s.keyword() == "vrrp_script" && tracked["track_script "+name]:
			made, err = c.script(s)
		case s.keyword() == "vrrp_track_process" && tracked["track_process "+name]:
			made = c.process(s)
		case name == "":
			c.look(s, "left out: it has no name")
		default:
			c.look(s, "left out, because nothing that is converted tracks %s", printable(name))
		}
		if err != nil {
			return "", err
		}
		same := func(t *table) bool { return t.kind == made.kind && slices.Equal(t.words, made.words) }
		if made != nil && slices.ContainsFunc(all, same) {
			c.look(s, "left out: a check above looks at the same")
		} else if made != nil {
			made.from = fmt.Sprintf("%s %s, %s:%d", s.keyword(), printable(s.text(1)), printable(path.Base(s.place.file)), s.place.line)
			all = append(all, made)
			text += "\n" + made.toml()
		}
	}
	return text, nil
}

// trackWeight looks at the words behind the name of what a block tracks, and reports whether that can be a check.
func (c *conversion) trackWeight(s, tracking *statement, kind string) bool {
	block, what := "vrrp_script", "script"
	if kind == "track_process" {
		block, what = "vrrp_track_process", "process"
	}
	if found := c.file.named(block, s.keyword()); found == nil {
		c.look(s, "there is no %s of that name", what)
	} else if slices.Index(c.file, found) > slices.Index(c.file, tracking) {
		c.look(s, "keepalived does not find it, because the %s stands further down; with topdog it counts", block)
	}
	switch options := s.options(); {
	case len(options) == 0:
	case slices.Contains(options, "reverse"):
		c.look(s, "left out: it fails when the %s is as it should be (reverse). Use a [[check]] whose command ends with the other status", what)
		return false
	case options[0] == "weight":
		c.look(s, "weight is %s", noWeight)
	default:
		c.look(s, "%s is not understood", printable(options[0]))
	}
	return true
}

// reversed reports whether a check is to fail when its script passes.
func reversed(block *statement) bool {
	for _, s := range under(block.block, "weight") {
		if s.text(2) == "reverse" {
			return true
		}
	}
	return false
}

// script converts a vrrp_script.
func (c *conversion) script(block *statement) (*table, error) {
	if reversed(block) {
		c.look(block, "left out: it fails when its script passes (reverse). Write a script that ends with the other status")
		return nil, nil
	}
	c.rest(block.block, vrrpScript)
	made := &table{}
	for _, s := range block.block {
		if overruled(block.block, s) {
			continue
		}
		var err error
		switch s.keyword() {
		case "script":
			words, ok := c.quotedWords(s)
			if !ok {
				return nil, mistake(s.at(1), `write script "/path/to/program argument"`, "this is no command")
			}
			c.runs(made, s, words)
			if outer, _ := split(s.raw, false); len(outer) > 1 {
				c.look(s, "without %s, as with keepalived. Write the whole command between double quotes, and convert the file again",
					printable(outer[1:]...))
			}
		case "interval":
			made.every, err = seconds(s)
		case "timeout":
			made.timeout, err = seconds(s)
		case "rise":
			made.rise, err = number(s, maxResults, "such as 2", "number of results")
		case "fall":
			made.fall, err = number(s, maxResults, "such as 2", "number of results")
		}
		if err != nil {
			return nil, err
		}
	}
	if made.words == nil {
		if under(block.block, "script") == nil {
			c.look(block, "left out: it has no script")
		}
		return nil, nil
	}
	c.numbers(made, block)
	return made, nil
}

// numbers brings the times and the numbers of results into the limits of topdog.
func (c *conversion) numbers(made *table, block *statement) {
	if made.kind == check.Unit || made.kind == check.Exec { // systemd and the kernel report a failure at once
		made.every, made.timeout, made.fall = 0, 0, 0
	}
	bound := func(keyword string, value *time.Duration, least, most time.Duration) {
		if before := *value; before != 0 {
			if *value = min(max(before, least), most); *value != before {
				for _, s := range under(block.block, keyword) {
					c.look(s, "%v became %v", before, *value)
				}
			}
		}
	}
	bound("interval", &made.every, check.MinEvery, check.MaxEvery)
	every := made.every
	if every == 0 {
		every = check.DefaultEvery
	}
	bound("timeout", &made.timeout, check.MinTimeout, every) // one run ends before the next begins
	made.rise, made.fall = min(made.rise, check.MaxCount), min(made.fall, check.MaxCount)
}

// maxResults bounds a number of results. topdog takes fewer: see numbers.
const maxResults = 1 << 16

// seconds reads a number of seconds with a fraction.
func seconds(s *statement) (time.Duration, error) {
	text := s.text(1)
	value, err := strconv.ParseFloat(text, 64)
	const most = 1000 * time.Hour
	if err != nil || !(value >= 0 && value <= most.Seconds()) || strings.ContainsAny(text, "xXpPeE_") {
		return 0, mistake(s.at(1), "write a number of seconds, such as 1 or 0.5", "%q is no time", printable(text))
	}
	return time.Duration(value * float64(time.Second)).Round(time.Millisecond), nil
}

// scriptWords returns the program and the arguments of a script, which are one word in keepalived's file.
func scriptWords(s *statement) (words []string, ok bool) {
	outer, ok := split(s.raw, false)
	if !ok || len(outer) == 0 {
		return nil, false
	}
	words, ok = split(outer[0], true)
	return words, ok && len(words) > 0
}

// quotedWords returns the words of a script that may have quotes behind backslashes. Versions of keepalived read these
// differently: up to 2.3.1, for which most files are written, they hold words together; since then they are a part of their
// words, and a shell would find them unclosed.
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
	c.look(s, `the quotes behind backslashes are read as keepalived does up to 2.3.1, as %s; from 2.3.2 on they are a part of the words`,
		printable(shellLine(former)))
	return former, true
}

var (
	devTCP = regexp.MustCompile(`^<? ?/dev/tcp/([0-9a-zA-Z.:-]+)/([0-9]+)$`)
	// shell matches words that only a shell understands. keepalived 2 hands them to the program.
	shell = regexp.MustCompile("^[|&;<>]+$|^[0-9]?>|^[<>]|[|;&`]|\\$\\(|\\*")
)

// runs finds out what a script checks, and makes it a check of topdog's own if there is one for that.
func (c *conversion) runs(made *table, s *statement, words []string) {
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

// isShell reports whether a command is a shell.
func isShell(words []string) bool {
	return slices.Contains([]string{"sh", "bash", "dash"}, path.Base(words[0]))
}

// stopping matches what scripts do to make keepalived hand over.
var stopping = regexp.MustCompile(`(stop|kill|killall|pkill)\b[^\n]*\bkeepalived\b|\bkeepalived\b[^\n]*\bstop\b`)

// stopsKeepalived reports whether a script stops keepalived, if the script can be read.
func (c *conversion) stopsKeepalived(script string) bool {
	if !path.IsAbs(script) {
		return false
	}
	text, err := c.machine.ReadFile(script, maxBytes)
	return err == nil && stopping.Match(text)
}

// asksSystemd recognizes `systemctl is-active NAME`, and the like.
func asksSystemd(words []string) (unit string, ok bool) {
	unit, ok = operand(words[1:], "is-active", "status")
	if path.Ext(unit) == "" {
		unit += ".service"
	}
	return unit, ok && path.Base(words[0]) == "systemctl"
}

// looksForProcess recognizes commands that only look for a process.
func looksForProcess(words []string) (name string, ok bool) {
	name, ok = operand(words[1:])
	switch path.Base(words[0]) {
	case "pidof", "pgrep":
		return name, ok
	case "killall", "pkill":
		return name, ok && slices.Contains(words, "-0")
	}
	return "", false
}

// operand returns the only word that is no option, and none of the ignored ones. It reports false if there is another number
// of such words.
func operand(words []string, ignored ...string) (string, bool) {
	found := slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return w == "" || strings.HasPrefix(w, "-") || slices.Contains(ignored, w)
	})
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// service makes a check for a process of that name: for the service of systemd with this name, or for the program.
func (c *conversion) service(made *table, s *statement, name string) bool {
	given := name
	name = path.Base(name)
	if unit := name + ".service"; c.machine.HasUnit(unit) {
		made.kind, made.words = check.Unit, []string{unit}
		c.look(s, "became unit = %s, because systemd has a service of that name. See whether it is the right one",
			config.Quote(unit))
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

// noProcess is the note on a process that this board does not have. The command as it is would always fail, because the
// daemon does not see the processes of others.
const noProcess = "left out: this board has neither a service nor a program %s. Write a [[check]] with its unit"

// process converts a vrrp_track_process.
func (c *conversion) process(block *statement) *table {
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
	s, made := named[0], &table{} // keepalived takes the first one
	if !c.service(made, s, s.text(1)) {
		c.look(s, noProcess, printable(s.text(1)))
		return nil
	}
	return made
}
