package config

import (
	"slices"
	"strings"
	"unicode/utf8"

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
func meansSecret(all []setting, key string) bool { return find(all, "key_file").hasAlias(key) }

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
	meant, whole := meantBy(s.settings, e.key), find(s.settings, first)
	ofCheck := find(checkSettings(new(check.Check)), e.key) != nil
	inParts := strings.HasSuffix(s.name, ".")
	var hint string
	switch {
	case dotted && whole != nil:
		meant, hint = whole.name, "write "+whole.name+" = "+whole.example
	case s == s.top && ofCheck:
		meant, hint = "", "it is a key of a check: write [["+checkKey+"]] on the line above it"
	case s != s.top && !inParts && find(s.top.settings, e.key) != nil:
		hint = "it is no key of a check: write it above the first [[" + checkKey + "]], " +
			"since all that follows belongs to the check"
	case s == s.top && meansSecret(s.settings, e.key):
		hint = keyHasItsOwnFile
	case meant != "":
		hint = "did you mean " + meant + "?"
	case !s.keysListed: // once is enough
		s.keysListed = true
		hint = "the keys are " + strings.Join(names(s.settings), ", ")
	}
	s.bad[meant] = true // whoever wrote vip = "…" need not also be told that address is missing
	s.bad[e.key] = true
	if s == s.top {
		s.report(e.at, "unknown key "+quoted(e.key), hint)
	} else {
		s.report(e.at, s.name+e.key+": there is no such key", hint)
	}
}

// nearest returns the word that text is a misspelling of, or "": at most one
// typing error in three characters.
func nearest(text string, words []string) string {
	const maxLength = 40 // beyond it nothing is near, and the distance is quadratic
	if len(text) > maxLength {
		return ""
	}
	text = strings.ToLower(text)
	length := utf8.RuneCountInString(text)
	best, bestDistance := "", min(length, 1+max(1, length/3))
	for _, w := range words {
		if d := distance(text, w); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}

// distance counts the typing errors between a and b: missing, superfluous and wrong characters (Levenshtein).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	row := make([]int, len(t)+1) // the distances between the beginning of s so far and each beginning of t
	for j := range row {
		row[j] = j
	}
	for i := range s {
		before := row[0]
		row[0] = i + 1
		for j := range t {
			replaced := before
			if s[i] != t[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(before+1, row[j]+1, replaced)
		}
	}
	return row[len(t)]
}

// reportSyntax reports where the file stops being TOML, in the words of go-toml. Most often a text is not in quotes, so the
// hint shows how the key of that line is written.
func (r *reading) reportSyntax() {
	line, _ := r.lineAround(r.syntax.at.offset)
	all := append(checkSettings(new(check.Check)), r.top.settings...)
	example := "key = value"
	i := max(0, strings.IndexAny(line, "=:"))
	if k := find(all, meantBy(all, line[:i])); k != nil {
		example = k.name + " = " + k.example
	}
	hint := "write it as in " + example + ": texts have straight quotes, and comments begin with #"
	if meansSecret(all, line[:i]) {
		hint = keyHasItsOwnFile
	}
	// Code points mean nothing to most people; the mark shows the character.
	words := slices.DeleteFunc(strings.Fields(r.syntax.message), func(w string) bool { return strings.HasPrefix(w, "U+") })
	r.report(r.syntax.at, "this is not TOML: "+strings.Join(words, " "), hint)
}
