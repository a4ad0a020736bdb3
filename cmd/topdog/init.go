package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"topdog/internal/config"
)

func initCommand() *cobra.Command {
	var options config.InitOptions
	c := &cobra.Command{
		Use:   "init ADDRESS",
		Short: "Write a configuration and a fresh key for a new group",
		Long: `Write the configuration of the first board of a group, and a fresh 256-bit key
that only root can read. ADDRESS is the floating address: a free one of your
LAN, outside the range that your router hands out.

Nothing that exists is overwritten, unless you say --force.`,
		Example: "  topdog init 192.168.1.250",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			address, _ := c.Flags().GetString("address")
			if len(args) == 1 {
				address = args[0]
			}
			if address == "" {
				return usageError{errors.New("which address shall the boards keep? For example: topdog init 192.168.1.250")}
			}
			path, _ := c.Flags().GetString("config")
			options.Options = configOptions()
			return initialise(c, path, address, options)
		},
	}
	c.Flags().String("address", "", "the floating `address`, as an alternative to the argument")
	c.Flags().StringVar(&options.Interface, "interface", "", "the `name` of the interface (default: the one whose subnet contains the address)")
	c.Flags().StringVar(&options.Group, "group", "", "the `name` of the group, if there are several on one LAN")
	c.Flags().BoolVar(&options.Force, "force", false, "replace an existing configuration and key")
	return c
}

func initialise(c *cobra.Command, path, address string, options config.InitOptions) error {
	if filepath.Base(path) != filepath.Base(config.DefaultPath) {
		return usageError{fmt.Errorf("--config must name a file %s, is %s", filepath.Base(config.DefaultPath), path)}
	}
	done, err := config.Init(filepath.Dir(path), address, options)
	if err != nil {
		return err
	}
	if err := giveToDaemon(done.KeyPath); err != nil {
		return err
	}
	out := c.OutOrStdout()
	fmt.Fprintf(out, "wrote %s\n", done.ConfigPath)
	if done.KeyIsNew {
		fmt.Fprintf(out, "wrote %s (a fresh key, which nobody else can read)\n", done.KeyPath)
	} else if done.KeyPath != "" {
		fmt.Fprintf(out, "kept  %s\n", done.KeyPath)
	}
	fmt.Fprintf(out, "\nEvery board of the group gets the same two files. From this board:\n\n    %s\n", done.CopyLine)
	fmt.Fprintf(out, "\nThen on every board: sudo systemctl enable --now topdog\n")
	return nil
}

// daemonUser is the user that the systemd unit runs the daemon as.
const daemonUser = "topdog"

// giveToDaemon makes the key the daemon's own, if this is root and the package
// has made the user; the daemon does not run as root then and could not read it.
func giveToDaemon(keyPath string) error {
	u, err := user.Lookup(daemonUser)
	if err != nil || keyPath == "" || os.Geteuid() != 0 {
		return nil
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(keyPath, uid, gid); err != nil {
		return fmt.Errorf("give the key to the user %s, which the daemon runs as: %w", daemonUser, err)
	}
	return nil
}
