package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"topdog/internal/config"
	"topdog/internal/setup"
)

func initCommand() *cobra.Command {
	var board setup.Board
	var export, imports bool
	c := &cobra.Command{
		Use:   "init [ADDRESS...]",
		Short: "Set up the first board of a group, or another one like it",
		Long: `Write the configuration of the first board of a group, and a fresh 256-bit key
that nobody else can read. ADDRESS is the floating address: a free one of your
LAN, outside the range that your router hands out. On a terminal topdog asks
for it. Several move together, and at least one of them is an IPv4 address.

With --strict two boards never answer at once, whatever fails: a leader needs the
promises of most of the voters, which are at least three boards, or two and a
witness. --voters lists their own addresses.

With --page the lines that it prints start the page as well, which shows the group to
browsers of the LAN.

With --from the address and the rest come from a configuration of keepalived, in which each
vrrp_instance is a group. What topdog cannot take over is printed, each line with what to do;
--dry-run only prints.

The other boards get the same two files. This command prints the line for that. The
line runs topdog init on both boards: with --export it writes configuration and key
to a pipe, with --import it reads them.

Existing files are not replaced, unless --force is given. On a board that is set up
already, the command changes nothing and prints the line again.`,
		Example: `  sudo topdog init
  sudo topdog init 192.168.1.250 --led GPIO17
  sudo topdog init 192.168.1.250 fd00:1::250
  sudo topdog init 192.168.1.250 --strict --voters 192.168.1.11,192.168.1.12,192.168.1.13
  sudo topdog init 192.168.1.250 --interface eth0,wlan0
  sudo topdog init 192.168.1.250 --page
  topdog init --from /etc/keepalived/keepalived.conf --dry-run`,
		Args: cobra.MaximumNArgs(config.MaxAddresses),
		RunE: func(c *cobra.Command, args []string) error {
			board.Path = configPath(c)
			if err := checkInit(&board, args, export, imports); err != nil {
				return usageError{err}
			}
			switch {
			case export:
				return withSudo(c, board.Export(c.OutOrStdout()))
			case imports:
				return withSudo(c, board.Import(c.InOrStdin(), c.OutOrStdout()))
			default:
				return withSudo(c, board.Init(c.Context(), c.InOrStdin(), c.OutOrStdout()))
			}
		},
	}
	boardFlags(c, &board)
	c.Flags().BoolVar(&export, "export", false, "write configuration and key to standard output, for --import")
	c.Flags().BoolVar(&imports, "import", false, "read configuration and key from standard input")
	return c
}

// boardFlags gives the command the flags that describe a board.
func boardFlags(c *cobra.Command, board *setup.Board) {
	flags := c.Flags()
	flags.Func("address", "the floating `address`, as an alternative to the argument; several are separated by commas", func(list string) error {
		board.Addresses = append(board.Addresses, setup.SplitAddresses(list)...)
		return nil
	})
	flags.Func("interface", "the `name` of the interface (default: each board finds the one whose subnet contains the address), or two with a comma: the second is a second path to the other boards", func(list string) error {
		board.Interfaces = append(board.Interfaces, strings.FieldsFunc(list, func(r rune) bool { return r == ',' })...)
		return nil
	})
	flags.StringVar(&board.Group, "group", "", "the `name` of the group, if there are several on one LAN")
	flags.StringVar(&board.LED, "led", "", "the `light`: ACT, GPIO17, GPIO17:low (lit when low), none (default: ACT)")
	flags.BoolVar(&board.Strict, "strict", false, "never two boards that answer: let voters decide (see docs/two-boards.md)")
	flags.Func("voters", "with --strict: the `addresses` of the voters, separated by commas", func(list string) error {
		board.Voters = append(board.Voters, strings.Split(list, ",")...)
		return nil
	})
	flags.BoolVar(&board.Page, "page", false, "print the lines that start the page too, which shows the group in a browser")
	flags.BoolVar(&board.Force, "force", false, "replace an existing configuration and key")
	flags.StringVar(&board.From, "from", "", "convert a `file` of keepalived, usually /etc/keepalived/keepalived.conf")
	flags.StringVar(&board.Instance, "instance", "", "with --from: convert only the vrrp_instance of this `name`")
	flags.BoolVar(&board.DryRun, "dry-run", false, "with --from: print what would be written, and write nothing")
	completeFlag(c, "interface", interfaceNames)
	completeFlag(c, "led", lights)
}

// checkInit takes the addresses from the arguments, and refuses flags that contradict each other.
func checkInit(b *setup.Board, arguments []string, export, imports bool) error {
	pipe := export || imports
	addresses := setup.SplitAddresses(strings.Join(arguments, ","))
	if len(addresses) > 0 && len(b.Addresses) > 0 && !slices.Equal(addresses, b.Addresses) {
		return fmt.Errorf("addresses stand in two places: %s, and --address %s; leave one out, or write all of them without --address",
			strings.Join(addresses, " "), strings.Join(b.Addresses, ","))
	}
	if len(addresses) > 0 {
		b.Addresses = addresses
	}
	switch {
	case b.Voters != nil && !b.Strict:
		return errors.New("--voters is of use only with --strict")
	case b.From == "" && b.Instance != "":
		return errors.New("--instance is of use only with --from")
	case b.From == "" && b.DryRun:
		return errors.New("--dry-run is of use only with --from")
	case b.From != "" && b.Addresses != nil:
		return errors.New("with --from the addresses are those of the file: leave out the address")
	case b.From != "" && pipe:
		return errors.New("--from is for the first board; --export and --import copy its configuration to the others")
	case export && imports:
		return errors.New("--export is for the board that has the key, --import for the one that gets it")
	case pipe && (b.Addresses != nil || b.Interfaces != nil || b.Group != "" || b.LED != "" || b.Strict || b.Page):
		return errors.New("with --export and --import the configuration is the one of the first board: leave out the address and the other options")
	case export && b.Force:
		return errors.New("--export replaces nothing: --force belongs to --import")
	}
	return nil
}

// withSudo suggests sudo to a user who lacks the rights.
func withSudo(c *cobra.Command, err error) error {
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return fmt.Errorf("%w; run it as root: sudo %s …", err, c.CommandPath())
	}
	return err
}
