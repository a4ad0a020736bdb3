package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"topdog/election"
	"topdog/internal/check"
)

const keyHasItsOwnFile = "the group's key has a file of its own, which key_file names; `topdog init` makes one"

// normal turns Node-ID and "node_id" into node_id.
func normal(key string) string {
	key = strings.Trim(strings.TrimSpace(key), `"'`)
	return strings.ReplaceAll(strings.ToLower(key), "-", "_")
}

// hasAlias reports whether name is what other programs call the key.
func (k *setting) hasAlias(name string) bool {
	return slices.Contains(strings.Fields(k.aliases), normal(name))
}

// meansSecret reports whether key is a usual name of a secret. The name key_file is not: its value
// is a path.
func meansSecret(key string) bool { return find(settings(new(Config)), "key_file").hasAlias(key) }

// meantBy returns the key that was probably meant by name, or "".
func meantBy(all []setting, name string) string {
	for i := range all {
		if all[i].hasAlias(name) {
			return all[i].name
		}
	}
	return nearest(normal(name), names(all))
}

// unknownKey reports a key that the section does not have.
func (s *section) unknownKey(e entry) {
	first, _, dotted := strings.Cut(e.key, ".")
	meant, whole, ofCheck := meantBy(s.settings, e.key), find(s.settings, first), find(checkSettings(new(check.Check)), e.key)
	inParts := strings.HasSuffix(s.name, ".")
	var hint string
	switch {
	case s == s.own && e.key == groupKey:
		meant, hint = nameKey, "in a [["+groupKey+"]] the name of the group is "+nameKey+": write "+nameKey+` = "dns1"`
	case s == s.own && find(s.top.settings, e.key) != nil:
		hint = "all groups of a board have the same: write it above the first [[" + groupKey + "]]"
	case dotted && whole != nil && whole.parts == nil:
		meant, hint = whole.name, "this key has no parts: write "+whole.name+" = "+whole.example
	case dotted && whole != nil:
		meant, hint = whole.name, "write "+whole.name+" = "+whole.example
	case s.ofConfig() && ofCheck != nil && (meant == "" || !find(s.settings, meant).hasAlias(e.key)):
		meant, hint = "", "it is a key of a check: write [["+checkKey+"]] on the line above it"
	case inParts && ofCheck != nil:
		hint = "it is a key of the check: write it on a line of its own"
	case !s.ofConfig() && !inParts && find(s.top.settings, e.key) != nil:
		hint = "it is no key of a check: write it above the first [[" + checkKey + "]], " +
			"since all that follows belongs to the check"
	case s.ofConfig() && meansSecret(e.key):
		hint = keyHasItsOwnFile
	case meant != "":
		hint = "did you mean " + meant + "?"
	case !s.keysListed: // once is enough
		s.keysListed = true
		hint = "the keys are " + strings.Join(names(s.settings), ", ")
	}
	s.bad[meant] = true // whoever wrote vip = "…" need not also be told that address is missing
	s.bad[e.key] = true
	if s.ofConfig() {
		s.report(e.at, "unknown key "+quoted(e.key), hint)
	} else {
		s.report(e.at, s.name+e.key+": there is no such key", hint)
	}
}

