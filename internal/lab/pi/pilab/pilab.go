// Package pilab is the command line of a lab of emulated Raspberry Pis: scripts/pilab builds and
// starts it; package pi says what it is for.
package pilab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"topdog/internal/lab/pi"
)

// exitUsage is the status for a mistake in the command line, as topdog has it.
const exitUsage = 2

// Main runs the program scripts/pi.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := rootCommand().ExecuteContext(ctx)
	status := 0
	var exit *pi.ExitError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err, status = fmt.Errorf("interrupted: %w", err), 1
	case errors.As(err, new(usageError)):
		status = exitUsage
	case errors.As(err, &exit):
		status = exit.Status
	default:
		status = 1
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pilab:", err)
	}
	stop()
	os.Exit(status)
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func misuse(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// options is where the lab's state is, and where its material comes from.
type options struct {
	dir    string
	source string
}

func rootCommand() *cobra.Command {
	o := &options{source: os.Getenv("PILAB_SOURCE")}
	root := &cobra.Command{
		Use:   "pilab",
		Short: "A lab of emulated Raspberry Pis with topdog on them",
		Long: `A lab of emulated Raspberry Pis on one virtual LAN: QEMU's boards with Debian's
kernels, systemd, an SD card each, and topdog installed from its package.

Boards are numbered from 1; board N has the address 10.99.0.N inside a network
namespace of the lab's own, this machine has 10.99.0.254 there, and the boards
keep 10.99.0.250. Nothing of it reaches another network. Needs root on Debian, 400 MiB
of memory for each board, and the packages

    qemu-system-arm mmdebstrap debian-archive-keyring kmod cpio
    device-tree-compiler e2fsprogs, and for "armv6" qemu-user-static`,
		Example: `  scripts/pilab up
  scripts/pilab status
  scripts/pilab led 3
  scripts/pilab power 3 off
  scripts/pilab down`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return misuse("%w (see: %s --help)", err, c.CommandPath())
	})
	root.CompletionOptions.DisableDefaultCmd = true
	cache, _ := os.UserCacheDir() // see check
	dir := filepath.Join(cache, "topdog", "pilab")
	root.PersistentFlags().StringVar(&o.dir, "dir", dir, "the `directory` of all state and images")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return o.check() }
	root.AddCommand(o.upCommand(), o.imageCommand(), o.driftCommand(), o.testCommand(), o.armv6Command())
	root.AddCommand(o.labCommands()...)
	root.AddCommand(o.boardCommands()...)
	for _, c := range append(root.Commands(), root) {
		checked := c.Args
		c.Args = func(c *cobra.Command, args []string) error {
			if err := checked(c, args); err != nil {
				return misuse("%w (see: %s --help)", err, c.CommandPath())
			}
			return nil
		}
	}
	return root
}

// check keeps the lab's gigabytes out of the source tree, where they would end
// in a package or a commit.
func (o *options) check() error {
	if o.source == "" {
		return errors.New("start this as scripts/pilab: it has to know where topdog's source is")
	}
	if !filepath.IsAbs(o.dir) && o.dir == filepath.Join("topdog", "pilab") {
		return misuse("neither HOME nor XDG_CACHE_HOME is set: say --dir")
	}
	var err error
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	if inside, err := filepath.Rel(o.source, o.dir); err == nil && filepath.IsLocal(inside) {
		return misuse("--dir %s is inside the source tree: choose another place", o.dir)
	}
	return nil
}

func (o *options) supply() *pi.Supply {
	return &pi.Supply{Source: o.source, Dir: o.dir, Progress: os.Stderr}
}

// run is what a command does.
type run = func(c *cobra.Command, args []string) error

// onLab is a command about the lab that is up.
func (o *options) onLab(do func(c *cobra.Command, l *pi.Lab, args []string) error) run {
	return func(c *cobra.Command, args []string) error {
		l, err := pi.Open(o.dir)
		if err != nil {
			return err
		}
		defer l.Close()
		return do(c, l, args)
	}
}

// onBoard is a command about a board, whose number comes first.
func (o *options) onBoard(do func(c *cobra.Command, b *pi.Board, args []string) error) run {
	return o.onLab(func(c *cobra.Command, l *pi.Lab, args []string) error {
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return misuse("%q is not the number of a board", args[0])
		}
		b, err := l.Board(n)
		if err != nil {
			return usageError{err}
		}
		return do(c, b, args[1:])
	})
}
