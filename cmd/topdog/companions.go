package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/hooks"
	"topdog/internal/page"
)

// This file has the services that follow the daemon: those that run something while this board leads, or when it begins
// or ceases to lead, and the page.

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
says more. Scripts in hooks.d/leader.d run when another board leads. If the board has several
groups, the scripts run for each of them.

Scripts must belong to root, and nobody else may be able to write to them.
/usr/share/doc/topdog/docs/hooks.md has the details.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := positive("timeout", o.Timeout); err != nil {
				return err
			}
			o.Groups, o.Log = configuredGroups(c), serviceLog()
			hooks.Run(c.Context(), daemonOf(c), o)
			return nil
		},
	}
	c.Flags().StringVar(&o.Directory, "dir", hooksDirectory, "the `path` of the directory with the scripts")
	c.Flags().DurationVar(&o.Timeout, "timeout", hookTimeout, "the `time` after which a script is killed, with all that it has started")
	return withSocket(c)
}

// configuredGroups returns the names of the groups of the configuration; none if there is only one, or no configuration that
// can be read. That of --socket may be another daemon's.
func configuredGroups(c *cobra.Command) []string {
	if asked, _ := c.Flags().GetString("socket"); asked != "" {
		return nil
	}
	groups, err := config.LoadGroups(configPath(c))
	if err != nil || len(groups) == 1 {
		return nil
	}
	return groups.Names()
}

// followed is the daemon for a command that waits for it, about the group of --group, which may be missing only if the board
// has no other. Before the daemon runs, the configuration says which groups it has.
func followed(c *cobra.Command) (*console.Client, error) {
	daemon := daemonOf(c)
	group, _ := c.Flags().GetString("group")
	names, err := daemon.Groups(c.Context())
	if err != nil {
		names = configuredGroups(c)
	}
	switch {
	case group == "" && len(names) > 1:
		return nil, severalGroups(names)
	case group != "" && len(names) > 0 && !slices.Contains(names, group):
		return nil, noGroup(group, names)
	}
	return daemon.Of(group), nil
}

func leadCommand() *cobra.Command {
	o := hooks.LeadOptions{}
	c := &cobra.Command{
		Use:   "lead [flags] -- COMMAND [ARGUMENT ...]",
		Short: "Run a command while this board leads",
		Long: `Run a command while this board leads and has the address. The command is started when
the board begins to lead, or at once if it leads already. When the board ceases to lead, or
its daemon stops or does not answer for 5 s, the command gets SIGTERM, and SIGKILL if it
takes too long to end. Then topdog lead waits until the board leads again.

If the command ends by itself, topdog lead ends with the command's exit status. If the
command should be started again then, make a unit of systemd with Restart=always and
topdog lead as its ExecStart=.

topdog lead is no lock: for a moment the commands of two boards may run, because that of
the former leader has not ended yet.

If the board has several groups, --group says which of them counts.`,
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
			daemon, err := followed(c)
			if err != nil {
				return err
			}
			o.Command, o.Log = args, serviceLog()
			status, err := hooks.Lead(c.Context(), daemon, o)
			if err != nil {
				return err
			}
			return exitStatus(status)
		},
	}
	c.Flags().SetInterspersed(false) // what follows the command belongs to it
	c.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	c.Flags().DurationVar(&o.KillAfter, "kill-after", killAfter, "the `time` from SIGTERM to SIGKILL")
	return withOneGroup(c)
}

func targetCommand() *cobra.Command {
	return withOneGroup(&cobra.Command{
		Use:   "target [UNIT]",
		Short: "Have a unit of systemd run while this board leads",
		Long: `Have a unit of systemd, topdog-leader.target, run while this board leads and has the
address, as topdog-leader.service does. It is stopped when the board ceases to lead, when
its daemon stops or does not answer for 5 s, and when this command ends. This needs root.

If the board has several groups, --group says which of them counts.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			daemon, err := followed(c)
			if err != nil {
				return err
			}
			o := hooks.TargetOptions{Unit: cmp.Or(argument(args), leaderTarget), Log: serviceLog()}
			return hooks.Target(c.Context(), daemon, o)
		},
	})
}

// What the page may take of a small board. It has half a megabyte in use, to which each connection adds about 20 kB, so the
// collector runs before there is 1 MB of garbage. Above the limit, which all connections together do not reach, the
// collector runs more often. One thread at a time computes: whatever strangers ask for, the other processors are left to
// the election.
const (
	pageGCPercent   = 25
	pageMemoryLimit = 24 << 20 // bytes, of which the runtime has 7 MB before anybody visits
	pageProcessors  = 1
	// giveBackEvery is how often the memory of a visit is given back. That takes a millisecond or two, and a page is in no
	// hurry.
	giveBackEvery = 10 * time.Second
)

func pageCommand() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "page",
		Short: "Serve a page with all boards, and metrics, on the LAN",
		Long: `Serve a page on the LAN that shows who holds the address and all boards, as
topdog-page.service does; and the same for programs: JSON, metrics for Prometheus, and
health for load balancers. It waits for the daemon, and goes on when that is restarted.

Everybody who reaches the port may look, and nobody can change anything. It does not need
root. /usr/share/doc/topdog/docs/page.md has the details.`,
		Example: "  topdog page --listen 127.0.0.1:8080",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := pageOptions(c, listen, atTerminal())
			if err != nil {
				return err
			}
			runtime.GOMAXPROCS(pageProcessors)
			debug.SetGCPercent(pageGCPercent)
			debug.SetMemoryLimit(pageMemoryLimit)
			go keepSmall(c.Context())
			return page.Run(c.Context(), daemonOf(c), o)
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "the TCP port, with or without an `address` of this board in front of it (default: page_listen of the configuration)")
	return withSocket(c)
}

// keepSmall gives back unused memory, now and every giveBackEvery.
func keepSmall(ctx context.Context) {
	again := time.NewTicker(giveBackEvery)
	defer again.Stop()
	for {
		giveBack()
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// pageOptions are those of the configuration, except for an address that --listen gives. A board that is not set up has
// the defaults.
func pageOptions(c *cobra.Command, listen string, terminal bool) (page.Options, error) {
	file := c.Flags().Lookup("config")
	log := serviceLog()
	var groups config.Groups
	err := readFiles(c.Context(), terminal, log, func() (err error) {
		groups, err = config.LoadGroups(file.Value.String())
		if errors.Is(err, fs.ErrNotExist) && !file.Changed {
			groups, err = config.Groups{config.Defaults()}, nil
		}
		return err
	})
	if err != nil {
		return page.Options{}, err
	}
	cfg := groups.First()
	if listen != "" {
		if cfg.PageListen, err = config.ParseListen(listen); err != nil {
			return page.Options{}, misuse("--listen: %w", err)
		}
	}
	// Only a daemon that runs tells the name of the board, and mDNS knows the machine by its own name.
	hosts := append(slices.Clip(cfg.PageHosts), cfg.Name, config.Defaults().Name)
	return page.Options{Listen: cfg.PageListen.String(), Hosts: hosts, Log: log}, nil
}
