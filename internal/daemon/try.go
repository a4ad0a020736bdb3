package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
)

// Try runs the checks of a configuration once, in a checker of their own. It is the same program as the one that runs the
// daemon's checks, with the same user and sandbox, and without capabilities. The daemon and its checks go on meanwhile.
func (d *Daemon) Try(ctx context.Context, asked console.TryRequest) (console.Tried, error) {
	if len(asked.Config) > config.MaxFileBytes {
		return console.Tried{}, console.Refuse(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the configuration has %d bytes, and a file has %d at most", len(asked.Config), config.MaxFileBytes), "")
	}
	cfg, err := config.Parse(asked.File, []byte(asked.Config))
	switch {
	case err != nil:
		return console.Tried{}, console.Refuse(http.StatusBadRequest, "the daemon, which may be of another version, does not take this configuration: "+err.Error(), "")
	case d.platform.Trier == nil:
		return console.Tried{}, console.Refuse(http.StatusNotImplemented, "this daemon runs no checks", "try them on a board that may lead")
	}
	// One at a time is enough for people.
	if !d.trying.TryLock() {
		return console.Tried{}, console.Refuse(http.StatusServiceUnavailable, "checks are being tried already", "try again when that is over")
	}
	defer d.trying.Unlock()
	defer d.platform.Trier.Stop()
	d.tasks.tryPost(func() {
		d.reporter.log.Infof("trying the checks of %q once, as root has asked", asked.File)
	})
	reasons, err := check.Once(ctx, d.platform.Trier, CheckOrder(cfg, d.platform.FindInterface))
	if err != nil {
		return console.Tried{}, err
	}
	tried := console.Tried{Checks: []console.TriedCheck{}}
	for i, reason := range reasons {
		tried.Checks = append(tried.Checks, console.TriedCheck{NameText: cfg.Checks[i].String(), Passing: reason == "", Text: reason})
	}
	return tried, nil
}

// CheckOrder returns the order to run the checks of a configuration. find returns the interface whose subnet contains an
// address.
func CheckOrder(cfg *config.Config, find func(netip.Addr) (netio.Choice, error)) check.Order {
	o := check.Order{Checks: cfg.Checks, Floating: ipsOf(cfg.Addresses), Interface: cfg.Interface}
	if o.Interface == "" && len(cfg.Addresses) > 0 {
		found, _ := find(cfg.Addresses[0].IP) // if there is none, a check of the gateway says so
		o.Interface = found.Name
	}
	return o
}
