package page

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// interval is that of the leader's heartbeats, with each of which it has its lease again.
const (
	interval = 100 * time.Millisecond
	lease    = 105 * time.Millisecond
)

// beat has a leader extend its lease until it is frozen.
func beat(ctx context.Context, d *fakeDaemon, frozen <-chan struct{}) {
	for sent := time.Now(); ; sent = sent.Add(interval) {
		for time.Since(sent) < interval {
			d.set(func(d *fakeDaemon) { d.status.LeaseEndsInNs = int64(lease - time.Since(sent)) })
			select {
			case <-time.After(time.Millisecond):
			case <-frozen:
				d.set(func(d *fakeDaemon) { d.takes = time.Hour })
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// othersAsk has the daemon tell what it has told somebody else up to 100 ms before.
func othersAsk(ctx context.Context, d *fakeDaemon) {
	for ctx.Err() == nil {
		d.set(func(d *fakeDaemon) {
			d.fresh = 100 * time.Millisecond
			_, _ = d.tell()
		})
		select {
		case <-time.After(7 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// A leader leads at every instant, whoever asks how often, and whoever else asks the daemon; which is asked at most 20
// times a second. When it is frozen, it leads as long as its lease and no longer.
func TestLeads(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 77 * time.Millisecond, time.Millisecond} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				d := leading(lease)
				s := newTestPage(t, d).groups[0].source
				frozen := make(chan struct{})
				go beat(ctx, d, frozen)
				go othersAsk(ctx, d)
				time.Sleep(interval / 3)
				before, length := d.asks(), 20*time.Second
				for began := time.Now(); time.Since(began) < length; time.Sleep(every) {
					if v := s.leads(ctx); !v.yes {
						t.Fatal(v.text)
					}
				}
				if rate := float64(d.asks()-before) / length.Seconds(); rate > 1/requestGap.Seconds() {
					t.Errorf("asked %.1f times a second", rate)
				}
				close(frozen)
				synctest.Wait()
				frozenAt := time.Now()
				var last time.Duration
				for time.Since(frozenAt) < time.Minute {
					asked := time.Since(frozenAt)
					if v := s.leads(ctx); v.yes {
						last = time.Since(frozenAt)
					} else if took := time.Since(frozenAt) - asked; took > leaderWithin {
						t.Fatalf("it took %v to say no", took)
					}
					time.Sleep(every)
				}
				if last > lease {
					t.Errorf("it led %v after it was frozen", last)
				}
			})
		})
	}
}

// Nobody is told that a board leads that has let go, whatever the last status said.
func TestLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := leading(time.Duration(console.NoLeaseEnd))
		p := newTestPage(t, d)
		want := func(yes bool, text string) {
			t.Helper()
			assert.Is(t, verdict{yes, text}, p.groups[0].source.leads(t.Context()), "")
		}
		want(true, "pi1 leads and has the address")
		d.set(func(d *fakeDaemon) { d.takes = time.Hour }) // what follows is known without asking
		event := d.event(1, console.EventAddressReleased)
		event.Holding = false
		p.hear(t, event)
		want(false, "pi1 leads without the address")
		event.Number, event.Role, event.Event = 2, console.RoleFollower, console.EventRoleChanged
		p.hear(t, event)
		want(false, "pi1 does not lead: its role is follower")
		event.Event = console.EventDaemonGone
		p.hear(t, event)
		want(false, "it is not known whether this board leads: the topdog daemon has not answered within 250ms")
	})
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name                    string
		change                  func(*console.Status)
		leader, follower, isFit bool
	}{
		{"a leader", func(s *console.Status) {}, true, false, true},
		{"a leader whose lease is over", func(s *console.Status) { s.LeaseEndsInNs = 0 }, false, false, true},
		{"a leader without the address", func(s *console.Status) { s.Holding = false }, false, false, true},
		{"a leader that misses the majority", func(s *console.Status) { s.MajorityUnheard = true }, false, false, false},
		{"a leader whose checks fail", func(s *console.Status) { s.Grade = console.GradeFailing }, true, false, false},
		{"a follower", following, false, true, true},
		{"a follower of a silent leader", func(s *console.Status) { following(s); s.Boards[0].Stale = true }, false, false, true},
		{"a candidate", func(s *console.Status) { following(s); s.Role = console.RoleCandidate }, false, true, true},
		{"a follower of nobody", func(s *console.Status) { following(s); s.Leader, s.HeldBy = "", "" }, false, false, true},
		{"a drained follower", func(s *console.Status) { following(s); s.Grade = "drained" }, false, true, false},
		{"a witness", func(s *console.Status) { following(s); s.Board.Priority = 0 }, false, true, false},
		{"a deaf follower", func(s *console.Status) { following(s); s.PortSilent = true }, false, false, false},
		{"a listener", func(s *console.Status) { following(s); s.Role, s.Leader, s.HeldBy = console.RoleListener, "", "" }, false, false, false},
		{"an isolated board", func(s *console.Status) { following(s); s.Role = console.RoleIsolated }, false, false, false},
		{"a barred board", func(s *console.Status) { following(s); s.Role, s.HeldBy = console.RoleBarred, "" }, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := leading(time.Second)
				c.change(&d.status)
				s := newTestPage(t, d).groups[0].source
				for _, q := range []struct {
					name string
					ask  func(context.Context) verdict
					want bool
				}{{"leader", s.leads, c.leader}, {"follower", s.follows, c.follower}, {"fit", s.fit, c.isFit}} {
					if v := q.ask(t.Context()); v.yes != q.want || !strings.Contains(v.text, "pi1") {
						t.Errorf("%s: %+v", q.name, v)
					}
				}
			})
		})
	}
}

