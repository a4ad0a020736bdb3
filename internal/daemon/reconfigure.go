package daemon

import (
	"net/netip"

	"topdog/gpio"
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
func (n *Node) Reconfigure(live Live) {
	n.request(func() {
		n.cfg.Priority, n.cfg.Preempt, n.cfg.Peers = live.Priority, live.Preempt, live.Peers
		n.replaceCommand(live.ScoreCommand)
		n.led.replace(live.OpenLED)
		n.news.over("led")
		if n.core != nil {
			n.stand()
		}
	})
}

// Reloading and Reloaded tell systemd that the configuration is being read.
func (n *Node) Reloading() { n.report("tell systemd", n.notifier.Reloading()) }

// Reloaded tells systemd that it has been read.
func (n *Node) Reloaded() { n.report("tell systemd", n.notifier.Ready()) }
