package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"topdog/internal/config"
)

// Export writes the configuration and the key of the board to out, for Import on
// another board. It refuses to write to a terminal, because it writes the secret.
func (b Board) Export(out io.Writer) error {
	if err := b.findPath(); err != nil {
		return err
	}
	if isTerminal(out) {
		return usage("--export writes the secret key and this is a terminal; pipe it, as in\n\n    %s",
			copyLine(b.Path, startLine))
	}
	groups, text, err := config.LoadGroupsText(b.Path)
	if err != nil {
		return err
	}
	cfg := groups.First()
	for _, key := range []string{"id", "name"} {
		if cfg.Sets(key) {
			return config.Errors{{File: b.Path, Message: key + " is this board's own, and every other board needs another one",
				Hint: "remove it (each board then finds its own), or write the other boards' files by hand"}}
		}
	}
	if err := groups.ReadKeys(); err != nil {
		return err
	}
	return pack(out, text, cfg.Keys)
}

// files are what goes from one board to another, as JSON: the contents of its configuration, and of the key if it has one.
type files struct {
	Configuration []byte `json:"configuration"`
	Key           []byte `json:"key,omitempty"`
}

// pack writes the two files, or the configuration only if there is no key.
func pack(out io.Writer, text []byte, keys config.Keyring) error {
	f := files{Configuration: text}
	if !keys.Signs.IsZero() {
		f.Key = keys.Encode()
	}
	if err := json.NewEncoder(out).Encode(f); err != nil {
		return fmt.Errorf("write the configuration and the key: %w", err)
	}
	return nil
}

// Import reads what Export has written, writes the two files, and says what it did. A file that
// is there and fits is kept: the same key, and a configuration that differs only in what each
// board decides for itself. If a file does not fit, Import changes nothing and returns an error;
// Force replaces the file.
func (b Board) Import(in io.Reader, out io.Writer) error {
	if err := b.findPath(); err != nil {
		return err
	}
	if isTerminal(in) {
		return usage("--import reads what --export writes, and this is a terminal; run this on the first board:\n\n    %s",
			copyLine(b.Path, startLine))
	}
	done, err := b.importFrom(in)
	if err != nil {
		return err
	}
	if err := giveToDaemon(done.keyPath); err != nil {
		return err
	}
	if !done.configIsNew && !done.keyIsNew {
		fmt.Fprintln(out, "this board is set up already; nothing was changed")
	}
	if done.configIsNew {
		fmt.Fprintf(out, "wrote %s (%s)\n", done.configPath, joined(addressesOf(done.groups)))
	} else if done.own != nil {
		fmt.Fprintf(out, "kept  %s, which has its own %s\n", done.configPath, strings.Join(done.own, ", "))
	}
	if done.keyIsNew {
		fmt.Fprintf(out, "wrote %s (%v)\n", done.keyPath, done.config.Keys.Signs)
	} else if done.keysDiffer {
		fmt.Fprintf(out, "kept  %s: the group is changing its key, see topdog key show\n", done.keyPath)
	}
	return nil
}

// imported is what importFrom did.
type imported struct {
	groups      config.Groups  // that this board has now
	config      *config.Config // the first of them, with the key that came
	configPath  string
	configIsNew bool     // false if the file was there, and is kept
	own         []string // the keys in which the kept configuration differs, which each board decides for itself
	keyPath     string   // "" if the group has no key
	keyIsNew    bool     // false if the file was there, and is kept
	keysDiffer  bool     // the kept keys are not those that came, but boards with either understand each other
}

func (b Board) importFrom(in io.Reader) (*imported, error) {
	text, keyText, err := unpack(in)
	if err != nil {
		return nil, err
	}
	done := &imported{configPath: b.Path}
	came, err := config.ParseGroups(b.Path, text)
	if err != nil {
		return nil, fmt.Errorf("the configuration that came cannot be used here:\n%w", err)
	}
	done.groups, done.config = came, came.First()
	var keys config.Keyring
	if done.config.KeyFile != config.NoKey {
		if keyText == nil {
			return nil, errors.New("the configuration that came needs a key, and none came with it")
		}
		if keys, err = config.ParseKeys("the key that came", keyText); err != nil {
			return nil, err
		}
	}
	if err := done.compareConfig(b.Force); err != nil {
		return nil, err
	}
	if err := done.checkKeyPlace(); err != nil {
		return nil, err
	}
	done.config.Keys = keys
	if done.config.KeyFile != config.NoKey {
		done.keyPath = done.config.KeyFile
		if err := done.compareKey(b.Force); err != nil {
			return nil, err
		}
	}
	return done, done.write(text)
}

