package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/console"
)

// This file has the verbs that ask the daemon, first those that only look, and then those that have it do something.

func statusCommand() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show who holds the address, and all boards",
		Long: `Show who holds the address and all boards, as this board knows them.

Exit status: 0 if a live leader holds the address and another board could take
over, 1 if nobody holds it, 2 for a mistake in the command line, 3 if the daemon
does not run, 4 if it does not answer, 5 if a live leader holds it but no fit board could
take over.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if watch {
				return watchStatus(c)
			}
			return statusOfAll(c)
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show it again twice a second, until interrupted")
	return withJSON(withGroup(c))
}

// statusOfAll shows the status of each group. The exit status is that of the worst.
func statusOfAll(c *cobra.Command) error {
	groups, err := groupsOf(c)
	if err != nil {
		failed := unanswered(c, err)
		explainNotRunning(c, err)
		return failed
	}
	var told []askedGroup
	var found []console.Status
	worst := 0
	for _, g := range groups {
		s, err := g.daemon.Status(c.Context())
		worst = console.WorseExitStatus(worst, console.ExitStatus(s, err))
		if err != nil {
			complain(c.ErrOrStderr(), g.error(err))
			explainNotRunning(c, err)
			continue
		}
		told, found = append(told, g), append(found, s)
	}
	if len(found) > 0 {
		if err := showAll(c, told, found, console.WriteStatus); err != nil {
			return err
		}
	}
	return exitStatus(worst)
}

// unanswered complains that the daemon has not answered, and returns the exit status that says why. A mistake in the command line
// stays one.
func unanswered(c *cobra.Command, err error) error {
	if _, mistaken := errors.AsType[usageError](err); mistaken {
		return err
	}
	complain(c.ErrOrStderr(), err)
	return exitStatus(console.ExitStatus(console.Status{}, err))
}

// explainNotRunning says whether the files of the daemon are why it does not run. A daemon that waits for a file has no
// socket either.
func explainNotRunning(c *cobra.Command, err error) {
	if asked, _ := c.Flags().GetString("socket"); asked != "" || !errors.Is(err, console.ErrNotRunning) {
		return // nobody knows which files the daemon of that socket has
	}
	if _, err := readBoard(configPath(c), runOptions{}); err != nil && !errors.Is(err, fs.ErrPermission) {
		complain(c.ErrOrStderr(), fmt.Errorf("it cannot run, or waits, because of its files:\n%w", err))
	}
}

// watchEvery is how often topdog status --watch asks.
const watchEvery = 500 * time.Millisecond

// watchStatus shows the status again and again. On a terminal it replaces the one before.
func watchStatus(c *cobra.Command) error {
	out := c.OutOrStdout()
	groups, err := groupsOf(c)
	if err != nil {
		return untilInterrupted(c, err)
	}
	for {
		found := make([]console.Status, len(groups))
		for i, g := range groups {
			if found[i], err = g.daemon.Status(c.Context()); err != nil {
				return untilInterrupted(c, g.error(err))
			}
		}
		if _, ok := terminalWidth(out); ok {
			fmt.Fprint(out, "\x1b[H\x1b[2J") // to the top left, and erase the screen (ECMA-48)
		}
		if err := showAll(c, groups, found, console.WriteStatus); err != nil {
			return err
		}
		select {
		case <-time.After(watchEvery):
		case <-c.Context().Done():
			return nil
		}
	}
}

// untilInterrupted returns the error of a command that runs until somebody interrupts it: nil if that is how it ended.
func untilInterrupted(c *cobra.Command, err error) error {
	if c.Context().Err() != nil {
		return nil
	}
	return err
}

func watchCommand() *cobra.Command {
	return withJSON(withGroup(&cobra.Command{
		Use:   "watch",
		Short: "Print a line for everything that happens to this board",
		Long: `Print the state of this board, and then a line for everything that happens to it: another
role, another leader, the address acquired or released. It ends when the daemon does,
or when it is interrupted.

