package setup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"topdog/internal/config"
)

// written is what write did.
type written struct {
	configPath string // absolute, as keyPath is
	keyPath    string
	keyIsNew   bool // false if a good key was there and has been kept
}

// write makes the two files of a new board, and their directory if necessary. Neither
// is ever replaced without Force: an existing configuration is an error (errors.Is
// finds fs.ErrExist), an existing good key is kept, so that this can follow the
// copying of a key.
func (b Board) write() (done written, err error) {
	a, err := config.ParseAddress(b.Address)
	if err != nil {
		return done, fmt.Errorf("the address: %w", err)
	}
	if done.configPath, err = filepath.Abs(b.Path); err != nil {
		return done, fmt.Errorf("make the path of %s absolute: %w", b.Path, err)
	}
	b.Path = done.configPath
	text := b.config(a)
	if err := checkText(b.Path, text); err != nil {
		return done, err
	}
	if _, err := os.Lstat(b.Path); err == nil && !b.Force {
		return done, existsError(b.Path)
	}
	if err := os.MkdirAll(filepath.Dir(b.Path), 0o755); err != nil {
		return done, fmt.Errorf("make the directory for the configuration: %w", err)
	}
	// The key comes first: a board with a key and no configuration says what is
	// missing, and so does the next run.
	done.keyPath = filepath.Join(filepath.Dir(b.Path), keyName)
	if done.keyIsNew, err = provideKey(done.keyPath, b.Force); err != nil {
		return done, err
	}
	return done, writeFile(b.Path, text, 0o644, b.Force)
}

// provideKey makes sure that there is a good key, and reports whether it is new.
func provideKey(path string, force bool) (isNew bool, err error) {
	if !force {
		_, err := config.LoadKeys(path)
		switch {
		case err == nil:
			return false, nil
		case !errors.Is(err, fs.ErrNotExist):
			return false, fmt.Errorf("the key that exists is left as it is, but it cannot be used:\n%w", err)
		}
	}
	key, err := config.NewKey(rand.Reader)
	if err != nil {
		return false, err
	}
	return true, writeFile(path, config.Keyring{Signs: key}.Encode(), 0o600, force)
}

// config is the file that a new board gets: what it must say, and the three lines
// that people change first.
func (b Board) config(a config.Address) []byte {
	if b.converted != nil {
		return b.convertedConfig()
	}
	var text strings.Builder
	text.WriteString("# topdog: one address that always answers. All boards of a group have this same file.\n" +
		"# This is all it needs; docs/config.md describes every key.\n\n" +
		"# The floating address: an unused one of this network, outside the DHCP server's range.\n" +
		"address = " + config.Quote(a.String()) + "\n\n")
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

// writeCommon writes what all boards of a group have in common, but for the address.
func (b Board) writeCommon(text *strings.Builder) {
	line := func(key, value string) { text.WriteString(key + " = " + config.Quote(value) + "\n") }
	if b.Interface != "" {
		line("interface", b.Interface)
	}
	if b.Group != "" {
		line("group", b.Group)
	}
	if b.Path != config.DefaultPath {
		text.WriteString("# Relative to the directory of this file.\n")
		line("key_file", keyName)
	}
	b.writeVoters(text)
}

// checkText makes sure that what is written is what config.Load accepts.
func checkText(path string, text []byte) error {
	if _, err := config.Parse(path, text); err != nil {
		return fmt.Errorf("cannot write a configuration with these values:\n%w", err)
	}
	return nil
}

func existsError(path string) error {
	return fmt.Errorf("%s exists and is left as it is; remove it, or use --force to replace it: %w", path, fs.ErrExist)
}

// ReplaceKeys replaces the content of a key file that exists. Its owner and its mode stay. A link
// goes on pointing to the file that it points to.
func ReplaceKeys(path string, keys config.Keyring) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("find the key file: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the key file: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("look at the owner of %s: this system does not tell it", path)
	}
	const replace = true
	return writeOwnedFile(path, keys.Encode(), info.Mode().Perm(), int(owner.Uid), int(owner.Gid), replace)
}

// writeFile makes the file path appear with its whole content: a temporary file
// is written, synced and renamed, and then the directory is synced. Without
// replace the rename itself fails if path exists, so that of two Inits that run
// at once only one wins.
func writeFile(path string, content []byte, mode os.FileMode, replace bool) error {
	const own = -1 // whoever runs this
	return writeOwnedFile(path, content, mode, own, own, replace)
}

func writeOwnedFile(path string, content []byte, mode os.FileMode, uid, gid int, replace bool) (err error) {
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
	if err := temp.Chown(uid, gid); err != nil {
		return fmt.Errorf("cannot give %s to its owner: %w", path, err)
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

// giveToDaemon makes the key the daemon's own, if this is root and the package
// has made the user; the daemon does not run as root then and could not read it.
func giveToDaemon(keyPath string) error {
	u, err := user.Lookup(config.DaemonUser)
	if err != nil || keyPath == "" || os.Geteuid() != 0 {
		return nil
	}
	return giveTo(u, keyPath)
}

func giveTo(u *user.User, keyPath string) error {
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("give the key to the user %s: its number: %w", config.DaemonUser, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return fmt.Errorf("give the key to the user %s: its group's number: %w", config.DaemonUser, err)
	}
	// Not what a link points to: that may be anybody's file.
	if err := os.Lchown(keyPath, uid, gid); err != nil {
		return fmt.Errorf("give the key to the user %s, which the daemon runs as: %w", config.DaemonUser, err)
	}
	return nil
}
