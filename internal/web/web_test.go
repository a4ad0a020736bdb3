package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
)

func TestAllowed(t *testing.T) {
	names := []string{"Pi1", "", "leader.lan"}
	for host, want := range map[string]bool{
		"":                      true,
		"192.168.1.250":         true,
		"192.168.1.250:9254":    true,
		"[::1]":                 true,
		"[fe80::1]:9254":        true,
		"[fd00:1::250]:9254":    true,
		"[FD00:1::250]":         true,
		"fd00:1::250":           true,
		"[fd00:1::250].example": false,
		"[fd00:1::250]example":  false,
		"[fd00:1::g]:9254":      false,
		"localhost:9254":        true,
		"pi1":                   true,
		"PI1:9254":              true,
		"pi1.local":             true,
		"pi1.local.:9254":       true,
		"leader.lan":            true,
		"leader.lan.local":      true,
		"evil.example":          false,
		"pi1.evil.example":      false,
		"pi1.local.example:80":  false,
		".local":                false,
		"192.168.1.250.nip.io":  false,
		"127.1":                 false,
		"local":                 false,
	} {
		assert.Is(t, want, allowed(host, names), "%s", host)
	}
}

// echo is a server with a route of each kind.
func echo() *Server {
	return &Server{
		Limits:   DefaultLimits,
		Names:    func() []string { return []string{"pi1"} },
		HostHint: "use the address",
		Routes: []Route{
			{Path: "/look", Serve: func(w http.ResponseWriter, r *http.Request) error {
				return WriteJSON(w, http.StatusOK, "seen")
			}},
			{Path: "/check", Methods: []string{"GET", "OPTIONS"}, Serve: func(w http.ResponseWriter, _ *http.Request) error {
				return &Error{Code: http.StatusServiceUnavailable, Message: "no"}
			}},
			{Path: "/act", Methods: []string{"POST"}, Serve: func(w http.ResponseWriter, r *http.Request) error {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return &Error{Code: http.StatusRequestEntityTooLarge, Message: "the body is too long"}
				}
				return WriteJSON(w, http.StatusOK, string(body))
			}},
			{Path: "/panic", Serve: func(http.ResponseWriter, *http.Request) error { panic("on purpose") }},
			{Path: "/fail", Serve: func(http.ResponseWriter, *http.Request) error { return errors.New("it failed") }},
		},
	}
}

func TestRoutes(t *testing.T) {
	for _, c := range []struct {
		method, target, host, body string
		code                       int
		answer                     string
	}{
		{"GET", "/look", "pi1", "", 200, `"seen"`},
		{"HEAD", "/look", "", "", 200, `"seen"`}, // net/http leaves the body out
		{"OPTIONS", "/look", "", "", 204, ""},
		{"OPTIONS", "/check", "", "", 503, `{"error":"no"}`},
		{"OPTIONS", "/check", "", "more", 400, `{"error":"this request may have no body"}`},
		{"OPTIONS", "/check", "evil.example", "", 421, `{"error":"this is not the host that was asked for","hint":"use the address"}`},
		{"POST", "/look", "", "", 405, `{"error":"POST does not go with /look","hint":"use GET /look"}`},
		{"GET", "/look", "", "more", 400, `{"error":"this request may have no body"}`},
		{"GET", "/look", "evil.example", "", 421, `{"error":"this is not the host that was asked for","hint":"use the address"}`},
		{"OPTIONS", "/look", "evil.example", "", 421, `{"error":"this is not the host that was asked for","hint":"use the address"}`},
		{"GET", "http://evil.example/look", "", "", 421, `{"error":"this is not the host that was asked for","hint":"use the address"}`},
		{"POST", "/act", "", "do", 200, `"do"`},
		{"POST", "/act", "", strings.Repeat("x", 5000), 413, `{"error":"the body is too long"}`},
		{"GET", "/act", "", "", 405, `{"error":"GET does not go with /act","hint":"use POST /act"}`},
		{"GET", "/no", "", "", 404, `{"error":"there is no /no here","hint":"there are GET /look, GET /check, POST /act, GET /panic, GET /fail"}`},
		{"GET", "/panic", "", "", 500, `{"error":"the program failed on this request","hint":"journalctl has the details; please report them"}`},
		{"GET", "/fail", "", "", 500, `{"error":"it failed"}`},
	} {
		t.Run(c.method+" "+c.target+" "+c.host, func(t *testing.T) {
			s := echo()
			var reported []error
			s.Report = func(err error) { reported = append(reported, err) }
			r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
			if !strings.HasPrefix(c.target, "http:") {
				r.Host = c.host
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			assert.Is(t, c.code, w.Code, "")
			assert.Is(t, c.answer, strings.TrimSpace(w.Body.String()), "")
			assert.Is(t, policy, w.Header().Get("Content-Security-Policy"), "its policy")
			assert.Is(t, c.target == "/panic", len(reported) > 0, "reported: %v", reported)
		})
	}
}

func TestAssets(t *testing.T) {
	files := fstest.MapFS{
		"assets/index.html": {Data: []byte("<!doctype html>")},
		"assets/page.js":    {Data: []byte("1")},
	}
	routes, version, err := Assets("assets", files)
	assert.NoError(t, err)
	s := &Server{Routes: routes, Limits: DefaultLimits}
	get := func(path, tag string) *http.Response {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = ""
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/page.js": "text/javascript; charset=utf-8", "/topdog.css": "text/css; charset=utf-8",
	} {
		first := get(path, "")
		tag := first.Header.Get("ETag")
		if first.StatusCode != 200 || first.Header.Get("Content-Type") != kind || tag == "" {
			t.Errorf("%s: %s, %q, ETag %q", path, first.Status, first.Header.Get("Content-Type"), tag)
		}
		assert.Is(t, 304, get(path, tag).StatusCode, "%s with its ETag", path)
	}
	files["assets/page.js"].Data = []byte("2")
	if _, other, _ := Assets("assets", files); other == version {
		t.Error("the version does not change with a file")
	}
	files["assets/page.exe"] = &fstest.MapFile{}
	if _, _, err := Assets("assets", files); err == nil {
		t.Error("a file of an unknown type was accepted")
	}
	_, _, err = Assets("none", files)
	assert.ErrorIs(t, err, fs.ErrNotExist, "no directory")
}

func TestExplain(t *testing.T) {
	message, hint := Explain(&Error{Code: 503, Message: "it is ill", Hint: "call a doctor"})
	assert.Equal(t, []string{"it is ill", "call a doctor"}, []string{message, hint}, "what is refused")
	message, hint = Explain(io.EOF)
	assert.Equal(t, []string{"EOF", ""}, []string{message, hint}, "another error")
}

// port is a listener of pipes, so that connections live in virtual time.
type port struct{ conns chan net.Conn }

func (p port) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p port) Close() error   { close(p.conns); return nil }
func (p port) Addr() net.Addr { return &net.TCPAddr{} }

