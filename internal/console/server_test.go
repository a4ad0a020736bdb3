package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// deadline ends a test that waits for what never comes.
const deadline = 10 * time.Second

// fake is a backend. Its functions may be nil.
type fake struct {
	status func(context.Context) (Status, error)
	resign func(context.Context) (string, error)
	trace  func(context.Context) (Trace, error)
}

func (f fake) Trace(ctx context.Context) (Trace, error) {
	if f.trace == nil {
		return takeover(), nil
	}
	return f.trace(ctx)
}

func (f fake) Status(ctx context.Context) (Status, error) {
	if f.status == nil {
		return healthy(), nil
	}
	return f.status(ctx)
}

func (f fake) Resign(ctx context.Context) (string, error) {
	if f.resign == nil {
		return "handed over to pi2 (192.168.1.12)", nil
	}
	return f.resign(ctx)
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
func serve(t *testing.T, s *Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-ended:
		t.Fatalf("Run ended at once: %v", err)
	case <-time.After(deadline):
		t.Fatal("not ready in time")
	}
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(deadline):
			t.Error("Run does not end")
		}
		if _, err := os.Lstat(s.path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func newTestServer(t *testing.T, b Backend) *Server {
	t.Helper()
	s := NewServer(socketPath(t), 0, b, nil)
	s.Report = func(err error) { t.Logf("reported: %v", err) }
	return s
}

func TestStatusAndResign(t *testing.T) {
	var resigned Caller
	s := newTestServer(t, fake{resign: func(ctx context.Context) (string, error) {
		resigned, _ = CallerFrom(ctx)
		return "handed over to pi2 (192.168.1.12)", nil
	}})
	serve(t, s)
	client := Dial(s.path)
	got, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(healthy(), got); diff != "" {
		t.Errorf("the status changed on its way (-sent +got):\n%s", diff)
	}
	happened, err := client.Resign(t.Context())
	if want := "handed over to pi2 (192.168.1.12)"; err != nil || happened != want {
		t.Errorf("Resign: %q, %v, want %q", happened, err, want)
	}
	if int(resigned.PID) != os.Getpid() || int(resigned.UID) != os.Getuid() || int(resigned.GID) != os.Getgid() {
		t.Errorf("the kernel says that %+v called", resigned)
	}
	want, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range want {
		if !resigned.in(uint32(g)) {
			t.Errorf("this process is in group %d, the kernel says %v", g, resigned.Groups)
		}
	}
}

func TestSocketMode(t *testing.T) {
	old := unix.Umask(0o077) // as in the unit
	defer unix.Umask(old)
	for _, mode := range []fs.FileMode{0, 0o600, 0o666} {
		path := filepath.Join(filepath.Dir(socketPath(t)), "run", "t.sock")
		stop := serve(t, NewServer(path, mode, fake{}, nil))
		if mode == 0 {
			mode = 0o660
		}
		for name, want := range map[string]fs.FileMode{path: mode | fs.ModeSocket, filepath.Dir(path): 0o755 | fs.ModeDir} {
			if info, err := os.Lstat(name); err != nil || info.Mode() != want {
				t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode(), want, err)
			}
		}
		stop()
	}
}

// TestSocketIsNeverMoreOpen looks at what bind(2) makes of a careless umask.
func TestSocketIsNeverMoreOpen(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	path := socketPath(t)
	sock, err := listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	defer sock.remove()
	// The mode of the socket itself is what it was bound with.
	raw, err := sock.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) }); err != nil {
		t.Fatal(err)
	}
	if err != nil || stat.Mode&0o777 != 0o600 {
		t.Errorf("bound with mode %o, want 600 (%v)", stat.Mode&0o777, err)
	}
}

