package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sort"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// keysRemembered is for how long it is known which keys a board has told of that is silent. A board
// that was off for longer is one that nobody waits for.
const keysRemembered = 24 * time.Hour

// sighting is when a board was heard last, and what it has told of itself.
type sighting struct {
	first, at time.Duration // for the first time, and the last
	addr      netip.Addr
	// byHolder says that its last message was the RESIGN of its holder: its daemon has ended, or stands still.
	byHolder bool
	name     string
	// program is the version of its program, and settings are those that it has told.
	program  string
	settings wire.Settings
	keys     wire.Keys        // zero until it has told
	key      wire.Fingerprint // that has verified its last message
}

// sightings are those of the boards that were heard since the daemon started. The roster of the
// core is none: it begins anew when this board gets another id.
type sightings map[wire.ID]*sighting

// note enters a message that was accepted, and reports whether it tells another name or other settings than before.
// port is that of the group: the holder sends from another one.
func (s sightings) note(now time.Duration, m *wire.Message, from netip.AddrPort, port uint16) (news bool) {
	seen, ok := s[m.Sender]
	if !ok {
		if len(s) >= wire.MaxBoards {
			s.forgetOldest()
		}
		seen = &sighting{first: now}
		s[m.Sender] = seen
	}
	seen.at, seen.addr, seen.key = now, from.Addr(), m.Key
	seen.byHolder = m.Type == wire.TypeResign && from.Port() != port
	if m.Type == wire.TypeHello {
		if news = seen.name != m.Hello.Name || !seen.settings.Equal(m.Hello.Settings); news {
			seen.settings = m.Hello.Settings.Clone() // the message is used again
		}
		seen.name, seen.keys, seen.program = m.Hello.Name, m.Hello.Keys, m.Hello.Program
	}
	return news
}

func (s sightings) forgetOldest() {
	var oldest wire.ID
	var at time.Duration
	found := false
	for id, seen := range s {
		if !found || seen.at < at {
			oldest, at, found = id, seen.at, true
		}
	}
	delete(s, oldest)
}

// keep forgets the boards that were heard last with another key than these. Whoever has that key may have made them
// up, and a change of the key would wait for them for a day. One that lives is soon heard again.
func (s sightings) keep(keys wire.Keys) {
	for id, seen := range s {
		if !keys.Accept(seen.key) {
			delete(s, id)
		}
	}
}

// Keys returns which keys this board and the others accept.
func (d *Daemon) Keys(ctx context.Context) (console.Keys, error) {
	var k console.Keys
	err := d.tasks.call(ctx, func() { k = d.keys(d.now()) })
	return k, err
}

func (d *Daemon) keys(now time.Duration) console.Keys {
	k := console.Keys{RunningNs: int64(now - d.started), Boards: []console.BoardKeys{}}
	k.SignsWith, k.AlsoAccepts = fingerprints(d.group.codec.Keys())
	for id, seen := range d.group.sightings {
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

// ReloadKeys reads the key file again. The file is read beside the loop: a disk may take its time.
func (d *Daemon) ReloadKeys(ctx context.Context) (console.Done, error) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	var file string
	if err := d.tasks.call(ctx, func() { file = d.cfg.KeyFile }); err != nil {
		return console.Done{}, err
	}
	if file == config.NoKey {
		return console.Done{}, errors.New(`this board has no key: its configuration says key_file = "none"`)
	}
	keys, err := config.LoadKeys(file)
	if err != nil {
		return console.Done{}, err
	}
	var refused error
	err = d.tasks.call(ctx, func() { refused = d.changeKeys(keys) })
	if err = errors.Join(err, refused); err != nil {
		return console.Done{}, err
	}
	return console.Done{Text: "this board " + describeKeys(keys.Fingerprints())}, nil
}

// takeKeys takes over what a configuration that was read again says of the keys, and reports whether
// something has changed. What cannot be taken over while the daemon runs is told, and left out of the configuration.
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

// changeKeys has this board sign with and accept other keys from now on. The key that it signs with
// must be among them: the others may not accept another one yet, and then there would be two leaders.
func (d *Daemon) changeKeys(keys config.Keyring) error {
	signs := d.cfg.Keys.Signs.Fingerprint()
	switch {
	case keys == d.cfg.Keys:
		return nil
	case !keys.Fingerprints().Accept(signs):
		return fmt.Errorf("the key %v, with which this board signs, is not in the key file any more: put it back (topdog key show), or restart the daemon, which moves the address if this board leads", signs)
	}
	codec, err := wire.NewCodec(d.cfg.Group, keys.Secrets()...)
	if err != nil {
		return err
	}
	gone := d.cfg.Keys.Fingerprints().Also // the one that signs has just been found to stay
	d.cfg.Keys = keys
	d.group.setCodec(codec)
	d.reporter.log.Infof("%s", describeKeys(codec.Keys()))
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
