package main

import (
	"context"
	"errors"
	"fmt"
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
	"topdog/wire"
)

func checkCommand() *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "check",
		Short: "Find out whether this board is ready, and try its checks once",
		Long: `Find out whether this board is ready: configuration, key, interface, address, the
other boards, and the board itself. It reports as wrong what the daemon would refuse, and
says what to do. If no daemon runs here, it listens to each group for 2.5 s, and sends
nothing to the group. Then it tries the checks of the configuration once (see docs/checks.md).

If root calls it, the daemon tries the checks, as its own user and in the sandbox of its
unit. If no daemon runs, or another user calls it, it tries them as the user who calls it,
who may see more than the daemon, or less. Without a daemon, root runs no programs. A check
for the leader only is tried on every board, but a failure counts on the leader only.

Exit status: 0 if nothing is wrong, 1 if something is, a check fails, or one could
not be tried, 78 if a file has mistakes.`,
		RunE: func(c *cobra.Command, _ []string) error {
			report := console.Report{File: configPath(c)}
			err := examineBoard(c.Context(), &report)
			var mistakes config.Errors
			if err != nil && !errors.As(err, &mistakes) {
				return err
			}
			if err != nil && len(report.Sections) == 1 && !wantsJSON(c) {
				return err // the configuration is wrong, and the text shows the line
			}
			if err := show(c, report, console.WriteReport); err != nil {
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
	})
}

// examineBoard examines this board with the configuration of the report's file. An error says why no more could be found
// out; mistakes in the files are in the report too.
func examineBoard(ctx context.Context, r *console.Report) error {
	groups, text, err := config.LoadGroupsText(r.File)
	if err != nil {
		examine.AddMistakes(r, console.TopicConfiguration, err)
		return err
	}
	boards := make([]*examine.Board, len(groups))
	for i, cfg := range groups {
		boards[i] = boardIn(ctx, cfg, r.File, daemon.HolderOptions(groups)[i])
	}
	mistakes := examine.Examine(ctx, r, boards)
	var bad config.Errors
	if mistakes != nil && !errors.As(mistakes, &bad) {
		return fmt.Errorf("not all was looked at, and its checks were not tried: %w", mistakes)
	}
	for _, b := range boards {
		t := trial{Board: b, text: text}
		t.report(ctx, r)
		if ctx.Err() != nil {
			return fmt.Errorf("its checks were not tried: %w", ctx.Err())
		}
	}
	return mistakes
}

// boardIn is this board in one group, of which its daemon is asked.
func boardIn(ctx context.Context, cfg *config.Config, file string, o netio.HolderOptions) *examine.Board {
	b := &examine.Board{Config: cfg, Path: file, Version: versionText()}
	if os.Geteuid() == 0 {
		b.StartHolder = func() (*netio.Holder, error) {
			if file == config.DefaultPath { // the service's, which goes on when its daemon ends, and keeps the port
				if holder, err := netio.DialHolder(defaultHolderSocket, wire.TagOf(cfg.Group)); err == nil {
					return holder, nil
				}
			}
			return netio.StartHolder([]string{"/proc/self/exe", holderWord}, o)
		}
	}
	status, err := askSettled(ctx, b)
	switch {
	case err == nil:
		b.Daemon = &status
	case !errors.Is(err, console.ErrNotRunning):
		b.Unasked = err
	}
	return b
}

const (
	// askDaemonWithin is how long the daemon may take to tell what it has found.
	askDaemonWithin = 2 * time.Second
	// settleWithin is how long a daemon that has just started may take until it leads or follows.
	settleWithin = 3 * time.Second
	settleEvery  = 100 * time.Millisecond
	// tryMargin is how much longer than the checks the daemon may take to try them: it starts a process for that.
	tryMargin = 15 * time.Second
)

