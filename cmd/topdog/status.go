package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"topdog/internal/config"
	"topdog/internal/console"
)

func statusCommand() *cobra.Command {
	var asJSON, watch bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show who holds the address, and all boards",
		Long: `Show who holds the address and all boards, as this board knows them.

Exit status: 0 if a live leader holds the address and another board could take
over, 1 if nobody holds it, 2 for a mistake in the command line, 3 if the daemon
does not run, 4 if it does not answer, 5 if one holds it and no fit board could take over.`,
		RunE: func(c *cobra.Command, _ []string) error {
			client := console.Dial(socketPath(c))
			show := func(s console.Status) error { return showStatus(c.OutOrStdout(), s, asJSON) }
			if watch {
				return watchStatus(c, client, show)
			}
			s, err := client.Status(c.Context())
			if err != nil {
				complain(c.ErrOrStderr(), err)
				explainNotRunning(c, err)
			} else if err := show(s); err != nil {
				return err
			}
			if status := console.ExitStatus(s, err); status != 0 {
				return exitStatus(status)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, for programs")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show it again whenever it changes, until interrupted")
	return withSocket(c)
}

// explainNotRunning says what keeps a daemon from running that does not run, or what it waits for: it has no socket then.
func explainNotRunning(c *cobra.Command, err error) {
	if asked, _ := c.Flags().GetString("socket"); asked != "" || !errors.Is(err, console.ErrNotRunning) {
		return // it is not known which files a daemon with that socket has
	}
	path, _ := c.Flags().GetString("config")
	if _, err := readBoard(path, runOptions{}); err != nil && !errors.Is(err, fs.ErrPermission) {
		complain(c.ErrOrStderr(), fmt.Errorf("it cannot run, or waits, because of its files:\n%w", err))
	}
}

func resignCommand() *cobra.Command {
	return withSocket(&cobra.Command{
		Use:   "resign",
		Short: "Hand the address over to the heir",
		Long: `Hand the address over to the board that is next in rank, the heir, for example
before a planned reboot. The address is gone for about one round trip.`,
		RunE: func(c *cobra.Command, _ []string) error {
			handover, err := console.Dial(socketPath(c)).Resign(c.Context())
			return say(c, handover.Text, err)
		},
	})
}

func leaveCommand() *cobra.Command {
	return withSocket(&cobra.Command{
		Use:   "leave",
		Short: "Hand over and end the daemon, before a shutdown",
		Long: `Hand the address over, if this board has it, and end the daemon. topdog-leave.service
does that when the board reboots or shuts down, before the services of the board stop.
At any other time systemd starts the daemon again, and it joins as a follower; to keep it
stopped, use systemctl stop topdog.`,
		RunE: func(c *cobra.Command, _ []string) error {
			handover, err := console.Dial(socketPath(c)).Leave(c.Context())
			return say(c, handover.Text, err)
		},
	})
}

// socketPath is where the daemon listens: as the flag says, else as the
// configuration says, else where it is by default; status must work for users
// who may not read the configuration.
func socketPath(c *cobra.Command) string {
	if path, _ := c.Flags().GetString("socket"); path != "" {
		return path
	}
	path, _ := c.Flags().GetString("config")
	if cfg, err := config.Load(path); err == nil {
		return cfg.Socket
	}
	return config.DefaultSocket
}

func showStatus(w io.Writer, s console.Status, asJSON bool) error {
	if asJSON {
		return printJSON(w, s)
	}
	return console.WriteStatus(w, s, textOptions(w))
}

// printJSON prints v for programs, and for people who read along.
func printJSON(w io.Writer, v any) error {
	return writeJSON(w, v, "  ")
}

// writeJSON prints v as JSON that a terminal can show.
func writeJSON(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false) // no page shows this
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(console.PrintableJSON(text.Bytes()))
	return err
}

// textOptions makes a text fit the terminal, if w is one.
func textOptions(w io.Writer) (o console.Options) {
	if width, ok := terminalWidth(w); ok {
		o.Width, o.Color = width, os.Getenv("NO_COLOR") == ""
	}
	return o
}

// terminalWidth returns how many columns w has; false if it is no terminal.
func terminalWidth(w io.Writer) (int, bool) {
	file, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	return width, err == nil
}

// watchStatus shows the status whenever it changes. On a terminal it takes the
// place of the one before.
func watchStatus(c *cobra.Command, client *console.Client, show func(console.Status) error) error {
	ctx, cancel := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	out := c.OutOrStdout()
	err := client.WatchStatus(ctx, func(s console.Status) error {
		if _, ok := terminalWidth(out); ok {
			fmt.Fprint(out, "\x1b[H\x1b[2J") // to the top left, and erase the screen (ECMA-48)
		}
		return show(s)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
