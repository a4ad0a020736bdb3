package keepalived

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/internal/check"
	"topdog/internal/config"
)

// Check is one [[check]] of topdog's configuration.
type Check struct {
	from  string // what it was, with its place
	kind  check.Kind
	words []string

	every, timeout time.Duration // 0 if the file says nothing
	rise, fall     int           // 0 if the file says nothing
	leading        bool          // it is aimed at a floating address
}

// TOML returns the check as it is written into a configuration.
func (c Check) TOML() string {
	var b strings.Builder
	b.WriteString("# " + c.from + "\n[[check]]\n" + c.kind.String() + " = ")
	quoted := make([]string, len(c.words))
	for i, w := range c.words {
		quoted[i] = config.Quote(w)
	}
	if c.kind == check.Command {
		b.WriteString("[" + strings.Join(quoted, ", ") + "]\n")
	} else {
		b.WriteString(quoted[0] + "\n")
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"every", c.every}, {"timeout", c.timeout}} {
		if d.value != 0 {
			b.WriteString(d.key + " = " + config.Quote(d.value.String()) + "\n")
		}
	}
	for _, n := range []struct {
		key   string
		value int
	}{{"rise", c.rise}, {"fall", c.fall}} {
		if n.value != 0 {
			b.WriteString(n.key + " = " + strconv.Itoa(n.value) + "\n")
		}
	}
	if c.leading {
		b.WriteString("when = " + config.Quote(check.Leading.String()) + "\n")
	}
	return b.String()
}

// same reports whether two checks look at the same.
func (c Check) same(other Check) bool {
	return c.kind == other.kind && slices.Equal(c.words, other.words)
}

// checks converts the scripts and processes that the chosen instances track. Others are named.
func (c *conversion) checks(chosen selection) (all []Check, err error) {
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
	for _, s := range c.file.top {
		var made *Check
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
			return nil, err
		}
		if made != nil && slices.ContainsFunc(all, made.same) {
			c.look(s, "left out: a check above looks at the same")
		} else if made != nil {
			made.from = s.keyword() + " " + printable(s.text(1)) + ", " + printable(path.Base(s.place.file)) + ":" + strconv.Itoa(s.place.line)
			all = append(all, *made)
		}
	}
	return all, nil
}

// trackWeight looks at what stands behind a name that is tracked in a block, and reports whether it can be a check.
func (c *conversion) trackWeight(s, tracking *statement, kind string) bool {
	block, what := "vrrp_script", "script"
	if kind == "track_process" {
		block, what = "vrrp_track_process", "process"
	}
	if found := c.file.named(block, s.keyword()); found == nil {
		c.look(s, "there is no %s of that name", what)
	} else if slices.Index(c.file.top, found) > slices.Index(c.file.top, tracking) {
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

// reversed reports whether a check is to fail when it passes.
func reversed(block *statement) bool {
	for _, s := range under(block.block, "weight") {
		if s.text(2) == "reverse" {
			return true
		}
	}
	return false
}

// script converts a vrrp_script.
func (c *conversion) script(block *statement) (*Check, error) {
	if reversed(block) {
		c.look(block, "left out: it fails when its script passes (reverse). Write a script that ends with the other status")
		return nil, nil
	}
	c.rest(block.block, vrrpScript)
	made := &Check{}
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
				c.look(s, "without %s, as with keepalived. Write the whole command between double quotes, and convert the file again", printable(strings.Join(outer[1:], " ")))
			}
		case "interval":
			made.every, err = seconds(s)
		case "timeout":
			made.timeout, err = seconds(s)
		case "rise":
			made.rise, err = count(s)
		case "fall":
			made.fall, err = count(s)
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

// numbers makes what is written of intervals and results what topdog takes.
func (c *conversion) numbers(made *Check, block *statement) {
	if made.kind == check.Unit || made.kind == check.Exec { // systemd and the kernel tell at once
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

// count reads a number of results.
func count(s *statement) (int, error) {
	n, err := strconv.Atoi(s.text(1))
	if err != nil || n < 1 || n > 1<<16 {
		return 0, mistake(s.at(1), "write a number, such as 2", "%q is no number of results", printable(s.text(1)))
	}
	return n, nil
}
