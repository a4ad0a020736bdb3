package wire

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// TestFloodOfRecordedLives plays recordings of a thousand lives to a whole group, one each millisecond. What
// all boards together say to that has one limit, whatever their number, and none of it is multicast. A
// board that starts meanwhile is listened to at once, if nobody plays from its address.
func TestFloodOfRecordedLives(t *testing.T) {
	if testing.Short() {
		t.Skip("a flood at 255 boards takes seconds")
	}
	const (
		lives   = 1000
		lasts   = 3200 * ms
		started = 3 * time.Second
	)
	newcomer := netip.MustParseAddr("10.0.0.200")
	for _, test := range []struct {
		boards, sources int
		within          time.Duration // all boards listen to the newcomer; below 0 if nothing is promised
	}{
		{1, 1, 0}, {3, 1, 0}, {10, 1, 0}, {255, 1, 0},
		{3, 64, 0},
		{10, 64, -1}, {64, 64, -1}, // what they may have at once lasts longer than this test
	} {
		t.Run(fmt.Sprintf("%d boards, %d sources", test.boards, test.sources), func(t *testing.T) {
			group := groupOf(t, test.boards)
			fresh := newSpeaker(500, 1)
			challenges, listening := 0, -1*ms
			for now := ms; now <= lasts; now += ms {
				n := int(now / ms)
				recorded := newSpeaker(ID(1000+n%3), Incarnation(1+n%lives))
				for _, g := range group {
					v := g.Admit(now, netip.AddrFrom4([4]byte{10, 0, 0, byte(n % test.sources)}), recorded.says(TypeHello))
					challenges += len(v.Replies)
					if v.ReplyByMulticast {
						t.Fatalf("multicast: %+v", v)
					}
				}
				if now < started || listening >= 0 || (now-started)%(50*ms) != 0 {
					continue
				}
				all, hello := true, fresh.says(TypeHello)
				for _, g := range group {
					if v := g.Admit(now, newcomer, hello); len(v.Replies) > 0 {
						g.Admit(now+ms/2, newcomer, fresh.proves(t, v))
					}
					all = all && g.listensTo(fresh.contact)
				}
				if all {
					listening = now - started
				}
			}
			most := max(replyBurst, leastBurst*test.boards) + int(lasts/replyEvery)
			t.Logf("%d challenges, at most %d; all listen to the newcomer after %v", challenges, most, listening)
			if challenges > most {
				t.Errorf("the group said %d challenges, want %d at most", challenges, most)
			}
			if test.within >= 0 && (listening < 0 || listening > test.within) {
				t.Errorf("all listen to the newcomer after %v, want %v at most", listening, test.within)
			}
		})
	}
}

// groupOf returns the guards of so many boards, which listen to each other.
func groupOf(t *testing.T, boards int) (group []*Guard) {
	for i := range boards {
		g := NewGuard(ID(i+1), Incarnation(i+1), bothKeys, counting())
		for j := range boards {
			if j != i {
				meet(t, g, 0, newSpeaker(ID(j+1), Incarnation(j+1)))
			}
		}
		group = append(group, g)
	}
	return group
}
