package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
)

// twoHoldersAfterKill is for how long the address may stay on a killed board.
// On a device of the process's own it goes with the process; with nothing
// but a lifetime, it goes when that ends.
var twoHoldersAfterKill = map[string]func() time.Duration{
	"auto":     atOnce,
	"lifetime": func() time.Duration { return lifetime },
}

func TestKilled(t *testing.T) {
	for hold, bound := range twoHoldersAfterKill {
		t.Run(hold, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, settings{"hold": quote(hold)})
			c.start(c.boards...)
			old := c.settle()

			killed := time.Now()
			old.signal(syscall.SIGKILL)
			c.untilHolders("somebody takes over", func(h []int) bool {
				return slices.ContainsFunc(h, func(n int) bool { return n != old.number })
			})
			leader := c.settleIgnoringDead(old)
			c.observe(killed, bound())

			// It comes back, and disturbs nobody.
			returned := time.Now()
			old.start()
			c.settleOn(leader, c.boards...)
			c.undisturbed(returned, leader)
		})
	}
}

// settleIgnoringDead waits until the other boards agree, and the kernel of the
// dead one has let go of the address.
func (c *cluster) settleIgnoringDead(dead *board) (leader *board) {
	c.t.Helper()
	var members []*board
	for _, b := range c.except(dead) {
		if b.running() {
			members = append(members, b)
		}
	}
	c.until("the others take over from "+dead.String(), func() string {
		var lack string
		leader, lack = c.agreed(members)
		return lack
	})
	c.answeredBy(leader)
	return leader
}

// A daemon that is killed and restarted at once, as systemd does, finds that
// its address has gone, and either leads again or follows, whichever is first.
func TestKilledAndRestarted(t *testing.T) {
	for hold, bound := range twoHoldersAfterKill {
		t.Run(hold, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, settings{"hold": quote(hold)})
			c.start(c.boards...)
			for round := range 3 {
				old := c.settle()
				killed := time.Now()
				old.signal(syscall.SIGKILL)
				<-old.process.Exited()
				old.start()
				c.untilTakenFrom(old)
				c.settle()
				t.Logf("round %d", round+1)
				c.observe(killed, bound())
				c.clientWaited(killed, 10*heartbeat)
			}
		})
	}
}

// A frozen process cannot let go of anything; the kernel does it. And a process
// that wakes up must not believe that it still leads.
func TestFrozen(t *testing.T) {
	for hold := range twoHoldersAfterKill {
		t.Run(hold, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, settings{"hold": quote(hold)})
			c.start(c.boards...)
			old := c.settle()

			frozen := time.Now()
			long := time.After(4 * time.Second)
			old.signal(syscall.SIGSTOP)
			c.untilTakenFrom(old)
			leader := c.settle(c.except(old)...)
			c.observe(frozen, lifetime)
			<-long // so that nothing is left of any lifetime or window

			woken := time.Now()
			old.signal(syscall.SIGCONT)
			c.settleOn(leader, c.boards...)
			c.observe(woken, 0)
			c.undisturbed(woken, leader)
			if log := old.journal.String(); strings.Contains(log, "put back") || strings.Contains(log, "taking it again") {
				t.Errorf("%s took the address back when it woke up", old)
			}
		})
	}
}

// A pause that is shorter than the lifetime but long enough for a take-over:
// the address is still on the frozen board when it wakes up.
func TestFrozenForAMoment(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.start(c.boards...)
	old := c.settle()

	frozen := time.Now()
	old.signal(syscall.SIGSTOP)
	c.untilHolders("somebody takes over", func(h []int) bool { return len(h) == 2 })
	c.watchFor(3 * heartbeat)
	woken := time.Now()
	old.signal(syscall.SIGCONT)
	c.untilHolders("the woken one lets go", func(h []int) bool { return len(h) == 1 && h[0] != old.number })
	c.observe(woken, atOnce())
	leader := c.settle()
	if leader == old {
		t.Errorf("%s leads again after it has slept", old)
	}
	c.observe(frozen, 8*heartbeat)
}

func TestTerminated(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.start(c.boards...)
	for len(c.running()) > 1 {
		old := c.settle()
		stopped := time.Now()
		old.signal(syscall.SIGTERM)
		c.untilTakenFrom(old)
		next := c.settleIgnoringDead(old)
		old.ended()
		c.observe(stopped, 0)
		c.handedOver(stopped, next)
	}
	last := c.settle()
	last.signal(syscall.SIGTERM)
	last.ended()
	c.untilHolders("the last one lets go", func(h []int) bool { return len(h) == 0 })
	if addresses, err := last.Addresses(); err != nil || len(addresses) != 1 {
		t.Errorf("%s is left with the addresses %v, %v", last, addresses, err)
	}
}

func (c *cluster) running() (list []*board) {
	for _, b := range c.boards {
		if b.running() {
			list = append(list, b)
		}
	}
	return list
}

// A follower that ends is nobody's business.
func TestFollowerTerminated(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.start(c.boards...)
	leader := c.settle()
	follower := c.except(leader)[0]
	stopped := time.Now()
	follower.signal(syscall.SIGTERM)
	follower.ended()
	leader.untilStatus("the follower has gone", func(s console.Status) string {
		for _, b := range s.Boards {
			if b.Name == follower.String() && !b.Gone {
				return "it is not known to have gone"
			}
		}
		return ""
	})
	follower.start()
	c.settleOn(leader, c.boards...)
	c.undisturbed(stopped, leader)
}

// Leader and heir are lost at once: the next in rank has to wait for the heir's
// turn to pass.
func TestLeaderAndHeirLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, nil)
	c.start(c.boards...)
	leader := c.settle()
	s, err := leader.look()
	must(t, err)
	heir := c.named(s.HeirName)
	if heir == nil {
		t.Fatalf("%s knows of no heir", leader)
	}

	lost := time.Now()
	must(t, leader.Pull())
	must(t, heir.Pull())
	c.untilHolders("somebody takes over", func(h []int) bool {
		return len(h) == 1 && h[0] != leader.number && h[0] != heir.number
	})
	next := c.settle(c.except(leader, heir)...)
	c.observe(lost, 0)
	if want := slices.MaxFunc(c.except(leader, heir), func(a, b *board) int { return a.number - b.number }); next != want {
		t.Errorf("%s took over, not %s", next, want)
	}

	back := time.Now()
	must(t, heir.Plug())
	must(t, leader.Plug())
	c.settleOn(next, c.boards...)
	c.undisturbed(back, next)
}