With --json the lines are those of GET /v1/events, one JSON object each. To run a
program when something happens, see topdog hooks and topdog lead.`,
		Example: "  topdog watch\n  topdog watch --json | jq --unbuffered -r .event",
		RunE: func(c *cobra.Command, _ []string) error {
			return untilInterrupted(c, watchAll(c))
		},
	}))
}

// watchAll follows all groups until one cannot be followed any more.
func watchAll(c *cobra.Command) error {
	groups, err := groupsOf(c)
	if err != nil {
		return err
	}
	out, asJSON := c.OutOrStdout(), wantsJSON(c)
	var mu sync.Mutex
	ended := make(chan error, len(groups))
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	for _, g := range groups {
		go func() {
			ended <- g.error(g.daemon.Watch(ctx, console.WatchOptions{}, func(t console.Transition) error {
				mu.Lock()
				defer mu.Unlock()
				if asJSON {
					return writeJSON(out, t, "")
				}
				_, err := fmt.Fprintln(out, g.line(t.Text()))
				return err
			}))
		}()
	}
	return <-ended
}

func isLeaderCommand() *cobra.Command {
	return withOneGroup(&cobra.Command{
		Use:   "is-leader",
		Short: "Tell by the exit status whether this board leads",
		Long: `Tell by the exit status whether this board leads and has the address: 0 if it does,
1 if not, 2 for a mistake in the command line, 3 if the daemon does not run, 4 if it
does not answer. It prints nothing but errors.

What is true when this command ends may be over a moment later. To run something only
as long as this board leads, use topdog lead.`,
		Example: "  topdog is-leader && run-parts /etc/backup.d",
		RunE: func(c *cobra.Command, _ []string) error {
			var s console.Status
			daemon, err := oneGroup(c)
			if err == nil {
				s, err = daemon.Status(c.Context())
			}
			switch {
			case err != nil:
				return unanswered(c, err)
			case !s.Leads():
				return exitStatus(exitFailure)
			}
			return nil
		},
	})
}

func traceCommand() *cobra.Command {
	var all, scene bool
	c := &cobra.Command{
		Use:   "trace",
		Short: "Show where the time of the last takeover went",
		Long: `Show what this board did at the last change of leader, step by step with
microseconds, from the last heartbeat of the old leader on.

Every daemon keeps the last few changes in memory, so tracing need not be switched
on before. Each board shows its own side: ask the board that took over, and the one
that released the address, if its daemon still runs.

With --scene, print all that this board was told lately, and what it did, as a text that
topdog sim play can play again. The text has the names and addresses of the boards, and no key.
Root and the group topdog may ask for it.`,
		Example: `  topdog trace
  topdog trace --all
  topdog trace --json --all
  sudo topdog trace --scene > report.txt`,
		RunE: func(c *cobra.Command, _ []string) error {
			if scene {
				daemon, err := oneGroup(c)
				if err != nil {
					return err
				}
				s, err := daemon.Scene(c.Context())
				if err == nil {
					_, err = fmt.Fprint(c.OutOrStdout(), s.Text)
				}
				return err
			}
			groups, err := groupsOf(c)
			if err != nil {
				return err
			}
			found := make([]console.Trace, len(groups))
			for i, g := range groups {
				if found[i], err = g.daemon.Trace(c.Context()); err != nil {
					return g.error(err)
				}
				if !all {
					found[i] = found[i].Newest()
				}
			}
			return showAll(c, groups, found, console.WriteTrace)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "show all changes that are kept, the newest first, and suspicions of a leader that lived")
	c.Flags().BoolVar(&scene, "scene", false, "print what this board was told lately, and what it did, to be played again")
	withJSON(withGroup(c)).MarkFlagsMutuallyExclusive("all", "scene")
	c.MarkFlagsMutuallyExclusive("json", "scene")
	return c
}

// defaultPause is how long a pause lasts without --for.
const defaultPause = time.Hour

// acting makes a command that has the daemon do something for each group, and prints what the daemon answers. If that
// fails for one group, it is done for the others all the same.
func acting(c *cobra.Command, do func(*cobra.Command, askedGroup) (text string, err error)) *cobra.Command {
	c.RunE = func(c *cobra.Command, _ []string) error {
		groups, err := groupsOf(c)
		if err != nil {
			return err
		}
		var failed error
		for _, g := range groups {
			text, err := do(c, g)
			if err != nil {
				failed = errors.Join(failed, g.error(err))
				continue
			}
			if _, err := fmt.Fprintln(c.OutOrStdout(), g.line(console.Printable(text))); err != nil {
				return err
			}
		}
		return failed
	}
	return withGroup(c)
}

// line returns a line about the group.
func (g askedGroup) line(text string) string {
	if g.name == "" {
		return text
	}
	return g.name + ": " + text
}

func resignCommand() *cobra.Command {
	return acting(&cobra.Command{
		Use:   "resign",
		Short: "Hand the address over to the heir",
		Long: `Hand the address over to the board that is next in rank, the heir, for example
