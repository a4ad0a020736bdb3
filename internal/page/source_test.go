package page

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// However many look, the daemon gets a few requests.
func TestViewersShareARequest(t *testing.T) {
	const viewers, every, length = 200, 500 * time.Millisecond, time.Minute
	synctest.Test(t, func(t *testing.T) {
		d := leading(time.Second)
		d.takes = 2 * time.Millisecond
		s := newTestPage(t, d).groups[0].source
		var all sync.WaitGroup
		for n := range viewers {
			all.Go(func() {
				time.Sleep(time.Duration(n) * every / viewers)
				for began := time.Now(); time.Since(began) < length; time.Sleep(every) {
					a, err := s.shown(t.Context())
					if err != nil || boottime.Now().Sub(a.Asked) > fresh+5*time.Millisecond {
						t.Errorf("got a status of %v ago, %v", boottime.Now().Sub(a.Asked), err)
					}
				}
			})
		}
		all.Wait()
		if rate := float64(d.asks()) / length.Seconds(); rate < 2 || rate > 3 {
			t.Errorf("%.2f requests a second", rate)
		}
		before := d.asks()
		time.Sleep(time.Hour)
		assert.Is(t, before, d.asks(), "questions when nobody looks any more")
	})
}

// What has happened is in the next status that anybody gets.
func TestStatusAfterATransition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := leading(time.Second)
		p := newTestPage(t, d)
		role := func() string {
			t.Helper()
			a, err := p.groups[0].source.shown(t.Context())
			assert.NoError(t, err)
			return a.Status.Role
		}
		assert.Is(t, console.RoleLeader, role(), "the role as long as nothing has happened")
		d.set(func(d *fakeDaemon) { d.status.Role = console.RoleFollower })
		assert.Is(t, console.RoleLeader, role(), "the role as long as nothing has happened")
		assert.Is(t, 1, d.asks(), "questions though nothing has happened")
		p.hear(t, d.event(1, console.EventRoleChanged))
		assert.Is(t, console.RoleFollower, role(), "the role after it has changed")

		// It happens while the daemon answers.
		time.Sleep(time.Minute)
		d.set(func(d *fakeDaemon) { d.takes = 10 * time.Millisecond })
		got := make(chan string)
		go func() { got <- role() }()
		time.Sleep(time.Millisecond)
		d.set(func(d *fakeDaemon) { d.status.Role = console.RoleIsolated })
		p.hear(t, d.event(2, console.EventRoleChanged))
		assert.Is(t, console.RoleIsolated, <-got, "the role of an answer during which it has changed")
	})
}

// A daemon that does not answer is asked no more often than another, and whoever looks is told.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := leading(time.Second)
		p := newTestPage(t, d)
		_, err := p.groups[0].source.shown(t.Context())
		assert.NoError(t, err)
		for _, c := range []struct {
			name   string
			change func(*fakeDaemon)
		}{
			{"gone", func(d *fakeDaemon) { d.err = errors.New("the daemon does not run") }},
			{"frozen", func(d *fakeDaemon) { d.err, d.takes = nil, time.Hour }},
		} {
			name := c.name
			time.Sleep(time.Minute)
			d.set(c.change)
			before, first := d.asks(), time.Now()
			for range 20 {
				began := time.Now()
				if a, err := p.groups[0].source.shown(t.Context()); err == nil {
					t.Fatalf("%s: got a status of %v ago", name, boottime.Now().Sub(a.Asked))
				}
				if took := time.Since(began); took > shownWithin {
					t.Errorf("%s: it took %v", name, took)
				}
				time.Sleep(50 * time.Millisecond)
			}
			if rate := float64(d.asks()-before) / time.Since(first).Seconds(); rate > 3 {
				t.Errorf("%s: asked %.1f times a second", name, rate)
			}
		}
		// It is back.
		d.set(func(d *fakeDaemon) { d.takes = 0 })
		p.hear(t, d.snapshot())
		_, err = p.groups[0].source.shown(t.Context())
		assert.ErrorIs(t, err, nil, "it is back")
		// Whoever has gone is not waited for.
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(time.Minute)
		_, err = p.groups[0].source.shown(gone)
		assert.ErrorIs(t, err, context.Canceled, "a viewer that has gone")
	})
}

// A text that is no status is passed on, and whoever needs a value of it is told.
func TestOtherStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := `{"version":"9","role":"leader","something_new":[1]}`
		s := newSource(t.Context(), func(context.Context) ([]byte, error) { return []byte(text), nil })
		a, err := s.shown(t.Context())
		if err != nil || string(a.Text) != text {
			t.Errorf("got %s, %v", a.Text, err)
		}
		text = `{"role":7}`
		s.heard(console.Transition{})
		if v := s.fit(t.Context()); v.yes || !strings.Contains(v.text, "cannot be read") {
			t.Errorf("got %+v", v)
		}
	})
}
