package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/web"
)

func TestRequests(t *testing.T) {
	s := newAlone("unused", fake{}, defaultLimits)
	handler := s.handler(t.Context())
	for _, test := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/v1/status", "", 200, `"group":"pihole"`},
		{"GET", "/v1/status?pretty", "", 200, `"group":"pihole"`},
		{"GET", "/v1/status", "{}", 400, `{"error":"this request may have no body"}`},
		{"GET", "/v1/trace", "", 200, `"clock":"CLOCK_BOOTTIME","now_ns":`},
		{"POST", "/v1/trace", "", 405, `use GET /v1/trace`},
		{"GET", "/v1/scene", "", 200, `{"text":"# scene\n"}`},
		{"POST", "/v1/resign", "", 200, `{"leader":"192.168.1.12","leader_name":"pi2","text":"handed over to pi2 (192.168.1.12)"}`},
		{"POST", "/v1/resign", " {}\n", 200, `{"leader":"192.168.1.12","leader_name":"pi2","text":"handed over to pi2 (192.168.1.12)"}`},
		{"POST", "/v1/resign", `{"to":"pi2"}`, 400, `{"error":"the request has a body that means nothing here: {\"to\":\"pi2\"}","hint":"docs/status.md says which requests have a body, and what is in it"}`},
		{"POST", "/v1/resign", "null", 400, `means nothing here: null`},
		{"POST", "/v1/resign", "{}{}", 400, `means nothing here`},
		{"POST", "/v1/resign", "\x00\xff\x1b[2J", 400, `means nothing here: ??`},
		{"POST", "/v1/resign", strings.Repeat("[", 1024), 400, `[[[…`},
		{"POST", "/v1/resign", strings.Repeat(" ", 1025), 413, `{"error":"the request has a body of more than 1024 bytes","hint":"docs/status.md says which requests have a body, and what is in it"}`},
		{"POST", "/v1/leave", "", 200, `{"leader":"","leader_name":"","text":"left the group"}`},
		{"POST", "/v1/drain", `{"force":true}`, 200, `{"leader":"","leader_name":"","text":"drained for 0s"}`},
		{"POST", "/v1/drain", `{"for_ns":60000000000,"force":true}`, 200, `drained for 1m0s`},
		{"POST", "/v1/drain", "", 500, `{"error":"no other board passes"}`},
		{"POST", "/v1/try", `{"file":"a","config":"b"}`, 503, `{"error":"checks are being tried","hint":"wait"}`},
		{"POST", "/v1/try", `{"checks":[]}`, 400, `{"error":"the request has a body that means nothing here: {\"checks\":[]}","hint":"docs/status.md says which requests have a body, and what is in it"}`},
		{"POST", "/v1/try", strings.Repeat(" ", MaxTryBytes+1), 413, `{"error":"the request has a body of more than 524288 bytes"`},
		{"POST", "/v1/drain", `{"forced":true}`, 400, `{"error":"the request has a body that means nothing here: {\"forced\":true}","hint":"docs/status.md says which requests have a body, and what is in it"}`},
		{"POST", "/v1/drain", `{"for_ns":"1m"}`, 400, `means nothing here`},
		{"POST", "/v1/drain", `{"force":true} {}`, 400, `means nothing here`},
		{"POST", "/v1/drain", "null", 400, `means nothing here: null`},
		{"POST", "/v1/drain", `[]`, 400, `means nothing here: []`},
		{"GET", "/v1/drain", "", 405, `use POST /v1/drain`},
		{"POST", "/v1/undrain", "", 200, `{"text":"undrained"}`},
		{"POST", "/v1/undrain", `{"force":true}`, 400, `means nothing here`},
		{"POST", "/v1/pause", `{"for_ns":3600000000000}`, 200, `{"text":"paused for 1h0m0s"}`},
		{"POST", "/v1/unpause", "{}", 200, `{"text":"unpaused"}`},
		{"GET", "/v1/keys", "", 200, `{"signs_with":"030d726e","also_accepts":"","running_ns":0,"boards":[]}`},
		{"POST", "/v1/keys/reload", "", 200, `{"text":"read"}`},
		{"GET", "/v1/keys/reload", "", 405, `{"error":"GET does not go with /v1/keys/reload","hint":"use POST /v1/keys/reload"}`},
		{"GET", "/v1/leave", "", 405, `use POST /v1/leave`},
		{"GET", "/v1/resign", "", 405, `{"error":"GET does not go with /v1/resign","hint":"use POST /v1/resign"}`},
		{"POST", "/v1/status", "", 405, `use GET /v1/status`},
		{"HEAD", "/v1/status", "", 405, `use GET /v1/status`},
		{"BREW", "/v1/events", "", 405, `BREW does not go with /v1/events`},
		{"GET", "/", "", 404, `{"error":"there is no / here","hint":"there are GET /v1/status, GET /v1/events, GET /v1/trace, GET /v1/scene, POST /v1/resign, POST /v1/leave, POST /v1/drain, POST /v1/undrain, POST /v1/pause, POST /v1/unpause, GET /v1/keys, POST /v1/keys/reload, POST /v1/try, GET /v1/groups"}`},
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
		r = r.WithContext(calledBy(r.Context(), s.control, false, 0))
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
	s := newAlone("unused", fake{status: func(context.Context) (Status, error) { return Status{}, nil }}, defaultLimits)
	w := httptest.NewRecorder()
	s.handler(t.Context()).ServeHTTP(w, httptest.NewRequestWithContext(calledBy(t.Context(), s.public, true, unidentified), "GET", pathStatus, nil))
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
			return Status{}, fmt.Errorf("wrapped: %w", &web.Error{Code: 409, Message: "this board does not lead", Hint: "ask pi2"})
		}, 409, "this board does not lead: ask pi2"},
		{"a refusal that claims success", func(context.Context) (Status, error) {
			return Status{}, &web.Error{Code: 200, Message: "no"}
		}, 500, "no"},
		{"no answer", func(ctx context.Context) (Status, error) { <-ctx.Done(); return Status{}, ctx.Err() },
			504, "the daemon's election loop did not answer within 20ms: journalctl -u topdog may tell why; if it stays so, the watchdog restarts the daemon"},
		{"a panic", func(context.Context) (Status, error) { panic("oh no") },
			500, "the program failed on this request: journalctl has the details; please report them"},
		{"a number that JSON lacks", func(context.Context) (Status, error) { return Status{HeartbeatMs: math.NaN()}, nil },
			500, "the answer has no JSON: json: unsupported value: NaN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			limits := defaultLimits
			if test.name == "no answer" {
				limits.status = 20 * time.Millisecond
			}
			s := newAlone(socketPath(t), fake{status: test.status}, limits)
			var reports atomic.Int32
			s.Report = func(error) { reports.Add(1) }
			serve(t, s)
			_, err := Dial(s.path).Status(t.Context())
			refused(t, err, test.code, "", "Status")
			assert.Is(t, test.want, fmt.Sprint(err), "")
			assert.Is(t, test.name == "a panic", reports.Load() > 0, "reported")
		})
	}
}

