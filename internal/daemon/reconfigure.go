package daemon

import (
	"errors"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
)

// Reload reads the configuration again from the file at path, and applies what can
// be applied while the daemon runs. A configuration with a mistake changes nothing.
func (d *Daemon) Reload(path string) {
	d.reporter.reloading()
	d.reloading.Lock()
	defer d.reloading.Unlock()
	cfg, err := config.Load(path)
	if err == nil {
		err = cfg.ReadKeys()
	}
	if err != nil {
		d.reporter.log.Errorf("the new configuration was not applied:\n%v", err)
	} else {
		if d.witness {
			cfg = witnessed(cfg)
		}
		d.tasks.post(func() { d.reconfigure(cfg) })
	}
	d.reporter.ready()
}

// reconfigure applies the live keys of a changed configuration. What needs a restart
// keeps its value, and so is told of at each reload until the restart, or until it is
// changed back. What is for the page is told of once.
func (d *Daemon) reconfigure(cfg *config.Config) {
	keysChanged := d.takeKeys(cfg)
	changed := map[string]bool{}
	var applied []string
	for _, key := range d.cfg.Changed(cfg) {
		changed[key] = true
		switch {
		case config.Live(key):
			applied = append(applied, key)
		case config.OfPage(key):
			d.reporter.log.Infof("%s: %s has changed, which is for the page: systemctl restart topdog-page", cfg.Where(key), key)
		default:
			d.reporter.log.Warnf("%s: %s has changed, which needs a restart: systemctl restart topdog", cfg.Where(key), key)
		}
	}
	if len(changed) == 0 && !keysChanged {
		d.reporter.log.Info("read the configuration again; nothing has changed")
	}
	d.cfg.ApplyLive(cfg)
	if len(applied) == 0 {
		return
	}
	d.reporter.log.Logger.SetLevel(cfg.LogLevel)
	d.group.setPeers(d.cfg.Peers)
	if changed["witness"] {
		d.lan.setWitness(cfg.Witness)
	}
	if changed["score_command"] {
		d.checks.replaceScore(cfg.ScoreCommand)
	}
	if changed["check"] || changed["start_grace"] {
		d.checks.configure(cfg)
	}
	if changed["led"] {
		d.light.replace(d.ledOpener())
		d.reporter.solved(console.ProblemLED)
	}
	if d.core != nil {
		d.applyPriority() // a leader whose priority has become 0 hands over
	}
	d.reporter.log.Infof("read the configuration again; changed: %v", applied)
}

// ledOpener returns what opens the configured light.
func (d *Daemon) ledOpener() func() (gpio.LED, error) {
	spec := d.cfg.LED
	return func() (gpio.LED, error) { return d.platform.OpenLED(spec) }
}

// ledFailed is told by the light that it cannot be switched.
func (d *Daemon) ledFailed(err error) {
	d.tasks.tryPost(func() {
		if MissesNoLight(d.cfg.LED, err) {
			d.reporter.solved(console.ProblemLED)
			d.reporter.log.Debug(err)
			return
		}
		d.reporter.warn(console.ProblemLED, err.Error(), forever)
	})
}

// MissesNoLight reports whether a light cannot be opened that this board does not have, and that nobody has asked for: not every board has
// the usual one.
func MissesNoLight(spec gpio.Spec, err error) bool {
	return spec == gpio.Default && (errors.Is(err, gpio.ErrNotFound) || errors.Is(err, gpio.ErrNoGPIO))
}
