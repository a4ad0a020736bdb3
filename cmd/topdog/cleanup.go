package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"

	"github.com/spf13/cobra"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
)

func cleanupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove the address and switch the LED off after a daemon has died",
		Long: `Remove the floating address from this board and switch its LED off. systemd calls
this command each time the daemon has ended. It is harmless while no daemon runs. It
leaves alone what the daemons of other configurations on this board have.`,
		RunE: func(c *cobra.Command, _ []string) error {
			path, _ := c.Flags().GetString("config")
			return cleanup(c, path)
		},
	}
}

func cleanup(c *cobra.Command, path string) error {
	cfg, err := config.Load(path)
	if err != nil {
		// Which address it was nobody knows then. The light was noted.
		return errors.Join(darkenNoted(gpio.Options{NotesIn: config.Defaults().NotesDir()}), err)
	}
	if _, err := console.Dial(cfg.Socket).Status(c.Context()); err == nil {
		return errors.New("the daemon runs, so nothing was removed: stop it first (systemctl stop topdog)")
	}
	var addresses []netip.Prefix
	for _, a := range cfg.Addresses {
		addresses = append(addresses, netip.PrefixFrom(a.IP, 32))
	}
	var failed []error
	removed, err := netio.RemoveLeftovers(addresses)
	if err != nil {
		failed = append(failed, err)
	}
	for _, what := range removed {
		fmt.Fprintf(c.OutOrStdout(), "removed %s\n", what)
	}
	if err := darkenNoted(gpio.Options{NotesIn: cfg.NotesDir()}); err != nil {
		failed = append(failed, err)
	}
	if err := darkenConfigured(c.OutOrStdout(), cfg.LED); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// darkenNoted puts out the lights that a daemon had when it died, whatever the
// configuration names by now, and gives them back to what made them blink before.
// A light that is busy has a living owner, most likely another daemon that keeps
// its notes in the same directory.
func darkenNoted(options gpio.Options) error {
	lights, err := gpio.Leftovers(options.NotesIn)
	failed := []error{err}
	options.Report = func(err error) { failed = append(failed, err) }
	for _, spec := range lights {
		if err := darken(spec, options); !errors.Is(err, gpio.ErrBusy) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// darkenConfigured puts out the light of the configuration, in case that there is
// no note. A light that cannot be had now was none of the daemon's either: that is
// said, and is no failure, or every stop of the service would end as one.
func darkenConfigured(out io.Writer, led gpio.Spec) error {
	err := darken(led, gpio.Options{})
	if errors.Is(err, gpio.ErrBusy) || errors.Is(err, fs.ErrPermission) {
		_, err = fmt.Fprintf(out, "left the LED alone: %v\n", err)
	}
	return err
}

// darken switches a light off. One that does not exist shines on nobody.
func darken(spec gpio.Spec, options gpio.Options) error {
	gpio.Init(spec)
	light, err := gpio.Open(spec, options) // an opened light is dark
	switch {
	case errors.Is(err, gpio.ErrNoGPIO), errors.Is(err, gpio.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("switch the LED off: %w", err)
	}
	return light.Close()
}
