package main

import (
	"syscall"
	"testing"

	"topdog/internal/lab/judge"
)

// TestWhySilent: the daemon of one board is killed, and the cable of another one is pulled. The third one tells the two apart by ARP, and
// tells a board that is in another group now. The rules are in TestWhySilent and TestRefusedBoards of internal/daemon.
func TestWhySilent(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		one, two, three := c.board(1), c.board(2), c.board(3)
		c.start(c.boards...)
		c.agree()
		one.signal(syscall.SIGKILL)
		one.gone()
		must(t, two.Mute())
		three.untilProblem("pi1 (10.77.0.1) is not heard: its kernel answers for 10.77.0.1, so topdog does not run there")
		three.untilProblem("pi2 (10.77.0.2) is not heard: nothing answers for 10.77.0.2 either: look at its power, its cable")
		one.set(settings{"group": quote("kiosk"), "address": quote("10.77.0.101")})
		one.start()
		three.untilProblem(`pi1 (10.77.0.1) is not heard: it takes part in another group: write group = "topdog"`)
		must(t, two.Unmute())
		c.agree(two, three)
	})
}
