package config

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The names of the files that Init makes.
const (
	configName = "topdog.toml"
	keyName    = "key"
)

// InitOptions says how Init should differ from its defaults.
type InitOptions struct {
	Interface string    // written into the file if not ""
	Group     string    // written into the file if not ""
	LED       string    // written into the file if not ""
	NoKey     bool      // write key_file = "none" and no key
	Force     bool      // replace the files that exist, the key too: then every board needs the new one
	Rand      io.Reader // where the key comes from; nil means crypto/rand.Reader
}

// Initialized is what Init did.
type Initialized struct {
	ConfigPath string
	KeyPath    string // "" with NoKey
	KeyIsNew   bool   // false if a good key was there and has been kept
	Key        string // the key's fingerprint, as Key.String gives it; "" with NoKey
}

// Check finds out whether Init would take an address and these options, without
// looking at any file. An address that is still to be asked for is "".
func (opts InitOptions) Check(address string) error {
	// Of RFC 5737, for documentation: no other option depends on which it is.
	a := Address{netip.AddrFrom4([4]byte{192, 0, 2, 1}), FromSubnet}
	if address != "" {
		var err error
		if a, err = ParseAddress(address); err != nil {
			return fmt.Errorf("the address: %w", err)
		}
	}
	return checkText(configName, minimalConfig(a, "", opts))
}

// checkText makes sure that what Init writes is what Load accepts.
func checkText(path string, text []byte) error {
	if _, err := Parse(path, text); err != nil {
		return fmt.Errorf("cannot write a configuration with these values:\n%w", err)
	}
	return nil
}

// Init writes the two files of a new board into dir, which it makes if
// necessary: topdog.toml, and key with mode 0600. Neither is ever replaced
// without Force: an existing configuration is an error (errors.Is finds
// fs.ErrExist), an existing good key is kept, so that Init can follow the copying
// of a key. Each file appears whole or not at all, even if the power fails.
func Init(dir, address string, opts InitOptions) (*Initialized, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return nil, fmt.Errorf("the address: %w", err)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot make the path of %s absolute: %w", dir, err)
	}
	done := &Initialized{ConfigPath: filepath.Join(dir, configName)}
	if !opts.NoKey {
		done.KeyPath = filepath.Join(dir, keyName)
	}
	text := minimalConfig(a, dir, opts)
	if err := checkText(done.ConfigPath, text); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(done.ConfigPath); err == nil && !opts.Force {
		return nil, existsError(done.ConfigPath)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the directory for the configuration: %w", err)
	}
	// The key comes first: a board with a key and no configuration says what is
	// missing, and so does Init's next run.
	if !opts.NoKey {
		if err := done.provideKey(opts); err != nil {
			return nil, err
		}
	}
	if err := writeFile(done.ConfigPath, text, 0o644, opts.Force); err != nil {
		return nil, err
	}
	return done, nil
}

func existsError(path string) error {
	return fmt.Errorf("%s exists and is left as it is; remove it, or use --force to replace it: %w", path, fs.ErrExist)
}

// provideKey makes sure that there is a good key.
func (done *Initialized) provideKey(opts InitOptions) error {
	if !opts.Force {
		key, err := LoadKey(done.KeyPath)
		switch {
		case err == nil:
			done.Key = key.String()
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("the key that exists is left as it is, but it cannot be used:\n%w", err)
		}
	}
	random := opts.Rand
	if random == nil {
		random = rand.Reader
	}
	key, err := NewKey(random)
	if err != nil {
		return err
	}
	if err := writeFile(done.KeyPath, key.Encode(), 0o600, opts.Force); err != nil {
		return err
	}
	done.Key, done.KeyIsNew = key.String(), true
	return nil
}

// minimalConfig is the file that a new board gets: what it must say, and the
// three lines that people change first.
func minimalConfig(a Address, dir string, opts InitOptions) []byte {
	var b strings.Builder
	line := func(key, value string) { b.WriteString(key + " = " + value + "\n") }
	b.WriteString("# topdog: one address that always answers. All boards of a group have this same file.\n" +
		"# This is all it needs; docs/config.md describes every key.\n\n" +
		"# The floating address: an unused one of this network, outside the DHCP server's range.\n")
	line("address", tomlString(a.String()))
	b.WriteByte('\n')
	if opts.Interface != "" {
		line("interface", tomlString(opts.Interface))
	}
	if opts.Group != "" {
		line("group", tomlString(opts.Group))
	}
	switch {
	case opts.NoKey:
		b.WriteString("# No authentication: anybody on this network can take the address.\n")
		line("key_file", tomlString(NoKey))
	case filepath.Join(dir, keyName) != DefaultKeyFile:
		b.WriteString("# Relative to the directory of this file.\n")
		line("key_file", tomlString(keyName))
	}
	b.WriteString("#priority = 100     # more: this board leads rather than others; 0: never\n" +
		"#preempt = false    # true: a board of higher rank takes over from a living leader\n")
	if opts.LED != "" {
		line("led", tomlString(opts.LED))
	} else {
		b.WriteString("#led = \"ACT\"        # the light of the leader; \"GPIO17\" is a pin, \"none\" is no light\n")
	}
	return []byte(b.String())
}

// writeFile makes the file path appear with its whole content: a temporary file
// is written, synced and renamed, and then the directory is synced. Without
// replace the rename itself fails if path exists, so that of two Inits that run
// at once only one wins.
func writeFile(path string, content []byte, mode os.FileMode, replace bool) (err error) {
	dir := filepath.Dir(path)
	// CreateTemp makes files with mode 0600: the key is never readable by others.
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			temp.Close() // a second Close is harmless
			os.Remove(temp.Name())
		}
	}()
	if _, err := temp.Write(content); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := temp.Chmod(mode); err != nil {
		return fmt.Errorf("cannot set the mode of %s: %w", path, err)
	}
	if err := temp.Sync(); err != nil {
		return fmt.Errorf("cannot bring %s to the disk: %w", path, err)
	}
	if err := temp.Close(); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := rename(temp.Name(), path, replace); err != nil {
		return err
	}
	return syncDir(dir)
}

func rename(from, to string, replace bool) error {
	if replace {
		if err := os.Rename(from, to); err != nil {
			return fmt.Errorf("cannot put %s in place: %w", to, err)
		}
		return nil
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case errors.Is(err, unix.EEXIST):
		return existsError(to)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		// The file system cannot do this (some network ones). A hard link does
		// not replace either; the temporary name then goes.
		if err := os.Link(from, to); err != nil {
			if errors.Is(err, fs.ErrExist) {
				return existsError(to)
			}
			return fmt.Errorf("cannot put %s in place: %w", to, err)
		}
		return os.Remove(from)
	case err != nil:
		return fmt.Errorf("cannot put %s in place: %w", to, err)
	}
	return nil
}

// syncDir makes renames in dir survive a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot bring %s to the disk: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("cannot bring %s to the disk: %w", dir, err)
	}
	return nil
}

// shellQuote quotes text for a POSIX shell where it needs it.
func shellQuote(text string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+@", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
