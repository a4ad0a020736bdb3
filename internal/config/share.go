package config

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sharing is how a board gets what the boards of a group have in common: the
// configuration and the key go through a pipe from one board to the other, as a
// tar archive of two files, and never through a file in between.

// Export writes the configuration at path and its key to w, for Import on another
// board. What it writes contains the secret.
func Export(w io.Writer, path string) error {
	c, err := Load(path)
	if err != nil {
		return err
	}
	for _, key := range []string{"id", "name"} {
		if _, written := c.places[key]; written {
			return Errors{{File: path, Message: key + " is this board's own, and every other board needs another one",
				Hint: "remove it (each board then finds its own), or write the other boards' files by hand"}}
		}
	}
	text, _, err := readSmall(path, maxFileBytes)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	archive := tar.NewWriter(w)
	write := func(name string, mode int64, content []byte) error {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(content)), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s into the archive: %w", name, err)
		}
		if _, err := archive.Write(content); err != nil {
			return fmt.Errorf("write %s into the archive: %w", name, err)
		}
		return nil
	}
	if c.KeyFile != NoKey {
		key, err := LoadKey(c.KeyFile)
		if err != nil {
			return err
		}
		if err := write(keyName, 0o600, key.Encode()); err != nil {
			return err
		}
	}
	if err := write(configName, 0o644, text); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return nil
}

// Imported is what Import did.
type Imported struct {
	Config     *Config // what holds on this board now
	ConfigPath string
	ConfigNew  bool   // false if the one that was there is kept
	KeyPath    string // "" if the group has no key
	KeyNew     bool   // false if it was there already
	Key        string // its fingerprint, as Key.String gives it; "" without a key
	// Own lists the keys in which a configuration that was kept differs. They
	// are the board's own business.
	Own []string
}

// ownKeys may differ between the boards of a group. All others are what the
// boards agree on.
var ownKeys = []string{
	"interface", "id", "priority", "preempt", "detector", "fanout", "score_command", "peers", "key_file", "led", "name",
	"socket", "log_level", "hold",
}

// Import reads what Export has written and makes dir's two files of it, as Init
// does. What is there and fits is kept: the same key, and a configuration that
// differs only in what is the board's own business. What does not fit is an
// error, and nothing is changed then; force replaces it.
func Import(r io.Reader, dir string, force bool) (*Imported, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("make the path of %s absolute: %w", dir, err)
	}
	text, keyText, err := unpack(r)
	if err != nil {
		return nil, err
	}
	done := &Imported{ConfigPath: filepath.Join(dir, configName)}
	if done.Config, err = Parse(done.ConfigPath, text); err != nil {
		return nil, fmt.Errorf("the configuration that came cannot be used here:\n%w", err)
	}
	var key Key
	if done.Config.KeyFile != NoKey {
		if keyText == nil {
			return nil, errors.New("the configuration that came needs a key, and none came with it")
		}
		if key, err = parseKey("the key that came", keyText); err != nil {
			return nil, err
		}
		done.Key = key.String()
	}
	if err := done.compareConfig(force); err != nil {
		return nil, err
	}
	if err := done.checkKeyPlace(); err != nil {
		return nil, err
	}
	if done.Config.KeyFile != NoKey {
		done.KeyPath = done.Config.KeyFile
		if err := done.compareKey(key, force); err != nil {
			return nil, err
		}
	}
	return done, done.write(text, key)
}

// compareConfig finds out whether the configuration that is there may stay.
func (done *Imported) compareConfig(force bool) error {
	done.ConfigNew = true
	if force {
		return nil
	}
	present, err := Load(done.ConfigPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the configuration that exists is left as it is, but it cannot be used (--force replaces it):\n%w", err)
	}
	var differ []string
	for _, name := range present.Changed(done.Config) {
		if slices.Contains(ownKeys, name) {
			done.Own = append(done.Own, name)
		} else {
			differ = append(differ, fmt.Sprintf("%s = %s here, and %s in what came", name, present.value(name), done.Config.value(name)))
		}
	}
	if (present.KeyFile == NoKey) != (done.Config.KeyFile == NoKey) {
		differ = append(differ, `key_file = "none" on one side only`)
	}
	if differ != nil {
		return fmt.Errorf("%s is left as it is, but it is of another group: %s; make them agree, or use --force to replace it",
			done.ConfigPath, strings.Join(differ, "; "))
	}
	done.Config, done.ConfigNew = present, false
	return nil
}

