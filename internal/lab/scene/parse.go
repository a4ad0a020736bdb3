package scene

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scene is a scene that was read.
type Scene struct {
	name  string
	lines []line
}

// line is a line of a scene.
type line struct {
	number int
	text   string
	at     *Range // when, since the scene began; nil for as soon as the line before is over
	within time.Duration
	lasts  time.Duration // 0: it must hold once
	words  []string
	quoted []string // the texts in quotes, which come last
	// inner are the lines that are repeated, so often or as long as that.
	inner []line
	times int
	long  time.Duration
}

// Parse reads a scene. Empty lines and those that begin with # mean nothing.
func Parse(name, text string) (*Scene, error) {
	s := &Scene{name: name}
	open := []*line{{}} // the repeats that have not ended, in a line that is none
	number := 0
	for raw := range strings.Lines(text) {
		number++
		l := line{number: number, text: strings.TrimSpace(raw)}
		if l.text == "" || strings.HasPrefix(l.text, "#") {
			continue
		}
		err := l.read()
		last := open[len(open)-1]
		switch {
		case err != nil:
		case l.words[0] == "end" && len(open) == 1:
			err = errors.New("nothing is repeated here")
		case l.words[0] == "end":
			open = open[:len(open)-1]
			before := open[len(open)-1]
			before.inner = append(before.inner, *last)
		case l.words[0] == "repeat":
			open = append(open, &l)
		default:
			last.inner = append(last.inner, l)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", name, number, l.text, err)
		}
	}
	if len(open) > 1 {
		return nil, fmt.Errorf("%s:%d: %s: there is no end", name, open[1].number, open[1].text)
	}
	s.lines = open[0].inner
	return s, nil
}

func (l *line) read() (err error) {
	if err = l.split(); err != nil {
		return err
	}
	for err == nil && slices.Contains([]string{"within", "for", "at"}, l.word(0)) {
		when, colon := strings.CutSuffix(l.word(1), ":")
		if !colon || len(l.words) < 3 {
			return fmt.Errorf("write, such as: %s 1s: pi1 leads", l.words[0])
		}
		switch l.words[0] {
		case "within":
			l.within, err = ReadTime(when)
		case "for":
			l.lasts, err = ReadTime(when)
		case "at":
			l.at = &Range{}
			*l.at, err = readRange(when)
		}
		l.words = l.words[2:]
	}
	if err == nil {
		err = l.check()
	}
	return err
}

func (l *line) split() (err error) {
	rest := l.text
	for rest != "" && err == nil {
		if rest[0] == '"' || rest[0] == '`' {
			var quoted string
			if quoted, err = strconv.QuotedPrefix(rest); err != nil {
				return errors.New("a quote does not end")
			}
			rest = strings.TrimSpace(rest[len(quoted):])
			quoted, err = strconv.Unquote(quoted)
			l.quoted = append(l.quoted, quoted)
			continue
		}
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		rest = strings.TrimSpace(rest)
		l.words = append(l.words, word)
	}
	return err
}

// check reads what must be right before the scene begins.
func (l *line) check() (err error) {
	if len(l.words) == 0 {
		return errors.New("a line begins with a word")
	}
	switch l.words[0] {
	case "wait":
		_, err = readRange(l.word(1))
	case "boards":
		if n, wrong := strconv.Atoi(l.word(1)); wrong != nil || n < 1 {
			err = errors.New("how many? write, such as: boards 3")
		}
	case "moves":
		if n, wrong := strconv.Atoi(l.word(1)); wrong != nil || n < 0 {
			err = errors.New("how often? write, such as: moves 0")
		}
	case "agreed":
		if said := l.said(); said != "agreed" && said != "agreed anew" {
			err = errors.New("write: agreed, or: agreed anew")
		}
	case "two":
		if l.text != "two may hold" {
			err = errors.New("write: two may hold")
		}
	case "repeat":
		if l.word(1) == "for" {
			l.long, err = ReadTime(l.word(2))
		} else if l.times, err = strconv.Atoi(l.word(1)); err != nil || l.times < 1 {
			err = errors.New("how often? write, such as: repeat 3, or: repeat for 10s")
		}
	}
	return err
}

// Boards is the highest number of a board that the scene starts.
func (s *Scene) Boards() (most int) {
	for _, l := range s.lines {
		n := 0
		switch {
		case l.words[0] == "boards":
			n, _ = strconv.Atoi(l.word(1)) // it was checked
		case l.word(1) == "start":
			n, _ = number(l.words[0])
		}
		most = max(most, n)
	}
	return most
}

// word is one of the words of the line, or "".
func (l *line) word(n int) string {
	if n < len(l.words) {
		return l.words[n]
	}
	return ""
}

// Longest is the longest time that a scene may have pass at once, also where time is virtual.
const Longest = 24 * time.Hour

// ReadTime reads a length of time.
func ReadTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d < 0:
		return 0, fmt.Errorf("%q is no time, such as 2s or 500ms", text)
	case d > Longest:
		return 0, fmt.Errorf("%q is more than %v", text, Longest)
	}
	return d, nil
}

// readRange reads a time, or a range of which one is drawn.
func readRange(text string) (r Range, err error) {
	least, most, drawn := strings.Cut(text, "..")
	if r.Least, err = ReadTime(least); err != nil || !drawn {
		return Range{r.Least, r.Least}, err
	}
	if r.Most, err = ReadTime(most); err == nil && r.Most < r.Least {
		err = fmt.Errorf("%q ends before it begins", text)
	}
	return r, err
}

// Draw draws a time.
func (r Range) Draw(random *rand.Rand) time.Duration {
	d := r.Least + time.Duration(random.Int64N(int64(r.Most-r.Least)+1))
	return d.Round(100 * time.Microsecond) // as people read it
}

// Timed is a line of a scene, and when it is due.
type Timed struct {
	At   time.Duration
	Text string
}

// Draw draws what a scene of faults leaves to chance: it returns its lines with the time at which each is due, and its end.
func (s *Scene) Draw(random *rand.Rand) (lines []Timed, end time.Duration) {
	return draw(s.lines, random, 0)
}

func draw(lines []line, random *rand.Rand, at time.Duration) (drawn []Timed, end time.Duration) {
	add := func(inner []line) {
		var more []Timed
		more, at = draw(inner, random, at)
		drawn = append(drawn, more...)
	}
	for i := range lines {
		l := &lines[i]
		if l.at != nil {
			at = max(at, l.at.Draw(random))
		}
		switch {
		case l.words[0] == "wait":
			r, _ := readRange(l.word(1)) // it was checked
			at += r.Draw(random)
		case l.times > 0:
			for range l.times {
				add(l.inner)
			}
		case l.long > 0:
			for until := at + l.long; at < until; {
				before := at
				if add(l.inner); at == before {
					break // it takes no time
				}
			}
		default:
			drawn = append(drawn, Timed{at, l.said()})
		}
	}
	return drawn, at
}
