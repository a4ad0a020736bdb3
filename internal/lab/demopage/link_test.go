package demopage

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/web"
)

// linked returns the routes of a child whose parent has a source, and what ends the parent.
func linked(t *testing.T, source Source) (child web.Routes, end func(), ended chan error) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	ended = make(chan error, 1)
	go func() { ended <- serveLink(t.Context(), ours, source, testOptions) }()
	l, err := newLink(t.Context(), theirs, func() {})
	assert.NoError(t, err)
	return l.routes(), func() { ours.Close() }, ended
}

// asks has a child answer a request, which ends with ctx.
func asks(ctx context.Context, child web.Routes, method, path, body string) (*http.Response, error) {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://127.0.0.1:8080")
	r.Header.Set(tokenHeader, testOptions.Token)
	r.Header.Set("Cookie", "other="+strings.Repeat("x", 2*headersMax)) // of another program on this host
	w := httptest.NewRecorder()
	err := child.Serve(w, r)
	return w.Result(), err
}

func TestLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &fakeSource{}
		child, end, ended := linked(t, source)
		ask := func(method, path, body string, code int, told string) *http.Response {
			t.Helper()
			answer, err := asks(t.Context(), child, method, path, body)
			assert.NoError(t, err)
			text, _ := io.ReadAll(answer.Body)
			if answer.StatusCode != code || !strings.Contains(string(text), told) {
				t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, answer.StatusCode, text, code, told)
			}
			return answer
		}
		first := ask("GET", "/v1/demo/takeover", "", 200, `{"this":"takeover"}`)
		assert.Is(t, "42", first.Header.Get(clockHeader), "the clock")
		ask("HEAD", "/v1/demo", "", 200, "")
		assert.Is(t, "no-cache", first.Header.Get("Cache-Control"), "what a browser keeps")
		for _, body := range []string{`{"action":"kill","board":2}`, `{"action":"loss","loss_percent":20}`, `{"action":"split","apart":[1,4]}`} {
			ask("POST", "/v1/demo/act", body, 200, body)
		}
		assert.Is(t, 3, len(source.done), "what was done")
		source.fail = &Refusal{Busy: true, Text: "too much"}
		ask("POST", "/v1/demo/act", `{"action":"all_on"}`, 429, "too much")
		source.fail = nil
		ask("POST", "/v1/demo/act", `{"action":"kill","board":6}`, 400, "the boards 1 to 5")
		ask("POST", "/v1/demo/act", strings.Repeat(" ", askedMax+1), 413, "too long")
		assert.Is(t, 3, len(source.done), "what was done")
		// Whoever waits does not wait for ever.
		source.hold = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := asks(ctx, child, "GET", "/v1/demo", "")
		assert.ErrorIs(t, err, context.DeadlineExceeded, "a parent that stands still")
		close(source.hold)
		end()
		synctest.Wait()
		_, err = asks(t.Context(), child, "GET", "/v1/demo", "")
		assert.ErrorContains(t, err, "ask the process that has the boards", "a parent that has ended")
		assert.ErrorIs(t, <-ended, nil, "")
	})
}

// TestHostileBrowser: nothing that a browser may send to the child ends the link.
func TestHostileBrowser(t *testing.T) {
	child, _, ended := linked(t, &fakeSource{})
	most := web.DefaultLimits.HeaderBytes + 4<<10
	for range 2 {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/demo/act", strings.NewReader(strings.Repeat("x", 10*askedMax)))
		r.Header = http.Header{"Content-Type": {"application/json"}, tokenHeader: {strings.Repeat("x", most)}}
		r.Close = true // its own connection, and not the link
		for range most / len("Origin:\r\n") {
			r.Header.Add("Origin", "http://"+r.Host)
		}
		w := httptest.NewRecorder()
		assert.NoError(t, child.Serve(w, r))
		assert.Is(t, 403, w.Code, "with a token that is too long")
	}
	select {
	case err := <-ended:
		t.Errorf("the link has ended: %v", err)
	default:
	}
}

