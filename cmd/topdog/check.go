package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
)

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Look for mistakes in the configuration, and try its checks once",
		Long: `Look for mistakes in the configuration, and try its checks once (see docs/checks.md).

They run as the user who calls it. The daemon runs them as another user and in
the sandbox of its unit, so if it runs, what it has found itself is shown below.
A check that is for the leader only is tried, and counts on the leader only.

Exit status: 0 if the file is right and all checks pass, 1 if a check fails, 78
if the file has mistakes.`,
		RunE: func(c *cobra.Command, _ []string) error {
			path, _ := c.Flags().GetString("config")
			cfg, err := config.Load(path)
			if err != nil {
				return err
			}
			if !tryChecks(c.Context(), c.OutOrStdout(), path, cfg) {
				return exitStatus(exitFailure)
			}
			return nil
		},
	}
}

// tryChecks tries all checks of a configuration, and reports whether those pass that count.
func tryChecks(ctx context.Context, out io.Writer, path string, cfg *config.Config) (pass bool) {
	if len(cfg.Checks) == 0 {
		fmt.Fprintf(out, "%s is right. It has no checks.\n", path)
		return true
	}
	asking, cancel := context.WithTimeout(ctx, askDaemonWithin)
	status, err := console.Dial(cfg.Socket).Status(asking)
	cancel()
	leads := err == nil && status.Role == console.RoleLeader
	fmt.Fprintf(out, "%s is right. Its checks, tried here:\n", path)
	pass = true
	for i, failed := range check.Try(ctx, orderOf(cfg)) {
		c := &cfg.Checks[i]
		result, text := "passes", c.String()
		switch {
		case failed == nil:
		case c.When == check.Leading && !leads:
			result, text = "fails", fmt.Sprintf("%s: %v (it counts on the leader only)", text, failed)
		default:
			result, text, pass = "fails", fmt.Sprintf("%s: %v", text, failed), false
		}
		fmt.Fprintf(out, "  %-6s  %s\n", result, text)
	}
	switch {
	case err != nil:
		fmt.Fprintln(out, "The daemon, which runs them in its sandbox, cannot be asked.")
	default:
		writeFound(out, cfg, &status)
	}
	return pass
}

// askDaemonWithin is how long the daemon may take to tell what it has found.
const askDaemonWithin = 2 * time.Second

// orderOf is what a checker would be told.
func orderOf(cfg *config.Config) check.Order {
	o := check.Order{Checks: cfg.Checks, Interface: cfg.Interface}
	for _, a := range cfg.Addresses {
		o.Floating = append(o.Floating, a.IP)
	}
	if o.Interface == "" {
		o.Interface = interfaceOf(cfg.Addresses[0].IP)
	}
	return o
}

// interfaceOf returns the interface whose subnet contains an address; "" if there is none.
func interfaceOf(addr netip.Addr) string {
	name, _, err := netio.FindInterface(addr)
	if err != nil {
		return ""
	}
	return name
}

// writeFound says what the daemon has found, and whether it knows other checks.
func writeFound(out io.Writer, cfg *config.Config, s *console.Status) {
	if len(s.Checks) > 0 {
		fmt.Fprintln(out, "The daemon, in its sandbox:")
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
			fmt.Fprintln(out, "The daemon does not have all of them yet: run `systemctl reload topdog`.")
			return
		}
	}
}
