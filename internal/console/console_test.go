package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/web"
)

// deadline ends a test that waits for what never comes.
const deadline = 10 * time.Second

// handedOver is how the fake backend answers.
var handedOver = Handover{Leader: "192.168.1.12", LeaderName: "pi2", Text: "handed over to pi2 (192.168.1.12)"}

// fake is a backend. Its functions may be nil.
type fake struct {
	status func(context.Context) (Status, error)
	resign func(context.Context) (Handover, error)
	trace  func(context.Context) (Trace, error)
	alive  func(context.Context) error
	try    func(TryRequest) (Tried, error)
}

func (f fake) Alive(ctx context.Context) error {
	if f.alive == nil {
		return nil
	}
	return f.alive(ctx)
}

func (f fake) Scene(context.Context) (Scene, error) { return Scene{"# scene\n"}, nil }

func (f fake) Trace(ctx context.Context) (Trace, error) {
	if f.trace == nil {
		return takeover(), nil
	}
	return f.trace(ctx)
}

func (f fake) Drain(_ context.Context, asked DrainRequest) (Handover, error) {
	if !asked.Force {
		return Handover{}, errors.New("no other board passes")
	}
	return Handover{Text: fmt.Sprintf("drained for %v", time.Duration(asked.ForNs))}, nil
}

func (f fake) Undrain(context.Context) (Done, error) { return Done{Text: "undrained"}, nil }

func (f fake) Pause(_ context.Context, asked PauseRequest) (Done, error) {
	return Done{Text: fmt.Sprintf("paused for %v", time.Duration(asked.ForNs))}, nil
}

func (f fake) Unpause(context.Context) (Done, error) { return Done{Text: "unpaused"}, nil }

func (f fake) Keys(context.Context) (Keys, error) {
	return Keys{SignsWith: "030d726e", Boards: []BoardKeys{}}, nil
}

func (f fake) ReloadKeys(context.Context) (Done, error) { return Done{Text: "read"}, nil }

func (f fake) Try(_ context.Context, asked TryRequest) (Tried, error) {
	if f.try != nil {
		return f.try(asked)
	}
	return Tried{}, Refuse(http.StatusServiceUnavailable, "checks are being tried", "wait")
}

func (f fake) Leave(context.Context) (Handover, error) {
	return Handover{Text: "left the group"}, nil
}

func (f fake) Status(ctx context.Context) (Status, error) {
	if f.status == nil {
		return healthy(), nil
	}
	return f.status(ctx)
}

func (f fake) Resign(ctx context.Context) (Handover, error) {
	if f.resign == nil {
		return handedOver, nil
	}
	return f.resign(ctx)
}

// refused fails the test unless a request was refused with this status, for this reason.
func refused(t *testing.T, err error, code int, text, what string) {
	t.Helper()
	var e *web.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Error(), text) {
		t.Errorf("%s: %v, want %d %s", what, err, code, text)
	}
}

// socketPath is short, whatever the name of the test: unix(7) allows 107 bytes.
func socketPath(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if len(dir) > 80 {
		var err error
		if dir, err = os.MkdirTemp("", "topdog"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	return filepath.Join(dir, "t.sock")
}

// serve runs a server until the test ends or stop is called, and checks that it
// leaves nothing behind.
func serve(t *testing.T, s *alone) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.ready:
	case err := <-ended:
		t.Fatalf("Run ended at once: %v", err)
	case <-time.After(deadline):
		t.Fatal("not ready in time")
	}
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			assert.ErrorIs(t, err, nil, "Run")
		case <-time.After(deadline):
			t.Error("Run does not end")
		}
		for _, path := range []string{s.path, PublicPath(s.path), pagePath(s.path)} {
			_, err := os.Lstat(path)
			assert.ErrorIs(t, err, fs.ErrNotExist, "%s", path)
		}
	})
	t.Cleanup(stop)
	return stop
}

// alone is a server for one group.
type alone struct {
	*Server
	*Group
}

func newAlone(path string, b Backend, l limits) *alone {
	s := newServer(path, l)
	return &alone{s, s.Add("pihole", b)}
}

func newTestServer(t *testing.T, b Backend) *alone {
	t.Helper()
	s := newAlone(socketPath(t), b, defaultLimits)
	s.Report = func(err error) { t.Logf("reported: %v", err) }
	return s
}

// serving is a server that runs until the test ends.
func serving(t *testing.T, b Backend) *alone {
	t.Helper()
	s := newTestServer(t, b)
	serve(t, s)
	return s
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(deadline); !done(); <-look.C {
		if time.Now().After(end) {
			t.Fatal("it did not happen in time")
		}
	}
}

// asUser runs f on a thread that has become another user. The thread is thrown
// away with its goroutine, which keeps it locked.
func asUser(t *testing.T, uid, gid uintptr, f func(), groups ...uint32) {
	t.Helper()
	done := make(chan unix.Errno)
	go func() {
		runtime.LockOSThread()
		var first unsafe.Pointer
		if len(groups) > 0 {
			first = unsafe.Pointer(&groups[0])
		}
		// The plain system calls concern one thread; those of package unix all.
		_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid)
		}
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid)
		}
		if errno == 0 {
			f()
		}
		done <- errno
	}()
	if errno := <-done; errno != 0 {
		t.Fatalf("cannot become user %d: %v", uid, errno)
	}
}

// connect connects on the calling thread and hangs up.
func connect(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path})
}

// calledBy is the context of a request that came by a socket.
func calledBy(ctx context.Context, by *limiter, public bool, user uint32) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{limiter: by, public: public, user: user})
}
