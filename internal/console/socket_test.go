package console

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

func TestSocketMode(t *testing.T) {
	old := unix.Umask(0o077) // as in the unit
	defer unix.Umask(old)
	path := filepath.Join(filepath.Dir(socketPath(t)), "run", "t.sock")
	serve(t, NewServer(path, fake{}))
	for name, want := range map[string]fs.FileMode{
		path: 0o660 | fs.ModeSocket, path + ".public": 0o666 | fs.ModeSocket, filepath.Dir(path): 0o755 | fs.ModeDir,
	} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode(), want, err)
		}
	}
}

// TestSocketIsNeverMoreOpen looks at what bind(2) makes of a careless umask.
func TestSocketIsNeverMoreOpen(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	path := socketPath(t)
	sock, err := listen(path, 0o600)
	assert.NoError(t, err)
	defer sock.Close()
	defer sock.remove()
	// The mode of the socket itself is what it was bound with.
	raw, err := sock.SyscallConn()
	assert.NoError(t, err)
	var stat unix.Stat_t
	assert.NoError(t, raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) }))
	assert.NoError(t, err)
	assert.Is(t, 0o600, fs.FileMode(stat.Mode&0o777), "the mode that it was bound with")
}

// leftover makes the socket of a daemon that was killed.
func leftover(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	assert.NoError(t, err)
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestStaleSocketIsReplaced(t *testing.T) {
	s := newTestServer(t, fake{})
	leftover(t, s.path)
	leftover(t, PublicPath(s.path))
	serve(t, s)
	_, err := Dial(s.path).Status(t.Context())
	assert.ErrorIs(t, err, nil, "")
}

func TestLivingSocketIsLeftAlone(t *testing.T) {
	first := newTestServer(t, fake{})
	serve(t, first)
	second := NewServer(first.path, fake{})
	assert.ErrorIs(t, second.Run(t.Context()), errInUse, "Run")
	_, err := Dial(first.path).Status(t.Context())
	assert.ErrorIs(t, err, nil, "the first daemon after that")
}

// TestLaterSocketIsLeftAlone replaces the socket under a running server, which
// must not take the newcomer's with it when it ends.
func TestLaterSocketIsLeftAlone(t *testing.T) {
	path := socketPath(t)
	sock, err := listen(path, 0o600)
	assert.NoError(t, err)
	assert.NoError(t, os.Remove(path))
	leftover(t, path)
	assert.NoError(t, errors.Join(sock.remove(), sock.Close()))
	_, err = os.Lstat(path)
	assert.ErrorIs(t, err, nil, "the other socket")
}

func TestRunRefuses(t *testing.T) {
	dir := filepath.Dir(socketPath(t))
	file := filepath.Join(dir, "file")
	assert.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	beside := filepath.Join(dir, "beside")
	assert.NoError(t, os.WriteFile(PublicPath(beside), nil, 0o600))
	link := filepath.Join(dir, "link")
	assert.NoError(t, os.Symlink(file, link))
	for _, test := range []struct{ path, want string }{
		{"", "1 to 107 bytes"},
		{"/" + strings.Repeat("x", 107), "has 108: set another socket"},
		{file, "something else of that name (-rw-------): remove it"},
		{link, "something else of that name"},
		{beside, "beside.public: there is something else of that name"},
		{"/tmp/" + strings.Repeat("x", 100), ".public\": the path must have 1 to 107 bytes, has 112: set another socket"},
		{filepath.Join(file, "t.sock"), "not a directory"},
	} {
		err := NewServer(test.path, fake{}).Run(t.Context())
		assert.ErrorContains(t, err, test.want, "%q", test.path)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file was touched: %q, %v", text, err)
	}
}
