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
	// Address is what a holder may have left behind, and Light what a daemon may have.
	Address, Light bool
	// Ended says that these processes are known to have ended.
	Ended bool
}

// Cleanup removes what a daemon with the configuration at path, or its holder, has left behind when it died. It reports on out
// what it has removed.
func Cleanup(ctx context.Context, path string, o CleanupOptions, out io.Writer) error {
	groups, err := config.LoadGroups(path)
	if err != nil {
		// Without a configuration, nobody knows which address it was. The light was noted.
		if o.Light {
			err = errors.Join(gpio.DarkenLeftovers(gpio.Options{NotesIn: config.Defaults().NotesDir()}), err)
		}
		return err
	}
	board := groups.First()
	if !o.Ended {
		if _, err := console.Dial(board.Socket).Groups(ctx); err == nil {
			return errors.New("the daemon runs, so nothing was removed: stop it first (systemctl stop topdog topdog-holder)")
		}
	}
	var failed []error
	if o.Address {
		failed = append(failed, removeLeftovers(groups, out))
	}
	if o.Light {
		failed = append(failed, gpio.DarkenLeftovers(gpio.Options{NotesIn: board.NotesDir()}))
		for _, cfg := range groups {
			failed = append(failed, darkenConfigured(out, cfg.LED))
		}
	}
	return errors.Join(failed...)
}

func removeLeftovers(groups config.Groups, out io.Writer) error {
	var addresses []netip.Prefix
	for _, cfg := range groups {
		for _, a := range cfg.Addresses {
			addresses = append(addresses, netip.PrefixFrom(a.IP, a.IP.BitLen()))
		}
	}
	removed, err := netio.RemoveLeftovers(addresses)
	for _, what := range removed {
		fmt.Fprintf(out, "removed %s\n", what)
	}
	return err
}

// darkenConfigured puts out the configured light, in case there is no note. A light that cannot be opened now was not the
// daemon's either: that is reported and is no failure, or every stop of the service would fail.
func darkenConfigured(out io.Writer, led gpio.Spec) error {
	err := gpio.Darken(led, gpio.Options{})
	if errors.Is(err, gpio.ErrBusy) || errors.Is(err, fs.ErrPermission) {
		_, err = fmt.Fprintf(out, "left the LED alone: %v\n", err)
	}
	return err
}
