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
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"topdog/internal/lab/pi"
)

// exitUsage is the status for a mistake in the command line, as topdog has it.
const exitUsage = 2

// Main runs the program scripts/pi.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	status := run(ctx)
	stop()
	os.Exit(status)
}

func run(ctx context.Context) int {
	err := rootCommand().ExecuteContext(ctx)
	var usage usageError
	var exit *pi.ExitError
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "pilab: interrupted:", err)
		return 1
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "pilab:", err)
		return exitUsage
	case errors.As(err, &exit):
		fmt.Fprintln(os.Stderr, "pilab:", err)
		return exit.Status
	default:
		fmt.Fprintln(os.Stderr, "pilab:", err)
		return 1
	}
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

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
		return usageError{fmt.Errorf("%w (see: %s --help)", err, c.CommandPath())}
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVar(&o.dir, "dir", defaultDir(), "the `directory` of all state and images")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return o.check() }
	root.AddCommand(
		upCommand(o), downCommand(o), statusCommand(o), ledCommand(o),
		driftCommand(o), pullCommand(o), plugCommand(o), powerCommand(o),
		consoleCommand(o), shCommand(o), execCommand(o), imageCommand(o), armv6Command(o), testCommand(o),
	)
	for _, c := range append(root.Commands(), root) {
		checked := c.Args
		c.Args = func(c *cobra.Command, args []string) error {
			if err := checked(c, args); err != nil {
				return usageError{fmt.Errorf("%w (see: %s --help)", err, c.CommandPath())}
			}
			return nil
		}
	}
	return root
}

func defaultDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "topdog", "pilab")
}

// check keeps the lab's gigabytes out of the source tree, where they would end
// in a package or a commit.
func (o *options) check() error {
	if o.source == "" {
		return errors.New("start this as scripts/pilab: it has to know where topdog's source is")
	}
	if o.dir == "" {
		return usageError{errors.New("neither HOME nor XDG_CACHE_HOME is set: say --dir")}
	}
	var err error
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	if inside, err := filepath.Rel(o.source, o.dir); err == nil && inside != ".." && !strings.HasPrefix(inside, "../") {
		return usageError{fmt.Errorf("--dir %s is inside the source tree: choose another place", o.dir)}
	}
	return nil
}

func (o *options) supply() *pi.Supply {
	return &pi.Supply{Source: o.source, Dir: o.dir, Progress: os.Stderr}
}

// withLab opens the lab for a command.
func (o *options) withLab(do func(*pi.Lab) error) (err error) {
	l, err := pi.Open(o.dir)
	if err != nil {
		return err
	}
	defer l.Close()
	return do(l)
}

// withBoard opens the lab for a command about one board.
func (o *options) withBoard(number string, do func(*pi.Lab, *pi.Board) error) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return usageError{fmt.Errorf("%q is not the number of a board", number)}
	}
	return o.withLab(func(l *pi.Lab) error {
		b, err := l.Board(n)
		if err != nil {
			return usageError{err}
		}
		return do(l, b)
	})
}
