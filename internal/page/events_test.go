package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// listener reads a stream of events.
type listener struct {
	lines *bufio.Scanner
	ended chan error
}

// pipeWriter is the connection of a listener. It takes what is read.
type pipeWriter struct {
	*httptest.ResponseRecorder
	*io.PipeWriter
}

func (p pipeWriter) Write(b []byte) (int, error) { return p.PipeWriter.Write(b) }

// read asks for the stream. It ends with the context.
func (p *page) read(ctx context.Context, query string) *listener {
	read, write := io.Pipe()
	l := &listener{lines: bufio.NewScanner(read), ended: make(chan error, 1)}
	l.lines.Buffer(nil, 1<<20)
	context.AfterFunc(ctx, func() { read.Close() })
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events"+query, nil)
	go func() {
		err := p.ofOne(p.serveEvents)(pipeWriter{httptest.NewRecorder(), write}, r)
		write.Close()
		l.ended <- err
	}()
	return l
}

// line is the next line; nil if there is none.
func (l *listener) line(t *testing.T) map[string]any {
	t.Helper()
	if !l.lines.Scan() {
		return nil
	}
	var line map[string]any
	if err := json.Unmarshal(l.lines.Bytes(), &line); err != nil {
		t.Fatalf("%s: %v", l.lines.Text(), err)
	}
	return line
}

// wants reads lines, of which it looks at number, event and missed.
func (l *listener) wants(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for range want {
		line := l.line(t)
		got = append(got, fmt.Sprint(line["number"], " ", line["event"], " ", line["missed"]))
	}
	assert.Equal(t, want, got, "lines")
}

// Readers get what the daemon tells, each from a snapshot on, until the daemon's stream ends.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := leading(time.Second)
		d.status.Transition = 7
		p := newTestPage(t, d)
		one, alive := p.read(t.Context(), ""), p.read(t.Context(), "?alive")
		first := one.line(t)
		status, ok := first["status"].(map[string]any)
		if first["event"] != "snapshot" || first["number"] != 7.0 || !ok || status["group"] != "a group" {
			t.Errorf("the first line is %v", first)
		}
		alive.wants(t, "7 snapshot 0")
		synctest.Wait() // it awaits a sign of life now; one that came before would be none for it
		p.hear(t, d.event(7, console.EventAlive))
		synctest.Wait()
		p.hear(t, d.event(8, console.EventRoleChanged))
		one.wants(t, "8 role_changed 0")
		alive.wants(t, "7 alive 0", "8 role_changed 0")

		// One that comes later begins later. What the status tells already is not told again.
		d.set(func(d *fakeDaemon) { d.status.Transition = 9 })
		late := p.read(t.Context(), "")
		late.wants(t, "9 snapshot 0")
		p.hear(t, d.event(9, console.EventGradeChanged))
		p.hear(t, d.event(10, console.EventStopping))
		one.wants(t, "9 grade_changed 0", "10 stopping 0")
		late.wants(t, "10 stopping 0")
		p.hear(t, console.Transition{Event: console.EventDaemonGone})
		if line := one.line(t); line != nil {
			t.Errorf("after the end comes %v", line)
		}
		if err := <-p.read(t.Context(), "").ended; err == nil {
			t.Error("there is a stream without a daemon")
		}
		d.set(func(d *fakeDaemon) { d.status.Transition = 1 })
		p.hear(t, d.snapshot())
		p.read(t.Context(), "").wants(t, "1 snapshot 0")
	})
}

// A reader that does not read costs no memory. It is told what it has missed.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := leading(time.Second)
		p := newTestPage(t, d)
		slow := p.read(t.Context(), "")
		slow.wants(t, "0 snapshot 0")
		const many = 10 * keptTransitions
		for n := range uint64(many) {
			p.hear(t, d.event(n+1, console.EventRoleChanged))
			if n == 0 {
				synctest.Wait() // it is being sent
			}
		}
		slow.wants(t, "1 role_changed 0", fmt.Sprint(many, " role_changed ", many-2))
		assert.Is(t, many, p.groups[0].source.now().Number, "the last transition that the page has heard")
	})
}

// If this process itself was too slow, all streams begin anew.
func TestGapInTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := leading(time.Second)
		p := newTestPage(t, d)
		one := p.read(t.Context(), "")
		one.wants(t, "0 snapshot 0")
		missing := d.event(300, console.EventRoleChanged)
		missing.Missed = 299
		p.hear(t, missing)
		if line := one.line(t); line != nil {
			t.Errorf("after the gap comes %v", line)
		}
		d.set(func(d *fakeDaemon) { d.status.Transition = 300 })
		again := p.read(t.Context(), "")
		again.wants(t, "300 snapshot 0")
		p.hear(t, d.event(301, console.EventRoleChanged))
		again.wants(t, "301 role_changed 0")
	})
}

func TestReadersAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := leading(time.Second)
		p := newTestPage(t, d)
		ctx, leave := context.WithCancel(t.Context())
		for range maxReaders {
			p.read(ctx, "").wants(t, "0 snapshot 0")
		}
		if err := <-p.read(t.Context(), "").ended; err == nil || err.Error() != "this page serves 16 streams of events already: end one, or use GET /v1/status" {
			t.Errorf("one more: %v", err)
		}
		leave()
		synctest.Wait()
		p.read(t.Context(), "").wants(t, "0 snapshot 0")
		for _, query := range []string{"?for=hooks", "?alive&x=1", "?x"} {
			if err := <-p.read(t.Context(), query).ended; err == nil {
				t.Errorf("%s is served", query)
			}
		}
	})
}
