package pilab

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"topdog/internal/lab/pi"
)

func isDown(err error) bool { return errors.Is(err, pi.ErrDown) }

func pullCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "pull N",
		Short: "Pull the network cable of board N out",
		Long: `Pull the network cable of board N out. Nothing passes any more. QEMU's USB network
adapter keeps its carrier, so that the board cannot know: as behind a switch that
died, and not as with the network socket of a real Pi.`,
		Args: cobra.ExactArgs(1),
		RunE: setCable(o, false),
	}
}

func plugCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "plug N",
		Short: "Plug the network cable of board N in",
		Args:  cobra.ExactArgs(1),
		RunE:  setCable(o, true),
	}
}

func setCable(o *options, plugged bool) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		return o.withBoard(args[0], func(_ *pi.Lab, b *pi.Board) error {
			return b.SetCable(c.Context(), plugged)
		})
	}
}

func powerCommand(o *options) *cobra.Command {
	var background bool
	c := &cobra.Command{
		Use:   "power N on|off",
		Short: "Pull the power plug of board N, or put it back",
		Long: `Pull the power plug of board N, or put it back. The card keeps what was written to
it. "on" waits until the board has booted.`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return o.withBoard(args[0], func(_ *pi.Lab, b *pi.Board) error {
				switch args[1] {
				case "off":
					return b.PowerOff()
				case "on":
					if err := b.PowerOn(); err != nil || background {
						return err
					}
					return b.WaitReady(c.Context(), bootTime)
				}
				return usageError{fmt.Errorf("power is on or off, not %q", args[1])}
			})
		},
	}
	c.Flags().BoolVar(&background, "no-wait", false, "do not wait until the board has booted")
	return c
}
