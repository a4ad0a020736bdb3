// Package pilab is the command line of a lab of emulated Raspberry Pis: scripts/pilab builds and
// starts it; package pi says what it is for.
package pilab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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

// boardCommands are those about one board.
func (o *options) boardCommands() []*cobra.Command {
	sh := &cobra.Command{
		Use:   "sh N COMMAND...",
		Short: "Run a shell command on board N as root, and end with its exit status",
		Args:  cobra.MinimumNArgs(2),
		RunE: o.onBoard(func(c *cobra.Command, b *pi.Board, args []string) error {
			out, err := b.Run(c.Context(), strings.Join(args, " "))
			fmt.Fprint(c.OutOrStdout(), out)
			return err
		}),
	}
	sh.Flags().SetInterspersed(false)
	return []*cobra.Command{
		o.cableCommand("pull", "Pull the network cable of board N out", false),
		o.cableCommand("plug", "Plug the network cable of board N in", true),
		{
			Use:   "power N on|off",
			Short: "Pull the power plug of board N, or put it back",
			Long: `Pull the power plug of board N, or put it back. The card keeps what was written to
it. "on" waits until the board has booted.`,
			Args: cobra.ExactArgs(2),
			RunE: o.onBoard(func(c *cobra.Command, b *pi.Board, args []string) error {
				switch args[0] {
				case "off":
					return b.PowerOff()
				case "on":
					return b.PowerOn(c.Context())
				}
				return misuse("power is on or off, not %q", args[0])
			}),
		},
		o.ledCommand(), sh,
		{
			Use:   "console N",
			Short: "Open a root shell on board N, over its serial port",
			Long: `Open a root shell on board N, over its serial port. Ctrl-] closes it; the board and
what was started on it go on.`,
			Args: cobra.ExactArgs(1),
			RunE: o.onBoard(func(c *cobra.Command, b *pi.Board, _ []string) error { return attach(c.Context(), b) }),
		},
	}
}

func (o *options) cableCommand(verb, short string, in bool) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " N",
		Short: short,
		Long: short + `. Nothing passes while it is out. QEMU's USB network
adapter keeps its carrier, so that the board cannot know: as behind a switch that
died, and not as with the network socket of a real Pi.`,
		Args: cobra.ExactArgs(1),
		RunE: o.onBoard(func(_ *cobra.Command, b *pi.Board, _ []string) error { return b.Cable(in) }),
	}
}

// detach is what ends a console: Ctrl-], as in telnet(1).
const detach = 0x1d

// attach connects the terminal to the board's shell, until the user types Ctrl-] or ctx ends.
func attach(ctx context.Context, b *pi.Board) error {
	fd := int(os.Stdin.Fd())
	if !term.IsTerminal(fd) {
		return errors.New("console needs a terminal; to run one command: pilab sh N COMMAND")
	}
	conn, err := b.Shell(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Printf("root on %s; Ctrl-] ends this\r\n", b.Name())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	defer term.Restore(fd, before) //nolint:errcheck // There is nobody left to tell.
	// Commands want a shell without echo and prompt, a person wants both.
	if _, err := fmt.Fprintf(conn, "stty echo onlcr; PS1='%s# '\n", b.Name()); err != nil {
		return err
	}
	// Ctrl-U drops a line that was begun, Ctrl-C what is running.
	defer fmt.Fprint(conn, "\x15\x03stty -echo -onlcr; PS1=\n") //nolint:errcheck // The board may be off.
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(os.Stdout, conn)
		ended <- err
	}()
	go func() { ended <- typeInto(conn) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// typeInto copies what is typed until the key that ends it.
func typeInto(conn io.Writer) error {
	key := make([]byte, 1)
	for {
		if _, err := os.Stdin.Read(key); err != nil || key[0] == detach {
			return err
		}
		if _, err := conn.Write(key); err != nil {
			return err
		}
	}
}

func (o *options) ledCommand() *cobra.Command {
	var now bool
	c := &cobra.Command{
		Use:   "led N",
		Short: "Say what the lights of board N show, as seen in the registers of its chip",
		Long: `Say what the lights of board N show: one wired to GPIO17, and the board's own ACT
LED. They are looked at for 4.5 s in the registers of the emulated chip, through
QEMU's monitor: the board is not asked. --now looks once.`,
		Args: cobra.ExactArgs(1),
		RunE: o.onBoard(func(c *cobra.Command, b *pi.Board, _ []string) error {
			pins, d := []pi.Pin{pi.GPIO17, pi.ACT}, pi.WatchTime
			if now {
				d = 0
			}
			watches, err := b.WatchLights(c.Context(), d, pins...)
			for i, w := range watches {
				shows := w.String()
				if now {
					shows = map[bool]string{true: "lit", false: "dark"}[w.Now]
				}
				fmt.Fprintf(c.OutOrStdout(), "%-6s  %s\n", pins[i], shows)
			}
			return err
		}),
	}
	c.Flags().BoolVar(&now, "now", false, "look once and say whether they are lit at this moment")
	return c
}
