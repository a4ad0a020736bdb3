package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/term"

	"topdog/internal/config"
	"topdog/systemd"
)

const (
	// retryEvery is how often what a daemon lacks at its start is looked for again.
	retryEvery = 200 * time.Millisecond
	// mendWithin is how long whoever replaces a file may take for it, owner and mode included: a file that is copied
	// over a LAN, or written to a slow SD card, is there within a second.
	mendWithin = 2 * time.Second
)

// atTerminal reports whether a person sees what this program says. No supervisor gives its services a terminal.
func atTerminal() bool { return term.IsTerminal(int(os.Stderr.Fd())) }

// readFiles reads what a daemon, a witness or a page starts with. It is the one place where they give up with exitConfig,
// after which systemd does not start them again. So a mistake in a file is final only after mendWithin, since somebody may be
// writing that file at the moment; and what is not there, or cannot be read now, is waited for without a limit.
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

// wait is what a daemon does that lacks something at its start.
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
		warn(w.notifier.Ready()) // to wait is work
		warn(w.notifier.Status("waiting for " + w.what))
	}
}

// pause waits until it is time to look again. Its error is that somebody has ended this program meanwhile, which is no failure.
func (w *wait) pause(ctx context.Context) error {
	warn(w.notifier.Watchdog())
	select {
	case <-ctx.Done():
		return exitStatus(0)
	case <-time.After(retryEvery):
		return nil
	}
}
