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

// Cleanup takes away what a daemon with the configuration at path has left behind when
// it died: the address, and the light. It says on out what it removed.
func Cleanup(ctx context.Context, path string, out io.Writer) error {
	cfg, err := config.Load(path)
	if err != nil {
		// Which address it was nobody knows then. The light was noted.
		return errors.Join(gpio.DarkenLeftovers(gpio.Options{NotesIn: config.Defaults().NotesDir()}), err)
	}
	if _, err := console.Dial(cfg.Socket).Status(ctx); err == nil {
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
		fmt.Fprintf(out, "removed %s\n", what)
	}
	if err := gpio.DarkenLeftovers(gpio.Options{NotesIn: cfg.NotesDir()}); err != nil {
		failed = append(failed, err)
	}
	if err := darkenConfigured(out, cfg.LED); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
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
