package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/internal/examine"
	"topdog/netio"
)

func checkCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Find out whether this board is ready, and try its checks once",
		Long: `Find out whether this board is ready: configuration, key, interface, address, the
other boards, and the board itself. What the daemon would refuse is wrong, with what to
do. If no daemon runs here, this listens to the group for 2.5 s, and sends nothing to it.
Then the checks of the configuration are tried once (see docs/checks.md).

If root calls it, the daemon tries them: as its user, and in the sandbox of its
unit. Otherwise, or if no daemon runs, they are tried as the user who calls it, who
may see more, or less. Then programs are not run as root. A check that is for the
leader only is tried, and counts on the leader only.

Exit status: 0 if nothing is wrong, 1 if something is, a check fails, or one could
not be tried, 78 if a file has mistakes.`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			path, _ := c.Flags().GetString("config")
			report := console.Report{File: path}
			err = examineBoard(c.Context(), &report)
			var mistakes config.Errors
			if err != nil && !errors.As(err, &mistakes) {
				return err
			}
			if err != nil && len(report.Sections) == 1 && !asJSON {
				return err // the configuration is wrong, and the text shows the line
			}
			if err := showReport(c.OutOrStdout(), report, asJSON); err != nil {
				return err
			}
			switch {
			case len(mistakes) > 0:
				return exitStatus(exitConfig)
			case report.State == console.StateWrong:
				return exitStatus(exitFailure)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, for programs")
	return c
}

func showReport(w io.Writer, r console.Report, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	return console.WriteReport(w, r, textOptions(w))
}

// examineBoard examines this board with the configuration of that file. The error says why nothing more was found out; mistakes
// in the files are in the report too.
func examineBoard(ctx context.Context, r *console.Report) error {
	cfg, text, err := config.LoadText(r.File)
	if err != nil {
		examine.AddMistakes(r, console.TopicConfiguration, err)
		return err
	}
	f := checkedFile{Config: cfg, path: r.File, text: text}
	b := examine.Board{Config: cfg, Path: r.File, Version: versionText()}
	if os.Geteuid() == 0 {
		b.StartHolder = func() (*netio.Holder, error) {
			if r.File == config.DefaultPath { // the service's, which goes on when its daemon ends, and keeps the port
				if holder, err := netio.DialHolder(defaultHolderSocket); err == nil {
					return holder, nil
				}
			}
			return netio.StartHolder([]string{"/proc/self/exe", holderWord}, daemon.HolderOptions(cfg))
		}
	}
	status, unasked := askSettled(ctx, cfg.Socket)
	switch {
	case unasked == nil:
		b.Daemon = &status
	case !errors.Is(unasked, console.ErrNotRunning):
		b.Unasked = unasked
	}
	mistakes := b.Examine(ctx, r)
	var bad config.Errors
	if mistakes != nil && !errors.As(mistakes, &bad) {
		return fmt.Errorf("not all was looked at, and its checks were not tried: %w", mistakes)
	}
	f.tryChecks(ctx, r, b.Daemon, unasked)
	if ctx.Err() != nil {
		return fmt.Errorf("its checks were not tried: %w", ctx.Err())
	}
	return mistakes
}

const (
	// askDaemonWithin is how long the daemon may take to tell what it has found.
	askDaemonWithin = 2 * time.Second
	// settleWithin is how long one that has just started may take until it leads or follows.
	settleWithin = 3 * time.Second
	settleEvery  = 100 * time.Millisecond
)

// askSettled asks the daemon for its status, again while that may be about to lead or to follow.
func askSettled(ctx context.Context, socket string) (s console.Status, err error) {
	for end := time.Now().Add(settleWithin); ; {
		asking, cancel := context.WithTimeout(ctx, askDaemonWithin)
		s, err = console.Dial(socket).Status(asking)
		cancel()
		if err != nil || s.Role == console.RoleLeader || s.Role == console.RoleFollower || time.Now().After(end) {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(settleEvery):
		}
	}
}

// checkedFile is a configuration without mistakes.
type checkedFile struct {
	*config.Config
	path string
	text []byte
}

