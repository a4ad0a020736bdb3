package config

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"topdog/internal/lab/assert"
)

// stranger is the number of a user who is neither root nor runs the tests.
const stranger = 54321

// A configuration, a key and a program that somebody else could have written, or could replace,
// are refused with the line to type.
func TestStrangersFiles(t *testing.T) {
	chmod := func(name string, mode fs.FileMode) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { assert.NoError(t, os.Chmod(filepath.Join(dir, name), mode)) }
	}
	chown := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			needsRoot(t)
			assert.NoError(t, os.Lchown(filepath.Join(dir, name), stranger, -1))
		}
	}
	group := func(name string, mode fs.FileMode) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			needsRoot(t)
			assert.NoError(t, os.Lchown(filepath.Join(dir, name), -1, stranger))
			assert.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
		}
	}
	acl := func(name string, mode fs.FileMode, perm uint16) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			chmod(name, mode)(t, dir)
			setACL(t, filepath.Join(dir, name), perm)
		}
	}
	for _, test := range []struct {
		name   string
		change func(t *testing.T, dir string)
		want   []string // of the error; none if the files are accepted
	}{
		{"as they are made", func(*testing.T, string) {}, nil},
		{"the configuration is everybody's", chmod("topdog.toml", 0o666), []string{"topdog.toml: the configuration is not used: everybody may write to DIR/topdog.toml (mode 0666)", "run: chmod go-w DIR/topdog.toml"}},
		{"the configuration is a group's", group("topdog.toml", 0o664), []string{"the group 54321 may write to DIR/topdog.toml (mode 0664)", "run: chmod g-w DIR/topdog.toml"}},
		{"a group may read it", group("topdog.toml", 0o640), nil},
		{"the group is root's", func(t *testing.T, dir string) { needsRoot(t); chmod("topdog.toml", 0o664)(t, dir) }, nil},
		{"a list lets a stranger write to it", acl("topdog.toml", 0o644, 6), []string{"an access control list lets others write to DIR/topdog.toml", "run: setfacl -b DIR/topdog.toml"}},
		{"a list lets a stranger write to the directory", acl("", 0o755, 7), []string{"an access control list lets others write to DIR", "run: setfacl -b DIR"}},
		{"a list lets a stranger read it", acl("topdog.toml", 0o644, 4), nil},
		{"a list lets a stranger read the key", acl("key", 0o600, 4), []string{"key: the key file has mode 0640"}},
		{"the configuration is a stranger's", chown("topdog.toml"), []string{"DIR/topdog.toml belongs to the user 54321, who is neither root nor the user who runs topdog", "if it is right all the same, and topdog does not run as that user, run: chown -h root DIR/topdog.toml"}},
		{"the key is a stranger's", chown("key"), []string{"key: the key is not used: DIR/key belongs to the user 54321", "run: chown -h root DIR/key"}},
		{"the program is a stranger's", chown("healthy"), []string{"healthy: the program is not run: DIR/healthy belongs to the user 54321", "run: chown -h root DIR/healthy"}},
		{"the program is everybody's", chmod("healthy", 0o777), []string{"everybody may write to DIR/healthy (mode 0777)", "run: chmod go-w DIR/healthy"}},
		{"the directory is everybody's", chmod("", 0o777), []string{"everybody may write to DIR (mode 0777)", "run: chmod go-w DIR"}},
		{"the directory is everybody's, and sticky", chmod("", 0o777|fs.ModeSticky), nil},
		{"the directory is a stranger's", chown(""), []string{"DIR belongs to the user 54321"}},
		{"a link", func(t *testing.T, dir string) { link(t, dir, dir) }, nil},
		{"a stranger's link in a sticky directory", func(t *testing.T, dir string) {
			link(t, dir, dir)
			chmod("", 0o777|fs.ModeSticky)(t, dir)
			chown("topdog.toml")(t, dir)
		}, []string{"DIR/topdog.toml belongs to the user 54321"}},
		{"a link to everybody's directory", func(t *testing.T, dir string) {
			open := t.TempDir()
			assert.NoError(t, os.Chmod(open, 0o777))
			link(t, dir, open)
		}, []string{"everybody may write to /"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			assert.NoError(t, err)
			assert.NoError(t, os.WriteFile(filepath.Join(dir, "key"), []byte(hexKey+"\n"), 0o600))
			assert.NoError(t, os.WriteFile(filepath.Join(dir, "healthy"), []byte("#!/bin/sh\n"), 0o755))
			assert.NoError(t, os.WriteFile(filepath.Join(dir, "topdog.toml"),
				fmt.Appendf(nil, "address = \"192.168.1.250\"\nkey_file = \"key\"\n[[check]]\ncommand = %q\n", filepath.Join(dir, "healthy")), 0o644))
			test.change(t, dir)
			cfg, err := LoadGroups(filepath.Join(dir, "topdog.toml"))
			if err == nil {
				err = cfg.ReadKeys()
			}
			if len(test.want) == 0 {
				assert.ErrorIs(t, err, nil, "")
				return
			}
			text := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR")
			text = strings.ReplaceAll(text, "'", "")
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("the error does not say %q:\n%s", want, text)
				}
			}
		})
	}
}

// setACL gives a file an access control list by which a stranger may do what perm says. Its form is that of
// linux/posix_acl_xattr.h.
func setACL(t *testing.T, path string, perm uint16) {
	t.Helper()
	info, err := os.Stat(path)
	assert.NoError(t, err)
	const none = 0xffffffff
	mode := uint16(info.Mode().Perm())
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, mode >> 6, none}, {2, perm, stranger}, {4, mode >> 3 & 7, none}, {0x10, mode>>3&7 | perm, none}, {0x20, mode & 7, none}} {
		list = binary.LittleEndian.AppendUint16(list, entry.tag)
		list = binary.LittleEndian.AppendUint16(list, entry.perm)
		list = binary.LittleEndian.AppendUint32(list, entry.id)
	}
	if err := syscall.Setxattr(path, "system.posix_acl_access", list, 0); errors.Is(err, syscall.ENOTSUP) {
		t.Skip("the file system has no access control lists")
	} else if err != nil {
		t.Fatal(err)
	}
}

// link moves the configuration to another directory, and leaves a link in its place.
func link(t *testing.T, dir, to string) {
	t.Helper()
	path, moved := filepath.Join(dir, "topdog.toml"), filepath.Join(to, "moved.toml")
	assert.NoError(t, os.Rename(path, moved))
	assert.NoError(t, os.Symlink(moved, path))
}

// A file that is put in the place of the one that was opened is not taken for it.
func TestReplacedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "topdog.toml")
	assert.NoError(t, os.WriteFile(path, nil, 0o644))
	opened, err := os.Stat(path)
	assert.NoError(t, err)
	assert.NoError(t, os.WriteFile(path+".new", nil, 0o644))
	assert.NoError(t, os.Rename(path+".new", path))
	assert.ErrorContains(t, trusted(path, opened), "replaced while it was read", "another file at the path")
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a file to another user")
	}
}
