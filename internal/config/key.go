package config

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"topdog/wire"
)

// MaxKeyFileBytes leaves room for comments around 130 bytes of keys.
const MaxKeyFileBytes = 4 << 10

// Key is the secret that the boards of a group share. However it is printed or
// marshalled, it shows only its fingerprint. The zero Key is no key.
type Key struct{ secret [wire.KeySize]byte }

// NewKey draws a key.
func NewKey() (k Key) {
	rand.Read(k.secret[:]) // it never fails: without randomness it ends the program
	return k
}

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k == Key{} }

// Fingerprint returns the number by which people and other boards know the key, or 0 if k is no key.
func (k Key) Fingerprint() wire.Fingerprint {
	if k.IsZero() {
		return 0
	}
	return wire.FingerprintOf(k.secret[:])
}

// String returns the fingerprint in words, never the key.
func (k Key) String() string {
	if k.IsZero() {
		return "no key"
	}
	return "key " + k.Fingerprint().String()
}

// Format implements fmt.Formatter: without it, %d and %x would print the secret.
func (k Key) Format(state fmt.State, _ rune) { io.WriteString(state, k.String()) }

// MarshalText implements encoding.TextMarshaler, for JSON and loggers.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// line returns the line of the key in a file. It contains the secret.
func (k Key) line() string { return hex.EncodeToString(k.secret[:]) + "\n" }

// Keyring holds the keys of a group: one, or two while the group changes its key.
// The zero Keyring has none.
type Keyring struct {
	Signs Key // signs what the board sends
	Also  Key // is accepted as well; no key if there is only one
}

// Secrets returns copies of the secrets, the one that signs first.
func (r Keyring) Secrets() (all [][]byte) {
	for _, k := range []Key{r.Signs, r.Also} {
		if !k.IsZero() {
			all = append(all, k.secret[:])
		}
	}
	return all
}

// Fingerprints returns the fingerprints of the keys.
func (r Keyring) Fingerprints() wire.Keys {
	return wire.Keys{Signs: r.Signs.Fingerprint(), Also: r.Also.Fingerprint()}
}

// Encode returns the content of a key file. It contains the secrets.
func (r Keyring) Encode() []byte {
	if r.Also.IsZero() {
		return []byte("# The key of a topdog group. Every board of the group has the same one.\n" +
			"# Keep it secret: whoever has it can take the address.\n" + r.Signs.line())
	}
	return []byte("# The keys of a topdog group that changes its key (topdog key show). The first one\n" +
		"# signs, and both are accepted. Keep them secret: whoever has one can take the address.\n" +
		r.Signs.line() + r.Also.line())
}

// LoadKeys reads the keys of the group from the file at path. The file has one line of 64
// hexadecimal digits, or two such lines while the group changes its key, and perhaps comment lines
// that begin with #. Group and others must have no access to it, and no stranger may be
// able to replace it. The error is an [Errors]; it never contains a key or a part of one.
func LoadKeys(path string) (Keyring, error) {
	fail := func(err error, message, hint string) (Keyring, error) {
		return Keyring{}, Errors{{File: path, Message: message, Hint: hint, err: err}}
	}
	data, info, err := ReadSmall(path, MaxKeyFileBytes)
	// The mode comes first: whatever else is wrong, a key that others could read must be replaced.
	if info != nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return fail(nil, fmt.Sprintf("the key file has mode %04o, so other users may get at the key", info.Mode().Perm()),
			"run: chmod 600 "+ShellQuote(path))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(err, "there is no key file",
			"copy the key of another board to this path, or make one with `topdog init ADDRESS`; "+
				`to run without authentication write key_file = "none"`)
	case errors.Is(err, fs.ErrPermission):
		return fail(err, "cannot read the key file: "+bare(err), "run topdog as root, or as the user who owns the file")
	case err != nil:
		return fail(err, "cannot read the key file: "+bare(err), keyHint)
	}
	if bad := distrusted(path, "the key is not used", trusted(path, info, keyOwners()...)); bad != nil {
		return Keyring{}, bad
	}
	return ParseKeys(path, data)
}

const keyHint = "copy the file from a board that works, or make a new key with `topdog init` and copy it to all boards"

// ParseKeys reads the content of a key file called name.
func ParseKeys(name string, data []byte) (Keyring, error) {
	var ring Keyring
	first, second := 0, 0 // the lines of the keys
	fail := func(line, column int, format string, args ...any) (Keyring, error) {
		return Keyring{}, Errors{{File: name, Line: line, Column: column, Message: fmt.Sprintf(format, args...), Hint: keyHint}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for i, text := range strings.Split(string(data), "\n") {
		line := i + 1
		content := strings.TrimSpace(text)
		column := 1 + len(text) - len(strings.TrimLeft(text, " \t\r"))
		switch {
		case content == "" || content[0] == '#':
		case second > 0:
			return fail(line, column, "a key file holds two keys at most, and they were on the lines %d and %d", first, second)
		default:
			k, wrong, at := decodeHexKey(content)
			switch {
			case wrong != "":
				return fail(line, column+at, "%s", wrong)
			case first == 0:
				ring.Signs, first = k, line
			case k == ring.Signs:
				return fail(line, column, "this key is that of line %d", first)
			case k.Fingerprint().Mark() == ring.Signs.Fingerprint().Mark():
				return fail(line, column, "this key has the same mark as that of line %d, "+
					"so boards could not tell which of the two a packet is signed with", first)
			default:
				ring.Also, second = k, line
			}
		}
	}
	if first == 0 {
		return fail(1, 1, "there is no key in this file, only comments and empty lines")
	}
	return ring, nil
}

// decodeHexKey reads a key. If the text is not a key, it says what is wrong and where (in bytes), and repeats nothing of
// the text.
func decodeHexKey(text string) (k Key, wrong string, at int) {
	odd := func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }
	if i := strings.IndexFunc(text, odd); i >= 0 {
		return Key{}, "the key contains something that is not a hexadecimal digit (0-9, a-f)", i
	}
	const digits = 2 * wire.KeySize
	if len(text) != digits {
		return Key{}, fmt.Sprintf("the key has %d hexadecimal digits instead of %d", len(text), digits), min(len(text), digits)
	}
	if _, err := hex.Decode(k.secret[:], []byte(text)); err != nil {
		return Key{}, "the key is not hexadecimal", 0
	}
	if k.IsZero() {
		return Key{}, "the key is all zeros, which is not a secret", 0
	}
	return k, "", 0
}
