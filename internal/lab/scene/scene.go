// Package scene plays scenes in tests. A scene is a text: what is done to the boards of a group, and what must hold then, a line
// each. It is played on every [Stage]: by daemons on a fake LAN in virtual time, where the times are judged as well, and by
// boards in network namespaces, which shows that the rest is wired to them.
//
//	boards 3 KEY=VALUE …           pi1, pi2 and pi3 start, and pi3 leads, whose rank is the highest
//	pi3 start KEY=VALUE …          starts a board (again); without settings it has those of before
//	pi3 set KEY=VALUE …            these are its settings from now on; it goes on running
//	pi3 stop | kill | freeze | thaw | pull | plug | lose-multicast | get-multicast
//	pi3 topdog drain says "…"      a command of topdog that succeeds, or that refuses "…"
//	wait 5s
//
// These must hold, at once (see [Prompt]), within 130ms, or for 5s if the line begins so:
//
//	pi2 leads                      every board that runs, is plugged in and does not stand still follows it
//	pi2 holds | nobody holds       by what the kernels have
//	pi2 is drained                 its role, or its grade
//	pi2 because handed_over          the reason of its last change
//	pi2 sees pi3 drained           the grade of another board
//	pi2 shows "…" "…"              a problem with these words in it; pi2 shows nothing: it has none
//	pi2 logs "…"
//	moves 0                        since the boards have agreed, or since the line mark
//
// In a value, {pi1} is the address of a board. At no time may two boards hold the address.
package scene

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/*.scene
var texts embed.FS

// line is a line of a scene.
type line struct {
	number int
	text   string
	within time.Duration // 0: Prompt
	lasts  time.Duration // 0: it must hold once
	words  []string
	quoted []string // the texts in quotes, which come last
}

// parse reads a scene. Empty lines and those that begin with # mean nothing.
func parse(text string) (lines []line, err error) {
	number := 0
	for raw := range strings.Lines(text) {
		number++
		l := line{number: number, text: strings.TrimSpace(raw)}
		if l.text == "" || strings.HasPrefix(l.text, "#") {
			continue
		}
		if err := l.split(); err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", number, l.text, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func (l *line) split() (err error) {
	rest := l.text
	for rest != "" && err == nil {
		if rest[0] == '"' {
			var quoted string
			if quoted, err = strconv.QuotedPrefix(rest); err == nil {
				rest = strings.TrimSpace(rest[len(quoted):])
				quoted, err = strconv.Unquote(quoted)
				l.quoted = append(l.quoted, quoted)
			}
			continue
		}
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		rest = strings.TrimSpace(rest)
		l.words = append(l.words, word)
	}
	if err == nil && len(l.words) > 2 && (l.words[0] == "within" || l.words[0] == "for") {
		var d time.Duration
		d, err = time.ParseDuration(strings.TrimSuffix(l.words[1], ":"))
		if l.words[0] == "for" {
			l.lasts = d
		}
		l.within = d
		l.words = l.words[2:]
	}
	return err
}

// Names are the names of all scenes.
func Names() (names []string) {
	entries, err := texts.ReadDir("testdata")
	if err != nil {
		panic(err) // they are in this program
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".scene"))
	}
	return names
}

// Play plays a scene on a stage.
func Play(t testing.TB, s Stage, name string) {
	t.Helper()
	text, err := texts.ReadFile("testdata/" + name + ".scene")
	if err == nil {
		err = play(s, string(text))
	}
	if err != nil {
		t.Errorf("%s.scene: %v", name, err)
	}
}
