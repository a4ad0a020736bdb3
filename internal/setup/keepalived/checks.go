package keepalived

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/internal/check"
	"topdog/internal/config"
)

// table is a check of topdog's configuration.
type table struct {
	origin string // the block that it was made of
	kind   check.Kind
	words  []string
	rest   string // the lines behind that of its kind
}

// set adds a line.
func (t *table) set(key string, value any) { t.rest += fmt.Sprintf("%s = %v\n", key, value) }

// toml returns the table as it is written into a configuration, below a header.
func (t *table) toml(header string) string {
	value := config.Quote(t.words[0])
	if t.kind == check.Command {
		value = config.QuoteAll(t.words)
	}
	return "\n# " + t.origin + "\n" + header + "\n" + t.kind.String() + " = " + value + "\n" + t.rest
}

// tracks has for each list of what an instance tracks the keyword of the blocks that the list names.
var tracks = map[string]string{"track_script": "vrrp_script", "track_process": "vrrp_track_process"}

// checks converts the scripts and processes that instances and their partners track. The others get a note. It returns the
// checks that hold for all groups: if these have not all the same, each has its own.
func (src *source) checks() (common string, err error) {
	tracked := map[*statement]bool{}
	made := make([][]*table, len(src.all))
	for i, c := range src.all {
		if made[i], err = c.checks(tracked); err != nil {
			return "", err
		}
	}
	for _, s := range src.file {
		if isCheck(s) && !tracked[s] {
			src.look(s, "left out, because nothing that is converted tracks it")
		}
	}
	text := func(tables []*table, header string) (text string) {
		for _, t := range tables {
			text += t.toml(header)
		}
		return text
	}
	for i, c := range src.all {
		c.Checks = text(made[i], "[[group.check]]")
	}
	if src.any(func(c *conversion) bool { return c.Checks != src.all[0].Checks }) {
		return "", nil
	}
	for _, c := range src.all {
		c.Checks = ""
	}
	return text(made[0], "[[check]]"), nil
}

// isCheck reports whether a block of a file is one that a check can be made of.
func isCheck(s *statement) bool {
	return s.keyword() == "vrrp_script" || s.keyword() == "vrrp_track_process"
}

// checks converts what the instance and its partners track, and adds it to what is tracked.
func (c *conversion) checks(tracked map[*statement]bool) (all []*table, err error) {
	own := map[*statement]bool{}
	for _, instance := range append(block{c.instance}, c.partners...) {
		for _, list := range instance.block {
			if keyword := tracks[list.keyword()]; keyword != "" {
				for _, s := range list.block {
					c.track(s, c.file.named(keyword, s.keyword()), own)
				}
			}
		}
	}
	for _, s := range c.file {
		if !own[s] {
			continue
		}
		tracked[s] = true
		made, err := c.check(s)
		switch same := func(t *table) bool { return t.kind == made.kind && slices.Equal(t.words, made.words) }; {
		case err != nil:
			return nil, err
		case made == nil:
		case slices.ContainsFunc(all, same):
			c.look(s, "left out: a check above looks at the same")
		default:
			made.origin = originOf(s)
			all = append(all, made)
		}
	}
	return all, nil
}

// track looks at a line of track_script or track_process. found is the block that the line names, or nil.
func (c *conversion) track(s, found *statement, tracked map[*statement]bool) {
	switch options := s.options(0); {
	case found == nil:
		c.look(s, "there is no script or process of that name")
		return
	case slices.Contains(options, "reverse"):
		c.look(s, "left out: %s", reversed)
		return
	case len(options) > 0 && options[0] == "weight":
		c.look(s, "weight is %s", textOf("weight"))
	case len(options) > 0:
		c.look(s, "%s is not understood", printable(options[0]))
	}
	tracked[found] = true
}

// reversed says why a check is left out that is to fail when its script passes.
const reversed = "it fails when all is as it should be (reverse). Use a [[check]] whose command ends with the other status"

// check converts a vrrp_script or a vrrp_track_process. It returns nil, and has made a note, if nothing comes of it.
func (c *conversion) check(block *statement) (*table, error) {
	for _, s := range block.block.all("weight") {
		if s.text(2) == "reverse" {
			c.look(block, "left out: %s", reversed)
			return nil, nil
		}
	}
	good, made := c.convertible(block.keyword(), block.block), &table{}
	if s := good.last("script"); s != nil && block.keyword() == "vrrp_script" {
		words, ok := c.command(s, "without %s, as with keepalived. Write the whole command between double quotes, and convert the file again")
		if !ok {
			return nil, mistake(s.at(1), `write script "/path/to/program argument"`, "this is no command")
		}
		c.runs(made, s, words)
	} else if named := good.all("process"); len(named) > 0 && block.keyword() == "vrrp_track_process" {
		c.service(made, named[0], named[0].text(1)) // keepalived takes the first one
	} else {
		c.look(block, "left out: it names nothing that could be looked at")
	}
	if made.words == nil {
		return nil, nil
	}
	return made, c.numbers(made, good)
}

