package page

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/web"
	"topdog/wire"
)

// fakeDaemon answers as the test says, and counts how often it was asked.
type fakeDaemon struct {
	mu     sync.Mutex
	status console.Status
	err    error
	takes  time.Duration // for each answer; it is as of its beginning
	old    time.Duration // how long before it was asked the daemon has looked
	kept   []byte        // what it has told last; it tells it again while it is fresh
	fresh  time.Duration // for how long that is,
	lasted time.Duration // unless the lease that it told of ends before
	asked  int
}

// leading is the daemon of a leader, with a lease.
func leading(lease time.Duration) *fakeDaemon {
	self := console.Board{ID: "192.168.1.11", Name: "pi1", Address: "192.168.1.11", Role: console.RoleLeader, Self: true, Priority: 100}
	return &fakeDaemon{status: console.Status{
		Group: "a group", Role: console.RoleLeader, Holding: true, LeaseEndsInNs: int64(lease), Leader: self.ID, LeaderName: self.Name,
		HeldBy: self.ID, Term: 7, Grade: wire.GradePassing.String(), Board: self, Boards: []console.Board{self}, Addresses: []string{"192.168.1.250/24"},
	}}
}

func (d *fakeDaemon) ask(ctx context.Context) ([]byte, error) {
	d.mu.Lock()
	d.asked++
	text, err := d.tell()
	takes := d.takes
	if d.err != nil {
		text, err = nil, d.err
	}
	d.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return text, err
}

// tell makes an answer, or takes that of a moment before. d.mu is held.
func (d *fakeDaemon) tell() (text []byte, err error) {
	if looked := boottime.Now().Add(-d.old); d.kept == nil || looked.Sub(d.status.AsOf) >= min(d.fresh, d.lasted) {
		d.status.AsOf, d.lasted = looked, time.Duration(d.status.LeaseEndsInNs)
		d.kept, err = json.Marshal(d.status)
	}
	return d.kept, err
}

// set changes what it answers from now on.
func (d *fakeDaemon) set(change func(*fakeDaemon)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

// asks is how often it was asked.
func (d *fakeDaemon) asks() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked
}

// snapshot is how it is by the stream.
func (d *fakeDaemon) snapshot() console.Transition {
	d.mu.Lock()
	defer d.mu.Unlock()
	status := d.status
	return status.Snapshot()
}

// event is something that has happened to it.
func (d *fakeDaemon) event(number uint64, event console.Event) console.Transition {
	t := d.snapshot()
	t.Number, t.Event, t.Status = number, event, nil
	return t
}

func quiet() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

// newTestPage is a page of a daemon that it follows.
func newTestPage(t testing.TB, d *fakeDaemon) *page {
	t.Helper()
	p, err := newPage(Options{Log: quiet()}, fakeGroup(t.Context(), d.ask))
	assert.NoError(t, err)
	p.hear(t, d.snapshot())
	return p
}

// fakeGroup is a group of a daemon that answers as ask does.
func fakeGroup(ctx context.Context, ask func(context.Context) ([]byte, error)) *group {
	return &group{source: newSource(ctx, ask), events: newEvents(), history: newHistory()}
}

func (p *page) hear(t testing.TB, event console.Transition) {
	t.Helper()
	assert.NoError(t, p.heard(p.groups[0], event))
}

// A phone on bad Wi-Fi loads the page in a second, and whoever reads its sources is done in an hour.
func TestAssetsAreSmall(t *testing.T) {
	const limit = 60_000
	assets, _, err := web.Assets("assets", files)
	assert.NoError(t, err)
	total := 0
	for _, route := range assets {
		w := httptest.NewRecorder()
		assert.NoError(t, route.Serve(w, httptest.NewRequest("GET", route.Path, nil)))
		total += w.Body.Len()
	}
	if total > limit || total == 0 {
		t.Errorf("the page has %d bytes, and may have %d", total, limit)
	}
}
