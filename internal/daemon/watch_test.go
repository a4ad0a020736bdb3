package daemon

import (
	"testing"
	"time"

	"topdog/netio"
)

// TestNextInRankAsksTheWitness: the next in rank reads the table of neighbours when it finds the leader, to watch the address. A
// board whose link has just come up is reading that already, and asks its witness when it has.
func TestNextInRankAsksTheWitness(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, _ := l.three()
		pass(time.Minute)
		read := two.platform.ReadNeighbours
		two.onLoop(t, func() {
			two.platform.ReadNeighbours = func(index int) (netio.Neighbours, error) {
				time.Sleep(10 * time.Millisecond) // the leader answers sooner
				return read(index)
			}
		})
		two.unplugged(true)
		pass(time.Second)
		two.asked()
		two.unplugged(false)
		pass(time.Second)
		two.wantAsked(t, "when the link came up", router.String())
	})
}
