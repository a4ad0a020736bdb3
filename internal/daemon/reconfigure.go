package daemon

import (
	"net/netip"

	"topdog/gpio"
	"topdog/internal/console"
)

// Live is the part of the configuration that can be changed while the node runs.
type Live struct {
	Priority uint8
	Preempt  bool
	Peers    []netip.Addr
	// ScoreCommand is the new command of a node whose measure is one.
	ScoreCommand []string
	OpenLED      func() (gpio.LED, error)
}

// Reconfigure applies a changed configuration. A leader whose priority becomes
// 0 hands over.
func (d *Daemon) Reconfigure(live Live) {
	d.request(func() {
		d.cfg.Priority, d.cfg.Preempt, d.cfg.Peers = live.Priority, live.Preempt, live.Peers
		d.replaceCommand(live.ScoreCommand)
		d.led.replace(live.OpenLED)
		d.news.over(console.ProblemLED)
		if d.core != nil {
			d.stand()
		}
	})
}

// Reloading and Reloaded tell systemd that the configuration is being read.
func (d *Daemon) Reloading() { d.report("tell systemd", d.notifier.Reloading()) }

// Reloaded tells systemd that it has been read.
func (d *Daemon) Reloaded() { d.report("tell systemd", d.notifier.Ready()) }
