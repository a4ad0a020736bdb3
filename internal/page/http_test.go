package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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

	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/internal/web"
)

// board is a board with a daemon on a real socket, and a page on a real port.
type board struct {
	console.Backend // what no page asks for
	t               testing.TB
	daemon          *fakeDaemon
	server          *console.Server
	group           *console.Group
	port            string
}

// Status is what the daemon says of itself. Nothing else is asked of it.
func (b *board) Status(context.Context) (console.Status, error) {
	b.daemon.mu.Lock()
	defer b.daemon.mu.Unlock()
	b.daemon.asked++
	s := b.daemon.status
	s.Transition = b.group.Published()
	return s, nil
}

func (b *board) Alive(context.Context) error { return nil }

// newBoard runs Run in front of a control socket. The port is free, or somebody else has it at first.
func newBoard(t testing.TB, free bool) *board {
	t.Helper()
	b := &board{t: t, daemon: leading(time.Hour)}
	dir, err := os.MkdirTemp("", "topdog") // short, since the path of a socket has a limit
	assert.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	b.daemon.status.AsOf = boottime.Now() // it has looked once and for all, so that all who ask get the same text
	path := filepath.Join(dir, "s")
	b.server = console.NewServer(path)
	b.group = b.server.Add("pihole", b)
	b.run(func(ctx context.Context) error { return b.server.Run(ctx) })

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	b.port = taken.Addr().String()
	if free {
		taken.Close()
	}
	b.run(func(ctx context.Context) error {
		return Run(ctx, console.Dial(path), Options{Listen: b.port, Hosts: []string{"topdog.lan"}, Log: quiet()})
	})
	if !free {
		<-time.After(50 * time.Millisecond)
		taken.Close()
	}
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(5 * time.Millisecond) {
		if answer := b.try("GET /healthz HTTP/1.0\r\n\r\n"); strings.Contains(answer, "the daemon answers") {
			return b
		} else if time.Now().After(deadline) {
			t.Fatalf("there is no page: %q", answer)
		}
	}
}

// run runs something until the test ends.
func (b *board) run(life func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- life(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		assert.ErrorIs(b.t, <-ended, nil, "its end")
	})
}

// try sends bytes, and returns all that comes back until the connection is closed.
func (b *board) try(request string) string {
	conn, err := net.Dial("tcp", b.port)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, request)
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// ask sends a request that ends its connection, and returns the answer.
func (b *board) ask(method, path string, header ...string) (*http.Response, string) {
	b.t.Helper()
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nConnection: close\r\n%s\r\n\r\n", method, path, strings.Join(header, "\r\n"))
	answer := b.try(request)
	asked, _ := http.NewRequest(method, "http://topdog"+path, nil)
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), asked)
	if err != nil {
		b.t.Fatalf("%q: %v in %q", request, err, answer)
	}
	body, err := io.ReadAll(response.Body)
	assert.NoError(b.t, err)
	return response, string(body)
}

// paths are all there are, by what the page says itself.
func (b *board) paths() []string {
	b.t.Helper()
	_, body := b.ask("GET", "/none", "Host: pi1")
	var refused struct{ Hint string }
	assert.NoError(b.t, json.Unmarshal([]byte(body), &refused))
	return strings.Split(strings.TrimPrefix(refused.Hint, "there are GET "), ", GET ")
}

// A page waits for its port.
func TestWaitsForThePort(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a second between two attempts")
	}
	r, body := newBoard(t, false).ask("GET", "/leader", "Host: pi1")
	assert.Is(t, http.StatusOK, r.StatusCode, "%s", body)
}

func TestPaths(t *testing.T) {
	b := newBoard(t, true)
	paths := b.paths()
	for _, path := range []string{"/", "/page.css", "/page.js", "/topdog.css", "/topdog.js", "/v1/status", "/v1/history", "/v1/events", "/leader", "/follower", "/fit", "/healthz", "/metrics"} {
		assert.Is(t, true, slices.Contains(paths, path), "there is %s", path)
	}
	for _, path := range paths {
		want := http.StatusOK
		if path == "/follower" {
			want = http.StatusServiceUnavailable
		}
		if path != "/v1/events" {
			if r, body := b.ask("GET", path, "Host: pi1"); r.StatusCode != want || body == "" {
				t.Errorf("GET %s: %s %s", path, r.Status, body)
			}
		}
		if r, body := b.ask("HEAD", path, "Host: pi1"); r.StatusCode != want || body != "" {
			t.Errorf("HEAD %s: %s %s", path, r.Status, body)
		}
		byOptions := http.StatusNoContent
		if slices.Contains([]string{"/leader", "/follower", "/fit", "/healthz"}, path) {
			byOptions = want // or a load balancer would take no for yes
		}
		if r, body := b.ask("OPTIONS", path, "Host: pi1"); r.StatusCode != byOptions || (body == "") != (byOptions == http.StatusNoContent) || r.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("OPTIONS %s: %s %s, allowed is %s", path, r.Status, body, r.Header.Get("Allow"))
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW"} {
			if r, _ := b.ask(method, path, "Host: pi1"); r.StatusCode < 400 || r.StatusCode >= 500 {
				t.Errorf("%s %s: %s", method, path, r.Status)
			}
		}
		r, _ := b.ask("GET", path, "Host: evil.example")
		assert.Is(t, http.StatusMisdirectedRequest, r.StatusCode, "GET %s of another host", path)
	}
}

