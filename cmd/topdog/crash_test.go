package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"topdog/election/silence"
	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// holds are the ways to hold the address. With each of them the dead man's switch
// lets go of it when the daemon cannot.
var holds = []string{"auto", "lifetime"}

// TestCrash has one thing after the other happen to the daemon of the leader, with each way to hold the address.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, hold := range holds {
		t.Run(hold, judge.Of(func(t *judge.T) {
			c := newCluster(t, 3, settings{"hold": quote(hold)})
			c.start(c.boards...)
			for _, crash := range []struct {
				name   string
				happen func(*testCluster)
			}{
				{"killed", (*testCluster).killLeader},
				{"killed and restarted", (*testCluster).restartLeader},
				{"killed and restarted again", (*testCluster).restartLeader},
				{"frozen", (*testCluster).freezeLeader},
				{"frozen for a moment", (*testCluster).freezeLeaderForAMoment},
				{"frozen for a moment again", (*testCluster).freezeLeaderForAMoment},
			} {
				t.Run(crash.name, func(*judge.T) { crash.happen(c) })
				if t.Failed() {
					return // on a busy machine all of it is tried once more, alone
				}
			}
		}))
	}
}

func (c *testCluster) killLeader() {
	c.t.Helper()
	old, killed := c.agree(), time.Now()
	old.signal(syscall.SIGKILL)
	c.untilTakenFrom(old)
	leader := c.agreeWithout(old)
	c.twoHoldersAtMost(killed, atOnce())
	c.handedOver(leader) // by the pre-signed RESIGN

	// It comes back, and disturbs nobody.
	returned := time.Now()
	old.start()
	c.agree(c.boards...)
	c.undisturbed(returned, leader)
}

// restartLeader kills a daemon and restarts it at once, as systemd does. It finds that its address has gone, and either leads
// again or follows, whichever is first.
func (c *testCluster) restartLeader() {
	c.t.Helper()
	old, killed := c.agree(), time.Now()
	old.signal(syscall.SIGKILL)
	old.gone()
	old.start()
	c.untilTakenFrom(old)
	c.agree()
	c.twoHoldersAtMost(killed, atOnce())
}

// freezeLeader: a frozen daemon cannot let go of anything; its dead man's switch does. And a daemon that wakes up must not
// believe that it still leads.
func (c *testCluster) freezeLeader() {
	c.t.Helper()
	old, frozen := c.agree(), time.Now()
	long := time.After(4 * time.Second)
	old.signal(syscall.SIGSTOP)
	c.untilTakenFrom(old)
	leader := c.agree(c.except(old)...)
	c.twoHoldersAtMost(frozen, atOnce())
	c.handedOver(leader)
	<-long // so that nothing is left of any lifetime or window

	woken := time.Now()
	old.signal(syscall.SIGCONT)
	c.agree(c.boards...)
	c.twoHoldersAtMost(woken, 0)
	c.undisturbed(woken, leader)
	old.acquiredNothingAgain()
}

// freezeLeaderForAMoment is a pause that is only just long enough: the pre-signed RESIGN has been sent when the daemon wakes up,
// and what it says next must be heard as something newer.
func (c *testCluster) freezeLeaderForAMoment() {
	c.t.Helper()
	old, frozen := c.agree(), time.Now()
	said := old.Log.Count("dead man's switch has released")
	old.signal(syscall.SIGSTOP)
	c.untilTakenFrom(old)
	old.signal(syscall.SIGCONT)
	if leader := c.agree(); leader == old {
		c.t.Errorf("%s leads again after it was frozen", old)
	}
	c.twoHoldersAtMost(frozen, atOnce())
	c.until(old.String()+" says what has happened to it", func() string {
		if n := old.Log.Count("dead man's switch has released"); n <= said {
			return fmt.Sprintf("it has said so %d times before, and %d times now", said, n)
		}
		return ""
	})
	old.acquiredNothingAgain()
}

// agreeWithout waits until the other boards agree, and the kernel of the
// dead one has let go of the address.
func (c *testCluster) agreeWithout(dead *board) (leader *board) {
	c.t.Helper()
	members := slices.DeleteFunc(c.running(), func(b *board) bool { return b == dead })
	c.until("the others take over from "+dead.String(), func() string {
		var lack string
		leader, lack = c.agreed(members)
		return lack
	})
	c.answeredBy(leader)
	return leader
}

// acquiredNothingAgain checks that a board that woke up has believed what was done for it.
func (b *board) acquiredNothingAgain() {
	b.c.t.Helper()
	if b.Log.Logged("put back") || b.Log.Logged("acquiring it again") {
		b.c.t.Errorf("%s acquired the address again when it woke up", b)
	}
}

