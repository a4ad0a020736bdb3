package main

import (
	"github.com/spf13/cobra"

	"topdog/internal/daemon"
)

func cleanupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove the address and switch the LED off after a daemon has died",
		Long: `Remove the floating address from this board and switch its LED off. systemd calls
this command each time the daemon has ended. It is harmless while no daemon runs. It
leaves alone what the daemons of other configurations on this board have.`,
		RunE: func(c *cobra.Command, _ []string) error {
			path, _ := c.Flags().GetString("config")
			return daemon.Cleanup(c.Context(), path, c.OutOrStdout())
		},
	}
}
