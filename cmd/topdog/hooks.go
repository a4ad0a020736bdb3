package main

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/hooks"
)

// This file has the verbs that run something else while this board leads, or when that changes.

const (
	hooksDirectory = "/etc/topdog/hooks.d"
	hookTimeout    = time.Minute
	// killAfter is how long a command of topdog lead has to end.
	killAfter = 10 * time.Second
	// leaderTarget is the target of systemd for units that run on the leader only.
	leaderTarget = "topdog-leader.target"
)

func hooksCommand() *cobra.Command {
	o := hooks.Options{}
	c := &cobra.Command{
		Use:   "hooks",
		Short: "Run scripts when this board begins or ceases to lead",
		Long: `Run the scripts in /etc/topdog/hooks.d when the state of this board changes, as
topdog-hooks.service does. It waits for the daemon, and goes on when that is restarted.

Each script gets the four arguments of keepalived's notify scripts, INSTANCE, the group,
the state and the priority. The state is MASTER, BACKUP, FAULT or STOP. The environment
says more. Scripts in hooks.d/leader.d run when another board leads.

Scripts must belong to root, and nobody else may write to them. All of it is in
/usr/share/doc/topdog/docs/hooks.md.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := positive("timeout", o.Timeout); err != nil {
				return err
			}
			o.Log = serviceLog()
			return hooks.Run(c.Context(), daemonOf(c), o)
		},
	}
	c.Flags().StringVar(&o.Directory, "dir", hooksDirectory, "the `path` of the directory with the scripts")
	c.Flags().DurationVar(&o.Timeout, "timeout", hookTimeout, "after that `time` a script is killed, with all that it has started")
	return withSocket(c)
}

func leadCommand() *cobra.Command {
	o := hooks.LeadOptions{}
	c := &cobra.Command{
		Use:   "lead [flags] -- COMMAND [ARGUMENT ...]",
		Short: "Run a command while this board leads",
		Long: `Run a command while this board leads and has the address. It is started when the
board begins to lead, now if it does. When the board ceases to lead, or its daemon stops
or does not answer for 5 s, the command gets SIGTERM, and SIGKILL if that takes too long.
Then topdog lead waits until the board leads again.

If the command ends by itself, topdog lead ends with its exit status. What should be
started again is a unit of systemd with Restart=always, and this as its ExecStart=.

It is no lock: for a moment the commands of two boards may run, the former leader's
because it has not ended yet.`,
		Example: "  topdog lead -- /usr/local/bin/scheduler --quick",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("topdog lead needs a command to run")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.KillAfter < 0 {
				return misuse("--kill-after must not be below 0, is %v", o.KillAfter)
			}
			o.Command, o.Log = args, serviceLog()
			status, err := hooks.Lead(c.Context(), daemonOf(c), o)
			if err != nil {
				return err
			}
			return exitWith(status)
		},
	}
	c.Flags().SetInterspersed(false) // what follows the command belongs to it
	c.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	c.Flags().DurationVar(&o.KillAfter, "kill-after", killAfter, "the `time` from SIGTERM to SIGKILL")
	return withSocket(c)
}

func targetCommand() *cobra.Command {
	return withSocket(&cobra.Command{
		Use:   "target [UNIT]",
		Short: "Have a unit of systemd run while this board leads",
		Long: `Have a unit of systemd, topdog-leader.target, run while this board leads and has the
address, as topdog-leader.service does. It is stopped when the board ceases to lead, when
its daemon stops or does not answer for 5 s, and when this command ends. This needs root.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o := hooks.TargetOptions{Unit: cmp.Or(argument(args), leaderTarget), Log: serviceLog()}
			return hooks.Target(c.Context(), daemonOf(c), o)
		},
	})
}
