package main

import (
	"github.com/spf13/cobra"

	"topdog/internal/daemon"
)

func cleanupCommand() *cobra.Command {
	var address, light bool
	c := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove the address and switch the LED off after a daemon has died",
		Long: `Remove the floating address from this board and switch its LED off. It is harmless
while no daemon runs. It leaves alone what the daemons of other configurations on this
board have.

systemd calls it each time the holder has ended, with --address, and each time the daemon
has ended, with --light. With one of them it does that alone, and does not ask whether
the daemon runs.`,
		RunE: func(c *cobra.Command, _ []string) error {
			path, _ := c.Flags().GetString("config")
			o := daemon.CleanupOptions{Address: address, Light: light, Ended: address || light}
			if !o.Ended {
				o.Address, o.Light = true, true
			}
			return daemon.Cleanup(c.Context(), path, o, c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&address, "address", false, "remove the address, which the holder had")
	c.Flags().BoolVar(&light, "light", false, "switch the LED off, which the daemon had")
	return c
}