// leftover makes the socket of a daemon that was killed.
func leftover(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func TestStaleSocketIsReplaced(t *testing.T) {
	s := newTestServer(t, fake{})
	leftover(t, s.path)
	serve(t, s)
	if _, err := Dial(s.path).Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLivingSocketIsLeftAlone(t *testing.T) {
	first := newTestServer(t, fake{})
	serve(t, first)
	second := NewServer(first.path, 0, fake{}, nil)
	if err := second.Run(t.Context()); !errors.Is(err, ErrInUse) {
		t.Errorf("Run: %v, want ErrInUse", err)
	}
	if _, err := Dial(first.path).Status(t.Context()); err != nil {
		t.Errorf("the first daemon after that: %v", err)
	}
}

// TestLaterSocketIsLeftAlone replaces the socket under a running server, which
// must not take the newcomer's with it when it ends.
func TestLaterSocketIsLeftAlone(t *testing.T) {
	path := socketPath(t)
	sock, err := listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	leftover(t, path)
	if err := errors.Join(sock.remove(), sock.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the other socket: %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	dir := filepath.Dir(socketPath(t))
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, want string }{
		{"", "1 to 107 bytes"},
		{"/" + strings.Repeat("x", 107), "has 108: set another socket"},
		{file, "something else of that name (-rw-------): remove it"},
		{link, "something else of that name"},
		{filepath.Join(file, "t.sock"), "not a directory"},
	} {
		err := NewServer(test.path, 0, fake{}, nil).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want …%s…", test.path, err, test.want)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file was touched: %q, %v", text, err)
	}
}

func TestRunAgain(t *testing.T) {
	s := newTestServer(t, fake{})
	serve(t, s)()
	serve(t, s)
	// Ready is closed already, so wait for the socket instead.
	waitFor(t, func() bool { _, err := Dial(s.path).Status(t.Context()); return err == nil })
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

func TestAuthorise(t *testing.T) {
	p := policy{daemon: 990, group: 980}
	for _, test := range []struct {
		name   string
		caller Caller
		want   bool
	}{
		{"root", Caller{UID: 0, GID: 0}, true},
		{"root of another group", Caller{UID: 0, GID: 1000}, true},
		{"the daemon's user", Caller{UID: 990, GID: 1}, true},
		{"by primary group", Caller{UID: 1000, GID: 980}, true},
		{"by supplementary group", Caller{UID: 1000, GID: 1000, Groups: []uint32{4, 980}}, true},
		{"a stranger", Caller{UID: 1000, GID: 1000, Groups: []uint32{4, 27}}, false},
		{"root's group is not root", Caller{UID: 1000, GID: 0}, false},
		{"a user whose number is that of the group", Caller{UID: 980, GID: 1000}, false},
		{"a group whose number is that of the user", Caller{UID: 1000, GID: 990}, false},
		{"nobody", Caller{UID: math.MaxUint32, GID: math.MaxUint32}, false},
	} {
		err := p.authorise(test.caller)
		if (err == nil) != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil && !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v is not ErrDenied", test.name, err)
		}
	}
}

// TestStrangersMayLook goes all the way, with credentials that the kernel did not give.
func TestStrangersMayLook(t *testing.T) {
	stranger := uint32(max(os.Getuid(), os.Getgid()) + 1)
	for _, test := range []struct {
		name     string
		identify func(context.Context, net.Conn) context.Context
		want     string
	}{
		{"stranger", func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, callerKey{}, Caller{UID: stranger, GID: stranger})
		}, fmt.Sprintf("user %d may look, but not make this board resign: use sudo", stranger)},
		{"unknown", func(ctx context.Context, _ net.Conn) context.Context { return ctx }, "the kernel does not say who is calling"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestServer(t, fake{resign: func(context.Context) (string, error) {
				t.Error("resigned")
				return "", nil
			}})
			s.identify = test.identify
			serve(t, s)
			if _, err := Dial(s.path).Status(t.Context()); err != nil {
				t.Errorf("Status: %v", err)
			}
			if _, err := Dial(s.path).Resign(t.Context()); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Resign: %v, want %s", err, test.want)
			}
		})
	}
}

// TestSocketGroup takes the group from the file: an administrator may change it.
func TestSocketGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may give a file to any group")
	}
	s := newTestServer(t, fake{})
	serve(t, s)
	member := Caller{UID: 4711, GID: 4711, Groups: []uint32{4712}}
	if err := s.authorise(member); err == nil {
		t.Error("a stranger may resign")
	}
	if err := os.Chown(s.path, -1, 4712); err != nil {
		t.Fatal(err)
	}
	if err := s.authorise(member); err != nil {
		t.Errorf("a member of the socket's group may not: %v", err)
	}
}

