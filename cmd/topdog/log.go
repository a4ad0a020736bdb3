package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/term"

	"topdog/internal/console"
)

// newLog returns the log that goes to standard error: for a person with the
// time, for the journal with the level as it wants it (sd-daemon(3)) and without
// a time, which the journal knows better than a Pi that has just booted.
func newLog(level logrus.Level) *logrus.Logger {
	l := logrus.New()
	l.SetOutput(os.Stderr)
	l.SetFormatter(formatter{journal: !term.IsTerminal(int(os.Stderr.Fd()))})
	l.SetLevel(level)
	return l
}

type formatter struct{ journal bool }

// syslogLevels are the journal's numbers.
var syslogLevels = map[logrus.Level]int{
	logrus.PanicLevel: 2, logrus.FatalLevel: 2, logrus.ErrorLevel: 3,
	logrus.WarnLevel: 4, logrus.InfoLevel: 6, logrus.DebugLevel: 7, logrus.TraceLevel: 7,
}

// Format writes the level before each line for the journal: a line without one would have
// another, and one that a name or a program has brought along could choose it.
func (f formatter) Format(e *logrus.Entry) ([]byte, error) {
	message := console.Printable(e.Message)
	if f.journal {
		level := fmt.Sprintf("<%d>", syslogLevels[e.Level])
		return []byte(level + strings.ReplaceAll(message, "\n", "\n"+level) + "\n"), nil
	}
	return fmt.Appendf(nil, "%s %-7s %s\n", e.Time.Format(time.StampMilli), e.Level, message), nil
}
