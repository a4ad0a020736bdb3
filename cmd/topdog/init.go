package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"topdog/internal/setup"
)

func initCommand() *cobra.Command {
	var board setup.Board
	var export, imports bool
	c := &cobra.Command{
		Use:   "init [ADDRESS]",
		Short: "Set up the first board of a group, or another one like it",
		Long: `Write the configuration of the first board of a group, and a fresh 256-bit key
that nobody else can read. ADDRESS is the floating address: a free one of your
LAN, outside the range that your router hands out. On a terminal topdog asks
for it.

With --strict two boards never answer at once, whatever fails: a leader needs the
promises of most of the voters, which are at least three boards, or two and a
witness. On a terminal topdog asks for their own addresses.

With --page the lines that it prints start the page as well, which shows the group to
browsers of the LAN. On a terminal topdog asks for that.

With --from the address and the rest come from a configuration of keepalived. What topdog
cannot take over is printed, each line with what to do; --dry-run only prints.

The other boards get the same two files. This command prints the line for that. The
line runs topdog init on both boards: with --export it writes configuration and key
to a pipe, with --import it reads them.

Existing files are not replaced, unless --force is given. On a board that is set up
already, the command changes nothing and prints the line again.`,
		Example: "  sudo topdog init\n  sudo topdog init 192.168.1.250 --led GPIO17\n  sudo topdog init 192.168.1.250 --strict\n  sudo topdog init 192.168.1.250 --page\n  topdog init --from /etc/keepalived/keepalived.conf --dry-run",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			board.Path, _ = c.Flags().GetString("config")
			board.AskPage = !c.Flags().Changed("page")
			if err := oneAddress(&board, args); err != nil {
				return usageError{err}
			}
			if board.Voters != nil && !board.Strict {
				return usageError{errors.New("--voters is of use only with --strict")}
			}
			if err := checkFrom(board, export || imports); err != nil {
				return usageError{err}
			}
			if err := checkPipes(board, export, imports); err != nil {
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
	c.ValidArgsFunction = cobra.NoFileCompletions // the address
	return c
}

// boardFlags gives the command what can be said of a board.
func boardFlags(c *cobra.Command, board *setup.Board) {
	flags := c.Flags()
	flags.StringVar(&board.Address, "address", "", "the floating `address`, as an alternative to the argument")
	flags.StringVar(&board.Interface, "interface", "", "the `name` of the interface (default: each board finds the one whose subnet contains the address)")
	flags.StringVar(&board.Group, "group", "", "the `name` of the group, if there are several on one LAN")
	flags.StringVar(&board.LED, "led", "", "the `light`: ACT, GPIO17, GPIO17:low (lit when low), none (default: ACT)")
	flags.BoolVar(&board.Strict, "strict", false, "never two boards that answer: let voters decide (see docs/two-boards.md)")
	flags.StringSliceVar(&board.Voters, "voters", nil, "with --strict: the `addresses` of the voters, separated by commas")
	flags.BoolVar(&board.Page, "page", false, "print the lines that start the page too, which shows the group in a browser")
	flags.BoolVar(&board.Force, "force", false, "replace an existing configuration and key")
	flags.StringVar(&board.From, "from", "", "convert a `file` of keepalived, usually /etc/keepalived/keepalived.conf")
	flags.StringVar(&board.Instance, "instance", "", "with --from: the `name` of the vrrp_instance or vrrp_sync_group, if there are several")
	flags.BoolVar(&board.DryRun, "dry-run", false, "with --from: print what would be written, and write nothing")
	completeFlag(c, "interface", interfaceNames)
	completeFlag(c, "led", lights)
}

// oneAddress takes the address from the argument or from the flag.
func oneAddress(board *setup.Board, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if board.Address != "" && board.Address != args[0] {
		return fmt.Errorf("two addresses: %s and --address %s", args[0], board.Address)
	}
	board.Address = args[0]
	return nil
}

// checkFrom refuses what makes no sense with a conversion, or without one.
func checkFrom(board setup.Board, pipe bool) error {
	switch {
	case board.From == "" && board.Instance != "":
		return errors.New("--instance is of use only with --from")
	case board.From == "" && board.DryRun:
		return errors.New("--dry-run is of use only with --from")
	case board.From != "" && board.Address != "":
		return errors.New("with --from the addresses are those of the file: leave out the address")
	case board.From != "" && pipe:
		return errors.New("--from is for the first board; --export and --import copy its configuration to the others")
	}
	return nil
}

// checkPipes refuses flags that contradict each other.
func checkPipes(board setup.Board, export, imports bool) error {
	switch {
	case export && imports:
		return errors.New("--export is for the board that has the key, --import for the one that gets it")
	case (export || imports) && (board.Address != "" || board.Interface != "" || board.Group != "" || board.LED != "" || board.Strict || board.Page):
		return errors.New("with --export and --import the configuration is the one of the first board: leave out the address and the other options")
	case export && board.Force:
		return errors.New("--export replaces nothing: --force belongs to --import")
	}
	return nil
}

// withSudo adds what helps most people who are refused.
func withSudo(c *cobra.Command, err error) error {
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return fmt.Errorf("%w; run it as root: sudo %s …", err, c.CommandPath())
	}
	return err
}
