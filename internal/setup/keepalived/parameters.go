package keepalived

import (
	"path/filepath"
	"strings"
)

// define takes the definition of a parameter, $NAME=VALUE. It reports false if the line is something else.
func (r *reader) define(at Place, text string) bool {
	name := parameterName(text[1:])
	value, found := strings.CutPrefix(text[1+len(name):], "=")
	if name == "" || !found {
		return false
	}
	delete(r.params, name)
	delete(r.long, name)
	if strings.HasSuffix(value, `\`) {
		r.say(at, "$"+name, "a definition of several lines is not converted: write its lines where it is used")
		r.long[name], r.defines = true, true
		return true
	}
	r.params[name] = strings.TrimLeft(value, blank)
	return true
}

// parameterName returns the name that a text begins with, or "".
func parameterName(text string) string {
	for i := range len(text) {
		c := text[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return text[:i]
		}
	}
	return text
}

// replace puts values into the places of parameters, $NAME and ${NAME}, and into what comes of it
// again. A parameter that is not defined stays as it is.
func (r *reader) replace(at Place, text string) (string, error) {
	from, replaced := 0, 0
	for {
		i := strings.IndexByte(text[from:], '$')
		if i < 0 {
			return text, nil
		}
		from += i
		value, length, ok := r.parameter(at, text[from+1:])
		if !ok {
			from++
			continue
		}
		text = text[:from] + value + text[from+1+length:]
		if replaced++; replaced > maxReplaced || len(text) > maxLine {
			return "", mistake(at, "look for a parameter that contains itself", "the parameters of this line make it endless")
		}
	}
}

// parameter returns the value of the parameter that a text behind a "$" names, and how long its name is.
func (r *reader) parameter(at Place, text string) (value string, length int, ok bool) {
	rest, braces := strings.CutPrefix(text, "{")
	name := parameterName(rest)
	length = len(name)
	switch rest = rest[length:]; {
	case name == "":
		return "", 0, false
	case braces && !strings.HasPrefix(rest, "}"):
		return "", 0, false
	case braces:
		length += len("{}")
	case rest != "" && strings.IndexByte(blank, rest[0]) < 0:
		return "", 0, false
	}
	if name == "_PWD" {
		return filepath.Dir(at.file), length, true
	}
	value, ok = r.params[name]
	return value, length, ok
}
