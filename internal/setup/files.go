package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"topdog/internal/config"
)

// The names of the files of a board.
const (
	configName = "topdog.toml"
	keyName    = "key"
	hookName   = "hooks.d/keepalived" // calls keepalived's notify scripts; below the directory of the configuration
)

// written is what write did.
type written struct {
	keyPath  string
	keyIsNew bool // false if a good key was there and has been kept
}

// write makes the two files of a new board, and their directory if necessary. Neither
// is ever replaced without Force: an existing configuration is an error (errors.Is
// finds fs.ErrExist), an existing good key is kept, so that this can follow the
// copying of a key.
func (b Board) write() (done written, err error) {
	text := b.config()
	if err := checkText(b.Path, text); err != nil {
		return done, err
	}
	if _, err := os.Lstat(b.Path); err == nil && !b.Force {
		return done, existsError(b.Path)
	}
	if err := os.MkdirAll(filepath.Dir(b.Path), 0o755); err != nil {
		return done, fmt.Errorf("make the directory for the configuration: %w", err)
	}
	// The key comes first: a board with a key and no configuration says what is missing, and the next run writes it.
	done.keyPath = filepath.Join(filepath.Dir(b.Path), keyName)
	if done.keyIsNew, err = provideKey(done.keyPath, b.Force); err != nil {
		return done, err
	}
	return done, writeFile(b.Path, text, 0o644, b.Force)
}

// present loads a file unless it does not exist.
func present[T any](what, path string, load func(string) (T, error)) (found T, exists bool, err error) {
	found, err = load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, false, nil
	case err != nil:
		return found, true, fmt.Errorf("the %s that exists is left as it is, but it cannot be used (--force replaces it):\n%w", what, err)
	}
	return found, true, nil
}

// provideKey makes sure that there is a good key, and reports whether it is new.
func provideKey(path string, force bool) (isNew bool, err error) {
	if !force {
		if _, exists, err := present("key", path, config.LoadKeys); exists {
			return false, err
		}
	}
	return true, writeFile(path, config.Keyring{Signs: config.NewKey()}.Encode(), 0o600, force)
}

// config is the configuration that a new board gets: what it must say, and the lines
// that people change first. As long as there is no address, it has one for documentation (RFC 5737).
func (b Board) config() []byte {
	if b.converted != nil {
		return b.convertedConfig()
	}
	var text strings.Builder
	text.WriteString("# topdog: one address that always answers. All boards of a group have this same file.\n" +
		"# This is all it needs; docs/config.md describes every key.\n\n" +
		"# The floating address: an unused one of this network, outside the DHCP server's range.\n")
	writeAddress(&text, b.Addresses)
	text.WriteString("\n")
	b.writeCommon(&text)
	text.WriteString("#priority = 100     # more: this board leads rather than others; 0: never\n" +
		"#preempt = false    # true: a board of higher rank takes over from a living leader\n")
	if b.LED != "" {
		text.WriteString("led = " + config.Quote(b.LED) + "\n")
	} else {
		text.WriteString("#led = \"ACT\"        # the light of the leader; \"GPIO17\" is a pin, \"none\" is no light\n")
	}
	return []byte(text.String())
}

// writeAddress writes the line of the addresses.
func writeAddress(text *strings.Builder, addresses []string) {
	switch len(addresses) {
	case 0:
		text.WriteString("address = \"192.0.2.1\"\n")
	case 1:
		text.WriteString("address = " + config.Quote(addresses[0]) + "\n")
	default:
		text.WriteString("address = " + config.QuoteAll(addresses) + "\n")
	}
}

// writeInterfaces writes the line of the interface, or of both paths, if there is one.
func writeInterfaces(text *strings.Builder, names []string) {
	switch len(names) {
	case 0:
	case 1:
		text.WriteString("interface = " + config.Quote(names[0]) + "\n")
	default:
		text.WriteString("interface = " + config.QuoteAll(names) + "\n")
	}
}

