package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"

	"topdog/election"
)

// otherNames are what keepalived, corosync and common sense call our keys.
var otherNames = map[string]string{
	"vip": "address", "vips": "address", "ip": "address", "virtual_ip": "address", "virtual_ipaddress": "address",
	"floating_ip": "address", "addresses": "address", "iface": "interface", "nic": "interface", "device": "interface",
	"dev": "interface", "cluster": "group", "virtual_router_id": "group", "vrid": "group", "router_id": "id",
	"node_id": "id", "prio": "priority", "rank": "priority", "weight": "priority", "nopreempt": "preempt",
	"interval": "heartbeat", "advert_int": "heartbeat", "mcast": "multicast", "mcast_group": "multicast",
	"port": "multicast", "nodes": "peers", "boards": "peers", "members": "peers", "unicast_peer": "peers",
	"key": "key_file", "secret": "key_file", "password": "key_file", "passphrase": "key_file", "auth_pass": "key_file",
	"psk": "key_file", "auth": "key_file", "gpio": "led", "pin": "led", "light": "led", "hostname": "name",
	"failure_detector": "detector", "suspicion": "detector", "unicast": "fanout", "delivery": "fanout", "importance": "score_from",
	"measure": "score_from", "score": "score_from", "script": "score_command", "command": "score_command", "score_script": "score_command",
	"checks": "check", "track_process": "check", "health_check": "check", "healthcheck": "check", "measure_command": "score_command", "track_script": "score_command", "host_name": "name", "log": "log_level", "loglevel": "log_level", "verbosity": "log_level",
	"listen": "page_listen", "bind": "page_listen", "page": "page_listen", "page_port": "page_listen", "hosts": "page_hosts", "page_host": "page_hosts",
}

const keyHasItsOwnFile = "the group's key has a file of its own, which key_file names; `topdog init` makes one"

// normal folds the spellings of a key that differ only in fashion.
func normal(key string) string {
	key = strings.Trim(strings.TrimSpace(key), `"'`)
	return strings.ReplaceAll(strings.ToLower(key), "-", "_")
}

// meansSecret reports whether a key is called like one that holds a secret.
// key_file itself holds a path, which is no secret.
func meansSecret(key string) bool {
	key = normal(key)
	return key != "key_file" && otherNames[key] == "key_file"
}

// knownAs returns the key of topdog that was probably meant by name, or "".
func knownAs(name string) string {
	name = normal(name)
	if key, ok := otherNames[name]; ok {
		return key
	}
	return nearest(name, Keys())
}

func (r *reading) unknownKey(name string, at span) {
	message := "unknown key " + quoted(name)
	if first, _, dotted := strings.Cut(name, "."); dotted && r.field(first) != nil {
		f := r.field(first)
		r.refused[f.key] = true
		r.report(at, message, "this key has no parts: write "+f.key+" = "+f.example)
		return
	}
	if checkFieldNamed(name) != nil && otherNames[name] == "" {
		r.report(at, message, "it is a key of a check: write [["+checkKey+"]] on the line above it")
		return
	}
	meant := knownAs(name)
	if meant == "" {
		hint := ""
		if !r.keysListed { // once is enough
			hint = "the keys are " + strings.Join(Keys(), ", ")
			r.keysListed = true
		}
		r.report(at, message, hint)
		return
	}
	// Whoever wrote vip = "…" need not also be told that address is missing.
	r.refused[meant] = true
	hint := "did you mean " + meant + "?"
	if meansSecret(name) {
		hint = keyHasItsOwnFile
	}
	r.report(at, message, hint)
}

// nearest returns the word that text is a misspelling of, or "": at most one
// typing error in three characters, and no tie broken by chance.
func nearest(text string, words []string) string {
	const maxLength = 40 // beyond it nothing is near, and the distance is quadratic
	if len(text) > maxLength {
		return ""
	}
	length := utf8.RuneCountInString(text)
	best, bestDistance := "", min(length, 1+max(1, length/3))
	for _, w := range words {
		// A word that was only finished differently ("warning") is near too.
		if len(w) >= 4 && strings.HasPrefix(strings.ToLower(text), w) {
			return w
		}
		if d := distance(strings.ToLower(text), w); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	if best == "" && length >= 3 {
		return begunBy(strings.ToLower(text), words)
	}
	return best
}

// begunBy returns the only word that text is the beginning of, or "": "tun" is half of
// "tun+lifetime", and hold was once written so.
func begunBy(text string, words []string) (only string) {
	for _, w := range words {
		if strings.HasPrefix(w, text) {
			if only != "" {
				return ""
			}
			only = w
		}
	}
	return only
}

// distance counts the typing errors between a and b: missing, superfluous,
// wrong and swapped neighbouring characters (optimal string alignment, the
// restricted form of Damerau, "A technique for computer detection and
// correction of spelling errors", CACM 1964).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, previous := make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(s); i++ {
		current := make([]int, len(t)+1)
		current[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous = previous, current
	}
	return previous[len(t)]
}

// rewrite says how a value that has the wrong form, or no quotes, should be
// written. It only offers what would be accepted.
func (r *reading) rewrite(f *field, text string) string {
	candidates := []string{text, truth(text)}
	if _, err := strconv.ParseUint(text, 10, 32); err == nil {
		candidates = append(candidates, "GPIO"+text, text+"ms", ":"+text) // a pin, a duration, a port
	}
	for _, candidate := range candidates {
		if candidate != "" && r.fits(f, candidate) {
			literal := Quote(candidate)
			if f.form&takesText == 0 {
				literal = candidate
			}
			return "write " + f.key + " = " + literal
		}
	}
	return "write for example " + f.key + " = " + f.example
}

