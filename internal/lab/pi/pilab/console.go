package pilab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"topdog/internal/lab/pi"
)

func consoleCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "console N",
		Short: "Open a root shell on board N, over its serial port",
		Long: `Open a root shell on board N, over its serial port. Ctrl-] closes it; the board and
what was started on it go on.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.withBoard(args[0], func(l *pi.Lab, b *pi.Board) error {
				l.Unlock() // Other commands work meanwhile.
				return attach(c.Context(), b)
			})
		},
	}
}

func attach(ctx context.Context, b *pi.Board) error {
	fd := int(os.Stdin.Fd())
	if !term.IsTerminal(fd) {
		return errors.New("console needs a terminal; to run one command: pilab sh N COMMAND")
	}
	fmt.Printf("root on %s; Ctrl-] ends this\r\n", b.Name())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	defer term.Restore(fd, before) //nolint:errcheck // There is nobody left to tell.
	return b.Attach(ctx, os.Stdin, os.Stdout)
}

func shCommand(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "sh N COMMAND...",
		Short: "Run a shell command on board N as root, and end with its exit status",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return o.withBoard(args[0], func(l *pi.Lab, b *pi.Board) error {
				l.Unlock()
				out, err := b.Run(c.Context(), strings.Join(args[1:], " "))
				fmt.Fprint(c.OutOrStdout(), out)
				return err
			})
		},
	}
	c.Flags().SetInterspersed(false)
	return c
}

func execCommand(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:     "exec PROGRAM...",
		Short:   "Run a program of this machine on the boards' LAN",
		Example: "  scripts/pilab exec ping -c 3 10.99.0.250",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.withLab(func(l *pi.Lab) error {
				l.Unlock()
				return l.Segment().Do(func() error {
					cmd := exec.CommandContext(c.Context(), args[0], args[1:]...)
					cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
					return cmd.Run()
				})
			})
		},
	}
	c.Flags().SetInterspersed(false)
	return c
}