// writeCommon writes what all boards of a group have in common, except for the address.
func (b Board) writeCommon(text *strings.Builder) {
	writeInterfaces(text, b.Interfaces)
	if b.second != "" {
		instead := ""
		if len(b.Interfaces) > 0 {
			instead = " instead"
		}
		first := b.firstInterface()
		fmt.Fprintf(text, "# With this line%s, the boards hear each other by %s too, in case %s fails; the address stays on %[3]s.\n#interface = %[4]s\n",
			instead, b.second, first, config.QuoteAll([]string{first, b.second}))
	}
	if b.Group != "" {
		text.WriteString("group = " + config.Quote(b.Group) + "\n")
	}
	if b.Path != config.DefaultPath {
		text.WriteString("# Relative to the directory of this file.\nkey_file = " + config.Quote(keyName) + "\n")
	}
	if b.Strict {
		text.WriteString("\n# Never two boards that answer: a leader needs the promises of most of the voters. All boards have\n" +
			"# the same list of their own addresses, which must never change. Change one voter at a time.\n" +
			"algorithm = " + config.Quote(strictAlgorithm) + "\n" +
			"voters = " + config.QuoteAll(b.Voters) + "\n\n")
	}
}

// checkText makes sure that config.LoadGroups accepts what is written.
func checkText(path string, text []byte) error {
	if _, err := config.ParseGroups(path, text); err != nil {
		return fmt.Errorf("cannot write a configuration with these values:\n%w", err)
	}
	return nil
}

func existsError(path string) error {
	return fmt.Errorf("%s exists and is left as it is; remove it, or use --force to replace it: %w", path, fs.ErrExist)
}

// ReplaceKeys replaces the content of a key file that exists. Its owner and its mode stay. If the path is a link, the file
// behind it is replaced, and the link stays.
func ReplaceKeys(path string, keys config.Keyring) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("find the key file: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the key file: %w", err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	const replace = true
	return writeOwnedFile(path, keys.Encode(), info.Mode().Perm(), int(owner.Uid), int(owner.Gid), replace)
}

// writeFile makes a file appear with its whole content: it writes, syncs and renames a temporary file, and then syncs the
// directory. Without replace this fails if the file exists, so that of two Inits at the same time only one wins.
func writeFile(path string, content []byte, mode os.FileMode, replace bool) error {
	const same = -1 // the owner is whoever runs this
	return writeOwnedFile(path, content, mode, same, same, replace)
}

func writeOwnedFile(path string, content []byte, mode os.FileMode, uid, gid int, replace bool) error {
	dir := filepath.Dir(path)
	// CreateTemp makes files with mode 0600: the key is never readable by others.
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer os.Remove(temp.Name()) // if it was not renamed
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Chown(uid, gid), temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = rename(temp.Name(), path, replace)
	}
	if err == nil {
		err = syncDir(dir)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return existsError(path)
	case err != nil:
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// rename gives a file another name. Without replace it makes a link, which fails if there is a file of that name.
func rename(from, to string, replace bool) error {
	if replace {
		return os.Rename(from, to)
	}
	return os.Link(from, to)
}

// syncDir makes renames in a directory survive a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// giveToDaemon makes the daemon's user the owner of the key, if this is root and the package has made that user: then the
// daemon does not run as root, and could not read the key.
func giveToDaemon(keyPath string) error {
	uid, gid, err := config.UserIDs(config.DaemonUser)
	if err != nil || keyPath == "" || os.Geteuid() != 0 {
		return nil
	}
	return giveTo(uid, gid, keyPath)
}

func giveTo(uid, gid int, keyPath string) error {
	// A link is not followed: what it points to may be anybody's file.
	if err := os.Lchown(keyPath, uid, gid); err != nil {
		return fmt.Errorf("give the key to the user %s, which the daemon runs as: %w", config.DaemonUser, err)
	}
	return nil
}
