package main

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"
	"github.com/vishvananda/netns"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
)

func cleanupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove the address and switch the LED off after a daemon that died",
		Long: `Remove the floating address from this board and switch its LED off. systemd calls
this after the daemon has ended, however it ended. It is harmless at any time
when no daemon runs.`,
		RunE: func(c *cobra.Command, _ []string) error {
			path, _ := c.Flags().GetString("config")
			return cleanup(c, path)
		},
	}
}

func cleanup(c *cobra.Command, path string) error {
	cfg, err := config.Load(path, configOptions())
	if err != nil {
		return err
	}
	if _, err := console.Dial(cfg.Socket).Status(c.Context()); err == nil {
		return errors.New("the daemon runs, so nothing was removed: stop it first (systemctl stop topdog)")
	}
	var addresses []netip.Prefix
	for _, a := range cfg.Addresses {
		addresses = append(addresses, netip.PrefixFrom(a.IP, 32))
	}
	var failed []error
	removed, err := netio.RemoveLeftovers(netns.None(), "", addresses)
	if err != nil {
		failed = append(failed, err)
	}
	for _, what := range removed {
		fmt.Fprintf(c.OutOrStdout(), "removed %s\n", what)
	}
	if err := darken(cfg.LED); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// darken switches the LED off. A board without one has nothing to switch off.
func darken(led string) error {
	spec, err := gpio.ParseSpec(led)
	if err != nil {
		return err
	}
	gpio.Init(spec)
	light, err := gpio.Open(spec) // an opened light is dark
	switch {
	case errors.Is(err, gpio.ErrNoGPIO), errors.Is(err, gpio.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("switch the LED off: %w", err)
	}
	return light.Close()
}
