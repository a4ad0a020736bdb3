package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/systemd"
)

// This file has what the services share: their log, and how they wait for what they lack when they start.

// newLog returns the log that goes to standard error: for a person with the
// time, for the journal with the level as it wants it (sd-daemon(3)) and without
// a time, which the journal knows better than a Pi that has just booted.
func newLog(level logrus.Level) *logrus.Logger {
	l := logrus.New()
	l.SetOutput(os.Stderr)
	l.SetFormatter(formatter{journal: !isTerminal(os.Stderr)})
	l.SetLevel(level)
	return l
}

// groupField is the field of a log with the name of the group, where a board has several.
const groupField = "group"

// logOf returns the log of a group.
func logOf(log *logrus.Entry, cfg *config.Config) *logrus.Entry {
	if cfg.Several {
		log = log.WithField(groupField, cfg.Group)
	}
	return log
}

type formatter struct{ journal bool }

// syslogLevels are the journal's numbers.
var syslogLevels = map[logrus.Level]int{
	logrus.PanicLevel: 2, logrus.FatalLevel: 2, logrus.ErrorLevel: 3,
	logrus.WarnLevel: 4, logrus.InfoLevel: 6, logrus.DebugLevel: 7, logrus.TraceLevel: 7,
}

// Format writes the level before each line for the journal. Without one, a line could choose its level by the name of a
// board, or by what a program has printed.
func (f formatter) Format(e *logrus.Entry) ([]byte, error) {
	message := e.Message
	if group, ok := e.Data[groupField]; ok {
		message = fmt.Sprintf("%s: %s", group, message)
	}
	message = console.Printable(message)
	if f.journal {
		level := fmt.Sprintf("<%d>", syslogLevels[e.Level])
		return []byte(level + strings.ReplaceAll(message, "\n", "\n"+level) + "\n"), nil
	}
	return fmt.Appendf(nil, "%s %-7s %s\n", e.Time.Format(time.StampMilli), e.Level, message), nil
}

// debugLog logs what a library writes, a line for each call, with the level debug. The writer that logrus has for this
// keeps 64 KiB and a goroutine.
type debugLog struct{ log *logrus.Logger }

func (d debugLog) Write(line []byte) (int, error) {
	d.log.Debug(strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

// serviceLog is the log of a service whose configuration does not choose the level.
func serviceLog() *logrus.Entry { return logrus.NewEntry(newLog(logrus.InfoLevel)) }

// warn writes an error to the journal.
func warn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "<4>"+err.Error())
	}
}

// atTerminal reports whether a person sees what this program says. No supervisor gives its services a terminal.
func atTerminal() bool { return isTerminal(os.Stderr) }

const (
	// retryEvery is how often a service looks again for what it lacks at its start.
	retryEvery = 200 * time.Millisecond
	// mendWithin is how long it may take to replace a file, with its owner and its mode: a file that is copied over a LAN,
	// or written to a slow SD card, is there within a second.
	mendWithin = 2 * time.Second
)

// readFiles reads what a daemon, a witness or a page starts with. Only here they give up with exitConfig, after which
// systemd does not start them again. A mistake in a file therefore counts only after mendWithin, since somebody may be
// writing the file at this moment. A file that is missing or cannot be read is waited for without a limit.
// A person at a terminal is told at once.
func readFiles(ctx context.Context, atTerminal bool, log *logrus.Entry, read func() error) error {
	w := newWait("the files", log)
	for mistakes := 0; ; {
		err := read()
		var bad config.Errors
		switch {
		case err == nil, atTerminal, !errors.As(err, &bad):
			return err
		case !bad.Mistake():
			mistakes = 0
			w.tell(err)
		case mistakes == int(mendWithin/retryEvery):
			return err
		default:
			mistakes++
		}
		if err := w.pause(ctx); err != nil {
			return err
		}
	}
}

// wait is how a service waits for what it lacks at its start.
type wait struct {
	what     string
	log      *logrus.Entry
	notifier *systemd.Notifier
	told     string
}

func newWait(what string, log *logrus.Entry) *wait {
	return &wait{what: what, log: log, notifier: systemd.New()}
}

// tell says once what is waited for, and why.
func (w *wait) tell(why error) {
	if text := why.Error(); text != w.told {
		w.told = text
		w.log.Warnf("waiting for %s: %v", w.what, why)
		warn(w.notifier.Ready()) // else systemd takes a long wait for a failed start
		warn(w.notifier.Status("waiting for " + w.what))
	}
}

// pause waits until it is time to look again. It returns an error if somebody ends the program meanwhile: exit status 0,
// since that is no failure.
func (w *wait) pause(ctx context.Context) error {
	warn(w.notifier.Watchdog())
	select {
	case <-ctx.Done():
		return exitStatus(0)
	case <-time.After(retryEvery):
		return nil
	}
}

// giveBack returns unused memory to the system, for example after a start. It must not be called where anything is in a
// hurry, since a collection takes the processor for milliseconds.
func giveBack() {
	debug.FreeOSMemory()
	netio.DropProgram()
}
