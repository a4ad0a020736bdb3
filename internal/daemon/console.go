package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"time"

	"topdog/gpio"
	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// Keys returns which keys this board and the others accept.
func (d *Daemon) Keys(ctx context.Context) (console.Keys, error) {
	var k console.Keys
	err := d.tasks.call(ctx, func() error { k = d.keys(d.now()); return nil })
	return k, err
}

func (d *Daemon) keys(now time.Duration) console.Keys {
	k := console.Keys{RunningNs: int64(now - d.started), Boards: []console.BoardKeys{}}
	k.SignsWith, k.AlsoAccepts = fingerprints(d.group.codec.Keys())
	for id, seen := range d.group.boards {
		if now-seen.at > keysRemembered {
			continue
		}
		b := console.BoardKeys{ID: id.String(), Name: seen.name, Address: addrText(seen.addr), HeardNs: int64(now - seen.at)}
		b.Live = d.core != nil && d.hears(id, now)
		b.SignsWith, b.AlsoAccepts = fingerprints(seen.keys)
		k.Boards = append(k.Boards, b)
	}
	sort.Slice(k.Boards, func(i, j int) bool {
		a, b := &k.Boards[i], &k.Boards[j]
		return cmp.Or(cmp.Compare(a.HeardNs, b.HeardNs), cmp.Compare(a.ID, b.ID)) < 0
	})
	return k
}

// fingerprints returns those of keys as texts, "" for none.
func fingerprints(k wire.Keys) (signs, also string) {
	if k.Signs != 0 {
		signs = k.Signs.String()
	}
	if k.Also != 0 {
		also = k.Also.String()
	}
	return signs, also
}

// ReloadKeys reads the key file again, outside of the loop: a disk may take its time.
func (d *Daemon) ReloadKeys(ctx context.Context) (console.Done, error) {
	d.board.reloading.Lock()
	defer d.board.reloading.Unlock()
	var file string
	if err := d.tasks.call(ctx, func() error { file = d.cfg.KeyFile; return nil }); err != nil {
		return console.Done{}, err
	}
	if file == config.NoKey {
		return console.Done{}, errors.New(`this board has no key: its configuration says key_file = "none"`)
	}
	keys, err := config.LoadKeys(file)
	if err != nil {
		return console.Done{}, err
	}
	if err := d.tasks.call(ctx, func() error { return d.changeKeys(keys) }); err != nil {
		return console.Done{}, err
	}
	return console.Done{Text: "this board " + describeKeys(keys.Fingerprints())}, nil
}

// takeKeys takes over the keys of a configuration that was read again, and reports whether something has changed. What
// cannot be taken over while the daemon runs is logged, and left out of the configuration.
func (d *Daemon) takeKeys(cfg *config.Config) (changed bool) {
	var refused error
	if before := d.cfg.Keys; (cfg.KeyFile == config.NoKey) != (d.cfg.KeyFile == config.NoKey) {
		refused = errors.New("it takes a restart to begin or to end without a key: systemctl restart topdog, on all boards at once")
	} else if refused = d.changeKeys(cfg.Keys); refused == nil {
		return cfg.Keys != before
	}
	d.reporter.log.Warnf("%s: the keys were not applied: %v", cfg.Where("key_file"), refused)
	cfg.KeyFile, cfg.Keys = d.cfg.KeyFile, d.cfg.Keys
	return false
}

// changeKeys has this board sign with and accept other keys from now on. The key that it signs with must be among them: the
// others may not accept another one yet, and then there would be two leaders.
func (d *Daemon) changeKeys(keys config.Keyring) error {
	signs := d.cfg.Keys.Signs.Fingerprint()
	switch {
	case keys == d.cfg.Keys:
		return nil
	case !keys.Fingerprints().Accept(signs):
		return fmt.Errorf("the key %v, with which this board signs, is not in the key file any more: put it back (topdog key show), "+
			"or restart the daemon, which moves the address if this board leads", signs)
	}
	var codecs []*wire.Codec
	for _, path := range d.paths() {
		codec, err := wire.NewCodec(path.name, keys.Secrets()...)
		if err != nil {
			return err
		}
		codecs = append(codecs, codec)
	}
	gone := d.cfg.Keys.Fingerprints().Also // the one that signs has just been found to stay
	d.cfg.Keys = keys
	for i, path := range d.paths() {
		path.setCodec(codecs[i])
	}
	d.reporter.log.Infof("%s", describeKeys(d.group.codec.Keys()))
	if d.core != nil {
		if gone != 0 && !keys.Fingerprints().Accept(gone) {
			d.carryOut(d.core.KeyDropped(d.now(), gone))
		}
		d.applyPriority() // which tells the others of this board, and so of its keys
	}
	return nil
}

// describeKeys says with which key a board signs, and which one it accepts.
func describeKeys(k wire.Keys) string {
	text := fmt.Sprintf("signs with the key %v", k.Signs)
	if k.Also != 0 {
		text += fmt.Sprintf(", and accepts the key %v as well", k.Also)
	}
	return text
}

// takeConfig applies a configuration that was read again.
func (d *Daemon) takeConfig(cfg *config.Config) {
	if d.witness {
		cfg = witnessed(cfg)
	}
	d.tasks.post(func() { d.reconfigure(cfg) })
}

