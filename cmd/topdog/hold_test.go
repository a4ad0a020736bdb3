package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/netio"
)

func restored(n uint64) func(console.Status) string {
	return func(s console.Status) string {
		if s.Counters.AddressRestored != n {
			return "the counter is wrong"
		}
		return ""
	}
}

// Somebody, or a network manager, deletes the address under the leader.
func TestAddressDeleted(t *testing.T) {
	for _, hold := range []string{"auto", "lifetime"} {
		t.Run(hold, judge.Of(func(t *judge.T) {
			c := newCluster(t, 2, settings{"hold": quote(hold)})
			c.start(c.boards...)
			leader := c.agree()
			before := time.Now()
			const times = 3
			for n := range times {
				deleted := time.Now()
				must(t, leader.DeleteAddress(vip32))
				c.untilHolders("it is put back", func(h []int) bool { return len(h) == 1 })
				leader.untilStatus("it is counted", restored(uint64(n)+1))
				c.awayAtMost(deleted, heartbeat)
			}
			leader.untilLogged("something else deleted the address", vip.String())
			c.agreeOn(leader, c.boards...)
			c.twoHoldersAtMost(before, 0)
			if moves := c.Holders.Since(before).Moves(); moves != 0 {
				t.Errorf("the address moved %d times", moves)
			}
		}))
	}
}

// Even the device that the address hangs on may be deleted by somebody who tidies up.
func TestDeviceDeleted(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		leader := c.agree()
		before := time.Now()
		must(t, leader.Do(func() error {
			link, err := netlink.LinkByName(netio.DefaultDevice)
			if err != nil {
				return err
			}
			return netlink.LinkDel(link)
		}))
		leader.untilStatus("the address is put back", restored(1))
		c.agreeOn(leader, c.boards...)
		c.twoHoldersAtMost(before, 0)
		c.awayAtMost(before, heartbeat)
	})
}

// What a daemon leaves behind that was killed together with its dead man's switch,
// `topdog cleanup` removes: with nothing but a lifetime, the address would stay for
// up to two seconds.
func TestCleanup(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 1, settings{"hold": quote("lifetime")})
		b := c.board(1)
		c.start(b)
		c.agreeOn(b, b)
		began := time.Now()

		if o := b.topdog("cleanup"); o.status != 1 || !strings.Contains(o.stderr, "daemon runs") {
			t.Errorf("cleanup beside the daemon was not refused: %v", o)
		}
		c.undisturbed(began, b)

		must(t, syscall.Kill(b.holder(), syscall.SIGKILL))
		b.signal(syscall.SIGKILL)
		b.gone()
		o := b.topdog("cleanup")
		if o.status != 0 || !strings.Contains(o.stdout, "removed address 10.77.0.100 on eth0") {
			t.Errorf("cleanup after SIGKILL: %v", o)
		}
		addresses, err := b.Addresses()
		must(t, err)
		if len(addresses) != 1 || addresses[0] != b.Addr {
			t.Errorf("cleanup left %v", addresses)
		}
		if o := b.topdog("cleanup"); o.status != 0 || o.stdout != "" {
			t.Errorf("cleanup with nothing to do: %v", o)
		}
		must(t, b.AddAddress(vip24))
		if o := b.topdog("cleanup"); o.status != 0 || o.stdout != "" {
			t.Errorf("cleanup removed an address that a person has added: %v", o)
		}
	})
}