// TestHostileChild: a child that is another program gets nothing that is not on the page, and whatever it says else ends the link.
func TestHostileChild(t *testing.T) {
	for name, says := range map[string]string{
		"no HTTP/2":          "GET /v1/demo HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"nonsense":           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("x", 100),
		"one that is no act": strings.Repeat("x", 10*askedMax),
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			source := &fakeSource{}
			ended := make(chan error, 1)
			go func() { ended <- serveLink(t.Context(), ours, source, testOptions) }()
			go io.Copy(io.Discard, theirs)
			_, _ = io.WriteString(theirs, says) // fails when the parent has heard enough
			select {
			case <-ended:
			case <-time.After(5 * time.Second):
				t.Error("the parent listens on")
			}
			assert.Is(t, 0, len(source.done), "what was done")
		})
	}
}

// TestForgingChild: the parent looks for the token itself. A child that has been taken over does not know it.
func TestForgingChild(t *testing.T) {
	ours, theirs := net.Pipe()
	source := &fakeSource{}
	defer theirs.Close()
	go func() { _ = serveLink(t.Context(), ours, source, testOptions) }()
	l, err := newLink(t.Context(), theirs, func() {})
	assert.NoError(t, err)
	for path, code := range map[string]int{"/v1/demo/act": 403, "/v1/demo/passwords": 404} {
		r, err := http.NewRequest("POST", "http://127.0.0.1"+path, strings.NewReader(`{"action":"kill","board":1}`))
		assert.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", "http://127.0.0.1")
		answer, err := l.parent.RoundTrip(r)
		assert.NoError(t, err)
		answer.Body.Close()
		assert.Is(t, code, answer.StatusCode, "%s", path)
	}
	assert.Is(t, 0, len(source.done), "what was done")
}

// slowSource has actions that take until a time is over, or nobody waits any more. It holds how they ended.
type slowSource struct {
	fakeSource
	takes time.Duration
	ended chan error
}

func (s *slowSource) Act(ctx context.Context, _ Action) error {
	select {
	case <-time.After(s.takes):
		s.ended <- nil
	case <-ctx.Done():
		s.ended <- ctx.Err()
	}
	return ctx.Err()
}

// TestGiveUp: the parent learns that nobody waits for an action any more, and does not depend on being told.
func TestGiveUp(t *testing.T) {
	for name, test := range map[string]struct {
		takes, patience time.Duration
		after           time.Duration // it ended
		parent          error         // how it ended there
	}{
		"it is done":                    {time.Second, time.Minute, time.Second, nil},
		"the client gives up":           {time.Hour, time.Second, time.Second, context.Canceled},
		"the child does not give up":    {time.Hour, time.Hour, within, context.DeadlineExceeded},
		"it is done at the last moment": {within - 1, time.Hour, within - 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &slowSource{takes: test.takes, ended: make(chan error, 1)}
				child, end, ended := linked(t, source)
				ctx, cancel := context.WithTimeout(t.Context(), test.patience)
				defer cancel()
				began := time.Now()
				answer, err := asks(ctx, child, "POST", "/v1/demo/act", `{"action":"resign","board":1}`)
				if done := err == nil && answer.StatusCode == 200; done != (test.parent == nil) {
					t.Errorf("the child gets %v, %v", answer.StatusCode, err)
				}
				if err := <-source.ended; !errors.Is(err, test.parent) || time.Since(began) != test.after {
					t.Errorf("for the parent it ended with %v after %v", err, time.Since(began))
				}
				// Places are free again.
				for range 2 * askedAtOnce {
					answer, err := asks(t.Context(), child, "GET", "/v1/demo", "")
					assert.NoError(t, err)
					assert.Is(t, 200, answer.StatusCode, "another request")
				}
				end()
				assert.ErrorIs(t, <-ended, nil, "")
			})
		})
	}
}
