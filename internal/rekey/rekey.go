package rekey

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/setup"
	"topdog/wire"
)

// Daemon is what is asked of the board's daemon; console.Client is the real one.
type Daemon interface {
	Keys(ctx context.Context) (console.Keys, error)
	ReloadKeys(ctx context.Context) (console.Done, error)
}

// Board is the board whose keys are changed.
type Board struct {
	KeyFile string
	Daemon  Daemon
	Out     io.Writer     // is told what was done, and who is waited for
	Wait    time.Duration // for so long a step waits for the other boards
	Force   bool          // a step does not wait for anybody

	random io.Reader // nil: crypto/rand
}

// Add adds a new key: the one that came, or a random one if none came.
func (b Board) Add(ctx context.Context, came *config.Keyring) error {
	keys, err := config.LoadKeys(b.KeyFile)
	if err != nil {
		return err
	}
	added, err := b.keyToAdd(keys, came)
	switch {
	case err != nil:
		return err
	case added.IsZero():
		return b.keep(ctx, keys, fmt.Sprintf("this board has the key %v already", came.Signs.Fingerprint()))
	}
	// A daemon that does not run hears nobody, and nobody hears it.
	if err := b.await(ctx, keys, canChange); err != nil && !errors.Is(err, console.ErrNotRunning) {
		return err
	}
	return b.change(ctx, keys, config.Keyring{Signs: keys.Signs, Also: added}, fmt.Sprintf("added the key %v", added.Fingerprint()))
}

// keyToAdd is the key that this board gets; no key if it has those that came.
func (b Board) keyToAdd(has config.Keyring, came *config.Keyring) (config.Key, error) {
	if came == nil {
		if !has.Also.IsZero() {
			return config.Key{}, fmt.Errorf("%s has two keys already, %v: end that change with topdog key first and topdog key drop before you begin another one",
				b.KeyFile, listed(has.Fingerprints()))
		}
		return b.draw(has.Signs)
	}
	added := config.Key{}
	for _, k := range []config.Key{came.Signs, came.Also} {
		if k.IsZero() || has.Fingerprints().Accept(k.Fingerprint()) {
			continue
		}
		if !added.IsZero() {
			return config.Key{}, b.nothingInCommon(has, came)
		}
		added = k
	}
	switch {
	case added.IsZero():
		return added, nil
	case !has.Also.IsZero():
		return added, fmt.Errorf("%s has two keys already, %v, and the key %v that came is a third one: end that change with topdog key first and topdog key drop",
			b.KeyFile, listed(has.Fingerprints()), added.Fingerprint())
	case added.Fingerprint().Mark() == has.Signs.Fingerprint().Mark():
		return added, b.nothingInCommon(has, came)
	}
	return added, nil
}

// nothingInCommon says that the keys that came cannot be added. After two changes a key has the mark again that the
// one before them had.
func (b Board) nothingInCommon(has config.Keyring, came *config.Keyring) error {
	return fmt.Errorf("%s has the key %v, and %v came: they are of another group, or this board has missed two changes. If it is of this group, run on another board of it: topdog init --export | ssh THIS-BOARD sudo topdog init --import --force; then here: systemctl restart topdog",
		b.KeyFile, listed(has.Fingerprints()), listed(came.Fingerprints()))
}

// draw draws keys until one has another mark. That takes two on average.
func (b Board) draw(other config.Key) (config.Key, error) {
	source := b.random
	if source == nil {
		source = rand.Reader
	}
	for {
		key, err := config.NewKey(source)
		if err != nil || key.Fingerprint().Mark() != other.Fingerprint().Mark() {
			return key, err
		}
	}
}

// First has the board sign with a key that it accepts already, the one of that fingerprint. It must be named: "the other
// one" would be the old key when this is repeated, and then Drop would drop the new one.
func (b Board) First(ctx context.Context, fingerprint string) error {
	keys, err := config.LoadKeys(b.KeyFile)
	if err != nil {
		return err
	}
	next := find(keys, fingerprint)
	switch {
	case fingerprint == "" && keys.Also.IsZero():
		return fmt.Errorf("%s has one key only, %v: give it the new one first (topdog key add)", b.KeyFile, keys.Signs.Fingerprint())
	case fingerprint == "":
		return fmt.Errorf("which key? This board signs with %v, and accepts %v: to sign with that one, type topdog key first %[2]v", keys.Signs.Fingerprint(), keys.Also.Fingerprint())
	case !next.IsZero() && next == keys.Signs:
		return b.keep(ctx, keys, fmt.Sprintf("this board signs with the key %s already", fingerprint))
	case next.IsZero():
		return fmt.Errorf("%s has no key %s, it has %v. Give it that key from a board that has it: topdog key export | ssh THIS-BOARD sudo topdog key add --from -",
			b.KeyFile, fingerprint, listed(keys.Fingerprints()))
	}
	if err := b.await(ctx, keys, accepts(next.Fingerprint())); err != nil {
		return err
	}
	return b.change(ctx, keys, config.Keyring{Signs: next, Also: keys.Signs}, fmt.Sprintf("signs with the key %v from now on", next.Fingerprint()))
}