// With its switch frozen as well, nothing of a board is left that could let go but
// the kernel, which does when the lifetime ends. Where it has a fence, it keeps silent from the end
// of the lease on, although it has the address.
func TestBoardFrozen(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		old := c.agree()
		holder := old.holder()
		s, err := old.Status()
		must(t, err)
		fenced := s.Defences[0].Kind == console.DefenceFence && s.Defences[0].On

		frozen := time.Now()
		must(t, netns.Freeze(holder))
		old.signal(syscall.SIGSTOP)
		c.untilHolders("somebody takes over", func(h []int) bool { return len(h) == 2 })
		c.untilAnswered("another board answers", func(n int) bool { return n != old.Number }) // which defends the address by announcing it
		c.untilTakenFrom(old)
		leader := c.agree(c.except(old)...)
		c.twoHoldersAtMost(frozen, lifetime)
		if fenced {
			lease := heartbeat + silence.DefaultGrace(heartbeat)*3/4
			if n := c.asker.Report(frozen.Add(lease + slack)).Answers[old.Number]; n > 0 {
				t.Errorf("the frozen board has answered the client %d times after the end of its lease", n)
			}
		}

		// The switch wakes up first, late, and has nothing left to let go of.
		woken := time.Now()
		must(t, syscall.Kill(holder, syscall.SIGCONT))
		old.signal(syscall.SIGCONT)
		c.agreeOn(leader, c.boards...)
		c.twoHoldersAtMost(woken, 0)
		c.undisturbed(woken, leader)
		old.acquiredNothingAgain()
	})
}

// Somebody kills the holder of the leader, which has the address: another board leads at once. The daemon ends with
// the reason, so that a service manager starts both again. Then the holder of the next one stands still. It renews the address
// no more, so that leader hands over before the address is gone.
func TestHolder(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		leader := c.agree()
		next, holder := c.except(leader)[0], leader.holder()
		leader.withoutHolder = true
		killed := time.Now()
		must(t, syscall.Kill(holder, syscall.SIGKILL))
		c.untilTakenFrom(leader)
		c.twoHoldersAtMost(killed, atOnce())
		leader.untilLogged("which has the address and the sockets, has ended")
		c.agreeOn(next, next)
		leader.ended()
		leader.withoutHolder = false
		leader.start()
		c.agreeOn(next, c.boards...)

		holder = next.holder()
		next.withoutHolder = true
		frozen := time.Now()
		must(t, netns.Freeze(holder))
		t.Cleanup(func() { _ = syscall.Kill(holder, syscall.SIGKILL) })
		c.untilHolders("somebody takes over", func(h []int) bool { return len(h) == 2 || len(h) == 1 && h[0] == leader.Number })
		took := time.Now()
		c.agreeOn(leader, leader)
		c.twoHoldersAtMost(frozen, lifetime)
		if n := c.asker.Report(took.Add(slack)).Answers[next.Number]; n > 0 {
			t.Errorf("%s has answered the client %d times after it has handed over", next, n)
		}
		next.untilLogged("which has the address and the sockets, has ended or stands still")
	})
}

// findPart returns the living process of that name that the board's daemon has started, or had started; or 0.
func (b *board) findPart(name string) int {
	b.c.t.Helper()
	all, err := procfs.AllProcs()
	must(b.c.t, err)
	for _, p := range all {
		if comm, err := p.Comm(); err != nil || comm != name {
			continue
		}
		parent, alive := parentOf(p.PID)
		if starter, _ := parentOf(parent); alive && (parent == b.PID() || starter == b.PID()) {
			return p.PID
		}
	}
	return 0
}

// parentOf returns the parent of a process, and whether the process has not ended.
func parentOf(pid int) (parent int, alive bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, false
	}
	stat, err := p.Stat()
	return stat.PPID, err == nil && stat.State != "Z"
}

// A follower that ends is nobody's business. Then one leader after the other ends, and the last one lets go.
func TestTerminated(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		leader := c.agree()
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
		c.agreeOn(leader, c.boards...)
		c.undisturbed(stopped, leader)

		for len(c.running()) > 1 {
			old := c.agree()
			stopped := time.Now()
			old.signal(syscall.SIGTERM)
			c.untilTakenFrom(old)
			next := c.agreeWithout(old)
			old.ended()
			c.twoHoldersAtMost(stopped, 0)
			c.handedOver(next)
		}
		last := c.agree()
		last.signal(syscall.SIGTERM)
		last.ended()
		c.untilHolders("the last one lets go", func(h []int) bool { return len(h) == 0 })
		if addresses, err := last.Addresses(); err != nil || len(addresses) != 1 {
			t.Errorf("%s is left with the addresses %v, %v", last, addresses, err)
		}
	})
}

// TestAbortedDaemonSaysLittle: the watchdog of systemd sends SIGABRT. What the daemon was doing is in the journal, without registers, and another
// board leads.
func TestAbortedDaemonSaysLittle(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		leader := c.agree()
		leader.mayEnd = true
		leader.withoutHolder = true // it does not end in good order
		leader.signal(syscall.SIGABRT)
		leader.gone()
		c.untilTakenFrom(leader)
		leader.untilLogged("this daemon stood still, and the watchdog ends it", "It was doing this")
		leader.untilLogged("daemon.(*Daemon).Run")
		for _, register := range []string{"rip ", "r11 ", "lr  ", "pc  "} {
			if leader.Log.Logged(register + " 0x") {
				t.Errorf("it says the register %s", register)
			}
		}
		if lines := strings.Count(leader.Log.String(), "\n"); lines > 250 {
			t.Errorf("it says %d lines", lines)
		}
	})
}