before a planned reboot. The address is gone for about one round trip.`,
	}, func(c *cobra.Command, g askedGroup) (string, error) {
		if g.name != "" { // of several, it is meant for those that this board leads
			if s, err := g.daemon.Status(c.Context()); err != nil || s.Role != console.RoleLeader {
				return "this board does not lead", err
			}
		}
		h, err := g.daemon.Resign(c.Context())
		return h.Text, err
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
			h, err := daemonOf(c).Leave(c.Context())
			if err == nil {
				_, err = fmt.Fprintln(c.OutOrStdout(), console.Printable(h.Text))
			}
			return err
		},
	})
}

func drainCommand() *cobra.Command {
	var length time.Duration
	var force bool
	c := acting(&cobra.Command{
		Use:   "drain",
		Short: "Have this board leave the address to others",
		Long: `Have this board leave the address to others, for example before work on it. If it has the
address it hands over to a board that passes its checks. It remains a follower, and takes the
address only if no other board is fitter. That lasts until topdog undrain, even across a reboot;
with --for it ends by itself, at the next reboot at the latest.

It is refused for the last board that passes, unless --force is given. Root and the group topdog
may do this.`,
	}, func(c *cobra.Command, g askedGroup) (string, error) {
		if c.Flags().Changed("for") {
			if err := positive("for", length); err != nil {
				return "", err
			}
		}
		h, err := g.daemon.Drain(c.Context(), console.DrainRequest{ForNs: int64(length), Force: force})
		return h.Text, err
	})
	c.Flags().DurationVar(&length, "for", 0, "how `long` (10m, 2h), counted while the board is awake (default: until topdog undrain)")
	c.Flags().BoolVar(&force, "force", false, "also if no other board passes its checks")
	return c
}

func undrainCommand() *cobra.Command {
	return acting(&cobra.Command{
		Use:   "undrain",
		Short: "Have this board stand for the address again",
		Long: `Have a drained board stand for the address again. It takes the address from no other board,
unless it has preempt = true and the higher rank.`,
	}, func(c *cobra.Command, g askedGroup) (string, error) {
		done, err := g.daemon.Undrain(c.Context())
		return done.Text, err
	})
}

func pauseCommand() *cobra.Command {
	var length time.Duration
	c := acting(&cobra.Command{
		Use:   "pause",
		Short: "Keep the address where it is, on all boards",
		Long: `Keep the address where it is, on all boards of the group, for example while its switch is
replaced. Until topdog unpause no other board takes the address, whatever it hears, even if the
board that has it dies. When that board's daemon is started again it takes the address back.
The pause ends by itself after the time that is given.`,
	}, func(c *cobra.Command, g askedGroup) (string, error) {
		if err := positive("for", length); err != nil {
			return "", err
		}
		done, err := g.daemon.Pause(c.Context(), console.PauseRequest{ForNs: int64(length)})
		return done.Text, err
	})
	c.Flags().DurationVar(&length, "for", defaultPause, "how `long`, at most 24h")
	return c
}

func unpauseCommand() *cobra.Command {
	return acting(&cobra.Command{
		Use:   "unpause",
		Short: "End a pause, on all boards",
		Long:  `End a pause of the group, on whichever board it was begun.`,
	}, func(c *cobra.Command, g askedGroup) (string, error) {
		done, err := g.daemon.Unpause(c.Context())
		return done.Text, err
	})
}