// numbers converts the times and the numbers of results, of which topdog takes fewer than keepalived. systemd and the kernel
// report a failure at once, so a check of a unit or of a program needs only the number of good results.
func (c *conversion) numbers(made *table, b block) error {
	every := check.DefaultEvery
	for _, key := range []string{"interval", "timeout", "rise", "fall"} {
		s := b.last(key)
		if s == nil || key != "rise" && (made.kind == check.Unit || made.kind == check.Exec) {
			continue
		}
		var length time.Duration
		var count int
		var err error
		switch key {
		case "interval":
			length, err = c.between(s, check.MinEvery, check.MaxEvery)
			every = cmp.Or(length, every)
			key = "every"
		case "timeout":
			length, err = c.between(s, check.MinTimeout, every) // one run ends before the next begins
		default:
			count, err = number(s, 1<<16, "such as 2", "number of results")
			made.set(key, min(count, check.MaxCount))
		}
		if err != nil {
			return err
		}
		if length != 0 {
			made.set(key, config.Quote(length.String()))
		}
	}
	return nil
}

// between reads a number of seconds, and brings it into the limits of topdog. 0 stands for the default, as in keepalived.
func (c *conversion) between(s *statement, least, most time.Duration) (time.Duration, error) {
	read, err := seconds(s)
	if err != nil || read == 0 {
		return 0, err
	}
	value := min(max(read, least), most)
	if value != read {
		c.look(s, "%v became %v", read, value)
	}
	return value, err
}

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

// command returns the program and the arguments of a script, which are one word in keepalived's file. The note others is for
// what follows that word.
//
// Versions of keepalived read quotes behind backslashes differently. Up to 2.3.1, for which most files are written, they hold
// words together, as here. Since then they are a part of their words, and a shell would find them unclosed.
func (c *conversion) command(s *statement, others string) (words []string, ok bool) {
	nested := strings.Contains(s.raw, `\"`)
	outer, ok := split(s.raw, nested)
	if !ok || len(outer) == 0 {
		return nil, false
	}
	if words, ok = split(outer[0], true); !ok || len(words) == 0 {
		return nil, false
	}
	if strings.Contains(s.raw, `\`) {
		c.look(s, `it is read as %s. Versions of keepalived take backslashes for different things: see whether it is right`,
			printable(shellLine(words)))
	}
	if len(outer) > 1 {
		c.look(s, others, printable(outer[1:]...))
	}
	return words, true
}

// shell matches words that only a shell understands. keepalived 2 hands them to the program.
var shell = regexp.MustCompile("^[|&;<>]+$|^[0-9]?>|^[<>]|[|;&`]|\\$\\(|\\*")

// devTCP matches the connection that keepalived's manual has a shell make.
var devTCP = regexp.MustCompile(`^<? ?/dev/tcp/([0-9a-zA-Z.:-]+)/([0-9]+)$`)

// needsShell reports whether words look like a line for a shell. The arguments of a shell do not.
func needsShell(words []string) bool {
	return !slices.Contains([]string{"sh", "bash", "dash"}, path.Base(words[0])) && slices.ContainsFunc(words, shell.MatchString)
}

// runs finds out what a script checks, and makes it a check of topdog's own if there is one for that.
func (c *conversion) runs(made *table, s *statement, words []string) {
	text := words[len(words)-1] // of a shell
	if needsShell(words) {
		outer, _ := split(s.raw, false) // command has looked at it
		text = outer[0]
	}
	if m := devTCP.FindStringSubmatch(text); m != nil {
		if isAddress(m[1], func(ip netip.Addr) bool { return c.otherWith(ip) != nil }) {
			c.look(s, "left out for %s: %s is an address of another group, which another board may have", printable(c.instance.text(1)), m[1])
			return
		}
		made.kind, made.words = check.TCP, []string{net.JoinHostPort(m[1], m[2])}
		if isAddress(m[1], c.keeps) {
			made.set("when", config.Quote(check.Leading.String()))
		}
		return
	}
	if needsShell(words) {
		words = []string{"/bin/bash", "-c", text}
		c.look(s, "it looks like a line for a shell, so it is run by one; keepalived 2 runs none")
	}
	if unit, ok := asksSystemd(words); ok {
		made.kind, made.words = check.Unit, []string{unit}
		return
	}
	if name, ok := looksForProcess(words); ok {
		c.service(made, s, name)
		return
	}
	if !path.IsAbs(words[0]) || strings.ContainsAny(words[0], blank) {
		// env looks for the program in PATH, as keepalived does.
		words = append([]string{"/usr/bin/env"}, words...)
	}
	if len(words) > config.MaxWords {
		c.look(s, "left out: the command has more than %d words. Write it into a script", config.MaxWords)
		return
	}
	made.kind, made.words = check.Command, words
	c.look(s, "it runs as the daemon's user, in the sandbox of the unit, where the processes of others cannot be seen. "+
		"When the daemon runs, sudo topdog check has it try that. A script that stops keepalived has to end with status 1 instead")
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

// service makes a check for a process of that name: for the service of systemd with this name, or for the program whose whole
// path is given. Otherwise there is no check: the command as it is would always fail, because the daemon does not see the
// processes of others.
func (c *conversion) service(made *table, s *statement, given string) {
	unit := path.Base(given) + ".service"
	switch {
	case c.hasUnit(unit):
		made.kind, made.words = check.Unit, []string{unit}
		c.look(s, "became unit = %s, because systemd has a service of that name. See whether it is the right one",
			config.Quote(unit))
	case path.IsAbs(given):
		made.kind, made.words = check.Exec, []string{given}
		c.look(s, "became exec = %s. The daemon needs ProtectProc=default for it (systemctl edit topdog)", config.Quote(given))
	default:
		c.look(s, "left out: systemd has no service %s here. Write a [[check]] with its unit, or with exec and the path of the program",
			printable(given))
	}
}
