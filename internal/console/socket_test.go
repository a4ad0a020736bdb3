package console

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

func TestSocketMode(t *testing.T) {
	old := unix.Umask(0o077) // as in the unit
	defer unix.Umask(old)
	path := filepath.Join(filepath.Dir(socketPath(t)), "run", "t.sock")
	serve(t, newAlone(path, fake{}, defaultLimits))
	for name, want := range map[string]fs.FileMode{
		path: 0o660 | fs.ModeSocket, path + ".public": 0o666 | fs.ModeSocket, path + ".page": 0o660 | fs.ModeSocket,
		filepath.Dir(path): 0o755 | fs.ModeDir,
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
	leftover(t, pagePath(s.path))
	serve(t, s)
	_, err := Dial(s.path).Status(t.Context())
	assert.ErrorIs(t, err, nil, "")
}

func TestLivingSocketIsLeftAlone(t *testing.T) {
	first := newTestServer(t, fake{})
	serve(t, first)
	second := newAlone(first.path, fake{}, defaultLimits)
	assert.ErrorContains(t, second.Run(t.Context()), "another daemon serves the socket: stop it", "Run")
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
		{file, "something else has that name (-rw-------): remove it"},
		{link, "something else has that name"},
		{beside, "beside.public: something else has that name"},
		{"/tmp/" + strings.Repeat("x", 100), ".public\" must have 1 to 107 bytes, has 112: set another socket"},
		{filepath.Join(file, "t.sock"), "not a directory"},
	} {
		err := newAlone(test.path, fake{}, defaultLimits).Run(t.Context())
		assert.ErrorContains(t, err, test.want, "%q", test.path)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file was touched: %q, %v", text, err)
	}
}

// The kernel lets those users connect to the control socket, and the daemon relies on that.
func TestWhoMayConnect(t *testing.T) {
	s := serving(t, fake{})
	enterable(t, s)
	assert.NoError(t, os.Chown(s.path, 990, 980)) // an administrator may change the group
	for _, test := range []struct {
		name     string
		uid, gid uintptr
		groups   []uint32
		want     error
	}{
		{"root", 0, 0, nil, nil},
		{"root of another group", 0, 1000, nil, nil},
		{"the daemon's user", 990, 1, nil, nil},
		{"by primary group", 1000, 980, nil, nil},
		{"by supplementary group", 1000, 1000, []uint32{4, 980}, nil},
		{"a stranger", 1000, 1000, []uint32{4, 27}, unix.EACCES},
		{"root's group is not root", 1000, 0, nil, unix.EACCES},
		{"a user whose number is that of the group", 980, 1000, nil, unix.EACCES},
		{"a group whose number is that of the user", 1000, 990, nil, unix.EACCES},
	} {
		var err error
		asUser(t, test.uid, test.gid, func() { err = connect(s.path) }, test.groups...)
		assert.ErrorIs(t, err, test.want, "%s", test.name)
	}
}

// The kernel tells which user is at the other end.
func TestUserOf(t *testing.T) {
	s := newTestServer(t, fake{})
	users := make(chan uint32, 1)
	s.identify = func(c syscall.Conn) uint32 {
		users <- userOf(c)
		return 0
	}
	serve(t, s)
	enterable(t, s)
	asUser(t, 65533, 65532, func() { _ = connect(PublicPath(s.path)) })
	assert.Is(t, 65533, <-users, "the user")
}

// are has all callers be the same user.
func are(user uint32) func(syscall.Conn) uint32 { return func(syscall.Conn) uint32 { return user } }

// TestOnlyRootTries: a check can be any program, so nobody else has the daemon run one, who may have the board resign or not.
func TestOnlyRootTries(t *testing.T) {
	daemon := uint32(os.Getuid())
	for _, test := range []struct {
		name string
		user uint32
		may  bool
	}{
		{"root", 0, true},
		{"the daemon's user", max(daemon, 1), false},
		{"a member of the socket's group", 4711, false},
		{"unknown", unidentified, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := TryRequest{File: "topdog.toml", Config: "address"}
			want := Tried{Checks: []TriedCheck{{NameText: "gateway", Passing: true}}}
			tries := 0
			s := newTestServer(t, fake{try: func(r TryRequest) (Tried, error) {
				if tries++; r != asked {
					t.Errorf("asked to try %+v", r)
				}
				return want, nil
			}})
			s.identify = are(test.user)
			serve(t, s)
			tried, err := Dial(s.path).Try(t.Context(), asked)
			switch {
			case test.may && (err != nil || tries != 1 || !reflect.DeepEqual(tried, want)):
				t.Errorf("%d tries: %+v, %v", tries, tried, err)
			case !test.may:
				refused(t, err, 403, "only root may have the daemon try checks", "to try")
				assert.Is(t, 0, tries, "tries")
			}
		})
	}
}

// TestOtherVersion: a daemon that does not know what it is asked for is of another version.
func TestOtherVersion(t *testing.T) {
	s := serving(t, fake{})
	_, err := ask[Done](t.Context(), Dial(s.path), "POST", "/v1/new", nil)
	assert.ErrorContains(t, err, "the daemon is of another version than this program: if topdog was just updated: systemctl restart topdog", "")
}
