package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// nothing stands in a cell that has no figure.
const nothing = "-"

// millis writes a time in milliseconds, as exactly as it was measured: the client asks
// once per millisecond, the kernel says at which microsecond an address came or went.
func millis(t time.Duration) string {
	ms := float64(t) / float64(time.Millisecond)
	switch {
	case t == 0:
		return "0"
	case ms < 0.01:
		return "<0.01"
	case ms < 0.995:
		return strconv.FormatFloat(ms, 'f', 2, 64)
	case ms < 99.95:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	default:
		return strconv.FormatFloat(ms, 'f', 0, 64)
	}
}

// cell writes what may only be the least for a table of milliseconds.
func (b bound) cell() string {
	switch {
	case !b.AtLeast:
		return millis(b.Time)
	case b.Time >= time.Second:
		return fmt.Sprintf(">%.4g s", b.Time.Seconds())
	default:
		return ">" + millis(b.Time)
	}
}

// String writes the time with its unit, and so exactly that it can be held against a limit.
func (b bound) String() string {
	s := strconv.FormatFloat(float64(b.Time)/float64(time.Millisecond), 'f', 3, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".") + " ms"
	if b.AtLeast {
		return "more than " + s
	}
	return s
}

// times writes a ratio.
func times(ratio float64, atLeast bool) string {
	more := ""
	if atLeast {
		more = ">"
	}
	switch {
	case ratio < 0.995:
		return fmt.Sprintf("x %s%.2f", more, ratio)
	case ratio < 9.95:
		return fmt.Sprintf("x %s%.1f", more, ratio)
	default:
		return fmt.Sprintf("x %s%.0f", more, ratio)
	}
}

// span writes a time that somebody has chosen, such as an interval or how long to watch.
func span(t time.Duration) string {
	switch {
	case t >= time.Minute && t%time.Minute == 0:
		return fmt.Sprintf("%d min", t/time.Minute)
	case t >= time.Second:
		return fmt.Sprintf("%.4g s", t.Seconds())
	default:
		return fmt.Sprintf("%.4g ms", float64(t)/float64(time.Millisecond))
	}
}

// megabytes are 1,000,000 bytes each.
func megabytes(bytes uint64) string { return fmt.Sprintf("%.1f", float64(bytes)/1e6) }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// name is how tables call a system.
func (s System) name() string {
	if s.Program == "" {
		return clean(s.Key)
	}
	return strings.TrimSpace(clean(s.Program + " " + s.Setting))
}

// unset says whether this is what the program does when it is told nothing.
func (s System) unset() bool { return strings.HasPrefix(s.Setting, "default") }

// system finds one by its key. What a report refers to and does not describe is
// still shown, by its key.
func (r *Report) system(key string) System {
	for _, s := range r.Systems {
		if s.Key == key {
			return s
		}
	}
	return System{Key: key}
}

func (r *Report) title(event string) string {
	for _, e := range r.Events {
		if e.Key == event && e.Title != "" {
			return clean(e.Title)
		}
	}
	return clean(event)
}

func (r *Report) failure(system, event string) (Failure, bool) {
	for _, f := range r.Failures {
		if f.System == system && f.Event == event {
			return f, true
		}
	}
	return Failure{}, false
}