// from is a pipe with the address of a client.
type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr {
	a, _ := net.ResolveTCPAddr("tcp", f.address)
	return a
}

func (p port) dial(address string) net.Conn {
	client, server := net.Pipe()
	p.conns <- from{server, address}
	return client
}

// ask sends a request, and returns the status.
func ask(t *testing.T, c net.Conn, path string) int {
	t.Helper()
	_ = c.SetReadDeadline(time.Time{})
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: pi1\r\n\r\n", path)
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	var v any
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return answer.StatusCode
}

// closed reports whether the server has closed a connection.
func closed(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// TestConnections holds that whoever is silent makes room for others.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s := echo()
		s.Limits.Connections, s.Limits.PerAddress = 3, 2
		busy := make(chan struct{})
		s.Routes = append(s.Routes, Route{Path: "/long", Serve: func(w http.ResponseWriter, r *http.Request) error {
			<-busy
			return WriteJSON(w, http.StatusOK, "late")
		}})
		p := port{make(chan net.Conn)}
		ended := make(chan error)
		go func() { ended <- s.Run(ctx, p) }()

		one, two := p.dial("10.0.0.1:1"), p.dial("10.0.0.1:2")
		ask(t, two, "/look")
		three := p.dial("10.0.0.1:3")
		synctest.Wait()
		assert.Equal(t, []bool{true, false}, []bool{closed(one), closed(two)}, "whether the oldest two are closed at a third connection of one address")
		// The address is full, and no other connection of it is silent: the new one goes.
		done := make(chan int)
		go func() { done <- ask(t, two, "/long") }()
		go func() { done <- ask(t, three, "/long") }()
		synctest.Wait()
		if four := p.dial("10.0.0.1:4"); !closed(four) {
			t.Error("a connection beyond the limit was kept")
		}
		// Another address has a place, and takes the place of its own silent one.
		other := p.dial("10.0.0.2:1")
		assert.Is(t, 200, ask(t, other, "/look"), "another address")
		synctest.Wait() // until the server has noted that nothing is asked on it any more
		another := p.dial("10.0.0.3:1")
		if code := ask(t, another, "/look"); code != 200 || !closed(other) {
			t.Error("a silent connection did not make room when all places were taken")
		}
		close(busy)
		<-done
		<-done
		// Nobody is silent for ever.
		time.Sleep(DefaultLimits.Idle + time.Second)
		if !closed(another) || !closed(two) {
			t.Error("an idle connection was kept")
		}
		stop()
		assert.ErrorIs(t, <-ended, nil, "Run")
	})
}

