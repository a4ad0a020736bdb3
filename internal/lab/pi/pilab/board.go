package pilab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"topdog/internal/lab/pi"
)

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
