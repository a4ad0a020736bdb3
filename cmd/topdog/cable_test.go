package main

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

func TestPulledCable(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		old := c.agree()

		pulled := time.Now()
		must(t, old.Pull())
		c.untilTakenFrom(old)
		leader := c.agree(c.except(old)...)
		c.twoHoldersAtMost(pulled, 0)
		s := old.untilStatusIs("the cable is out", func(s console.Status) bool { return s.Role == console.RoleIsolated })
		if s.Holding || s.Held() {
			t.Errorf("%s without a cable: Holding %v, Held %v", old, s.Holding, s.Held())
		}
		old.untilProblem("eth0", "no carrier")

		plugged := time.Now()
		must(t, old.Plug())
		c.agreeOn(leader, c.boards...)
		old.untilNoProblems()
		c.twoHoldersAtMost(plugged, 0)
		c.undisturbed(plugged, leader)
	})
}

// Without frames and with a carrier, the leader cannot know that it is alone.
// Both sides hold the address then, each on its side, until they hear each other.
func TestMutedLeader(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		old := c.agree()

		must(t, c.LAN.Filter(netns.Cut(old.Port())...))
		c.untilHolders("the others take over", func(h []int) bool { return len(h) == 2 })
		leader := c.agreeApart(old)
		if leader == nil {
			return
		}

		healed := time.Now()
		must(t, c.LAN.Filter())
		c.untilHolders("one lets go", func(h []int) bool { return len(h) == 1 })
		// The next heartbeat of either side ends it.
		c.twoHoldersAtMost(healed, 3*heartbeat)
		c.agreeOn(leader, c.boards...) // which served meanwhile, whatever its rank
		c.twoHoldersAtMost(healed, 3*heartbeat)
		// Whoever the client believed in, it hears who is left.
		c.answeredBy(leader)
	})
}

// agreeApart waits until the boards other than alone have a leader that answers
// the client, while alone holds the address where nobody hears it.
func (c *testCluster) agreeApart(alone *board) (leader *board) {
	c.t.Helper()
	c.until("the others agree", func() string {
		others := c.except(alone)
		for _, b := range others {
			s, err := b.Status()
			if err != nil {
				return err.Error()
			}
			if leader = c.named(s.LeaderName); leader == nil || leader == alone || !s.Held() {
				return b.String() + " has no new leader"
			}
		}
		return ""
	})
	c.answeredBy(leader)
	return leader
}

func TestInterfaceDeleted(t *testing.T) {
	t.Parallel()
	for _, hold := range holds {
		t.Run(hold, judge.Of(func(t *judge.T) {
			c := newCluster(t, 2, settings{"hold": quote(hold)})
			c.start(c.boards...)
			old := c.agree()

			_, answers := c.asker.Gaps(0)
			deleted := time.Now()
			must(t, old.DeleteInterface())
			c.untilTakenFrom(old)
			leader := c.agree(c.except(old)...)
			// While the kernel deletes an interface, it keeps the lock that the networks of all boards here share. If that
			// takes as long as the others need to take over, both boards then wait to change the address, in either order.
			// The client hears only one of them, in the order in which the answers came.
			c.twoHoldersAtMost(deleted, slack)
			gaps, _ := c.asker.Gaps(answers)
			gaps = slices.DeleteFunc(gaps, func(g observe.Gap) bool { return g.Before == g.After })
			if len(gaps) != 1 || gaps[0].Before != old.Number || gaps[0].After != leader.Number {
				t.Errorf("the client has not simply gone over from %s to %s: %+v", old, leader, gaps)
			}
			old.untilProblem("eth0", "does not exist")

			created := time.Now()
			must(t, old.CreateInterface())
			c.agreeOn(leader, c.boards...)
			old.untilNoProblems()
			c.undisturbed(created, leader)

			// Now a follower, which is nobody's business but its own.
			must(t, old.DeleteInterface())
			old.untilProblem("eth0", "does not exist")
			must(t, old.CreateInterface())
			c.agreeOn(leader, c.boards...)
			c.undisturbed(created, leader)

			// It can lead again, on the new interface.
			must(t, leader.Pull())
			c.agreeOn(old, old)
			c.twoHoldersAtMost(created, 0)
		}))
	}
}

// A board that starts before its interface exists waits for it, and finds it by the floating address. TestInterfaceComesLater of
// internal/daemon has one that is named.
func TestInterfaceLater(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		late := c.board(2)
		must(t, late.DeleteInterface())
		c.start(late)
		late.untilProblem("10.77.0.100", "interface")
		late.topdog("status").want(t, 1, "status")
		must(t, late.CreateInterface())
		c.agreeOn(late, late)
		late.untilNoProblems()
		c.start(c.board(1))
		c.agreeOn(late, c.boards...)
		c.twoHoldersAtMost(c.began, 0)
	})
}

// The own address of a follower changes, as by a new DHCP lease, and then that of the leader.
func TestOwnAddressChanged(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		leader := c.agree()
		follower := c.except(leader)[0]
		changed := time.Now()
		readdress := func(b *board, address string) {
			t.Helper()
			must(t, b.SetAddress(netip.MustParsePrefix(address+"/24")))
			for _, told := range c.boards {
				told.untilStatus("the new address", func(s console.Status) string {
					for _, known := range s.Boards {
						if known.Name == b.String() && known.Address == address {
							return ""
						}
					}
					return "it does not know it"
				})
			}
		}
		readdress(follower, "10.77.0.51")
		c.agreeOn(leader, c.boards...)
		c.undisturbed(changed, leader)
		readdress(leader, "10.77.0.50")
		next := c.agree() // a board that has no address for a moment leads no more
		c.twoHoldersAtMost(changed, 0)

		// The new addresses work: the boards can be spoken to and can hand over.
		next.topdog("resign").want(t, 0, "resign")
		if after := c.agree(); after == next {
			t.Errorf("%s has resigned, and leads", next)
		}
		c.twoHoldersAtMost(changed, 0)
	})
}
