package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
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
	serve(t, NewServer(path, fake{}))
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

func TestAuthorise(t *testing.T) {
	p := policy{daemon: 990, group: 980}
	for _, test := range []struct {
		name   string
		caller credentials
		want   bool
	}{
		{"root", credentials{uid: 0, gid: 0}, true},
		{"root of another group", credentials{uid: 0, gid: 1000}, true},
		{"the daemon's user", credentials{uid: 990, gid: 1}, true},
		{"by primary group", credentials{uid: 1000, gid: 980}, true},
		{"by supplementary group", credentials{uid: 1000, gid: 1000, groups: []uint32{4, 980}}, true},
		{"a stranger", credentials{uid: 1000, gid: 1000, groups: []uint32{4, 27}}, false},
		{"root's group is not root", credentials{uid: 1000, gid: 0}, false},
		{"a user whose number is that of the group", credentials{uid: 980, gid: 1000}, false},
		{"a group whose number is that of the user", credentials{uid: 1000, gid: 990}, false},
		{"nobody", credentials{uid: math.MaxUint32, gid: math.MaxUint32}, false},
	} {
		want := errDenied
		if test.want {
			want = nil
		}
		assert.ErrorIs(t, p.authorise(test.caller), want, "%s", test.name)
	}
}

// are has all callers be the same.
func are(c credentials) func(syscall.Conn, bool) (credentials, error) {
	return func(syscall.Conn, bool) (credentials, error) { return c, nil }
}

// nobodyKnows is a kernel that does not say who calls.
func nobodyKnows(syscall.Conn, bool) (credentials, error) {
	return credentials{}, errors.New("unknown")
}

// TestStrangersMayLook goes all the way, with credentials that the kernel did not give.
func TestStrangersMayLook(t *testing.T) {
	stranger := uint32(max(os.Getuid(), os.Getgid()) + 1)
	for _, test := range []struct {
		name     string
		identify func(syscall.Conn, bool) (credentials, error)
		want     string
	}{
		{"stranger", are(credentials{uid: stranger, gid: stranger}), fmt.Sprintf("user %d may look, but not have this board do anything: use sudo", stranger)},
		{"unknown", nobodyKnows, "the kernel does not say who is calling"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestServer(t, fake{resign: func(context.Context) (Handover, error) {
				t.Error("resigned")
				return Handover{}, nil
			}})
			s.identify = test.identify
			serve(t, s)
			_, err := Dial(s.path).Status(t.Context())
			assert.ErrorIs(t, err, nil, "Status")
			_, err = Dial(s.path).Resign(t.Context())
			wantDenied(t, err, test.want, "Resign")
		})
	}
}

// TestOnlyRootTries: a check can be any program, so nobody else has the daemon run one, who may have the board resign or not.
func TestOnlyRootTries(t *testing.T) {
	daemon := uint32(os.Getuid())
	for _, test := range []struct {
		name   string
		caller *credentials
		may    bool
	}{
		{"root", &credentials{}, true},
		{"the daemon's user", &credentials{uid: max(daemon, 1), gid: 1}, false},
		{"a member of the group root", &credentials{uid: 4711, gid: 0}, false},
		{"a member of the socket's group", &credentials{uid: 4711, gid: 4711, groups: []uint32{uint32(os.Getgid())}}, false},
		{"unknown", nil, false},
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
			if s.identify = nobodyKnows; test.caller != nil {
				s.identify = are(*test.caller)
			}
			serve(t, s)
			tried, err := Dial(s.path).Try(t.Context(), asked)
			switch {
			case test.may && (err != nil || tries != 1 || !reflect.DeepEqual(tried, want)):
				t.Errorf("%d tries: %+v, %v", tries, tried, err)
			case !test.may && (!errors.Is(err, errDenied) || tries != 0):
				t.Errorf("%d tries: %v", tries, err)
			}
		})
	}
}

// TestOtherVersion: a daemon that does not know what it is asked for is of another version.
func TestOtherVersion(t *testing.T) {
	s := serving(t, fake{})
	_, err := ask[Done](t.Context(), Dial(s.path), "POST", "/v1/new", nil)
	assert.ErrorIs(t, err, errOtherVersion, "")
	assert.ErrorContains(t, err, "systemctl restart topdog", "")
}

// TestSocketGroup takes the group from the file: an administrator may change it.
func TestSocketGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may give a file to any group")
	}
	s := serving(t, fake{})
	member := credentials{uid: 4711, gid: 4711, groups: []uint32{4712}}
	assert.ErrorIs(t, s.authorise(member), errDenied, "a stranger")
	assert.NoError(t, os.Chown(s.path, -1, 4712))
	assert.ErrorIs(t, s.authorise(member), nil, "a member of the socket's group may not")
}
