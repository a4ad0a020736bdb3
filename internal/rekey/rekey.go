// Package rekey changes the key of a group on one board, while the address stays where it is.
//
// Each step is done on all boards before the next one begins:
//
//	add     the board accepts the new key as well
//	first   it signs with the new key, which all boards accept by then
//	drop    it accepts the new key only, with which all boards sign by then
//
// A step changes the key file and has the daemon read it. The daemon knows whether the step before was done on all boards,
// since every board tells which keys it accepts. Each step but the last can be undone in the same way, because both keys
// are accepted meanwhile.
//
// The new key goes from one board to another by ssh, never by the group's own packets: a thief of the old key could read
// it there.
package rekey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/setup"
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
	Out     io.Writer     // is told what was done, and which boards a step waits for
	Wait    time.Duration // how long a step waits for the other boards
	Force   bool          // a step waits for no board
}

// Add adds a new key: the one that came, or a random one if none came.
func (b Board) Add(ctx context.Context, came *config.Keyring) error {
	has, err := config.LoadKeys(b.KeyFile)
	if err != nil {
		return err
	}
	added, err := b.keyToAdd(has, came)
	switch {
	case err != nil:
		return err
	case added.IsZero():
		return b.keep(ctx, has, fmt.Sprintf("this board has the key %v already", came.Signs.Fingerprint()))
	}
	// A daemon that does not run hears no board, and no board hears it.
	if err := b.await(ctx, has, canChange); err != nil && !errors.Is(err, console.ErrNotRunning) {
		return err
	}
	return b.change(ctx, has, config.Keyring{Signs: has.Signs, Also: added}, fmt.Sprintf("added the key %v", added.Fingerprint()))
}

// keyToAdd is the key that this board gets; no key if it has those that came.
func (b Board) keyToAdd(has config.Keyring, came *config.Keyring) (added config.Key, err error) {
	if came == nil {
		if !has.Also.IsZero() {
			return added, fmt.Errorf("%s has two keys already, %v: end that change with topdog key first and topdog key drop before you begin another one",
				b.KeyFile, listed(has))
		}
		return draw(has.Signs), nil
	}
	// A new key has the other mark, so after two changes the key has the mark again that it had before them.
	nothingInCommon := fmt.Errorf("%s has the key %v, and %v came: they are of another group, or this board has missed two changes. "+
		"If it is of this group, run on another board of it: topdog init --export | ssh THIS-BOARD sudo topdog init --import --force; then here: systemctl restart topdog",
		b.KeyFile, listed(has), listed(*came))
	for _, k := range []config.Key{came.Signs, came.Also} {
		if k.IsZero() || has.Fingerprints().Accept(k.Fingerprint()) {
			continue
		}
		if !added.IsZero() {
			return added, nothingInCommon
		}
		added = k
	}
	switch {
	case added.IsZero():
		return added, nil
	case !has.Also.IsZero():
		return added, fmt.Errorf("%s has two keys already, %v, and the key %v that came is a third one: end that change with topdog key first and topdog key drop",
			b.KeyFile, listed(has), added.Fingerprint())
	case added.Fingerprint().Mark() == has.Signs.Fingerprint().Mark():
		return added, nothingInCommon
	}
	return added, nil
}

// draw draws keys until one has another mark. That takes two on average.
func draw(other config.Key) config.Key {
	for {
		key := config.NewKey()
		if key.Fingerprint().Mark() != other.Fingerprint().Mark() {
			return key
		}
	}
}

// First has the board sign with a key that it accepts already, the one of that fingerprint. The key must be named: "the
// other one" would be the old key when this is repeated, and then Drop would drop the new one.
func (b Board) First(ctx context.Context, fingerprint string) error {
	has, err := config.LoadKeys(b.KeyFile)
	if err != nil {
		return err
	}
	next := find(has, fingerprint)
	switch {
	case fingerprint == "" && has.Also.IsZero():
		return fmt.Errorf("%s has one key only, %v: give it the new one first (topdog key add)",
			b.KeyFile, has.Signs.Fingerprint())
	case fingerprint == "":
		return fmt.Errorf("which key? This board signs with %v, and accepts %v: to sign with that one, type topdog key first %[2]v",
			has.Signs.Fingerprint(), has.Also.Fingerprint())
	case !next.IsZero() && next == has.Signs:
		return b.keep(ctx, has, fmt.Sprintf("this board signs with the key %s already", fingerprint))
	case next.IsZero():
		return fmt.Errorf("%s has no key %s, it has %v. Give it that key from a board that has it: topdog key export | ssh THIS-BOARD sudo topdog key add --from -",
			b.KeyFile, fingerprint, listed(has))
	}
	if err := b.await(ctx, has, accepts(next.Fingerprint())); err != nil {
		return err
	}
	return b.change(ctx, has, config.Keyring{Signs: next, Also: has.Signs}, fmt.Sprintf("signs with the key %v from now on", next.Fingerprint()))
}

