package main

import "github.com/spf13/cobra"

func witnessCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "witness",
		Short: "Vote, and never lead",
		Long: `Run a witness in the foreground: a voter that never leads. With two boards and a
witness, one of the boards has a majority when the other one fails (see
docs/two-boards.md).

It reads the same configuration and the same key as the boards, with
algorithm = "strict" and its own address among the voters. It needs no root, no
capability and no light, only the UDP port of the group; on kernels before 5.7 it
needs CAP_NET_RAW. It holds no address: what the configuration says of that, and of
the lead, is not used. SIGTERM ends it, SIGHUP reads the configuration again.`,
		RunE: func(c *cobra.Command, _ []string) error {
			path, _ := c.Flags().GetString("config")
			return run(c.Context(), path, runOptions{witness: true, atTerminal: atTerminal()})
		},
	}
}