func TestRequests(t *testing.T) {
	s := NewServer("unused", 0, fake{}, func(Caller) error { return nil })
	handler := s.handler(t.Context())
	for _, test := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/v1/status", "", 200, `"group":"pihole"`},
		{"GET", "/v1/status?pretty", "", 200, `"group":"pihole"`},
		{"GET", "/v1/trace", "", 200, `"clock":"CLOCK_MONOTONIC","now_ns":`},
		{"POST", "/v1/trace", "", 405, `use GET /v1/trace`},
		{"POST", "/v1/resign", "", 200, `{"result":"handed over to pi2 (192.168.1.12)"}`},
		{"POST", "/v1/resign", " {}\n", 200, `{"result":"handed over to pi2 (192.168.1.12)"}`},
		{"POST", "/v1/resign", `{"to":"pi2"}`, 400, `{"error":"the request has a body that means nothing here: {\"to\":\"pi2\"}","hint":"send none, or {}"}`},
		{"POST", "/v1/resign", "null", 400, `means nothing here: null`},
		{"POST", "/v1/resign", "{}{}", 400, `means nothing here`},
		{"POST", "/v1/resign", "\x00\xff\x1b[2J", 400, `means nothing here: ??`},
		{"POST", "/v1/resign", strings.Repeat("[", 1024), 400, `[[[…`},
		{"POST", "/v1/resign", strings.Repeat(" ", 1025), 413, `{"error":"the request has a body of more than 1024 bytes","hint":"send none"}`},
		{"GET", "/v1/resign", "", 405, `{"error":"GET does not go with /v1/resign","hint":"use POST /v1/resign"}`},
		{"POST", "/v1/status", "", 405, `use GET /v1/status`},
		{"HEAD", "/v1/status", "", 405, `use GET /v1/status`},
		{"BREW", "/v1/events", "", 405, `BREW does not go with /v1/events`},
		{"GET", "/", "", 404, `{"error":"there is no / here","hint":"there are GET /v1/status, GET /v1/events, GET /v1/trace and POST /v1/resign"}`},
		{"GET", "/v1/status/", "", 404, `there is no /v1/status/ here`},
		{"GET", "//v1/status", "", 404, `there is no //v1/status here`},
		{"GET", "/%1b%5b2J" + strings.Repeat("x", 100), "", 404, `there is no /?[2Jxxx`},
		{"OPTIONS", "*", "", 404, `there is no`},
	} {
		r := httptest.NewRequest(test.method, "/", strings.NewReader(test.body))
		if u, err := r.URL.Parse(test.path); err == nil {
			r.URL = u
		}
		if strings.HasPrefix(test.path, "//") {
			r.URL.Path = test.path
		}
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, Caller{UID: 0}))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		body := w.Body.String()
		if w.Code != test.code || !strings.Contains(body, test.want) {
			t.Errorf("%s %s %.20q: %d %s\nwant %d %s", test.method, test.path, test.body, w.Code, body, test.code, test.want)
		}
		if !json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: no JSON: %s", test.method, test.path, body)
		}
	}
}

// TestEmptyListsAreLists is for scripts that loop over them.
func TestEmptyListsAreLists(t *testing.T) {
	s := NewServer("unused", 0, fake{status: func(context.Context) (Status, error) { return Status{}, nil }}, nil)
	w := httptest.NewRecorder()
	s.handler(t.Context()).ServeHTTP(w, httptest.NewRequest("GET", pathStatus, nil))
	for _, name := range []string{"addresses", "boards", "changes", "problems"} {
		if !strings.Contains(w.Body.String(), `"`+name+`":[]`) {
			t.Errorf("%s is no empty list: %s", name, w.Body)
		}
	}
}

func TestBackendFailures(t *testing.T) {
	for _, test := range []struct {
		name   string
		status func(context.Context) (Status, error)
		code   int
		want   string
	}{
		{"an error", func(context.Context) (Status, error) { return Status{}, errors.New("no can do") },
			500, "no can do"},
		{"a refusal", func(context.Context) (Status, error) {
			return Status{}, fmt.Errorf("wrapped: %w", &Error{Code: 409, Message: "this board does not lead", Hint: "ask pi2"})
		}, 409, "this board does not lead: ask pi2"},
		{"a refusal that claims success", func(context.Context) (Status, error) {
			return Status{}, &Error{Code: 200, Message: "no"}
		}, 500, "no"},
		{"no answer", func(ctx context.Context) (Status, error) { <-ctx.Done(); return Status{}, ctx.Err() },
			504, "the daemon's election loop did not answer within 20ms: journalctl -u topdog may tell why; if it stays so, the watchdog restarts the daemon"},
		{"a panic", func(context.Context) (Status, error) { panic("oh no") },
			500, "the daemon stumbled over this request: journalctl -u topdog has the details; please report them"},
		{"a number that JSON lacks", func(context.Context) (Status, error) { return Status{HeartbeatMs: math.NaN()}, nil },
			500, "the answer has no JSON: json: unsupported value: NaN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			short := defaultLimits
			short.status = 20 * time.Millisecond
			s := newServer(socketPath(t), 0, fake{status: test.status}, nil, short)
			var reports atomic.Int32
			s.Report = func(error) { reports.Add(1) }
			serve(t, s)
			_, err := Dial(s.path).Status(t.Context())
			var e *Error
			if !errors.As(err, &e) || e.Code != test.code || e.Error() != test.want {
				t.Errorf("got  %v\nwant %d %s", err, test.code, test.want)
			}
			if got, want := reports.Load() > 0, test.name == "a panic"; got != want {
				t.Errorf("reported: %v, want %v", got, want)
			}
		})
	}
}