// What HAProxy sends by default, and what a page elsewhere may send.
func TestRequests(t *testing.T) {
	b := newBoard(t, true)
	for _, c := range []struct{ name, request, begins, has string }{
		{"HAProxy's check", "OPTIONS /leader HTTP/1.0\r\n\r\n", "HTTP/1.0 200 ", "pi1 leads and has the address"},
		{"HAProxy's check of what is not", "OPTIONS /follower HTTP/1.0\r\n\r\n", "HTTP/1.0 503 ", "pi1 leads"},
		{"HTTP/1.0", "GET /leader HTTP/1.0\r\n\r\n", "HTTP/1.0 200 ", "pi1 leads and has the address"},
		{"HTTP/1.0, HEAD", "HEAD /leader HTTP/1.0\r\n\r\n", "HTTP/1.0 200 ", ""},
		{"HTTP/1.1 without a host", "GET /leader HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", ""},
		{"two hosts", "GET /leader HTTP/1.1\r\nHost: pi1\r\nHost: pi1\r\n\r\n", "HTTP/1.1 400 ", ""},
		{"OPTIONS *", "OPTIONS * HTTP/1.0\r\n\r\n", "HTTP/1.0 404 ", ""},
		{"another method", "PUT /v1/status HTTP/1.0\r\n\r\n", "HTTP/1.0 405 ", "Allow: GET, HEAD, OPTIONS\r\n"},
		{"another method than HAProxy's", "PUT /leader HTTP/1.0\r\n\r\n", "HTTP/1.0 405 ", "Allow: GET, HEAD, OPTIONS\r\n"},
		{"another host in the path", "GET http://evil.example/leader HTTP/1.1\r\nHost: pi1\r\nConnection: close\r\n\r\n", "HTTP/1.1 421 ", "page_hosts"},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 ", ""},
		{"HTTP/0.9", "GET /leader\r\n\r\n", "HTTP/1.1 400 ", ""},
		{"no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 100) + "\r\n\r\n", "HTTP/1.", "400"},
		{"a huge header", "GET /leader HTTP/1.1\r\nHost: pi1\r\nX: " + strings.Repeat("x", 20000) + "\r\n\r\n", "HTTP/1.1 431 ", ""},
		{"a body", "GET /v1/status HTTP/1.1\r\nHost: pi1\r\nConnection: close\r\nContent-Length: 4\r\n\r\nmore", "HTTP/1.1 400 ", ""},
		{"a body in chunks", "GET /v1/status HTTP/1.1\r\nHost: pi1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nmore\r\n0\r\n\r\n", "HTTP/1.1 400 ", ""},
		{"a path around", "GET /v1/../leader HTTP/1.0\r\n\r\n", "HTTP/1.0 404 ", ""},
		{"three at once", strings.Repeat("GET /healthz HTTP/1.1\r\nHost: pi1\r\n\r\n", 2) + "GET /leader HTTP/1.1\r\nHost: topdog.lan:9254\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 ", "pi1 leads and has the address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := b.try(c.request)
			if !strings.HasPrefix(answer, c.begins) || !strings.Contains(answer, c.has) {
				t.Errorf("got %q, want %q with %q in it", answer, c.begins, c.has)
			}
		})
	}
	r, _ := b.ask("GET", "/v1/status", "Host: pi1", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site")
	for name := range r.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("a page elsewhere gets %s: %s", name, r.Header.Get(name))
		}
	}
	assert.Is(t, "same-origin", r.Header.Get("Cross-Origin-Resource-Policy"), "the policy for pages elsewhere")
}