// reconfigure applies the live keys of a changed configuration. What needs a restart keeps its value, and so is logged at
// each reload until the restart, or until it is changed back. What is for the page is logged once.
func (d *Daemon) reconfigure(cfg *config.Config) {
	keysChanged := d.takeKeys(cfg)
	changed := d.cfg.Changed(cfg)
	if len(changed) == 0 && !keysChanged {
		d.reporter.log.Info("read the configuration again; nothing has changed")
	}
	var applied []string
	for _, key := range changed {
		switch {
		case config.Live(key):
			applied = append(applied, key)
		case config.OfBoard(key) && d != d.board.daemons[0]: // it has said so
		case config.OfPage(key):
			d.reporter.log.Infof("%s: %s has changed, which is for the page: systemctl restart topdog-page", cfg.Where(key), key)
		default:
			d.reporter.log.Warnf("%s: %s has changed, which needs a restart: systemctl restart topdog", cfg.Where(key), key)
		}
	}
	d.cfg.ApplyLive(cfg)
	if len(applied) == 0 {
		return
	}
	d.reporter.log.Logger.SetLevel(cfg.LogLevel)
	d.group.setPeers(d.cfg.Peers)
	d.lan.setWitness(cfg.Witness)
	d.checks.configure(cfg)
	if slices.Contains(applied, "led") {
		d.light.Use(d.ledOpener())
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
		d.reporter.set(console.ProblemLED, err.Error())
	})
}

// MissesNoLight reports whether a light that cannot be opened is one that this board does not have and that nobody has asked
// for: not every board has the usual one.
func MissesNoLight(spec gpio.Spec, err error) bool {
	return spec == gpio.Default && (errors.Is(err, gpio.ErrNotFound) || errors.Is(err, gpio.ErrNoGPIO))
}

// Try runs the checks of a configuration once, in the process that runs the daemon's checks. These go on meanwhile.
func (d *Daemon) Try(ctx context.Context, asked console.TryRequest) (tried console.Tried, err error) {
	if len(asked.Config) > config.MaxFileBytes {
		return tried, console.Refuse(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the configuration has %d bytes, and a file has %d at most", len(asked.Config), config.MaxFileBytes), "")
	}
	groups, err := config.ParseGroups(asked.File, []byte(asked.Config))
	var cfg *config.Config
	if len(groups) > 0 {
		if cfg = groups.First(); cfg.Several {
			cfg = groups.Named(d.cfg.Group) // which nobody changes while the daemon runs
		}
	}
	switch {
	case err != nil:
		return tried, console.Refuse(http.StatusBadRequest,
			"the daemon, which may be of another version, does not take this configuration: "+err.Error(), "")
	case cfg == nil:
		return tried, console.Refuse(http.StatusBadRequest, "this configuration has no group "+d.cfg.Group, "systemctl restart topdog, and it has the groups of this configuration")
	case d.platform.Checker == nil:
		return tried, console.Refuse(http.StatusNotImplemented, "this daemon runs no checks", "try them on a board that may lead")
	case !d.trying.TryLock(): // one at a time is enough for people
		return tried, console.Refuse(http.StatusServiceUnavailable, "checks are being tried already", "try again when that is over")
	}
	defer d.trying.Unlock()
	d.tasks.tryPost(func() {
		d.reporter.log.Infof("trying the checks of %q once, as root has asked", asked.File)
	})
	reasons, err := d.platform.Checker.Try(ctx, CheckOrder(cfg))
	tried.Checks = []console.TriedCheck{}
	for i, reason := range reasons {
		tried.Checks = append(tried.Checks, console.TriedCheck{NameText: cfg.Checks[i].String(), Passing: reason == "", Text: reason})
	}
	return tried, err
}

// CheckOrder returns the order to run the checks of a configuration.
func CheckOrder(cfg *config.Config) check.Order {
	o := check.Order{Checks: cfg.Checks, Floating: slices.Concat(ipsOf(cfg.Addresses), cfg.OtherAddresses), Interface: cfg.Interface}
	if first := cfg.FirstIPv4(); o.Interface == "" && first.IsValid() {
		found, _ := netio.FindInterface(first) // if there is none, a check of the gateway says so
		o.Interface = found.Name
	}
	return o
}

// Trace returns the course of the last changes of role, the newest first.
func (d *Daemon) Trace(ctx context.Context) (t console.Trace, err error) {
	err = d.tasks.call(ctx, func() error {
		t = console.Trace{
			Board: idText(d.group.self), Name: d.cfg.Name, Clock: console.ClockBoottime, NowNs: int64(d.now()),
			Changes: d.trace.changes(),
		}
		return nil
	})
	return t, err
}

// Scene returns what the core was told lately, and what it did then.
func (d *Daemon) Scene(ctx context.Context) (s console.Scene, err error) {
	err = d.tasks.call(ctx, func() error {
		text := fmt.Appendf(nil, "# What %s (%s) of the group %s was told, and what it did; program: topdog %s.\n"+
			"# This has the names and addresses of the boards, and no key. topdog sim play FILE plays it again.\n",
			d.cfg.Name, idText(d.group.self), d.cfg.Group, d.version)
		s.Text = string(append(text, d.recording.Text()...))
		return nil
	})
	return s, err
}