// fits reports whether text alone would be accepted as the value of a key.
func (r *reading) fits(f *field, text string) bool {
	if f.form&takesBool != 0 {
		return text == "true" || text == "false"
	}
	scratch := defaults(r.host)
	scratch.file = r.file
	if f.set(scratch, text) != nil {
		return false
	}
	return scratch.Patience == 0 || election.CheckPatience(scratch.Patience, scratch.Interval) == nil
}

// truth translates other languages' booleans.
func truth(text string) string {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return "true"
	case "false", "no", "off", "0":
		return "false"
	default:
		return ""
	}
}

// syntaxError reports where the file stops being TOML. The most common reasons
// (no quotes, a colon) get their own words, the others those of go-toml.
func (r *reading) syntaxError(p *unstable.Parser, err error) {
	var at span
	message := err.Error()
	var syntax *unstable.ParserError
	if errors.As(err, &syntax) {
		raw := p.Range(syntax.Highlight)
		at = span{int(raw.Offset), int(raw.Length)}
		message = syntax.Message
	}
	// Some errors are found at the end of a line or file; the mark belongs on
	// the last character before it.
	at.offset = max(0, min(at.offset, len(r.data)-1))
	at.length = max(0, min(at.length, len(r.data)-at.offset))

	if message, hint, place := r.commonMistake(at.offset); message != "" {
		r.report(place, message, hint)
		return
	}
	message, hint := inPlainWords(message)
	r.report(at, message, hint)
}

// commonMistake recognizes `key = value` without quotes and `key: value`.
func (r *reading) commonMistake(offset int) (message, hint string, at span) {
	line, start := lineAround(r.data, offset)
	i := strings.IndexAny(line, "=:")
	if i < 0 || strings.HasPrefix(strings.TrimSpace(line), "#") {
		return "", "", span{}
	}
	key := strings.TrimSpace(line[:i])
	f := r.field(normal(key))
	rest := line[i+1:]
	text, _, _ := strings.Cut(rest, "#")
	text = strings.TrimSpace(text)
	valueStart := start + i + 1 + len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	value := span{valueStart, len(text)}

	switch {
	case line[i] == ':':
		hint = "write key = value"
		if f != nil {
			hint = r.rewrite(f, unquote(text))
		}
		return "a key and its value are separated by =, not by :", hint, span{start + i, 1}
	case text == "":
		if f != nil {
			hint = "write " + f.key + " = " + f.example + ", or delete the line"
		}
		return quoted(key) + " has no value", hint, span{start + i, 1}
	case strings.ContainsAny(text, "“”„‘’«»"):
		if f != nil {
			hint = r.rewrite(f, unquote(text))
		}
		return `quotes must be straight ("), not typographic`, hint, value
	case f == nil && meansSecret(key) && isBare(text):
		return "unknown key " + quoted(key), keyHasItsOwnFile, span{start + strings.Index(line, key), len(key)}
	case isBare(text):
		message, hint = r.bareValue(f, key, text)
		return message, hint, value
	}
	return "", "", span{}
}

// isBare reports whether a value has no quotes or brackets around it.
func isBare(text string) bool { return !strings.ContainsAny(text[:1], `"'[{`) }

// bareValue says what is wrong with a value that is not in quotes; nothing if it needs
// none. f is the field of key, if there is one.
func (r *reading) bareValue(f *field, key, text string) (message, hint string) {
	switch {
	case f == nil:
		hint = `write it in quotes: "…"`
		if meant := knownAs(key); meant != "" {
			hint = "did you mean " + meant + "? " + hint
		}
		return "this is neither a number nor true or false, and not text in quotes", hint
	case f.form&takesText == 0 && r.fits(f, strings.Fields(text)[0]):
		return "", "" // the value is right, so what follows it is wrong
	case f.form&takesText != 0:
		return f.key + ": text must be in quotes", r.rewrite(f, text)
	default:
		return f.key + ": this must be " + f.form.inWords(), r.rewrite(f, text)
	}
}

// unquote takes whatever quotes there are off a text.
func unquote(text string) string { return strings.Trim(text, `"'“”„‘’«»`) }

// inPlainWords replaces the library's words where they speak of grammar.
func inPlainWords(message string) (plain, hint string) {
	switch {
	case strings.Contains(message, "string") && (strings.Contains(message, "new lines") || strings.Contains(message, "terminated")):
		return "the text is not closed", `close it with a quote (")`
	case strings.HasSuffix(message, "control characters"):
		return "the text contains a control character", "delete it"
	case strings.HasPrefix(message, "array is incomplete"):
		return "the list is not closed", "close it with ]"
	case strings.HasPrefix(message, "expected newline"):
		return "something follows where the line should end", "write each key on a line of its own, and comments after #"
	case strings.HasPrefix(message, "expected '='"):
		return "there is no = after the key", "write key = value, or begin a comment with #"
	case strings.HasPrefix(message, "invalid character at start of key"):
		return "no key can begin with this", "write key = value, or begin a comment with #"
	case strings.HasPrefix(message, "invalid escape character"):
		return `a backslash in double quotes begins a special character, and this is none`,
			`write \\ for a backslash, or put the text in single quotes`
	default:
		// Code points mean nothing to most people; the mark shows the character.
		words := slices.DeleteFunc(strings.Fields(message), func(w string) bool { return strings.HasPrefix(w, "U+") })
		return strings.Join(words, " "), ""
	}
}
