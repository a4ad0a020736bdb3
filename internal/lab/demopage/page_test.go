package demopage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/assert"
)

// fakeSource has documents that say what they are, and remembers what it was asked to do.
type fakeSource struct {
	mu   sync.Mutex
	done []Action
	fail error // what the next action comes to
	hold chan struct{}
}

func (f *fakeSource) Look(ctx context.Context, d Document) ([]byte, int64, error) {
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	if d != State && d != About && d != Takeover {
		return nil, 0, fmt.Errorf("there is no document %q", d)
	}
	return fmt.Appendf(nil, `{"this":%q}`, d), 42, nil
}

func (f *fakeSource) Act(_ context.Context, a Action) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail == nil {
		f.done = append(f.done, a)
	}
	return f.fail
}

var testOptions = Options{Boards: 5, Token: "SECRET"}

// asked is a request to act as the page makes it, but for some changes.
type asked struct {
	method, path, body string
	headers            map[string]string // "" removes one
}

func (a asked) do(t *testing.T, source Source) *http.Response {
	t.Helper()
	s, err := newServer(routes(source, testOptions), nil)
	assert.NoError(t, err)
	r := httptest.NewRequest(a.method, a.path, strings.NewReader(a.body))
	r.Host = "127.0.0.1:8080"
	if a.method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", "http://127.0.0.1:8080")
		r.Header.Set(tokenHeader, "SECRET")
	}
	for name, value := range a.headers {
		r.Header.Set(name, value)
		switch {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func TestAct(t *testing.T) {
	pull := `{"action":"cable_out","board":3}`
	for _, test := range []struct {
		name string
		asked
		code int
		told string // a part of what is told
	}{
		{"a cable", asked{body: pull}, 200, pull},
		{"with a charset", asked{body: pull, headers: map[string]string{"Content-Type": "application/json; charset=utf-8"}}, 200, ""},
		{"loss", asked{body: `{"action":"loss","loss_percent":0}`}, 200, `"loss_percent":0`},
		{"split", asked{body: `{"action":"split","apart":[1,2]}`}, 200, ""},

		{"no token", asked{body: pull, headers: map[string]string{tokenHeader: ""}}, 403, "one may only look"},
		{"another token", asked{body: pull, headers: map[string]string{tokenHeader: "SECRED"}}, 403, "one may only look"},
		{"a part of the token", asked{body: pull, headers: map[string]string{tokenHeader: "SECRE"}}, 403, "one may only look"},
		{"a page elsewhere", asked{body: pull, headers: map[string]string{"Origin": "http://evil.example"}}, 403, "evil.example"},
		{"another port of this host", asked{body: pull, headers: map[string]string{"Origin": "http://127.0.0.1:8081"}}, 403, "is not this page"},
		{"no origin", asked{body: pull, headers: map[string]string{"Origin": ""}}, 403, "is not this page"},
		{"a sandboxed page", asked{body: pull, headers: map[string]string{"Origin": "null"}}, 403, "is not this page"},
		{"DNS rebinding", asked{body: pull, headers: map[string]string{"Host": "evil.example", "Origin": "http://evil.example"}}, 421, "not the host"},
		{"a form", asked{body: "action=cable_out&board=3", headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}, 415, "an action is JSON"},
		{"a form of text", asked{body: pull, headers: map[string]string{"Content-Type": "text/plain"}}, 415, "an action is JSON"},
		{"no type", asked{body: pull, headers: map[string]string{"Content-Type": ""}}, 415, "an action is JSON"},
		{"GET", asked{method: "GET"}, 405, "use POST"},
		{"PUT", asked{method: "PUT", body: pull}, 405, "use POST"},
		{"too long", asked{body: `{"action":"` + strings.Repeat("x", 5000) + `"}`}, 413, "too long"},

		{"nothing", asked{}, 400, "this is no action"},
		{"no JSON", asked{body: "pull it"}, 400, "this is no action"},
		{"two actions", asked{body: pull + pull}, 400, "behind the action"},
		{"an unknown field", asked{body: `{"action":"kill","board":1,"now":true}`}, 400, "now"},
		{"a wrong type", asked{body: `{"action":"kill","board":"1"}`}, 400, "board"},
		{"an unknown action", asked{body: `{"action":"explode","board":1}`}, 400, `there is no action \"explode\"`},
		{"no board", asked{body: `{"action":"kill"}`}, 400, "the boards 1 to 5"},
		{"a board too many", asked{body: `{"action":"kill","board":6}`}, 400, "the boards 1 to 5"},
		{"a negative board", asked{body: `{"action":"kill","board":-1}`}, 400, "the boards 1 to 5"},
		{"a board for all", asked{body: `{"action":"heal","board":1}`}, 400, "not about one board"},
		{"loss of what", asked{body: `{"action":"loss"}`}, 400, "loss_percent"},
		{"too much loss", asked{body: `{"action":"loss","loss_percent":91}`}, 400, "must be 0 to 90"},
		{"loss of a kill", asked{body: `{"action":"kill","board":1,"loss_percent":5}`}, 400, "loss_percent"},
		{"split of none", asked{body: `{"action":"split","apart":[]}`}, 400, "name some"},
		{"split of all", asked{body: `{"action":"split","apart":[1,2,3,4,5]}`}, 400, "not all"},
		{"split of one twice", asked{body: `{"action":"split","apart":[1,1]}`}, 400, "named twice"},
		{"split without boards", asked{body: `{"action":"split"}`}, 400, "apart"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.method == "" {
				test.method = "POST"
			}
			test.path = "/v1/demo/act"
			source := &fakeSource{}
			answer := test.do(t, source)
			text, _ := io.ReadAll(answer.Body)
			if answer.StatusCode != test.code || !strings.Contains(string(text), test.told) {
				t.Errorf("got %d %s, want %d with %q", answer.StatusCode, text, test.code, test.told)
			}
			assert.Is(t, test.code == 200, len(source.done) > 0, "it was done")
		})
	}
}

// TestRefusals: what the boards do not do is told with its reason.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		fail error
		code int
	}{
		{&Refusal{Text: "pi3 has no power"}, 409},
		{&Refusal{Busy: true, Text: "16 actions are waiting"}, 429},
		{errors.New("broken"), 500},
	} {
		answer := asked{"POST", "/v1/demo/act", `{"action":"kill","board":3}`, nil}.do(t, &fakeSource{fail: test.fail})
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != test.code || !strings.Contains(string(text), test.fail.Error()) {
			t.Errorf("%v: got %d %s, want %d", test.fail, answer.StatusCode, text, test.code)
		}
	}
}

