package main

import (
	"net/netip"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/internal/lab/judge"
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
		s := old.untilStatus("the cable is out", func(s console.Status) string {
			if s.Role != console.RoleIsolated {
				return "it is a " + s.Role
			}
			return ""
		})
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

		must(t, old.Mute())
		c.untilHolders("the others take over", func(h []int) bool { return len(h) == 2 })
		leader := c.agreeApart(old)
		if leader == nil {
			return
		}

		healed := time.Now()
		must(t, old.Unmute())
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

// A follower whose port receives nothing does not claim the address, however long that
// lasts. Neither the client nor the others notice anything of it.
func TestMutedFollower(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		leader := c.agree()
		muted := c.except(leader)[0]

		began := time.Now()
		must(t, muted.Mute())
		muted.untilStatus("it misses the leader", func(s console.Status) string {
			if s.Role != election.Candidate.String() {
				return "it is a " + s.Role
			}
			return ""
		})
		c.watchFor(20 * heartbeat)
		c.twoHoldersAtMost(began, 0)
		must(t, muted.Unmute())
		c.agreeOn(leader, c.boards...)
		c.undisturbed(began, leader)
	})
}

func TestInterfaceDeleted(t *testing.T) {
	for _, hold := range []string{"auto", "lifetime"} {
		t.Run(hold, judge.Of(func(t *judge.T) {
			c := newCluster(t, 3, settings{"hold": quote(hold)})
			c.start(c.boards...)
			old := c.agree()

			deleted := time.Now()
			must(t, old.DeleteInterface())
			c.untilTakenFrom(old)
			leader := c.agree(c.except(old)...)
			c.twoHoldersAtMost(deleted, 0)
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
			for _, b := range c.except(old) {
				must(t, b.Pull())
			}
			c.agreeOn(old, old)
			c.twoHoldersAtMost(created, 0)
		}))
	}
}

// A board that starts before its interface exists waits for it.
func TestInterfaceLater(t *testing.T) {
	for name, iface := range map[string]string{"found": "", "named": quote("eth0")} {
		t.Run(name, judge.Of(func(t *judge.T) {
			c := newCluster(t, 2, settings{"interface": iface})
			late := c.board(2)
			must(t, late.DeleteInterface())
			c.start(late)
			if iface == "" {
				late.untilProblem("10.77.0.100", "interface")
			} else {
				late.untilProblem("eth0", "does not exist")
			}
			if o := late.topdog("status"); o.status != 1 {
				t.Errorf("status: %v", o)
			}
			must(t, late.CreateInterface())
			c.agreeOn(late, late)
			late.untilNoProblems()
			c.start(c.board(1))
			c.agreeOn(late, c.boards...)
			c.twoHoldersAtMost(c.began, 0)
		}))
	}
}

// The leader's own address changes, as by a new DHCP lease.
func TestOwnAddressChanged(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		old := c.agree()

		changed := time.Now()
		must(t, old.SetAddress(netip.MustParsePrefix("10.77.0.50/24")))
		old.untilStatus("its new address", func(s console.Status) string {
			if s.Board.Address != "10.77.0.50" {
				return "its address is " + s.Board.Address
			}
			return ""
		})
		leader := c.agree()
		c.twoHoldersAtMost(changed, 0)
		for _, b := range c.except(old) {
			b.untilStatus("the new address", func(s console.Status) string {
				for _, other := range s.Boards {
					if other.Name == old.String() && other.Address == "10.77.0.50" {
						return ""
					}
				}
				return "it does not know it"
			})
		}

		// The new address works: the board can be spoken to and can hand over.
		if leader == old {
			o := old.topdog("resign")
			if o.status != 0 {
				t.Errorf("resign: %v", o)
			}
			if got := c.agree(); got == old {
				t.Errorf("%s still leads after it has resigned", old)
			}
			c.twoHoldersAtMost(changed, 0)
		}
	})
}

// A follower's address changes as well, and its daemon restarts later: then it has another id.
func TestFollowerAddressChanged(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		leader := c.agree()
		follower := c.except(leader)[0]
		changed := time.Now()
		must(t, follower.SetAddress(netip.MustParsePrefix("10.77.0.50/24")))
		follower.untilStatus("its new address", func(s console.Status) string {
			if s.Board.Address != "10.77.0.50" {
				return "its address is " + s.Board.Address
			}
			return ""
		})
		c.agreeOn(leader, c.boards...)
		c.undisturbed(changed, leader)
	})
}
