package main

import (
	"fmt"
	"syscall"
	"testing"

	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// TestWhySilent: the daemon of the leader is killed, and another board's port of the switch passes nothing. The third one tells the two apart by
// ARP, and says when the first one is of another group. The rules are in TestWhySilent and TestRefusedBoards of internal/daemon.
func TestWhySilent(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		killed := c.agree()
		others := c.except(killed)
		cut, third := others[0], others[1]
		notHeard := func(b *board, why string) string {
			return fmt.Sprintf("%s (%v) is not heard: %s", b, b.Addr.Addr(), why)
		}
		killed.signal(syscall.SIGKILL)
		killed.gone()
		must(t, c.LAN.Filter(netns.Cut(cut.Port())...))
		third.untilProblem(notHeard(killed, fmt.Sprintf("its kernel answers for %v, so topdog does not run there", killed.Addr.Addr())))
		third.untilProblem(notHeard(cut, fmt.Sprintf("nothing answers for %v either: look at its power, its cable", cut.Addr.Addr())))
		killed.set(settings{"group": quote("kiosk"), "address": quote("10.77.0.101")})
		killed.start()
		third.untilProblem(notHeard(killed, `it takes part in another group: write group = "topdog"`))
		must(t, c.LAN.Filter())
		c.agree(cut, third)
	})
}
