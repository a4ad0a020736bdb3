package simpage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/compare"
	"topdog/internal/web"
)

// get asks the page.
func get(t *testing.T, target string) *httptest.ResponseRecorder {
	t.Helper()
	s, err := New(func(err error) { t.Error(err) })
	assert.NoError(t, err)
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
		"/v1/sim/run":                       {200, `"command":"topdog sim run --algorithm bully --nodes 4 --members --seed 1 --kill 4@30s --notice 1 --for 30.5s"`},
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
	assert.NoError(t, json.Unmarshal(get(t, "/v1/sim/compare?algorithm=candidates&boards=5").Body.Bytes(), &got))
	r := compare.NewRequest()
	r.Algorithms, r.Boards = []string{"candidates"}, []int{5}
	want, err := r.Run(t.Context())
	assert.NoError(t, err)
	assert.Equal(t, want[0], got.Row, "the command, and the page")
}

// TestCancelledComparison holds that the largest comparison ends at once when nobody waits for it.
func TestCancelledComparison(t *testing.T) {
	r, err := readComparison("algorithm=bully&boards=250")
	assert.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = measure(ctx, r)
	assert.ErrorIs(t, err, context.Canceled, "a comparison")
	_, err = show(ctx, standard)
	assert.ErrorIs(t, err, context.Canceled, "a run")
}

// TestWorker has one thing computed, five wait, and one more refused. Then all but the last are given up.
func TestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiting = mayWaitEach - 1
		w := newWorker(time.Minute)
		untilDone := func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }
		results := make(chan error, waiting+1)
		var cancels []context.CancelFunc
		for range waiting + 1 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			go func() {
				_, err := w.do(ctx, netip.Addr{}, untilDone)
				results <- err
			}()
			synctest.Wait()
		}
		var refusal *web.Error
		if _, err := w.do(t.Context(), netip.Addr{}, untilDone); !errors.As(err, &refusal) || refusal.Code != http.StatusServiceUnavailable {
			t.Errorf("one too many gets %v", err)
		}
		for _, cancel := range cancels[:waiting] { // who computes, and all but one who wait
			cancel()
			synctest.Wait()
		}
		for range waiting {
			assert.ErrorIs(t, <-results, context.Canceled, "who went away")
		}
		synctest.Wait()
		began := time.Now()
		if err := <-results; !errors.As(err, &refusal) || !strings.Contains(refusal.Message, "longer than 1m0s") || time.Since(began) != time.Minute {
			t.Errorf("what takes too long gets %v after %v", err, time.Since(began))
		}
		_, free := w.do(t.Context(), netip.Addr{}, func(context.Context) (any, error) { return nil, nil })
		assert.ErrorIs(t, free, nil, "the worker is free")
		cancels[waiting]()
	})
}

// TestWorkerOfOneAddress: whoever asks more than others does not keep them out.
func TestWorkerOfOneAddress(t *testing.T) {
	for name, test := range map[string]struct {
		many  func(i int) string // who asks again and again
		other string             // who asks once
		alike bool               // they count as one
	}{
		"IPv4":                   {func(i int) string { return fmt.Sprintf("10.0.0.1:%d", 1000+i) }, "10.0.0.2:1000", false},
		"IPv4 on a v6 socket":    {func(i int) string { return fmt.Sprintf("[::ffff:10.0.0.1]:%d", 1000+i) }, "10.0.0.1:1000", true},
		"one network of IPv6":    {func(i int) string { return fmt.Sprintf("[2001:db8::%x]:1000", 1+i) }, "[2001:db8:0:1::1]:1000", false},
		"the same network again": {func(i int) string { return fmt.Sprintf("[2001:db8::%x]:1000", 1+i) }, "[2001:db8::ffff]:1000", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				worker := newWorker(runLimit)
				refused := 0
				ask := func(ctx context.Context, from string, compute func(context.Context) (any, error)) error {
					r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
					r.RemoteAddr = from
					return worker.answer(httptest.NewRecorder(), r, compute)
				}
				for i := range mayWait {
					go func() {
						var refusal *web.Error
						err := ask(ctx, test.many(i), func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
						if errors.As(err, &refusal) && refusal.Code == http.StatusServiceUnavailable && ctx.Err() == nil {
							refused++
						}
					}()
					synctest.Wait()
				}
				assert.Is(t, mayWait-mayWaitEach, refused, "refused of %d", mayWait)
				other := make(chan error, 1)
				go func() {
					other <- ask(t.Context(), test.other, func(context.Context) (any, error) { return "computed", nil })
				}()
				synctest.Wait()
				cancel()
				assert.Is(t, test.alike, <-other != nil, "another one is refused")
				synctest.Wait()
				for range 2 * mayWaitEach {
					assert.NoError(t, ask(t.Context(), test.many(0), func(context.Context) (any, error) { return "computed", nil }))
				}
			})
		})
	}
}

// TestFullWorker: if all places are taken, a newcomer gets one of whoever has the most.
func TestFullWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWorker(time.Minute)
		from := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
		untilDone := func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }
		results := make(chan error, mayWait+2)
		ask := func(n int) {
			_, err := w.do(ctx, from(n), untilDone)
			results <- err
		}
		for i := range mayWait + 1 {
			go ask(i / mayWaitEach)
			synctest.Wait()
		}
		assert.Is(t, 0, len(results), "refused while there are places")
		go ask(99)
		synctest.Wait()
		assert.Is(t, 1, len(results), "refused for the newcomer")
		assert.ErrorIs(t, <-results, errBusy, "")
		cancel()
		synctest.Wait()
		for range mayWait + 1 {
			assert.ErrorIs(t, <-results, context.Canceled, "who stayed")
		}
	})
}

// serveSlowly serves a route that computes, on loopback, and returns its URL. A request may take 20 ms.
func serveSlowly(t *testing.T, compute func(context.Context) error) string {
	t.Helper()
	limits := web.DefaultLimits
	limits.Request, limits.Linger = 20*time.Millisecond, 0
	worker := newWorker(time.Minute)
	s := &web.Server{Limits: limits, Routes: []web.Route{{Path: "/", Serve: func(w http.ResponseWriter, r *http.Request) error {
		return worker.answer(w, r, func(ctx context.Context) (any, error) { return "computed", compute(ctx) })
	}}}}
	port, err := web.Listen(t.Context(), "127.0.0.1:0")
	assert.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Run(ctx, port) }()
	t.Cleanup(func() {
		cancel()
		assert.ErrorIs(t, <-served, nil, "")
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
	assert.NoError(t, err)
	defer answer.Body.Close()
	assert.Is(t, http.StatusOK, answer.StatusCode, "")
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
	assert.NoError(t, err)
	if answer, err := http.DefaultClient.Do(r); err == nil {
		answer.Body.Close()
		t.Error("there is an answer")
	}
	assert.ErrorIs(t, <-ended, context.Canceled, "computing")
}