// following makes a status that of a follower.
func following(s *console.Status) {
	heard := 40.0
	s.Role, s.Holding, s.LeaseEndsInNs, s.Board.Role = console.RoleFollower, false, 0, console.RoleFollower
	s.Leader, s.LeaderName, s.HeldBy = "192.168.1.13", "pi3", "192.168.1.13"
	s.Boards = []console.Board{{ID: "192.168.1.13", Name: "pi3", Role: console.RoleLeader, HeardMs: &heard}, s.Board}
}

// health is what /healthz says.
func (p *page) health(t *testing.T) string {
	w := httptest.NewRecorder()
	assert.NoError(t, p.serveHealth(w, nil))
	assert.Is(t, http.StatusOK, w.Code, "the status")
	return w.Body.String()
}

// A process that serves says so, whatever the daemon does.
func TestServes(t *testing.T) {
	d := leading(time.Second)
	p := newTestPage(t, d)
	assert.Is(t, "this page serves; the daemon answers\n", p.health(t), "")
	p.hear(t, console.Transition{Event: console.EventDaemonGone})
	assert.Is(t, "this page serves; the daemon does not answer\n", p.health(t), "")
	assert.Is(t, 0, d.asks(), "questions to the daemon")
}

// The daemon may tell what it has told somebody else a moment before, and then stand still. The lease counts from when it looked,
// and its answer for a moment only.
func TestLeaseOfAnOldStatus(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		lease, old, later time.Duration
		leads             bool
	}{
		{lease, 0, 0, true},
		{lease, lease - ms, 0, true},
		{lease, lease, 0, false},
		{lease, 2 * lease, 0, false},
		{lease, lease - 20*ms, 19 * ms, true},
		{lease, lease - 20*ms, 20 * ms, false},
		{time.Hour, 0, leaderFresh, true},
		{time.Hour, 0, leaderFresh + ms, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := leading(test.lease)
			d.old = test.old
			s := newTestPage(t, d).groups[0].source
			v := s.leads(t.Context())
			if test.later > 0 {
				d.set(func(d *fakeDaemon) { d.takes = time.Hour })
				time.Sleep(test.later)
				v = s.leads(t.Context())
			}
			assert.Is(t, test.leads, v.yes, "%v after the daemon was asked, which had looked %v before: %s", test.later, test.old, v.text)
		})
	}
}

// Many who ask for the leader of a frozen daemon at once all get their no in time.
func TestManyAskAFrozenDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := leading(lease)
		d.takes = time.Hour
		s := newTestPage(t, d).groups[0].source
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				began := time.Now()
				if v := s.leads(t.Context()); v.yes || time.Since(began) > leaderWithin {
					t.Errorf("after %v: %+v", time.Since(began), v)
				}
			})
		}
		all.Wait()
		assert.Is(t, 1, d.asks(), "questions to the daemon")
		time.Sleep(time.Second) // until the request is given up
	})
}
