package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"topdog/wire"
)

// MaxKeyFileBytes leaves room for comments around 65 bytes of key.
const MaxKeyFileBytes = 4 << 10

// Key is the secret that the boards of a group share. However it is printed or
// marshalled, it shows only its fingerprint. The zero Key is no key.
type Key struct{ secret [wire.KeySize]byte }

// NewKey draws a key from rand, which must be crypto/rand.Reader except in tests.
func NewKey(rand io.Reader) (Key, error) {
	var k Key
	if _, err := io.ReadFull(rand, k.secret[:]); err != nil {
		return Key{}, fmt.Errorf("cannot draw a random key: %w", err)
	}
	if k.IsZero() {
		return Key{}, fmt.Errorf("cannot draw a random key: the source of randomness gives zeros")
	}
	return k, nil
}

// Bytes returns a copy of the secret; nil if k is no key.
func (k Key) Bytes() []byte {
	if k.IsZero() {
		return nil
	}
	return k.secret[:]
}

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k == Key{} }

// fingerprint returns eight hexadecimal digits by which people can see whether
// two boards have the same key. It is a hash (with a prefix that nothing else
// in topdog uses) of 256 random bits, so it tells nothing about them.
func (k Key) fingerprint() string {
	sum := sha256.Sum256(append([]byte("topdog key fingerprint\x00"), k.secret[:]...))
	return hex.EncodeToString(sum[:4])
}

// String returns the fingerprint in words, never the key.
func (k Key) String() string {
	if k.IsZero() {
		return "no key"
	}
	return "key " + k.fingerprint()
}

// Format implements fmt.Formatter: without it, %d and %x would print the secret.
func (k Key) Format(state fmt.State, _ rune) { io.WriteString(state, k.String()) }

// MarshalText implements encoding.TextMarshaler, for JSON and loggers.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Encode returns the content of a key file. It contains the secret.
func (k Key) Encode() []byte {
	return []byte("# The key of a topdog group. Every board of the group has the same one.\n" +
		"# Keep it secret: whoever has it can take the address.\n" +
		hex.EncodeToString(k.secret[:]) + "\n")
}

// LoadKey reads the group key from the file at path: 64 hexadecimal digits on
// one line, and if you like comment lines that begin with #. The file must not
// be accessible to group or others. The error is an [Errors]; it never contains
// the key or a part of it.
func LoadKey(path string) (Key, error) {
	fail := func(err error, message, hint string) (Key, error) {
		return Key{}, Errors{{File: path, Message: message, Hint: hint, err: err}}
	}
	data, info, err := ReadSmall(path, MaxKeyFileBytes)
	// The mode is looked at first: a key that others may read is to be
	// replaced, whatever is in it.
	if info != nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return fail(nil, fmt.Sprintf("the key file has mode %04o, so other users may get at the key", info.Mode().Perm()),
			"run: chmod 600 "+ShellQuote(path))
	}
	switch {
	case isNotExist(err):
		return fail(err, "there is no key file", "copy the key of another board to this path, or make one with `topdog init ADDRESS`; "+
			`to run without authentication write key_file = "none"`)
	case isPermission(err):
		return fail(err, "cannot read the key file: "+bare(err), "run topdog as root, or as the user who owns the file")
	case err != nil:
		return fail(err, "cannot read the key file: "+bare(err), keyHint)
	}
	return ParseKey(path, data)
}

const keyHint = "copy the file from a board that works, or make a new key with `topdog init` and copy it to all boards"

// ParseKey reads the content of a key file called name.
func ParseKey(name string, data []byte) (Key, error) {
	var key Key
	found := 0 // the line of the key
	fail := func(line, column int, format string, args ...any) (Key, error) {
		return Key{}, Errors{{File: name, Line: line, Column: column, Message: fmt.Sprintf(format, args...), Hint: keyHint}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for i, text := range strings.Split(string(data), "\n") {
		line := i + 1
		content := strings.TrimSpace(text)
		column := 1 + len(text) - len(strings.TrimLeft(text, " \t\r"))
		switch {
		case content == "" || content[0] == '#':
		case found > 0:
			return fail(line, column, "a key file holds one key, and it was on line %d", found)
		default:
			k, err := decodeHexKey(content)
			if err != nil {
				return fail(line, column+err.at, "%s", err.message)
			}
			key, found = k, line
		}
	}
	if found == 0 {
		return fail(1, 1, "there is no key in this file, only comments and empty lines")
	}
	return key, nil
}

// badKey says what is wrong with a key, without a word about what is in it.
type badKey struct {
	message string
	at      int // in bytes from the start of the text
}

func decodeHexKey(text string) (Key, *badKey) {
	for i := range len(text) {
		if !isHexDigit(text[i]) {
			return Key{}, &badKey{"the key contains something that is not a hexadecimal digit (0-9, a-f)", i}
		}
	}
	if len(text) != 2*wire.KeySize {
		return Key{}, &badKey{fmt.Sprintf("the key has %d hexadecimal digits instead of %d", len(text), 2*wire.KeySize), min(len(text), 2*wire.KeySize)}
	}
	var k Key
	if _, err := hex.Decode(k.secret[:], []byte(text)); err != nil {
		return Key{}, &badKey{"the key is not hexadecimal", 0}
	}
	if k.IsZero() {
		return Key{}, &badKey{"the key is all zeros, which is not a secret", 0}
	}
	return k, nil
}
