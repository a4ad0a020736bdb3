package main

import (
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/netio"
	"topdog/systemd"
)

// defaultHolderSocket is where the daemon asks the holder. topdog-holder.service makes the directory.
const defaultHolderSocket = "/run/topdog-holder/socket"

func holderCommand() *cobra.Command {
	var path, name string
	c := &cobra.Command{
		Use:   "holder",
		Short: "Have the rights that the daemon needs, and do what it asks for",
		Long: `Run the holder in the foreground, as topdog-holder.service does: the one process of
a board that may change the network. It holds the floating address, speaks ARP, and
opens the sockets of the group, for the daemon alone, and only for what its own
configuration has. It releases the address when the daemon is killed or stands still.
It needs root, or the capabilities CAP_NET_ADMIN and CAP_NET_RAW, and CAP_BPF for the
fence. SIGTERM ends it.

Who runs the daemon by hand needs none: topdog run starts one by itself.`,
		RunE: func(c *cobra.Command, _ []string) error {
			file, _ := c.Flags().GetString("config")
			return serveHolder(file, path, name)
		},
	}
	c.Flags().StringVar(&path, "socket", defaultHolderSocket, "where the daemon asks: a `path`")
	c.Flags().StringVar(&name, "user", "topdog", "the `user` of the daemon, who may ask besides root")
	return c
}

// serveHolder is the life of the holder.
func serveHolder(file, path, name string) error {
	uid, gid, err := idsOf(name)
	if err != nil {
		return usageError{fmt.Errorf("--user: %w", err)}
	}
	stop, err := stopOn(syscall.SIGTERM, os.Interrupt)
	if err != nil {
		return err
	}
	notifier := systemd.New()
	return netio.ServeHolder(netio.ServiceOptions{
		Path: path, UID: uid, GID: gid, Stop: stop,
		Options: func() (netio.HolderOptions, error) {
			cfg, err := config.Load(file)
			if err != nil {
				return netio.HolderOptions{}, err
			}
			return daemon.HolderOptions(cfg), nil
		},
		Ready: func() { warn(notifier.Ready()) },
		Alive: func() { warn(notifier.Watchdog()) }, AliveEvery: notifier.WatchdogInterval(),
		Say: warn,
	})
}

// warn writes an error to the journal.
func warn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "<4>"+err.Error())
	}
}

// idsOf looks a user and its group up.
func idsOf(name string) (uid, gid int, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: the package makes the user topdog; by hand: systemd-sysusers topdog.conf", err)
	}
	if uid, err = strconv.Atoi(u.Uid); err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	return uid, gid, err
}

// stopOn returns a file that can be read once one of the signals has come. The holder waits for files, and for
// nothing else.
func stopOn(signals ...os.Signal) (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	came := make(chan os.Signal, 1)
	signal.Notify(came, signals...)
	go func() {
		<-came
		_, _ = unix.Write(fd, []byte{0, 0, 0, 0, 0, 0, 0, 1})
	}()
	return os.NewFile(uintptr(fd), "stop"), nil
}
