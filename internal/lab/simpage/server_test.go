package simpage

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/internal/lab/compare"
	"topdog/internal/web"
)

// get asks the page.
func get(t *testing.T, target string) *httptest.ResponseRecorder {
	t.Helper()
	s, err := New(func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestRoutes(t *testing.T) {
	for target, want := range map[string]struct {
		code int
		text string
	}{
		"/":                                 {200, "<!doctype html>"},
		"/topdog.css":                       {200, "--accent"},
		"/v1/sim/choices":                   {200, `"standard":{"algorithm":"bully","boards":4`},
		"/v1/sim/run":                       {200, `"command":"topdog sim run --algorithm bully --nodes 4 --members --seed 1 --crash 4@30s --notice 1 --for 30.5s"`},
		"/v1/sim/run?boards=9000":           {400, `"hint":"use a number from 2 to 20"`},
		"/v1/sim/run?boards=5&notice=5":     {400, "board 5 is one of those that fail"},
		"/v1/sim/compare?algorithm=heir":    {200, `"command":"topdog sim compare --algorithms heir --boards 3"`},
		"/v1/sim/compare?algorithm=nothing": {400, "there are: heir, bully"},
		"/v1/sim":                           {404, "/v1/sim/run"},
	} {
		w := get(t, target)
		if body := w.Body.String(); w.Code != want.code || !strings.Contains(body, want.text) {
			t.Errorf("%s: %d %.300s, want %d with %s", target, w.Code, body, want.code, want.text)
		}
	}
}

// TestComparison holds that a row is the one of topdog sim compare.
func TestComparison(t *testing.T) {
	var got comparison
	if err := json.Unmarshal(get(t, "/v1/sim/compare?algorithm=candidates&boards=5").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	r := compare.NewRequest()
	r.Algorithms, r.Boards = []string{"candidates"}, []int{5}
	options, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	want, err := compare.Run(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[0], got.Row); diff != "" {
		t.Errorf("(-command +page):\n%s", diff)
	}
}

// TestCancelledComparison holds that the largest comparison ends at once when nobody waits for it.
func TestCancelledComparison(t *testing.T) {
	r, err := readComparison("algorithm=bully&boards=250")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := show(ctx, standard); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestWorker has one thing computed, two wait, and one more refused. Then the first two are given up.
func TestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = 2
		w := newWorker(waiting, time.Minute)
		untilDone := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		results := make(chan error, waiting+1)
		var cancels []context.CancelFunc
		for range waiting + 1 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			go func() { results <- w.do(ctx, untilDone) }()
			synctest.Wait()
		}
		var refusal *web.Error
		if err := w.do(t.Context(), untilDone); !errors.As(err, &refusal) || refusal.Code != http.StatusServiceUnavailable {
			t.Errorf("one too many gets %v", err)
		}
		cancels[0]() // who computes
		cancels[1]() // one who waits, or has just begun
		for range 2 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Errorf("who went away gets %v", err)
			}
		}
		synctest.Wait()
		began := time.Now()
		if err := <-results; !errors.As(err, &refusal) || !strings.Contains(refusal.Message, "longer than 1m0s") || time.Since(began) != time.Minute {
			t.Errorf("what takes too long gets %v after %v", err, time.Since(began))
		}
		if err := w.do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("the worker is not free: %v", err)
		}
		cancels[2]()
	})
}

// serveSlowly serves a route that computes, on loopback, and returns its URL. A request may take 20 ms.
func serveSlowly(t *testing.T, compute func(context.Context) error) string {
	t.Helper()
	limits := web.DefaultLimits
	limits.Request, limits.Linger = 20*time.Millisecond, 0
	p := &page{limits: limits, runs: newWorker(0, time.Minute)}
	s := &web.Server{Limits: limits, Routes: []web.Route{{Path: "/", Serve: func(w http.ResponseWriter, r *http.Request) error {
		return p.answer(w, r, p.runs, compute, func() any { return "computed" })
	}}}}
	port, err := web.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Run(ctx, port) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + port.Addr().String() + "/"
}

// TestSlowAnswer holds that computing may take longer than a request may.
func TestSlowAnswer(t *testing.T) {
	at := serveSlowly(t, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return errors.New("given up, though the client waits")
		case <-time.After(200 * time.Millisecond):
			return nil
		}
	})
	answer, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("got %v", answer.Status)
	}
}

// TestGoneBrowser holds that nothing goes on for a browser that has gone.
func TestGoneBrowser(t *testing.T) {
	began, ended := make(chan bool), make(chan error, 1)
	at := serveSlowly(t, func(ctx context.Context) error {
		began <- true
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(r); err == nil {
		answer.Body.Close()
		t.Error("there is an answer")
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("computing ended with %v", err)
	}
}