// when is so long after the beginning of a test of places.
func when(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

// TestTake gives clients one after the other one of four connections, of which each user may have three.
func TestTake(t *testing.T) {
	type caller struct {
		user  int
		ms    int  // when it connects
		asked bool // at once
	}
	const a, b, c, d, e = 1, 2, 3, 4, 5
	for _, tt := range []struct {
		name    string
		callers []caller
		want    []bool // who has one in the end
	}{
		{"all have a place", []caller{{a, 0, true}, {b, 0, true}, {b, 0, false}, {c, 0, true}}, []bool{true, true, true, true}},
		{"one has all he may, and the oldest silent one goes", []caller{{a, 0, true}, {a, 1, false}, {a, 2, false}, {a, 500, false}}, []bool{true, false, true, true}},
		{"one has all he may, and all have asked", []caller{{a, 0, true}, {a, 1, true}, {a, 2, true}, {a, 500, true}}, []bool{true, true, true, false}},
		{"whoever has just connected may still ask", []caller{{a, 0, false}, {a, 0, false}, {a, 0, false}, {a, 100, false}}, []bool{true, true, true, false}},
		{"full, and a silent one goes of who has most", []caller{{a, 0, true}, {a, 0, false}, {a, 0, false}, {b, 0, false}, {c, 500, true}}, []bool{true, false, true, true, true}},
		{"full, and the oldest goes of who has most", []caller{{a, 0, true}, {a, 0, true}, {a, 0, true}, {b, 0, true}, {c, 1, true}}, []bool{false, true, true, true, true}},
		{"full, and nobody has more than the next one would", []caller{{a, 0, true}, {b, 0, true}, {c, 0, true}, {d, 0, true}, {e, 1, true}}, []bool{true, true, true, true, false}},
		{"full, and who has most comes again", []caller{{a, 0, true}, {a, 0, true}, {b, 0, true}, {c, 0, true}, {a, 1, true}}, []bool{true, true, true, true, false}},
	} {
		p := Places{Total: 4, Each: 3, Young: 200 * time.Millisecond}
		got := make([]bool, len(tt.callers))
		for i, c := range tt.callers {
			place := &Place{Client: c.user, Hangup: func() error { got[i] = false; return nil }}
			if got[i] = p.Take(place, when(c.ms)); got[i] && c.asked {
				p.SetBusy(place, true)
			}
		}
		assert.Equal(t, tt.want, got, "%s", tt.name)
	}
}

// A user cannot keep others from their streams.
func TestStreamsOfUsers(t *testing.T) {
	p := Places{Total: 6, Each: 4}
	var closed []int
	follow := func(user int) bool {
		place := &Place{Client: user, Hangup: func() error { closed = append(closed, user); return nil }}
		if !p.Take(place, when(0)) {
			t.Fatalf("user %d has no connection", user)
		}
		p.SetBusy(place, true)
		ok := p.Stream(place, 2)
		if !ok {
			p.Leave(place)
		}
		return ok
	}
	for i, tt := range []struct {
		user   int
		want   bool
		closed []int
	}{
		{1, true, nil}, {1, true, nil},
		{1, false, nil}, // that user has as many streams as one may have
		{2, true, nil}, {2, true, nil}, {3, true, nil}, {3, true, nil},
		{4, true, []int{1}}, // all connections are taken, so one is closed of a user with most
	} {
		closed = nil
		assert.Is(t, tt.want, follow(tt.user), "stream %d, of user %d", i, tt.user)
		assert.Equal(t, tt.closed, closed, "whose connections are closed for stream %d, of user %d", i, tt.user)
	}
}

// TestAddressOf holds that the addresses of one machine count as one.
func TestAddressOf(t *testing.T) {
	for client, want := range map[string]string{
		"10.0.0.1:80":               "10.0.0.1",
		"[::ffff:10.0.0.1]:80":      "10.0.0.1",
		"[2001:db8:1:2::1]:80":      "2001:db8:1:2::",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::",
		"[2001:db8:1:3::1]:80":      "2001:db8:1:3::",
		"[fe80::1%eth0]:80":         "fe80::1%eth0",
		"[::1]:80":                  "::",
	} {
		assert.Is(t, want, AddressOf(client).String(), "%s", client)
	}
}

func TestListenSaysWhatToDo(t *testing.T) {
	taken, err := Listen(t.Context(), "127.0.0.1:0")
	assert.NoError(t, err)
	defer taken.Close()
	for address, hint := range map[string]string{
		taken.Addr().String(): "another program has that port",
		"192.0.2.1:9254":      "does not have that address now",
	} {
		if l, err := Listen(t.Context(), address); err == nil {
			l.Close()
			t.Errorf("%s: no error", address)
		} else if !strings.Contains(err.Error(), hint) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v, want a hint with %q", address, err, hint)
		}
	}
}
