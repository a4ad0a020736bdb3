package cluster

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxLog bounds a log, in case a program goes mad.
const maxLog = 1 << 20

// Log keeps what a program prints, each line with the time at which it came.
type Log struct {
	start time.Time

	mu   sync.Mutex
	text []byte
	open bool // the last line has no end yet
}

// Write adds what was printed, and forgets the oldest lines when it is too much.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(b) {
		if !l.open {
			l.text = fmt.Appendf(l.text, "%8.1f ms  ", float64(time.Since(l.start))/float64(time.Millisecond))
		}
		l.text = append(l.text, line...)
		l.open = !bytes.HasSuffix(line, []byte("\n"))
	}
	if len(l.text) > maxLog {
		half := l.text[len(l.text)-maxLog/2:]
		_, half, _ = bytes.Cut(half, []byte("\n"))
		l.text = bytes.Clone(half)
	}
	return len(b), nil
}

// Note adds a line that the program has not printed.
func (l *Log) Note(format string, args ...any) { fmt.Fprintf(l, "--- "+format+"\n", args...) }

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// Last returns the last lines.
func (l *Log) Last(lines int) string {
	list := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(list[max(0, len(list)-lines):], "\n")
}

// Logged reports whether there is a line with all of these words in it.
func (l *Log) Logged(words ...string) bool { return l.Count(words...) > 0 }

// Count returns in how many lines all of these words are.
func (l *Log) Count(words ...string) (n int) {
lines:
	for line := range strings.Lines(l.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		n++
	}
	return n
}
