package main

import (
	"github.com/spf13/cobra"

	"topdog/internal/console"
)

func traceCommand() *cobra.Command {
	var asJSON, all bool
	c := &cobra.Command{
		Use:   "trace",
		Short: "Show where the time of the last takeover went",
		Long: `Show what this board did at the last change of leader, step by step with
microseconds, from the last heartbeat of the old leader on.

Every daemon keeps the last few changes in memory, so tracing need not be switched
on before. Each board shows its own side: ask the board that took over, and the one
that released the address, if its daemon still runs.`,
		Example: `  topdog trace
  topdog trace --all
  topdog trace --json --all`,
		RunE: func(c *cobra.Command, _ []string) error {
			t, err := console.Dial(socketPath(c)).Trace(c.Context())
			if err != nil {
				return err
			}
			if !all {
				t = t.Newest()
			}
			out := c.OutOrStdout()
			if asJSON {
				return printJSON(out, t)
			}
			return console.WriteTrace(out, t, textOptions(out))
		},
	}
	c.Flags().BoolVar(&all, "all", false, "show all changes that are kept, the newest first, and suspicions of a leader that lived")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, for programs")
	return withSocket(c)
}
