package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
)

// CleanupOptions say what is taken away.
type CleanupOptions struct {
	// Address is what a holder may have left, and Light what a daemon may have.
	Address, Light bool
	// Ended says that it is known that what has them does not run.
	Ended bool
}

// Cleanup takes away what a daemon with the configuration at path, or its holder, has left behind when
// it died. It says on out what it removed.
func Cleanup(ctx context.Context, path string, o CleanupOptions, out io.Writer) error {
	cfg, err := config.Load(path)
	if err != nil {
		// Which address it was nobody knows then. The light was noted.
		if o.Light {
			err = errors.Join(gpio.DarkenLeftovers(gpio.Options{NotesIn: config.Defaults().NotesDir()}), err)
		}
		return err
	}
	if !o.Ended {
		if _, err := console.Dial(cfg.Socket).Status(ctx); err == nil {
			return errors.New("the daemon runs, so nothing was removed: stop it first (systemctl stop topdog topdog-holder)")
		}
	}
	var failed []error
	if o.Address {
		failed = append(failed, removeLeftovers(cfg, out))
	}
	if o.Light {
		failed = append(failed, gpio.DarkenLeftovers(gpio.Options{NotesIn: cfg.NotesDir()}), darkenConfigured(out, cfg.LED))
	}
	return errors.Join(failed...)
}

func removeLeftovers(cfg *config.Config, out io.Writer) error {
	var addresses []netip.Prefix
	for _, a := range cfg.Addresses {
		addresses = append(addresses, netip.PrefixFrom(a.IP, 32))
	}
	removed, err := netio.RemoveLeftovers(addresses)
	for _, what := range removed {
		fmt.Fprintf(out, "removed %s\n", what)
	}
	return err
}

// darkenConfigured puts out the light of the configuration, in case that there is
// no note. A light that cannot be had now was none of the daemon's either: that is
// said, and is no failure, or every stop of the service would end as one.
func darkenConfigured(out io.Writer, led gpio.Spec) error {
	err := gpio.Darken(led, gpio.Options{})
	if errors.Is(err, gpio.ErrBusy) || errors.Is(err, fs.ErrPermission) {
		_, err = fmt.Fprintf(out, "left the LED alone: %v\n", err)
	}
	return err
}
