package main

import (
	"context"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/netio"
	"topdog/systemd"
	"topdog/wire"
)

// defaultHolderSocket is the holder's socket. topdog-holder.service makes its directory.
const defaultHolderSocket = "/run/topdog-holder/socket"

func holderCommand() *cobra.Command {
	var path, name string
	c := &cobra.Command{
		Use:   "holder",
		Short: "Run the privileged helper that changes addresses and sends ARP for the daemon",
		Long: `Run the holder in the foreground, as topdog-holder.service does: the one process of
a board that may change the network. It holds the floating address, speaks ARP, and
opens the sockets of the group. It does so only for the daemon, and only as its own
configuration allows. It releases the address when the daemon is killed or hangs.
It needs root, or the capabilities CAP_NET_ADMIN and CAP_NET_RAW, and CAP_BPF for the
fence. SIGTERM ends it.

You do not need this if you start the daemon by hand: topdog run starts a holder of its own.`,
		RunE: func(c *cobra.Command, _ []string) error { return serveHolder(c.Context(), configPath(c), path, name) },
	}
	c.Flags().StringVar(&path, "socket", defaultHolderSocket, "the `path` of the socket to which the daemon connects")
	c.Flags().StringVar(&name, "user", "topdog", "the `user` of the daemon; only this user and root may connect")
	return c
}

// serveHolder runs the holder of a service until a signal ends it.
func serveHolder(ctx context.Context, file, path, name string) error {
	uid, gid, err := config.UserIDs(name)
	if err != nil {
		return misuse("--user: %w: the package makes the user topdog; by hand: systemd-sysusers topdog.conf", err)
	}
	notifier := systemd.New()
	return netio.ServeHolder(ctx, netio.ServiceOptions{
		Path: path, UID: uid, GID: gid,
		Options: func() ([]netio.HolderOptions, error) {
			groups, err := config.LoadGroups(file)
			if err != nil {
				return nil, err
			}
			return daemon.HolderOptions(groups), nil
		},
		Ready: func() { warn(notifier.Ready()) },
		Alive: func() { warn(notifier.Watchdog()) }, AliveEvery: notifier.WatchdogInterval(),
	})
}

// startHolder starts a holder that belongs to this process, and returns what daemon.HolderOptions names of it.
func startHolder(groups config.Groups) ([]*netio.Holder, error) {
	return netio.StartHolders([]string{"/proc/self/exe", holderWord}, daemon.HolderOptions(groups)...)
}

// dialHolder connects to the holder of a service for the same, and waits for that for as long as it takes.
func dialHolder(ctx context.Context, path string, groups config.Groups, log *logrus.Entry) (holders []*netio.Holder, err error) {
	for _, o := range daemon.HolderOptions(groups) {
		holder, err := dialHolderOf(ctx, path, o.Tag, log)
		if err != nil {
			return nil, err
		}
		holders = append(holders, holder)
	}
	return holders, nil
}

func dialHolderOf(ctx context.Context, path string, group wire.GroupTag, log *logrus.Entry) (*netio.Holder, error) {
	for w := newWait("the holder", log); ; {
		holder, err := netio.DialHolder(path, group)
		if err == nil {
			warn(w.notifier.Watchdog()) // the fence may take as long again, see prepareWithin in netio
			return holder, nil
		}
		w.tell(err)
		if err := w.pause(ctx); err != nil {
			return nil, err
		}
	}
}

func cleanupCommand() *cobra.Command {
	var o daemon.CleanupOptions
	c := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove the address and switch the LED off after a daemon has died",
		Long: `Remove the floating address from this board and switch its LED off. It is harmless
while no daemon runs. It leaves alone what the daemons of other configurations on this
board have.

systemd calls it with --address each time the holder has ended, and with --light each time
the daemon has ended. With one of these flags it does only that, and does not ask whether
the daemon runs.`,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Ended = o.Address || o.Light
			if !o.Ended {
				o.Address, o.Light = true, true
			}
			return daemon.Cleanup(c.Context(), configPath(c), o, c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&o.Address, "address", false, "remove the address that the holder had")
	c.Flags().BoolVar(&o.Light, "light", false, "switch off the LED that the daemon had")
	return c
}