// TestGarbage says things to the socket that are not HTTP. Afterwards the daemon
// must still answer.
func TestGarbage(t *testing.T) {
	short := defaultLimits
	short.request = 50 * time.Millisecond
	s := newServer(socketPath(t), 0, fake{}, nil, short)
	serve(t, s)
	for _, garbage := range []string{
		"\x00\x01\x02\xff\n\n",
		"GET\r\n\r\n",
		"GET /v1/status HTTP/9.9\r\n\r\n",
		"GET /v1/status HTTP/1.1\r\n\r\n", // no Host
		"GET /v1/status HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
		"POST /v1/resign HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{", // and then nothing
		"POST /v1/resign HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"POST /v1/resign HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET /v1/sta", // and then nothing
	} {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(deadline))
		_, _ = io.WriteString(conn, garbage) // the server may hang up in the middle
		if answer, err := io.ReadAll(conn); bytes.Contains(answer, []byte(" 200 ")) || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.40q was answered with %.80q, %v", garbage, answer, err)
		}
		conn.Close()
	}
	if _, err := Dial(s.path).Status(t.Context()); err != nil {
		t.Errorf("after the garbage: %v", err)
	}
}

// TestCrowd fills all seats and the lobby.
func TestCrowd(t *testing.T) {
	short := defaultLimits
	short.connections = 4
	s := newServer(socketPath(t), 0, fake{}, nil, short)
	serve(t, s)
	sit := func() net.Conn {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		// Only an answer shows that somebody sits.
		_, _ = io.WriteString(conn, "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = conn.SetReadDeadline(time.Now().Add(deadline))
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("%v, %v", response, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		return conn
	}
	var seats []net.Conn
	for range short.connections {
		seats = append(seats, sit())
	}
	_, err := Dial(s.path).Status(t.Context())
	var e *Error
	if !errors.As(err, &e) || e.Code != 503 || e.Error() != "the daemon serves 4 connections already: try again in a moment" {
		t.Errorf("with all seats taken: %v", err)
	}
	for _, conn := range seats {
		conn.Close()
	}
	waitFor(t, func() bool { _, err := Dial(s.path).Status(t.Context()); return err == nil })
}

func TestManyAtOnce(t *testing.T) {
	s := newTestServer(t, fake{})
	serve(t, s)
	client := Dial(s.path)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 10 {
				s.Changed()
				if _, err := client.Status(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := client.Resign(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestStopFinishesRequests stops the server while it hands over.
func TestStopFinishesRequests(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := newTestServer(t, fake{resign: func(ctx context.Context) (string, error) {
		close(begun)
		select {
		case <-finish:
			return "handed over", ctx.Err()
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}})
	s.limits.linger = deadline
	stop := serve(t, s)
	answer := make(chan error, 1)
	go func() {
		happened, err := Dial(s.path).Resign(context.Background())
		if err == nil && happened != "handed over" {
			err = errors.New(happened)
		}
		answer <- err
	}()
	<-begun
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	waitFor(t, func() bool { _, err := os.Lstat(s.path); return err != nil })
	close(finish)
	if err := <-answer; err != nil {
		t.Errorf("Resign: %v", err)
	}
	<-stopped
}

// TestStopEndsIdlers has connections that say nothing, or only half of it, which
// must not hold up the end.
func TestStopEndsIdlers(t *testing.T) {
	s := newTestServer(t, fake{status: func(ctx context.Context) (Status, error) {
		<-ctx.Done()
		return Status{}, ctx.Err()
	}})
	s.limits.linger = 10 * time.Millisecond
	stop := serve(t, s)
	for _, said := range []string{"", "GET /v1/st", "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"} {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, said)
	}
	stop()
}

// counting is a backend whose term grows with each status.
func counting() (Backend, *atomic.Uint32) {
	var term atomic.Uint32
	return fake{status: func(context.Context) (Status, error) {
		return Status{Term: term.Add(1)}, nil
	}}, &term
}

func TestEvents(t *testing.T) {
	backend, _ := counting()
	slow := defaultLimits
	slow.beat = time.Hour // only changes
	// The second event comes after the time in which a request must have been
	// read. A stream must outlive that.
	slow.request, slow.gap = 20*time.Millisecond, 60*time.Millisecond
	s := newServer(socketPath(t), 0, backend, nil, slow)
	stop := serve(t, s)
	seen := make(chan uint32)
	ended := make(chan error, 1)
	go func() {
		ended <- Dial(s.path).Watch(t.Context(), func(s Status) error { seen <- s.Term; return nil })
	}()
	next := func(want uint32) {
		t.Helper()
		select {
		case got := <-seen:
			if got != want {
				t.Errorf("term %d, want %d", got, want)
			}
		case err := <-ended:
			t.Fatalf("Watch ended: %v", err)
		case <-time.After(deadline):
			t.Fatal("no event")
		}
	}
	next(1)
	for want := uint32(2); want < 5; want++ {
		s.Changed()
		next(want)
	}
	stop()
	if err := <-ended; !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the daemon's end: %v, want ErrNotRunning", err)
	}
}

func TestEventsBeat(t *testing.T) {
	backend, _ := counting()
	quick := defaultLimits
	quick.beat = time.Millisecond
	s := newServer(socketPath(t), 0, backend, nil, quick)
	serve(t, s)
	enough := errors.New("enough")
	var terms []uint32
	err := Dial(s.path).Watch(t.Context(), func(s Status) error {
		if terms = append(terms, s.Term); len(terms) == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || !slices.Equal(terms, []uint32{1, 2, 3}) {
		t.Errorf("terms %d, %v", terms, err)
	}
}

func TestEventsEnd(t *testing.T) {
	t.Run("with the caller's context", func(t *testing.T) {
		s := newTestServer(t, fake{})
		serve(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		err := Dial(s.path).Watch(ctx, func(Status) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		waitFor(t, func() bool { return len(s.streams) == 0 })
	})
	t.Run("with an error of the backend", func(t *testing.T) {
		first := true
		s := newTestServer(t, fake{status: func(context.Context) (Status, error) {
			if !first {
				return Status{}, &Error{Message: "lost my mind", Hint: "restart me"}
			}
			first = false
			return healthy(), nil
		}})
		s.limits.beat = time.Millisecond
		serve(t, s)
		err := Dial(s.path).Watch(t.Context(), func(Status) error { return nil })
		if err == nil || err.Error() != "lost my mind: restart me" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("when there are too many", func(t *testing.T) {
		few := defaultLimits
		few.streams = 1
		s := newServer(socketPath(t), 0, fake{}, nil, few)
		serve(t, s)
		err := Dial(s.path).Watch(t.Context(), func(Status) error {
			return Dial(s.path).Watch(t.Context(), func(Status) error { return nil })
		})
		if err == nil || !strings.Contains(err.Error(), "serves 1 streams of events already") {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzRequest sends anything at all to the handler.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/v1/status", []byte(nil))
	f.Add("POST", "/v1/resign", []byte("{}"))
	f.Add("POST", "/v1/resign", []byte(`{"a":[1,{"b":null}]}`))
	f.Add("\x00", "/\x1b[2J", []byte("\xff"))
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		s := NewServer("unused", 0, fake{}, func(Caller) error { return nil })
		s.Report = func(err error) { t.Error(err) }
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), callerKey{}, Caller{}))
		cancel() // events end after the first
		r := httptest.NewRequestWithContext(ctx, "GET", "/", bytes.NewReader(body))
		r.Method, r.URL.Path = method, path
		w := httptest.NewRecorder()
		s.handler(ctx).ServeHTTP(w, r)
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("no JSON: %q", w.Body)
		}
		var e failure
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || (w.Code == 200) != (e.Error == "") {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}
