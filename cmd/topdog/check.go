package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/netio"
)

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Look for mistakes in the configuration, and try its checks once",
		Long: `Look for mistakes in the configuration, and try its checks once (see docs/checks.md).

If root calls it, the daemon tries them: as its user, and in the sandbox of its
unit. Otherwise, or if no daemon runs, they are tried as the user who calls it, who
may see more, or less. Then programs are not run as root. What the daemon has found
itself is shown below. A check that is for the leader only is tried, and counts on
the leader only.

Exit status: 0 if the file is right and all checks pass, 1 if a check fails or
could not be tried, 78 if the file has mistakes.`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			path, _ := c.Flags().GetString("config")
			f := checkedFile{path: path}
			if f.Config, f.text, err = config.LoadText(path); err != nil {
				return err
			}
			pass, err := f.tryChecks(c.Context(), c.OutOrStdout())
			if err == nil && !pass {
				err = exitStatus(exitFailure)
			}
			return err
		},
	}
}

// checkedFile is a configuration without mistakes.
type checkedFile struct {
	*config.Config
	path string
	text []byte
}

// tryChecks tries all checks of the file, and reports whether those pass that count.
func (f *checkedFile) tryChecks(ctx context.Context, out io.Writer) (pass bool, err error) {
	if len(f.Checks) == 0 {
		fmt.Fprintf(out, "%s is right. It has no checks.\n", f.path)
		return true, nil
	}
	asking, cancel := context.WithTimeout(ctx, askDaemonWithin)
	status, unasked := console.Dial(f.Socket).Status(asking)
	cancel()
	verdicts, by, err := f.try(ctx, unasked)
	if err != nil {
		return false, fmt.Errorf("%s is right, but its checks were not tried: %w", f.path, err)
	}
	fmt.Fprintf(out, "%s is right. Its checks, tried %s:\n", f.path, by)
	pass = writeVerdicts(out, f.Config, verdicts, unasked == nil && status.Role == console.RoleLeader)
	if unasked != nil {
		fmt.Fprintln(out, "The daemon cannot be asked what it has found itself.")
	} else {
		writeFound(out, f.Config, &status)
	}
	return pass, nil
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

// writeVerdicts says what each check has come to. It reports whether those pass that count.
func writeVerdicts(out io.Writer, cfg *config.Config, verdicts []verdict, leads bool) (pass bool) {
	pass = true
	width := len("passes")
	if slices.ContainsFunc(verdicts, func(v verdict) bool { return v.untried != "" }) {
		width = len("not tried")
	}
	for i, o := range verdicts {
		c := &cfg.Checks[i]
		result, text := "passes", c.String()
		switch {
		case o.untried != "":
			result, text, pass = "not tried", fmt.Sprintf("%s: %s", text, o.untried), false
		case o.reason == "":
		case c.When == check.Leading && !leads:
			result, text = "fails", fmt.Sprintf("%s: %s (it counts on the leader only)", text, o.reason)
		default:
			result, text, pass = "fails", fmt.Sprintf("%s: %s", text, o.reason), false
		}
		fmt.Fprintf(out, "  %-*s  %s\n", width, result, text)
	}
	return pass
}

// askDaemonWithin is how long the daemon may take to tell what it has found.
const askDaemonWithin = 2 * time.Second

// writeFound says what the daemon has found, and whether it knows other checks.
func writeFound(out io.Writer, cfg *config.Config, s *console.Status) {
	if len(s.Checks) > 0 {
		fmt.Fprintln(out, "The daemon has found:")
	}
	known := map[string]bool{}
	for _, c := range s.Checks {
		known[c.NameText] = true
		text := c.NameText
		if c.Text != "" {
			text += ": " + c.Text
		}
		fmt.Fprintf(out, "  %-10s  %s\n", strings.ReplaceAll(c.State, "_", " "), text)
	}
	for i := range cfg.Checks {
		if !known[cfg.Checks[i].String()] {
			fmt.Fprintln(out, "The daemon does not have all of these: `systemctl reload topdog` has it read its own configuration again.")
			return
		}
	}
}