// askSettled asks the daemon for its status, and asks again while the daemon may be about to lead or to follow.
func askSettled(ctx context.Context, b *examine.Board) (s console.Status, err error) {
	client := console.Dial(b.Config.Socket).Of(b.Name())
	for end := time.Now().Add(settleWithin); ; {
		asking, cancel := context.WithTimeout(ctx, askDaemonWithin)
		s, err = client.Status(asking)
		cancel()
		if err == nil && b.Name() != "" && s.Group != b.Name() { // a daemon of before there could be several
			err = fmt.Errorf("the daemon has no group %s: systemctl restart topdog", b.Name())
		}
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

// trial tries the checks of a group, whose configuration has no mistakes.
type trial struct {
	*examine.Board
	text []byte // of its file
}

// verdict is the result of a check that was tried. It passes if both are "".
type verdict struct {
	untried string // why it was not tried
	reason  string // why it fails
}

// report tries the checks, and adds their results to a report.
func (t *trial) report(ctx context.Context, r *console.Report) {
	if len(t.Config.Checks) == 0 {
		return
	}
	add := func(topic console.Topic, s console.State, text, remedy string) {
		r.Add(t.Name(), console.SectionChecks, console.Finding{Topic: topic, State: s, Text: text, Remedy: remedy})
	}
	verdicts, by, err := t.try(ctx)
	if err != nil {
		add(console.TopicTried, console.StateWrong, "not at all: "+err.Error(), "")
		return
	}
	add(console.TopicTried, console.StateRight, by, "")
	leads := t.Daemon != nil && t.Daemon.Role == console.RoleLeader
	for i, v := range verdicts {
		switch c := &t.Config.Checks[i]; {
		case v.untried != "":
			add(console.TopicCheck, console.StateWrong, fmt.Sprintf("%v was not tried: %s", c, v.untried), "")
		case v.reason == "":
			add(console.TopicCheck, console.StateRight, c.String()+" passes", "")
		case c.When == check.Leading && !leads:
			add(console.TopicCheck, console.StateLook, fmt.Sprintf("%v fails: %s (it counts on the leader only)", c, v.reason), "")
		default:
			add(console.TopicCheck, console.StateWrong, fmt.Sprintf("%v fails: %s", c, v.reason), "")
		}
	}
	if t.Daemon == nil {
		return
	}
	known := map[string]bool{}
	for _, c := range t.Daemon.Checks {
		known[c.NameText] = true
		text := fmt.Sprintf("%s is %s", c.NameText, strings.ReplaceAll(c.State, "_", " "))
		if c.Text != "" {
			text += ": " + c.Text
		}
		add(console.TopicDaemon, console.StateRight, text, "")
	}
	for i := range t.Config.Checks {
		if !known[t.Config.Checks[i].String()] {
			add(console.TopicDaemon, console.StateLook, "it does not have all of these",
				"systemctl reload topdog, and it reads its own configuration again")
			return
		}
	}
}

// try tries the checks, and says who did.
func (t *trial) try(ctx context.Context) (verdicts []verdict, by string, err error) {
	root := os.Geteuid() == 0
	switch down := t.Daemon == nil && t.Unasked == nil; {
	case root && down:
		by = "as root, since no daemon answers on " + t.Config.Socket
	case root && t.Unasked != nil:
		return nil, "", t.Unasked
	case root:
		verdicts, err = t.tryByDaemon(ctx)
		return verdicts, "by the daemon, as it runs its own", err
	case down:
		by = "as this user, since no daemon answers on " + t.Config.Socket
	default:
		by = "as this user; if root calls this, the daemon tries them as it runs its own"
	}
	return t.tryHere(ctx, root), by, ctx.Err()
}

// tryHere tries the checks in this process. Programs are not run as root: they are meant for the daemon's
// user, and somebody other than root may have written them.
func (t *trial) tryHere(ctx context.Context, root bool) []verdict {
	verdicts := make([]verdict, len(t.Config.Checks))
	order := daemon.CheckOrder(t.Config)
	order.Checks = nil
	var tried []int
	for i := range t.Config.Checks {
		if root && t.Config.Checks[i].Kind == check.Command {
			verdicts[i].untried = "a program runs as the daemon's user, and not as root: start the daemon, and it tries that too"
			continue
		}
		order.Checks, tried = append(order.Checks, t.Config.Checks[i]), append(tried, i)
	}
	for n, reason := range check.Try(ctx, order) {
		verdicts[tried[n]].reason = reason
	}
	return verdicts
}

// tryByDaemon has the daemon try the checks, all at a time.
func (t *trial) tryByDaemon(ctx context.Context) ([]verdict, error) {
	path, err := filepath.Abs(t.Path)
	if err != nil {
		return nil, err
	}
	var longest time.Duration
	for i := range t.Config.Checks {
		longest = max(longest, t.Config.Checks[i].Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, longest+tryMargin)
	defer cancel()
	tried, err := console.Dial(t.Config.Socket).Of(t.Name()).Try(ctx, console.TryRequest{File: path, Config: string(t.text)})
	if err != nil {
		return nil, err
	}
	var verdicts []verdict
	for i, c := range tried.Checks {
		if i < len(t.Config.Checks) && c.NameText == t.Config.Checks[i].String() && c.Passing == (c.Text == "") {
			verdicts = append(verdicts, verdict{reason: c.Text})
		}
	}
	if len(verdicts) != len(t.Config.Checks) {
		return nil, errors.New("the daemon, which may be of another version, has tried other ones: systemctl restart topdog")
	}
	return verdicts, nil
}