// Drop has the board accept only the key that it signs with. fingerprint names the key that goes, and may be "".
func (b Board) Drop(ctx context.Context, fingerprint string) error {
	has, err := config.LoadKeys(b.KeyFile)
	if err != nil {
		return err
	}
	switch named := find(has, fingerprint); {
	case !named.IsZero() && named == has.Signs:
		return fmt.Errorf("this board signs with the key %s: have it sign with the other one first, on all boards (topdog key first)",
			fingerprint)
	case fingerprint != "" && named.IsZero():
		return b.keep(ctx, has, fmt.Sprintf("this board has no key %s", fingerprint))
	case has.Also.IsZero():
		return b.keep(ctx, has, fmt.Sprintf("%s has one key only, %v", b.KeyFile, has.Signs.Fingerprint()))
	}
	if err := b.await(ctx, has, signsWith(has.Signs.Fingerprint())); err != nil {
		return err
	}
	return b.change(ctx, has, config.Keyring{Signs: has.Signs}, fmt.Sprintf("dropped the key %v", has.Also.Fingerprint()))
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

// keep says that the file is as wanted, and makes sure that the daemon has its keys too.
func (b Board) keep(ctx context.Context, keys config.Keyring, text string) error {
	if err := b.reload(ctx, keys); err != nil {
		return err
	}
	fmt.Fprintln(b.Out, text+"; nothing was changed")
	return nil
}

// change writes the key file and has the daemon read it. If the daemon has other keys afterwards, it did not take these, and
// the file is put back.
func (b Board) change(ctx context.Context, from, to config.Keyring, text string) error {
	if err := b.replace(from, to); err != nil {
		return err
	}
	if err := b.reload(ctx, to); err != nil {
		if failed := b.replace(to, from); failed != nil {
			return errors.Join(fmt.Errorf("the daemon did not take the keys: %w", err), failed)
		}
		return fmt.Errorf("the daemon did not take the keys, so the file is as it was: %w", err)
	}
	fmt.Fprintln(b.Out, text)
	return nil
}

// replace replaces the keys of the file, unless the file has other keys by now. If several processes do this at the same
// time, one succeeds: the one that locks the file. Only those who may read the key can open the file, so nobody else can
// hold the lock for ever.
func (b Board) replace(from, to config.Keyring) error {
	opened, err := os.Open(b.KeyFile)
	if err != nil {
		return err
	}
	defer opened.Close()
	if err := unix.Flock(int(opened.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("somebody else changes %s at this moment: try again", b.KeyFile)
	} else if err != nil {
		return fmt.Errorf("lock %s: %w", b.KeyFile, err)
	}
	now, err := config.LoadKeys(b.KeyFile)
	mine, mineErr := opened.Stat()
	there, thereErr := os.Stat(b.KeyFile)
	if err = errors.Join(err, mineErr, thereErr); err != nil || now != from || !os.SameFile(mine, there) {
		return errors.Join(err, fmt.Errorf("%s was changed meanwhile: look at topdog key show, and try again", b.KeyFile))
	}
	return setup.ReplaceKeys(b.KeyFile, to)
}

// reload has the daemon read the file, and checks that it has these keys afterwards. Its answer to the request does not
// count: that may have been lost, and the daemon may read another file. A daemon that does not run reads the file when it
// starts.
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
	return fmt.Errorf("it has other keys than %s: it signs with %s%s; look at its log, and at key_file in its configuration",
		b.KeyFile, has.SignsWith, also(has.AlsoAccepts))
}

// same reports whether a daemon has these keys.
func same(has *console.Keys, want config.Keyring) bool {
	signs, also := texts(want)
	return has.SignsWith == signs && has.AlsoAccepts == also
}

// listed names keys: "030d726e and cc94506b".
func listed(keys config.Keyring) string {
	signs, also := texts(keys)
	return strings.TrimSuffix(signs+" and "+also, " and ")
}

// texts returns the fingerprints of keys for people; "" for no key.
func texts(keys config.Keyring) (signs, also string) {
	if !keys.Also.IsZero() {
		also = keys.Also.Fingerprint().String()
	}
	return keys.Signs.Fingerprint().String(), also
}
