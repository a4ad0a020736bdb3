package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/console"
)

// defaultPause is how long a pause lasts of which nobody has said how long it shall.
const defaultPause = time.Hour

func drainCommand() *cobra.Command {
	var length time.Duration
	var force bool
	c := &cobra.Command{
		Use:   "drain",
		Short: "Have this board leave the address to others",
		Long: `Have this board leave the address to others, for example before work on it. If it has the
address it hands over to a board that passes its checks. It goes on to follow, and takes the
address only if no other board is fitter. That lasts until topdog undrain, also beyond a reboot;
with --for it ends by itself, at the next reboot at the latest.

It is refused for the last board that passes, unless --force is given. Root and the group topdog
may do this.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("for") && length <= 0 {
				return usageError{fmt.Errorf("--for must be longer than 0, is %v", length)}
			}
			h, err := console.Dial(socketPath(c)).Drain(c.Context(), console.DrainRequest{ForNs: int64(length), Force: force})
			return say(c, h.Text, err)
		},
	}
	c.Flags().DurationVar(&length, "for", 0, "for so `long` (10m, 2h) while the board is awake (default: until topdog undrain)")
	c.Flags().BoolVar(&force, "force", false, "also if no other board passes its checks")
	return withSocket(c)
}

func undrainCommand() *cobra.Command {
	return withSocket(&cobra.Command{
		Use:   "undrain",
		Short: "Have this board stand for the address again",
		Long: `Have a drained board stand for the address again. It takes the address from no other board,
unless it has preempt = true and the higher rank.`,
		RunE: doneBy((*console.Client).Undrain),
	})
}

func pauseCommand() *cobra.Command {
	var length time.Duration
	c := &cobra.Command{
		Use:   "pause",
		Short: "Keep the address where it is, on all boards",
		Long: `Keep the address where it is, on all boards of the group, for example while its switch is
replaced. Only the board that has the address may have it until topdog unpause, whatever the others
hear: also if it dies. When its daemon is started again it takes the address back.
The pause ends by itself after the time that is given.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if length <= 0 {
				return usageError{fmt.Errorf("--for must be longer than 0, is %v", length)}
			}
			done, err := console.Dial(socketPath(c)).Pause(c.Context(), console.PauseRequest{ForNs: int64(length)})
			return say(c, done.Text, err)
		},
	}
	c.Flags().DurationVar(&length, "for", defaultPause, "for so `long`, at most 24h")
	return withSocket(c)
}

func unpauseCommand() *cobra.Command {
	return withSocket(&cobra.Command{
		Use:   "unpause",
		Short: "End a pause, on all boards",
		Long:  `End a pause of the group, on whichever board it was begun.`,
		RunE:  doneBy((*console.Client).Unpause),
	})
}

// doneBy runs a request that has nothing to say but that it was done.
func doneBy(do func(*console.Client, context.Context) (console.Done, error)) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		done, err := do(console.Dial(socketPath(c)), c.Context())
		return say(c, done.Text, err)
	}
}

// say prints what the daemon has answered.
func say(c *cobra.Command, text string, err error) error {
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), console.Printable(text))
	return err
}

// complain says what went wrong. The text may have names of other boards in it, or what a
// program has printed.
func complain(stderr io.Writer, err error) {
	fmt.Fprintln(stderr, "topdog:", console.Printable(err.Error()))
}

// withSocket gives a command the flag for the control socket.
func withSocket(c *cobra.Command) *cobra.Command {
	c.Flags().String("socket", "", "the control socket's `path` (default: as configured)")
	return c
}