func TestLook(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/demo": `{"this":"state"}`, "/v1/demo/about": `{"this":"about"}`, "/v1/demo/takeover": `{"this":"takeover"}`,
	} {
		first := asked{"GET", path, "", nil}.do(t, &fakeSource{})
		text, _ := io.ReadAll(first.Body)
		if diff := cmp.Diff(want, string(text)); diff != "" || first.StatusCode != 200 || first.Header.Get(clockHeader) != "42" {
			t.Errorf("%s: %d, clock %q (-want +got):\n%s", path, first.StatusCode, first.Header.Get(clockHeader), diff)
		}
		again := asked{"GET", path, "", map[string]string{"If-None-Match": first.Header.Get("ETag")}}.do(t, &fakeSource{})
		if again.StatusCode != 304 || again.Header.Get(clockHeader) != "42" {
			t.Errorf("%s again: %d, clock %q", path, again.StatusCode, again.Header.Get(clockHeader))
		}
	}
}

// TestThousandConnections: as many connections as a machine can make keep nobody from looking.
func TestThousandConnections(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	port, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, port, &fakeSource{}, testOptions) }()
	defer func() {
		cancel()
		assert.ErrorIs(t, <-served, nil, "")
	}()
	for range 1000 {
		c, err := net.Dial("tcp", port.Addr().String())
		assert.NoError(t, err)
		defer c.Close()
	}
	assert.Is(t, `{"this":"state"}`, get(t, "http://"+port.Addr().String()+"/v1/demo"), "with a thousand silent connections")
}

func TestNewToken(t *testing.T) {
	if a, b := NewToken(), NewToken(); a == b || len(a) < 20 {
		t.Errorf("the tokens are %q and %q", a, b)
	}
}
