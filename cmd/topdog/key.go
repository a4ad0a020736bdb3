package main

import (
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/config"
	"topdog/internal/rekey"
)

// keyWait is how long a step of a change of the key waits for the other boards. Every board tells its keys about once a
// second, in the largest group every 32 s; and a daemon that has just started needs up to 64 s to know all boards (rekey).
const keyWait = 90 * time.Second

func keyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Change the key of the group, board by board",
		Long: `Change the key of the group, while the address stays where it is. Three steps are done on all
boards, each one everywhere before the next one begins: add, first, drop.
scripts/install-cluster --rotate-key does all of that over ssh.

Keys are named by their fingerprints, which are no secrets. Root may do this.`,
		Example: `  sudo topdog key add                                                # on one board
  sudo topdog key export | ssh pi@pi2 sudo topdog key add --from -   # on that one, for each other board
  sudo topdog key first NEW                                          # on each board, with its fingerprint
  sudo topdog key drop OLD                                           # on each board`,
		RunE: showHelp,
	}
	c.AddCommand(keyShowCommand(), keyAddCommand(), keyExportCommand(), keyFirstCommand(), keyDropCommand())
	return c
}

func keyShowCommand() *cobra.Command {
	return onKeys(&cobra.Command{
		Use:   "show",
		Short: "Show by their fingerprints which keys the boards have",
		Long: `Show by their fingerprints which keys this board has, which one signs, and what the boards
that were heard in the last day have said about their keys.`,
	}, func(c *cobra.Command, board rekey.Board, _ string) error { return board.Show(c.Context()) })
}

func keyAddCommand() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use:   "add",
		Short: "Accept a new key as well",
		Long: `Make a new random key and accept it as well, or with --from the key of another board. This board
goes on signing with the key that it has.

It is refused while a board of the last day has a program that cannot change keys, unless
--force is given.`,
	}
	c.Flags().StringVar(&from, "from", "", "take the key from a `file` that topdog key export has written, - for standard input")
	return stepOfKey(c, func(c *cobra.Command, board rekey.Board, _ string) error {
		came, err := keysFrom(c.InOrStdin(), from)
		if err != nil {
			return err
		}
		return board.Add(c.Context(), came)
	})
}

func keyExportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Write the keys of this board to a pipe, for key add on another one",
		Long: `Write the keys of this board to standard output, for topdog key add --from - on another board.
They are secrets, so they are not written to a terminal.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if isTerminal(c.OutOrStdout()) {
				return misuse("this writes the secret keys, and standard output is a terminal; pipe it: topdog key export | ssh BOARD sudo topdog key add --from -")
			}
			board, err := keyBoard(c)
			if err != nil {
				return err
			}
			return withSudo(c, board.Export(c.OutOrStdout()))
		},
	}
}

func keyFirstCommand() *cobra.Command {
	return stepOfKey(&cobra.Command{
		Use:   "first FINGERPRINT",
		Short: "Sign with the new key",
		Long: `Sign with the key that has this FINGERPRINT; topdog key show prints it. The command waits until all
boards of the last day accept that key, and names those that do not. It is safe to repeat.`,
		Args: fingerprintArg,
	}, func(c *cobra.Command, board rekey.Board, fingerprint string) error {
		return board.First(c.Context(), fingerprint)
	})
}

func keyDropCommand() *cobra.Command {
	return stepOfKey(&cobra.Command{
		Use:   "drop [FINGERPRINT]",
		Short: "Stop accepting the old key",
		Long: `Stop accepting the key that this board does not sign with. FINGERPRINT names that key: with it,
this command is safe to repeat. It waits until all boards of the last day sign with the other key,
and names those that do not.`,
		Args: fingerprintArg,
	}, func(c *cobra.Command, board rekey.Board, fingerprint string) error {
		return board.Drop(c.Context(), fingerprint)
	})
}

// onKeys has a command do something to the keys of this board. fingerprint is its argument, or "".
func onKeys(c *cobra.Command, do func(c *cobra.Command, board rekey.Board, fingerprint string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		board, err := keyBoard(c)
		if err != nil {
			return err
		}
		return do(c, board, argument(args))
	}
	return withSocket(c)
}

// stepOfKey makes a command of a step, which may have to wait for other boards.
func stepOfKey(c *cobra.Command, do func(c *cobra.Command, board rekey.Board, fingerprint string) error) *cobra.Command {
	c.Flags().Duration("wait", keyWait, "how `long` to wait for the other boards")
	c.Flags().Bool("force", false, "do not wait for any board, for example because the old key has leaked")
	return onKeys(c, func(c *cobra.Command, board rekey.Board, fingerprint string) error {
		return withSudo(c, do(c, board, fingerprint))
	})
}

// keyBoard is this board, as the configuration and the flags say.
func keyBoard(c *cobra.Command) (rekey.Board, error) {
	path := configPath(c)
	groups, err := config.LoadGroups(path)
	if err != nil {
		return rekey.Board{}, err
	}
	cfg := groups.First()
	if cfg.KeyFile == config.NoKey {
		return rekey.Board{}, config.Errors{{File: path, Message: `this group has no key, by key_file = "none"`,
			Hint: "a group that begins to use a key is restarted as a whole: topdog init makes one"}}
	}
	board := rekey.Board{KeyFile: cfg.KeyFile, Daemon: daemonOf(c), Out: c.OutOrStdout()}
	board.Wait, _ = c.Flags().GetDuration("wait")
	board.Force, _ = c.Flags().GetBool("force")
	if c.Flags().Changed("wait") {
		err = positive("wait", board.Wait)
	}
	return board, err
}

// keysFrom reads the keys that another board has exported; nil if there are none to read.
func keysFrom(in io.Reader, from string) (*config.Keyring, error) {
	var keys config.Keyring
	var err error
	switch {
	case from == "":
		return nil, nil
	case from != "-":
		keys, err = config.LoadKeys(from)
	case isTerminal(in):
		return nil, misuse("--from - reads what topdog key export writes, and standard input is a terminal")
	default:
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(in, config.MaxKeyFileBytes)); err == nil {
			keys, err = config.ParseKeys("standard input", data)
		}
	}
	return &keys, err
}

var fingerprintPattern = regexp.MustCompile(`^[0-9a-f]{8}$`)

// fingerprintArg accepts one fingerprint or none.
func fingerprintArg(c *cobra.Command, args []string) error {
	if err := cobra.MaximumNArgs(1)(c, args); err != nil {
		return err
	}
	if text := argument(args); text != "" && !fingerprintPattern.MatchString(text) {
		return fmt.Errorf("%q is not the fingerprint of a key, which topdog key show prints: eight digits from 0 to f", text)
	}
	return nil
}