// tryChecks tries all checks of the file, and adds what they have come to. status is of the daemon, nil if none was asked, and unasked says why.
func (f *checkedFile) tryChecks(ctx context.Context, r *console.Report, status *console.Status, unasked error) {
	if len(f.Checks) == 0 {
		return
	}
	add := func(topic console.Topic, s console.State, text string) {
		r.Add(console.SectionChecks, console.Finding{Topic: topic, State: s, Text: text})
	}
	verdicts, by, err := f.try(ctx, unasked)
	if err != nil {
		add(console.TopicTried, console.StateWrong, "not at all: "+err.Error())
		return
	}
	add(console.TopicTried, console.StateRight, by)
	leads := status != nil && status.Role == console.RoleLeader
	for i := range verdicts {
		v, c := &verdicts[i], &f.Checks[i]
		switch {
		case v.untried != "":
			add(console.TopicCheck, console.StateWrong, fmt.Sprintf("%v was not tried: %s", c, v.untried))
		case v.reason == "":
			add(console.TopicCheck, console.StateRight, c.String()+" passes")
		case c.When == check.Leading && !leads:
			add(console.TopicCheck, console.StateLook, fmt.Sprintf("%v fails: %s (it counts on the leader only)", c, v.reason))
		default:
			add(console.TopicCheck, console.StateWrong, fmt.Sprintf("%v fails: %s", c, v.reason))
		}
	}
	if status != nil {
		f.addFound(r, status)
	}
}

// verdict is what a check has come to. It passes if both are "".
type verdict struct {
	untried string // why it was not tried
	reason  string // why it fails
}

// try tries the checks of the file, and says who did. unasked is why the daemon cannot be asked.
func (f *checkedFile) try(ctx context.Context, unasked error) (verdicts []verdict, by string, err error) {
	root := os.Geteuid() == 0
	switch down := errors.Is(unasked, console.ErrNotRunning); {
	case root && down:
		by = "as root, since no daemon answers on " + f.Socket
	case root && unasked != nil:
		return nil, "", unasked
	case root:
		verdicts, err = f.tryByDaemon(ctx)
		return verdicts, "by the daemon, as it runs its own", err
	case down:
		by = "as this user, since no daemon answers on " + f.Socket
	default:
		by = "as this user; if root calls this, the daemon tries them as it runs its own"
	}
	return tryHere(ctx, f.Config, root), by, ctx.Err()
}

// tryHere tries the checks in this process. Programs are not run as root: they are meant for the daemon's
// user, and another one than root may have written them.
func tryHere(ctx context.Context, cfg *config.Config, root bool) []verdict {
	verdicts := make([]verdict, len(cfg.Checks))
	order := daemon.CheckOrder(cfg, netio.FindInterface)
	order.Checks = nil
	var tried []int
	for i := range cfg.Checks {
		if root && cfg.Checks[i].Kind == check.Command {
			verdicts[i].untried = "a program runs as the daemon's user, and not as root: start the daemon, and it tries that too"
			continue
		}
		order.Checks, tried = append(order.Checks, cfg.Checks[i]), append(tried, i)
	}
	for n, reason := range check.Try(ctx, order) {
		verdicts[tried[n]].reason = reason
	}
	return verdicts
}

// tryByDaemon has the daemon try the checks of the file.
func (f *checkedFile) tryByDaemon(ctx context.Context) ([]verdict, error) {
	path, err := filepath.Abs(f.path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, longestTimeout(f.Config)+tryMargin)
	defer cancel()
	tried, err := console.Dial(f.Socket).Try(ctx, console.TryRequest{File: path, Config: string(f.text)})
	if err != nil {
		return nil, err
	}
	var verdicts []verdict
	for i, c := range tried.Checks {
		if i < len(f.Checks) && c.NameText == f.Checks[i].String() && c.Passing == (c.Text == "") {
			verdicts = append(verdicts, verdict{reason: c.Text})
		}
	}
	if len(verdicts) != len(f.Checks) {
		return nil, errors.New("the daemon, which may be of another version, has tried other ones: systemctl restart topdog")
	}
	return verdicts, nil
}

// tryMargin is what the daemon may take besides the checks themselves: it starts a process for them.
const tryMargin = 15 * time.Second

// longestTimeout is how long the checks may take, which are all tried at a time.
func longestTimeout(cfg *config.Config) (longest time.Duration) {
	for i := range cfg.Checks {
		longest = max(longest, cfg.Checks[i].Timeout)
	}
	return longest
}

// addFound says what the daemon has found, and whether it knows other checks.
func (f *checkedFile) addFound(r *console.Report, s *console.Status) {
	known := map[string]bool{}
	for _, c := range s.Checks {
		known[c.NameText] = true
		text := fmt.Sprintf("%s is %s", c.NameText, strings.ReplaceAll(c.State, "_", " "))
		if c.Text != "" {
			text += ": " + c.Text
		}
		r.Add(console.SectionChecks, console.Finding{Topic: console.TopicDaemon, State: console.StateRight, Text: text})
	}
	for i := range f.Checks {
		if !known[f.Checks[i].String()] {
			r.Add(console.SectionChecks, console.Finding{Topic: console.TopicDaemon, State: console.StateLook,
				Text: "it does not have all of these", Remedy: "systemctl reload topdog, and it reads its own configuration again"})
			return
		}
	}
}