// TestGarbage says things to the socket that are not HTTP. Afterwards the daemon
// must still answer.
func TestGarbage(t *testing.T) {
	short := defaultLimits
	short.Request = 50 * time.Millisecond
	s := newAlone(socketPath(t), fake{}, short)
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
		assert.NoError(t, err)
		_ = conn.SetDeadline(time.Now().Add(deadline))
		_, _ = io.WriteString(conn, garbage) // the server may hang up in the middle
		if answer, err := io.ReadAll(conn); bytes.Contains(answer, []byte(" 200 ")) || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.40q was answered with %.80q, %v", garbage, answer, err)
		}
		conn.Close()
	}
	// On a slow machine, a good request may not be read in time either.
	waitFor(t, func() bool { _, err := Dial(s.path).Status(t.Context()); return err == nil })
}

// Whoever has sent too much reads the refusal to its end, at once and without a broken connection.
func TestTooMuchIsRefusedInPeace(t *testing.T) {
	s := serving(t, fake{})
	for _, head := range []string{"X: ", "Content-Length: 65536\r\n\r\n"} {
		conn, err := dial(t.Context(), s.path)
		assert.NoError(t, err)
		_ = conn.SetDeadline(time.Now().Add(deadline))
		_, err = io.WriteString(conn, "POST /v1/drain HTTP/1.1\r\nHost: x\r\n"+head+strings.Repeat("x", 64<<10))
		assert.NoError(t, err)
		answer, err := io.ReadAll(conn)
		assert.ErrorIs(t, err, nil, "the end of the answer %q", answer)
		assert.Is(t, true, bytes.HasPrefix(answer, []byte("HTTP/1.1 4")), "refused by %q", answer)
		conn.Close()
	}
}

// FuzzRequest sends anything at all to the handler.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/v1/status", []byte(nil))
	f.Add("POST", "/v1/resign", []byte("{}"))
	f.Add("POST", "/v1/resign", []byte(`{"a":[1,{"b":null}]}`))
	f.Add("\x00", "/\x1b[2J", []byte("\xff"))
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		s := newAlone("unused", fake{}, defaultLimits)
		s.Report = func(err error) { t.Error(err) }
		ctx, cancel := context.WithCancel(calledBy(t.Context(), s.control, false, 0))
		cancel() // events end after the first
		r := httptest.NewRequestWithContext(ctx, "GET", "/", bytes.NewReader(body))
		r.Method, r.URL.Path = method, path
		w := httptest.NewRecorder()
		s.handler(ctx).ServeHTTP(w, r)
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("no JSON: %q", w.Body)
		}
		var e web.Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || (w.Code == 200) != (e.Message == "") {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}

// limitedRecorder notes the deadlines that are set for writing.
type limitedRecorder struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (r *limitedRecorder) SetWriteDeadline(at time.Time) error {
	r.deadlines = append(r.deadlines, at)
	return nil
}

// TestTryTakesItsTime: checks may take longer than an answer may, and the answer has its time after that.
func TestTryTakesItsTime(t *testing.T) {
	recorder := &limitedRecorder{ResponseRecorder: httptest.NewRecorder()}
	s := newTestServer(t, fake{try: func(TryRequest) (Tried, error) {
		if len(recorder.deadlines) != 1 || !recorder.deadlines[0].IsZero() {
			t.Errorf("the deadlines while checks are tried: %v", recorder.deadlines)
		}
		return Tried{Checks: []TriedCheck{}}, nil
	}})
	ctx := calledBy(t.Context(), s.control, false, 0)
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, pathTry, strings.NewReader("{}"))
	began := time.Now()
	assert.NoError(t, s.serveTry(recorder, request))
	if n := len(recorder.deadlines); n != 2 || recorder.deadlines[1].Before(began.Add(s.limits.Write)) {
		t.Errorf("the deadlines: %v", recorder.deadlines)
	}
	assert.Is(t, "{\"checks\":[]}\n", recorder.Body.String(), "the answer")
}