// checkKeyPlace refuses a configuration that came and that would have the key
// written elsewhere: Import runs as root, and another board does not decide which
// file of this one it replaces. A configuration that is kept may name any place.
func (done *Imported) checkKeyPlace() error {
	file, dir := done.Config.KeyFile, filepath.Dir(done.ConfigPath)
	inside := filepath.Dir(file) == dir && file != done.ConfigPath
	if !done.ConfigNew || file == NoKey || file == DefaultKeyFile || inside {
		return nil
	}
	return fmt.Errorf("the configuration that came has its key in %s, and import writes a key beside %s only: "+
		"on the board that it came from move the key there and write key_file = %q, or copy both files to this board by hand",
		file, done.ConfigPath, keyName)
}

// value writes the value of a key as TOML.
func (c *Config) value(key string) string {
	for _, f := range fields() {
		if f.key == key {
			return f.get(c)
		}
	}
	return ""
}

// compareKey finds out whether the key that is there is the one that came.
func (done *Imported) compareKey(key Key, force bool) error {
	done.KeyNew = true
	if force {
		return nil
	}
	present, err := LoadKey(done.KeyPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the key that exists is left as it is, but it cannot be used (--force replaces it):\n%w", err)
	case present != key:
		return fmt.Errorf("%s is left as it is, but it is another %v, and %v came: this board belongs to another group; use --force to move it",
			done.KeyPath, present, key)
	}
	done.KeyNew = false
	return nil
}

// write puts into place what is new, the key first, as Init does.
func (done *Imported) write(text []byte, key Key) error {
	if err := os.MkdirAll(filepath.Dir(done.ConfigPath), 0o755); err != nil {
		return fmt.Errorf("make the directory for the configuration: %w", err)
	}
	const replace = true // Import has looked at what is there.
	if done.KeyPath != "" && done.KeyNew {
		if err := writeFile(done.KeyPath, key.Encode(), 0o600, replace); err != nil {
			return err
		}
	}
	if done.ConfigNew {
		return writeFile(done.ConfigPath, text, 0o644, replace)
	}
	return nil
}

// unpack reads the two files of an archive. It takes nothing else, so that no
// archive can make it write elsewhere or fill the memory.
func unpack(r io.Reader) (text, key []byte, err error) {
	fail := func(format string, args ...any) ([]byte, []byte, error) {
		return nil, nil, fmt.Errorf("what came on standard input is not what `topdog init --export` writes: "+format, args...)
	}
	limits := map[string]int64{configName: maxFileBytes, keyName: maxKeyFileBytes}
	found := map[string][]byte{}
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fail("%w", err)
		}
		limit, known := limits[header.Name]
		switch {
		case !known || header.Typeflag != tar.TypeReg || found[header.Name] != nil:
			return fail("it has an entry %q", header.Name)
		case header.Size > limit:
			return fail("%s has %d bytes, at most %d are allowed", header.Name, header.Size, limit)
		}
		var content bytes.Buffer
		if _, err := io.Copy(&content, io.LimitReader(archive, limit)); err != nil {
			return fail("%s: %w", header.Name, err)
		}
		found[header.Name] = append([]byte{}, content.Bytes()...)
	}
	if len(found) == 0 {
		return nil, nil, errors.New("nothing came on standard input: see what the other end of the pipe says")
	}
	if found[configName] == nil {
		return fail("there is no %s in it", configName)
	}
	return found[configName], found[keyName], nil
}