// nearest returns the word that text is a misspelling of, or "": at most one
// typing error in three characters. Failing that, it returns the only word that text is the
// beginning of, as "tun" of "tun+lifetime".
func nearest(text string, words []string) string {
	const maxLength = 40 // beyond it nothing is near, and the distance is quadratic
	if len(text) > maxLength {
		return ""
	}
	text = strings.ToLower(text)
	length := utf8.RuneCountInString(text)
	best, bestDistance := "", min(length, 1+max(1, length/3))
	var begun []string
	for _, w := range words {
		// A word that was only finished differently ("warning") is near too.
		if len(w) >= 4 && strings.HasPrefix(text, w) {
			return w
		}
		if d := distance(text, w); d < bestDistance {
			best, bestDistance = w, d
		}
		if strings.HasPrefix(w, text) {
			begun = append(begun, w)
		}
	}
	if best == "" && length >= 3 && len(begun) == 1 {
		return begun[0]
	}
	return best
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

// rewrite says how to write a value that has the wrong form or no quotes. It
// offers only what would be accepted.
func (s *section) rewrite(k *setting, text string) string {
	truth := map[string]string{
		"true": "true", "yes": "true", "on": "true", "1": "true",
		"false": "false", "no": "false", "off": "false", "0": "false",
	}
	candidates := []string{text, truth[strings.ToLower(text)]}
	if _, err := strconv.ParseUint(text, 10, 32); err == nil {
		candidates = append(candidates, "GPIO"+text, text+"ms", ":"+text) // a pin, a duration, a port
	}
	for _, candidate := range candidates {
		if s.ofConfig() && candidate != "" && s.fits(k, candidate) {
			if k.takes&aText != 0 {
				candidate = Quote(candidate)
			}
			return "write " + k.name + " = " + candidate
		}
	}
	return s.example(k)
}

// fits reports whether text alone would be accepted as the value of a key.
func (r *reading) fits(k *setting, text string) bool {
	scratch := Defaults()
	scratch.file = r.file
	same := find(settings(scratch), k.name)
	switch {
	case same.takes == aBool:
		return text == "true" || text == "false"
	case same.set == nil || same.set(text) != nil:
		return false
	}
	return (scratch.Patience == 0 || election.CheckPatience(scratch.Patience, scratch.Interval) == nil) &&
		(scratch.Watch <= 0 || election.CheckWatch(scratch.Watch, scratch.Interval) == nil)
}

// reportSyntax reports where the file stops being TOML. The most common reasons
// (no quotes, a colon) get their own words, the others those of go-toml.
func (r *reading) reportSyntax() {
	at, message, hint := r.commonMistake()
	if message == "" {
		at = r.syntax.at
		message, hint = inPlainWords(r.syntax.message)
	}
	r.report(at, message, hint)
}

// commonMistake recognizes `key = value` without quotes and `key: value`. The message is "" for any other mistake.
func (r *reading) commonMistake() (at span, message, hint string) {
	line, start := r.lineAround(r.syntax.at.offset)
	i := strings.IndexAny(line, "=:")
	if i < 0 || strings.HasPrefix(strings.TrimSpace(line), "#") {
		return at, "", ""
	}
	key, rest := strings.TrimSpace(line[:i]), line[i+1:]
	k := find(r.top.settings, normal(key))
	text, _, _ := strings.Cut(rest, "#")
	text = strings.TrimSpace(text)
	separator := span{start + i, 1}
	value := span{start + i + 1 + len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace)), len(text)}
	if k != nil {
		hint = r.top.rewrite(k, strings.Trim(text, `"'“”„‘’«»`))
	}
	switch {
	case line[i] == ':':
		return separator, "a key and its value are separated by =, not by :", cmp.Or(hint, "write key = value")
	case text == "" && k == nil:
		return separator, quoted(key) + " has no value", ""
	case text == "":
		return separator, quoted(key) + " has no value", r.top.example(k) + ", or delete the line"
	case strings.ContainsAny(text, "“”„‘’«»"):
		return value, `quotes must be straight ("), not typographic`, hint
	case strings.ContainsAny(text[:1], `"'[{`): // it has quotes or brackets
		return at, "", ""
	case k == nil && meansSecret(key):
		return span{start + strings.Index(line, key), len(key)}, "unknown key " + quoted(key), keyHasItsOwnFile
	case k == nil:
		hint = `write it in quotes: "…"`
		if meant := meantBy(r.top.settings, key); meant != "" {
			hint = "did you mean " + meant + "? " + hint
		}
		return value, "this is neither a number nor true or false, and not text in quotes", hint
	case k.takes&aText != 0:
		return value, k.name + ": text must be in quotes", hint
	case r.fits(k, strings.Fields(text)[0]): // the value is right, so what follows it is wrong
		return at, "", ""
	}
	return value, k.name + ": this must be " + required[k.takes], hint
}

// syntaxErrors has plain words for go-toml's messages about grammar.
var syntaxErrors = []struct{ contains, plain, hint string }{
	{"new lines", "the text is not closed", `close it with a quote (")`},
	{"terminated", "the text is not closed", `close it with a quote (")`},
	{"control characters", "the text contains a control character", "delete it"},
	{"array is incomplete", "the list is not closed", "close it with ]"},
	{"expected newline", "something follows where the line should end", "write each key on a line of its own, several values in brackets, and comments after #"},
	{"after array value", "neither a comma nor ] follows a value of the list", "put each text in quotes, and a comma between two"},
	{"expected keyword", "this is neither a number nor true or false, and not text in quotes", `write text in quotes: "…"`},
	{"expected '='", "there is no = after the key", "write key = value, or begin a comment with #"},
	{"invalid character at start of key", "no key can begin with this", "write key = value, or begin a comment with #"},
	{"invalid escape character", "a backslash in double quotes begins a special character, and this is none",
		`write \\ for a backslash, or put the text in single quotes`},
}

// inPlainWords replaces a message of go-toml about grammar.
func inPlainWords(message string) (plain, hint string) {
	for _, e := range syntaxErrors {
		if strings.Contains(message, e.contains) {
			return e.plain, e.hint
		}
	}
	// Code points mean nothing to most people; the mark shows the character.
	words := slices.DeleteFunc(strings.Fields(message), func(w string) bool { return strings.HasPrefix(w, "U+") })
	return strings.Join(words, " "), ""
}