// Drop has the board accept one key only, the one that it signs with. fingerprint names the key that goes,
// and may be "".
func (b Board) Drop(ctx context.Context, fingerprint string) error {
	keys, err := config.LoadKeys(b.KeyFile)
	if err != nil {
		return err
	}
	switch named := find(keys, fingerprint); {
	case !named.IsZero() && named == keys.Signs:
		return fmt.Errorf("this board signs with the key %s: have it sign with the other one first, on all boards (topdog key first)", fingerprint)
	case fingerprint != "" && named.IsZero():
		return b.keep(ctx, keys, fmt.Sprintf("this board has no key %s", fingerprint))
	case keys.Also.IsZero():
		return b.keep(ctx, keys, fmt.Sprintf("%s has one key only, %v", b.KeyFile, keys.Signs.Fingerprint()))
	}
	if err := b.await(ctx, keys, signsWith(keys.Signs.Fingerprint())); err != nil {
		return err
	}
	return b.change(ctx, keys, config.Keyring{Signs: keys.Signs}, fmt.Sprintf("dropped the key %v", keys.Also.Fingerprint()))
}

// find returns the key with that fingerprint, or no key.
func find(keys config.Keyring, fingerprint string) config.Key {
	for _, k := range []config.Key{keys.Signs, keys.Also} {
		if !k.IsZero() && k.Fingerprint().String() == fingerprint {
			return k
		}
	}
	return config.Key{}
}

// Export writes the key file for Add on another board.
func (b Board) Export(out io.Writer) error {
	keys, err := config.LoadKeys(b.KeyFile)
	if err != nil {
		return err
	}
	if _, err := out.Write(keys.Encode()); err != nil {
		return fmt.Errorf("write the keys: %w", err)
	}
	return nil
}

// keep says that the file has what is wanted, and makes sure that the daemon has it too.
func (b Board) keep(ctx context.Context, keys config.Keyring, text string) error {
	if err := b.reload(ctx, keys); err != nil {
		return err
	}
	fmt.Fprintln(b.Out, text+"; nothing was changed")
	return nil
}

// change writes the key file and has the daemon read it. If the daemon does not have the keys then, the file is put back.
func (b Board) change(ctx context.Context, from, to config.Keyring, text string) error {
	unlock, err := lock(b.KeyFile)
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := config.LoadKeys(b.KeyFile); err != nil || now != from {
		return errors.Join(err, fmt.Errorf("%s was changed meanwhile: look at topdog key show, and try again", b.KeyFile))
	}
	if err := setup.ReplaceKeys(b.KeyFile, to); err != nil {
		return err
	}
	if err := b.reload(ctx, to); err != nil {
		return errors.Join(fmt.Errorf("the daemon did not take the keys, so the file is as it was: %w", err), setup.ReplaceKeys(b.KeyFile, from))
	}
	fmt.Fprintln(b.Out, text)
	return nil
}

// reload has the daemon read the file, and looks whether it has these keys then. What counts is what it has: its answer
// may have been lost, and it may read another file. One that does not run reads the file when it starts.
func (b Board) reload(ctx context.Context, want config.Keyring) error {
	_, err := b.Daemon.ReloadKeys(ctx)
	if errors.Is(err, console.ErrNotRunning) {
		fmt.Fprintln(b.Out, "the daemon does not run; it reads the key file when it starts")
		return nil
	}
	has, asked := b.Daemon.Keys(context.WithoutCancel(ctx))
	switch {
	case asked == nil && same(&has, want):
		return nil
	case err != nil:
		return err
	case asked != nil:
		return asked
	}
	return fmt.Errorf("it has other keys than %s: it signs with %s%s; look at its log, and at key_file in its configuration", b.KeyFile, has.SignsWith, also(has.AlsoAccepts))
}

// same reports whether a daemon has these keys.
func same(has *console.Keys, want config.Keyring) bool {
	k := want.Fingerprints()
	return has.SignsWith == text(k.Signs) && has.AlsoAccepts == text(k.Also)
}

// listed names keys: "030d726e and cc94506b".
func listed(k wire.Keys) string {
	if k.Also == 0 {
		return k.Signs.String()
	}
	return k.Signs.String() + " and " + k.Also.String()
}
