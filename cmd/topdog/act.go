package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/console"
)

// This file has the verbs that have the daemon do something.

// defaultPause is how long a pause lasts unless somebody says it.
const defaultPause = time.Hour

// acting makes a command that has the daemon do something, and prints what the daemon answers.
func acting(c *cobra.Command, do func(*cobra.Command, *console.Client) (text string, err error)) *cobra.Command {
	c.RunE = func(c *cobra.Command, _ []string) error {
		text, err := do(c, daemonOf(c))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), console.Printable(text))
		return err
	}
	return withSocket(c)
}

func resignCommand() *cobra.Command {
	return acting(&cobra.Command{
		Use:   "resign",
		Short: "Hand the address over to the heir",
		Long: `Hand the address over to the board that is next in rank, the heir, for example
before a planned reboot. The address is gone for about one round trip.`,
	}, func(c *cobra.Command, d *console.Client) (string, error) {
		h, err := d.Resign(c.Context())
		return h.Text, err
	})
}

func leaveCommand() *cobra.Command {
	return acting(&cobra.Command{
		Use:   "leave",
		Short: "Hand over and end the daemon, before a shutdown",
		Long: `Hand the address over, if this board has it, and end the daemon. topdog-leave.service
does that when the board reboots or shuts down, before the services of the board stop.
At any other time systemd starts the daemon again, and it joins as a follower; to keep it
stopped, use systemctl stop topdog.`,
	}, func(c *cobra.Command, d *console.Client) (string, error) {
		h, err := d.Leave(c.Context())
		return h.Text, err
	})
}

func drainCommand() *cobra.Command {
	var length time.Duration
	var force bool
	c := acting(&cobra.Command{
		Use:   "drain",
		Short: "Have this board leave the address to others",
		Long: `Have this board leave the address to others, for example before work on it. If it has the
address it hands over to a board that passes its checks. It goes on to follow, and takes the
address only if no other board is fitter. That lasts until topdog undrain, also beyond a reboot;
with --for it ends by itself, at the next reboot at the latest.

It is refused for the last board that passes, unless --force is given. Root and the group topdog
may do this.`,
	}, func(c *cobra.Command, d *console.Client) (string, error) {
		if c.Flags().Changed("for") {
			if err := positive("for", length); err != nil {
				return "", err
			}
		}
		h, err := d.Drain(c.Context(), console.DrainRequest{ForNs: int64(length), Force: force})
		return h.Text, err
	})
	c.Flags().DurationVar(&length, "for", 0, "for so `long` (10m, 2h) while the board is awake (default: until topdog undrain)")
	c.Flags().BoolVar(&force, "force", false, "also if no other board passes its checks")
	return c
}

func undrainCommand() *cobra.Command {
	return acting(&cobra.Command{
		Use:   "undrain",
		Short: "Have this board stand for the address again",
		Long: `Have a drained board stand for the address again. It takes the address from no other board,
unless it has preempt = true and the higher rank.`,
	}, func(c *cobra.Command, d *console.Client) (string, error) {
		done, err := d.Undrain(c.Context())
		return done.Text, err
	})
}

func pauseCommand() *cobra.Command {
	var length time.Duration
	c := acting(&cobra.Command{
		Use:   "pause",
		Short: "Keep the address where it is, on all boards",
		Long: `Keep the address where it is, on all boards of the group, for example while its switch is
replaced. Only the board that has the address may have it until topdog unpause, whatever the others
hear: also if it dies. When its daemon is started again it takes the address back.
The pause ends by itself after the time that is given.`,
	}, func(c *cobra.Command, d *console.Client) (string, error) {
		if err := positive("for", length); err != nil {
			return "", err
		}
		done, err := d.Pause(c.Context(), console.PauseRequest{ForNs: int64(length)})
		return done.Text, err
	})
	c.Flags().DurationVar(&length, "for", defaultPause, "for so `long`, at most 24h")
	return c
}

func unpauseCommand() *cobra.Command {
	return acting(&cobra.Command{
		Use:   "unpause",
		Short: "End a pause, on all boards",
		Long:  `End a pause of the group, on whichever board it was begun.`,
	}, func(c *cobra.Command, d *console.Client) (string, error) {
		done, err := d.Unpause(c.Context())
		return done.Text, err
	})
}
