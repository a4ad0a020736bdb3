package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/netio"
)

// Somebody, or a network manager, deletes the address under the leader. Even the device that it hangs on may be deleted by
// somebody who tidies up.
func TestAddressDeleted(t *testing.T) {
	t.Parallel()
	for _, hold := range holds {
		t.Run(hold, judge.Of(func(t *judge.T) {
			c := newCluster(t, 2, settings{"hold": quote(hold)})
			c.start(c.boards...)
			leader := c.agree()
			deletions := []func() error{func() error { return leader.DeleteAddress(vip32) }, func() error { return leader.DeleteAddress(vip32) }}
			if hold == "auto" {
				deletions = append(deletions, func() error { return leader.Do(deleteDevice) })
			}
			before := time.Now()
			for n, del := range deletions {
				deleted := time.Now()
				must(t, del())
				leader.untilStatus("it is put back", func(s console.Status) string {
					if got := s.Counters.AddressRestored; got != uint64(n)+1 {
						return fmt.Sprintf("it was put back %d times", got)
					}
					return ""
				})
				c.untilHolders("it is put back", func(h []int) bool { return len(h) == 1 })
				c.awayAtMost(deleted, heartbeat)
			}
			leader.untilLogged("something else deleted the address", vip.String())
			c.agreeOn(leader, c.boards...)
			c.twoHoldersAtMost(before, 0)
			assert.Is(t, 0, c.Holders.Since(before).Moves(), "how often the address moved")
		}))
	}
}

func deleteDevice() error {
	link, err := netlink.LinkByName(netio.DefaultDevice)
	if err != nil {
		return err
	}
	return netlink.LinkDel(link)
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

		b.topdog("cleanup").want(t, 1, "cleanup beside the daemon was not refused", "daemon runs")
		c.undisturbed(began, b)

		must(t, syscall.Kill(b.holder(), syscall.SIGKILL))
		b.signal(syscall.SIGKILL)
		b.gone()
		b.topdog("cleanup").want(t, 0, "cleanup after SIGKILL", "removed address 10.77.0.100 on eth0")
		addresses, err := b.Addresses()
		must(t, err)
		if len(addresses) != 1 || addresses[0] != b.Addr {
			t.Errorf("cleanup left %v", addresses)
		}
		assert.Is(t, outcome{}, b.topdog("cleanup"), "cleanup with nothing to do")
		must(t, b.AddAddress(vip24))
		assert.Is(t, outcome{}, b.topdog("cleanup"), "cleanup where a person has added the address")
	})
}
