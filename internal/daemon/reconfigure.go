package daemon

import (
	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
)

// Reload reads the configuration again from the file at path, and applies what can
// be applied while the daemon runs. A configuration with a mistake changes nothing.
func (d *Daemon) Reload(path string) {
	d.report("tell systemd", d.notifier.Reloading())
	cfg, err := config.Load(path)
	if err != nil {
		d.log.Errorf("the new configuration was not applied:\n%v", err)
	} else {
		d.request(func() { d.reconfigure(cfg) })
	}
	d.report("tell systemd", d.notifier.Ready())
}

// reconfigure applies the live keys of a changed configuration. What needs a restart
// keeps its value, and so is told of at each reload until the restart, or until it is
// changed back.
func (d *Daemon) reconfigure(cfg *config.Config) {
	changed := map[string]bool{}
	var applied []string
	for _, key := range d.cfg.Changed(cfg) {
		changed[key] = true
		if config.Live(key) {
			applied = append(applied, key)
		} else {
			d.log.Warnf("%s: %s has changed, which needs a restart: systemctl restart topdog", cfg.Where(key), key)
		}
	}
	if len(changed) == 0 {
		d.log.Info("read the configuration again; nothing has changed")
	}
	if len(applied) == 0 {
		return
	}
	d.cfg.ApplyLive(cfg)
	d.log.Logger.SetLevel(cfg.LogLevel)
	if changed["score_command"] {
		d.replaceCommand(cfg.ScoreCommand)
	}
	if changed["led"] {
		d.led.replace(d.ledOpener())
		d.news.over(console.ProblemLED)
	}
	if d.core != nil {
		d.stand() // a leader whose priority has become 0 hands over
	}
	d.log.Infof("read the configuration again; changed: %v", applied)
}

// ledOpener returns what opens the configured light.
func (d *Daemon) ledOpener() func() (gpio.LED, error) {
	spec := d.cfg.LED
	return func() (gpio.LED, error) { return d.platform.OpenLED(spec) }
}