// The status is what the daemon has written, byte for byte, and is not sent twice.
func TestStatusIsPassedOn(t *testing.T) {
	b := newBoard(t, true)
	r, body := b.ask("GET", "/v1/status", "Host: pi1")
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	status, _ := b.Status(t.Context())
	var told console.Status
	assert.NoError(t, json.Unmarshal([]byte(body), &told))
	status.Defences, status.Checks, status.Changes, status.Problems = told.Defences, told.Checks, told.Changes, told.Problems // never null
	status.Counters = told.Counters
	assert.NoError(t, encoder.Encode(status))
	assert.Equal(t, want.String(), body, "the status of the daemon")
	tag, version := r.Header.Get("ETag"), r.Header.Get(versionHeader)
	if tag == "" || version == "" || r.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("the header is %v", r.Header)
	}
	// At once, and as long as nothing changes, it is the same.
	r, body = b.ask("GET", "/v1/status", "Host: pi1", "If-None-Match: "+tag)
	if r.StatusCode != http.StatusNotModified || body != "" || r.Header.Get(versionHeader) != version {
		t.Errorf("again: %s %s", r.Status, body)
	}
	b.daemon.set(func(d *fakeDaemon) { d.status.Term = 8 })
	b.group.Publish(console.Transition{Event: console.EventLeaderChanged, Role: console.RoleLeader, Holding: true, Term: 8, BoardName: "pi1"})
	for deadline := time.Now().Add(10 * time.Second); r.StatusCode != http.StatusOK; r, body = b.ask("GET", "/v1/status", "Host: pi1", "If-None-Match: "+tag) {
		if time.Now().After(deadline) {
			t.Fatal("the status has not changed")
		}
	}
	if !strings.Contains(body, `"term":8`) {
		t.Errorf("after the change: %s", body)
	}
}

// 200 browsers on 200 machines poll as fast as they are answered, each over its connection. The daemon notices
// little of it.
func TestManyBrowsers(t *testing.T) {
	judge.RunOnLoopback(t, func(t *judge.T) { // the page gives up on a daemon that is late
		const browsers, each = 200, 5
		b := newBoard(t, true)
		var all sync.WaitGroup
		var answers atomic.Int64
		asked, began := b.daemon.asks(), time.Now()
		for n := range browsers {
			all.Go(func() {
				dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(n))}}
				transport := &http.Transport{DialContext: dialer.DialContext}
				defer transport.CloseIdleConnections()
				client := http.Client{Transport: transport, Timeout: 10 * time.Second}
				for range each {
					answer, err := client.Get("http://" + b.port + "/v1/status")
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
					assert.Is(t, http.StatusOK, answer.StatusCode, "")
					answers.Add(1)
				}
			})
		}
		all.Wait()
		asks := float64(b.daemon.asks() - asked)
		if most := 1 + 3*time.Since(began).Seconds(); asks > most {
			t.Errorf("the daemon was asked %.0f times for %d answers, want at most %.0f", asks, answers.Load(), most)
		}
		t.Logf("%d answers, and the daemon was asked %.0f times", answers.Load(), asks)
	})
}

// A client that reads nothing, or sends nothing, keeps nobody else waiting.
func TestLazyClients(t *testing.T) {
	b := newBoard(t, true)
	for range 40 {
		conn, err := net.Dial("tcp", b.port)
		assert.NoError(t, err)
		defer conn.Close()
		_, _ = io.WriteString(conn, strings.Repeat("GET /topdog.js HTTP/1.1\r\nHost: pi1\r\n\r\n", 100))
	}
	for n := range 200 {
		conn, err := net.Dial("tcp", b.port)
		assert.NoError(t, err)
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /leader HTTP/1.1\r\nHost: p"[:n%30])
	}
	began := time.Now()
	r, body := b.ask("GET", "/leader", "Host: pi1")
	assert.Is(t, http.StatusOK, r.StatusCode, "%s", body)
	// Whoever had to wait for one of them would wait until the page gives it up.
	if took := time.Since(began); took >= web.DefaultLimits.Request {
		t.Errorf("it took %v", took)
	}
}

// FuzzRequest: whatever is asked for, the answer is a status that HTTP knows, and no panic.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/v1/status", "pi1", "If-None-Match", `"1"`)
	f.Add("GET", "/v1/events?alive", "[::1]:9254", "Origin", "null")
	f.Add("HEAD", "/leader", "", "Range", "bytes=0-")
	f.Add("OPTIONS", "*", "pi1.local.", "", "")
	f.Add("POST", "//v1//status?%zz", "pi1:99999", "Expect", "100-continue")
	d := leading(time.Hour)
	p := newTestPage(f, d)
	server := p.server()
	server.Report = func(err error) { f.Error(err) }
	f.Fuzz(func(t *testing.T, method, target, host, name, value string) {
		raw := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s: %s\r\n\r\n", method, target, host, name, value)
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			return // net/http answers it
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a stream of events ends after its first line
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r.WithContext(ctx))
		if text := http.StatusText(w.Code); text == "" {
			t.Errorf("%q is answered with %d", raw, w.Code)
		}
		if w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%q is answered without a policy", raw)
		}
	})
}
