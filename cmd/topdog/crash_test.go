package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/internal/lab/judge"
)

// holds are the ways to hold the address. With each of them the dead man's switch
// lets go of it when the daemon cannot.
var holds = []string{"auto", "lifetime"}

func TestKilled(t *testing.T) {
	for _, hold := range holds {
		t.Run(hold, judge.Of(func(t *judge.T) {
			c := newCluster(t, 3, settings{"hold": quote(hold)})
			c.start(c.boards...)
			old := c.agree()

			killed := time.Now()
			old.signal(syscall.SIGKILL)
			c.untilTakenFrom(old)
			leader := c.agreeWithout(old)
			c.twoHoldersAtMost(killed, atOnce())
			c.handedOver(leader) // by the pre-signed RESIGN

			// It comes back, and disturbs nobody.
			returned := time.Now()
			old.start()
			c.agreeOn(leader, c.boards...)
			c.undisturbed(returned, leader)
		}))
	}
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

// A daemon that is killed and restarted at once, as systemd does, finds that
// its address has gone, and either leads again or follows, whichever is first.
func TestKilledAndRestarted(t *testing.T) {
	for _, hold := range holds {
		t.Run(hold, judge.Of(func(t *judge.T) {
			c := newCluster(t, 3, settings{"hold": quote(hold)})
			c.start(c.boards...)
			for round := range 3 {
				old := c.agree()
				killed := time.Now()
				old.signal(syscall.SIGKILL)
				old.gone()
				old.start()
				c.untilTakenFrom(old)
				c.agree()
				t.Logf("round %d", round+1)
				c.twoHoldersAtMost(killed, atOnce())
			}
		}))
	}
}

// A frozen daemon cannot let go of anything; its dead man's switch does. And a
// daemon that wakes up must not believe that it still leads.
func TestFrozen(t *testing.T) {
	for _, hold := range holds {
		t.Run(hold, judge.Of(func(t *judge.T) {
			c := newCluster(t, 3, settings{"hold": quote(hold)})
			c.start(c.boards...)
			old := c.agree()

			frozen := time.Now()
			long := time.After(4 * time.Second)
			old.signal(syscall.SIGSTOP)
			c.untilTakenFrom(old)
			leader := c.agree(c.except(old)...)
			c.twoHoldersAtMost(frozen, atOnce())
			c.handedOver(leader)
			<-long // so that nothing is left of any lifetime or window

			woken := time.Now()
			old.signal(syscall.SIGCONT)
			c.agreeOn(leader, c.boards...)
			c.twoHoldersAtMost(woken, 0)
			c.undisturbed(woken, leader)
			old.acquiredNothingAgain()
		}))
	}
}

// acquiredNothingAgain checks that a board that woke up has believed what was done for it.
func (b *board) acquiredNothingAgain() {
	b.c.t.Helper()
	if b.Log.Logged("put back") || b.Log.Logged("acquiring it again") {
		b.c.t.Errorf("%s acquired the address again when it woke up", b)
	}
}

// A pause that is only just long enough: the pre-signed RESIGN has been sent when the daemon wakes up, and
// what it says next must be heard as something newer.
func TestFrozenForAMoment(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		for range 3 {
			old := c.agree()
			frozen := time.Now()
			old.signal(syscall.SIGSTOP)
			c.untilTakenFrom(old)
			old.signal(syscall.SIGCONT)
			if leader := c.agree(); leader == old {
				t.Errorf("%s leads again after it was frozen", old)
			}
			c.twoHoldersAtMost(frozen, atOnce())
			old.untilLogged("dead man's switch has released")
			old.acquiredNothingAgain()
		}
	})
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
		must(t, syscall.Kill(holder, syscall.SIGSTOP))
		old.signal(syscall.SIGSTOP)
		c.untilHolders("somebody takes over", func(h []int) bool { return len(h) == 2 })
		c.answeredByOther(old) // which defends the address by announcing it
		c.untilTakenFrom(old)
		leader := c.agree(c.except(old)...)
		c.twoHoldersAtMost(frozen, lifetime)
		if fenced {
			lease := heartbeat + election.DefaultGrace(heartbeat)*3/4
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
// the reason, so that a service manager starts both again.
func TestHolderKilled(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		leader := c.agree()
		holder := leader.holder()
		leader.withoutHolder = true
		killed := time.Now()
		must(t, syscall.Kill(holder, syscall.SIGKILL))
		c.untilTakenFrom(leader)
		c.twoHoldersAtMost(killed, atOnce())
		leader.untilLogged("which has the address and the sockets, has ended")
		c.agree(c.except(leader)...)
	})
}

