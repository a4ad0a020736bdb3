package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"topdog/internal/console"
)

func watchCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "watch",
		Short: "Print a line for everything that happens to this board",
		Long: `Print how this board is, and then a line for everything that happens to it: another
role, another leader, the address acquired or released. It ends when the daemon does,
or when it is interrupted.

With --json the lines are those of GET /v1/events, one JSON object each. To run a
program when something happens, see topdog hooks and topdog lead.`,
		Example: "  topdog watch\n  topdog watch --json | jq --unbuffered -r .event",
		RunE: func(c *cobra.Command, _ []string) error {
			err := console.Dial(socketPath(c)).Watch(c.Context(), console.WatchOptions{Alive: true}, func(t console.Transition) error {
				if asJSON {
					return writeJSON(c.OutOrStdout(), t, "")
				}
				_, err := fmt.Fprintln(c.OutOrStdout(), t.Text())
				return err
			})
			if c.Context().Err() != nil {
				return nil // it was interrupted
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, for programs")
	return withSocket(c)
}

func isLeaderCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "is-leader",
		Short: "Tell by the exit status whether this board leads",
		Long: `Tell by the exit status whether this board leads and has the address: 0 if it does,
1 if not, 2 for a mistake in the command line, 3 if the daemon does not run, 4 if it
does not answer. It prints nothing but errors.

What is true when this command ends may be over a moment later. To run something only
as long as this board leads, use topdog lead.`,
		Example: "  topdog is-leader && run-parts /etc/backup.d",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := console.Dial(socketPath(c)).Status(c.Context())
			if err != nil {
				complain(c.ErrOrStderr(), err)
				return exitStatus(console.ExitStatus(s, err))
			}
			if !s.Leads() {
				return exitStatus(exitFailure)
			}
			return nil
		},
	}
	return withSocket(c)
}
