package recipes

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/wire"
)

// killedMax bounds the client's wait when the leader's service is killed. The process is known to have died within
// milliseconds; the rest is for a busy machine, and far from the seconds of several strikes.
const killedMax = 700 * time.Millisecond

// busy is what a busy machine may add to the time after which a frozen service is noticed.
const busy = time.Second

// Each recipe does what it says: the service answers at the floating address however a board holds it, whether
// the service or the address was there first; and the address goes to a board where it answers.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for i := range services {
		s := &services[i]
		t.Run(s.unit, judge.Of(func(t *judge.T) {
			r := newRig(t, s)
			r.begin()
			first := r.agree()
			second := r.kill(first)
			third := r.freeze(second)
			r.restart(third)
			r.killAll()
		}))
	}
}

// begin starts the services, and then topdog: the address comes where they run.
func (r *rig) begin() {
	r.t.Helper()
	for _, b := range r.boards {
		b.service.start(r.t)
	}
	for _, b := range r.boards {
		r.works(b)
		assert.NoError(r.t, b.Run())
	}
	for _, b := range r.boards {
		r.graded(b, wire.GradePassing)
	}
	r.client.answered("the address comes", time.Now())
}

// kill kills the leader's service, and starts it again, as systemd does. It returns who leads then.
func (r *rig) kill(leader *board) (next *board) {
	r.t.Helper()
	began := time.Now()
	r.end(leader, syscall.SIGKILL)
	next = r.holder("the service was killed", leader)
	r.client.answered("the service was killed", time.Now())
	leader.service.start(r.t)
	r.works(leader)
	r.waitedAtMost("killed", began, killedMax)
	return next
}

// freeze stops the leader's service, which its process survives.
func (r *rig) freeze(leader *board) (next *board) {
	r.t.Helper()
	most := busy
	for _, c := range r.checks(leader) {
		if c.Kind != check.Exec {
			most = max(most, time.Duration(c.Fall)*c.Every+c.Timeout+busy)
		}
	}
	began := time.Now()
	r.signal(leader, syscall.SIGSTOP)
	next = r.holder("the service is frozen", leader)
	r.client.answered("the service is frozen", time.Now())
	r.signal(leader, syscall.SIGCONT)
	r.waitedAtMost("frozen", began, most)
	return next
}

// restart restarts the leader's service, as an upgrade does.
func (r *rig) restart(leader *board) {
	r.t.Helper()
	began := time.Now()
	r.end(leader, syscall.SIGTERM)
	leader.service.start(r.t)
	r.works(leader)
	r.client.answered("the service was restarted", time.Now())
	r.waitedAtMost("restarted", began, killedMax)
}

// killAll kills the service on all boards. The address must stay, and answer again when a service is back.
func (r *rig) killAll() {
	r.t.Helper()
	began := time.Now()
	for _, b := range r.boards {
		r.end(b, syscall.SIGKILL)
	}
	for _, b := range r.boards {
		r.graded(b, wire.GradeFailing)
	}
	settled := time.Now()
	for _, b := range r.boards {
		b.service.start(r.t)
	}
	r.client.answered("the services are back", settled)
	seen := r.Holders.Since(began)
	r.t.Logf("killed on all boards: %d moves, no holder for %.1f ms", seen.Moves(), ms(seen.Vacant()))
	if seen.Vacant() > killedMax {
		r.t.Errorf("nobody had the address for %.1f ms", ms(seen.Vacant()))
	}
}

// waitedAtMost checks how long the client has got no answer since a moment.
func (r *rig) waitedAtMost(what string, since time.Time, most time.Duration) {
	r.t.Helper()
	waited := r.client.waited(since)
	r.t.Logf("%s: the client waited %.1f ms, at most %.0f are allowed", what, ms(waited), ms(most))
	if waited > most {
		r.t.Errorf("%s: the client waited %.1f ms, more than %.0f", what, ms(waited), ms(most))
	}
}

// checks are the checks of a board's configuration.
func (r *rig) checks(b *board) []check.Check {
	r.t.Helper()
	c, err := config.LoadGroups(b.ConfigFile())
	assert.NoError(r.t, err)
	return c.First().Checks
}

// The files of all recipes are right, also of those that were not run.
func TestConfigurations(t *testing.T) {
	for _, page := range allPages(t) {
		t.Run(page, func(t *testing.T) {
			text, found := files(t, page)[topdogTOML]
			if !found {
				t.Fatalf("%s does not show %s", page, topdogTOML)
			}
			c, err := config.ParseGroups(topdogTOML, []byte(text))
			assert.NoError(t, err)
			asks := slices.ContainsFunc(c.First().Checks, func(c check.Check) bool {
				return c.Kind == check.DNS || c.Kind == check.HTTP || c.Kind == check.Command
			})
			if !asks {
				t.Error("no check asks the service for anything, so that it is not noticed when it is frozen")
			}
		})
	}
}