// compareConfig finds out whether the configuration that is there may stay.
func (done *imported) compareConfig(force bool) error {
	done.configIsNew = true
	if force {
		return nil
	}
	groups, exists, err := present("configuration", done.configPath, config.LoadGroups)
	if !exists || err != nil {
		return err
	}
	present := groups.First()
	if (present.Several || done.config.Several) && !slices.Equal(groups.Names(), done.groups.Names()) {
		return fmt.Errorf("%s is left as it is, but it is of the groups %s, and what came of %s; make them agree, or use --force to replace it",
			done.configPath, config.QuoteAll(groups.Names()), config.QuoteAll(done.groups.Names()))
	}
	var differ []string
	for i, here := range groups {
		came := done.groups[i]
		for _, name := range here.Changed(came) {
			if config.Shared(name) {
				differ = append(differ, fmt.Sprintf("%s = %s here, and %s in what came", name, here.Value(name), came.Value(name)))
			} else if !slices.Contains(done.own, name) {
				done.own = append(done.own, name)
			}
		}
	}
	if (present.KeyFile == config.NoKey) != (done.config.KeyFile == config.NoKey) {
		differ = append(differ, `key_file = "none" on one side only`)
	}
	if differ != nil {
		return fmt.Errorf("%s is left as it is, but it is of another group: %s; make them agree, or use --force to replace it",
			done.configPath, strings.Join(differ, "; "))
	}
	done.groups, done.config, done.configIsNew = groups, present, false
	return nil
}

// checkKeyPlace refuses a configuration that came if the key would be written elsewhere:
// Import runs as root, and another board must not decide which file of this one is
// replaced. A configuration that is kept may name any place.
func (done *imported) checkKeyPlace() error {
	file, dir := done.config.KeyFile, filepath.Dir(done.configPath)
	inside := filepath.Dir(file) == dir && file != done.configPath
	if !done.configIsNew || file == config.NoKey || file == config.DefaultKeyFile || inside {
		return nil
	}
	return fmt.Errorf("the configuration that came has its key in %s, and import writes a key beside %s only: "+
		"on the board that it came from move the key there and write key_file = %q, or copy both files to this board by hand",
		file, done.configPath, keyName)
}

// compareKey finds out whether the keys that are there may stay.
func (done *imported) compareKey(force bool) error {
	done.keyIsNew = true
	if force {
		return nil
	}
	present, exists, err := present("key", done.keyPath, config.LoadKeys)
	switch {
	case !exists || err != nil:
		return err
	case present == done.config.Keys:
	case understand(present, done.config.Keys):
		done.keysDiffer = true
	default:
		return fmt.Errorf("%s is left as it is, but it is another %v, and %v came: this board belongs to another group; use --force to move it",
			done.keyPath, present.Signs, done.config.Keys.Signs)
	}
	done.keyIsNew = false
	return nil
}

// understand reports whether two boards with these keys accept each other's packets.
func understand(a, b config.Keyring) bool {
	return a.Fingerprints().Accept(b.Signs.Fingerprint()) && b.Fingerprints().Accept(a.Signs.Fingerprint())
}

// write writes the files that are new, the key first, as Init does.
func (done *imported) write(text []byte) error {
	if err := os.MkdirAll(filepath.Dir(done.configPath), 0o755); err != nil {
		return fmt.Errorf("make the directory for the configuration: %w", err)
	}
	const replace = true // what is there was looked at before
	if done.keyPath != "" && done.keyIsNew {
		if err := writeFile(done.keyPath, done.config.Keys.Encode(), 0o600, replace); err != nil {
			return err
		}
	}
	if done.configIsNew {
		return writeFile(done.configPath, text, 0o644, replace)
	}
	return nil
}

// maxExported is more than Export ever writes, in bytes: three bytes of a file are four in JSON.
const maxExported = 2 * (config.MaxFileBytes + config.MaxKeyFileBytes)

// unpack reads the two files. It refuses files that are too long.
func unpack(r io.Reader) (text, key []byte, err error) {
	fail := func(format string, args ...any) ([]byte, []byte, error) {
		return nil, nil, fmt.Errorf("what came on standard input is not what `topdog init --export` writes: "+format, args...)
	}
	var f files
	input := json.NewDecoder(io.LimitReader(r, maxExported))
	input.DisallowUnknownFields()
	switch err := input.Decode(&f); {
	case errors.Is(err, io.EOF):
		return nil, nil, errors.New("nothing came on standard input: see what the other end of the pipe says")
	case err != nil:
		return fail("%w", err)
	case input.More():
		return fail("it goes on after byte %d", input.InputOffset())
	case len(f.Configuration) == 0:
		return fail("there is no configuration in it")
	case len(f.Configuration) > config.MaxFileBytes:
		return fail("the configuration has %d bytes, at most %d are allowed", len(f.Configuration), config.MaxFileBytes)
	case len(f.Key) > config.MaxKeyFileBytes:
		return fail("the key has %d bytes, at most %d are allowed", len(f.Key), config.MaxKeyFileBytes)
	}
	return f.Configuration, f.Key, nil
}