// The holder stands still. It renews the address no more, so the leader hands over before the address is gone.
func TestHolderFrozen(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		leader := c.agree()
		holder := leader.holder()
		leader.withoutHolder = true
		frozen := time.Now()
		must(t, syscall.Kill(holder, syscall.SIGSTOP))
		t.Cleanup(func() { _ = syscall.Kill(holder, syscall.SIGKILL) })
		c.untilHolders("somebody takes over", func(h []int) bool { return len(h) == 2 || len(h) == 1 && h[0] != leader.Number })
		took := time.Now()
		c.agree(c.except(leader)...)
		c.twoHoldersAtMost(frozen, lifetime)
		if n := c.asker.Report(took.Add(slack)).Answers[leader.Number]; n > 0 {
			t.Errorf("%s has answered the client %d times after it has handed over", leader, n)
		}
		leader.untilLogged("which has the address and the sockets, has ended or stands still")
	})
}

// holder returns the process of the holder, which has the dead man's switch.
func (b *board) holder() (pid int) {
	b.c.t.Helper()
	b.c.until(b.String()+" has a dead man's switch", func() string {
		if pid = b.findHolder(); pid == 0 {
			return "there is no such process"
		}
		return ""
	})
	return pid
}

// findHolder returns the process of the holder if it lives, or 0.
func (b *board) findHolder() int { return b.findPart("topdog-holder") }

// findPart returns the living process of that name that the board's daemon has started, or had started; or 0.
func (b *board) findPart(name string) int {
	b.c.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	must(b.c.t, err)
	for _, f := range files {
		comm, err := os.ReadFile(f)
		if err != nil || string(comm) != name+"\n" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		must(b.c.t, err)
		parent, alive := parentOf(pid)
		if starter, _ := parentOf(parent); alive && (parent == b.PID() || starter == b.PID()) {
			return pid
		}
	}
	return 0
}

// parentOf returns the parent of a process, and whether the process has not ended.
func parentOf(pid int) (parent int, alive bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name is in parentheses and may contain anything; the state and the parent follow it.
	var state string
	rest := string(text[bytes.LastIndexByte(text, ')')+1:])
	n, _ := fmt.Sscan(rest, &state, &parent)
	return parent, n == 2 && state != "Z"
}

func TestTerminated(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
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

// A follower that ends is nobody's business.
func TestFollowerTerminated(t *testing.T) {
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
	})
}

// Leader and heir are lost at once: the next in rank has to wait for the heir's
// turn to pass.
func TestLeaderAndHeirLost(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 5, nil)
		c.start(c.boards...)
		leader := c.agree()
		s, err := leader.Status()
		must(t, err)
		heir := c.named(s.HeirName)
		if heir == nil {
			t.Fatalf("%s knows of no heir", leader)
		}

		lost := time.Now()
		must(t, leader.Pull())
		must(t, heir.Pull())
		c.untilHolders("somebody takes over", func(h []int) bool {
			return len(h) == 1 && h[0] != leader.Number && h[0] != heir.Number
		})
		next := c.agree(c.except(leader, heir)...)
		c.twoHoldersAtMost(lost, 0)
		if want := slices.MaxFunc(c.except(leader, heir), func(a, b *board) int { return a.Number - b.Number }); next != want {
			t.Errorf("%s took over, not %s", next, want)
		}

		back := time.Now()
		must(t, heir.Plug())
		must(t, leader.Plug())
		c.agreeOn(next, c.boards...)
		c.undisturbed(back, next)
	})
}
