package netio

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// Of a flood of ARP some packets are heard, a question is answered all the same, and afterwards
// every rival is heard again.
func TestFloodOfARP(t *testing.T) {
	ownIP := netip.MustParseAddr("10.77.0.1")
	for name, flood := range map[string]func(own, their hardwareAddr) arpPacket{
		"claims":  func(_, their hardwareAddr) arpPacket { return announcements(their, testVIP)[0] },
		"replies": func(own, their hardwareAddr) arpPacket { return arpPacket{arpReply, their, testVIP, own, ownIP} },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLAN(t, 3)
			us, them, third := l.boards[0], l.boards[1], l.boards[2]
			ours, theirs := openTestAnnouncer(t, us), openTestAnnouncer(t, them)
			var heard atomic.Int64
			ours.Rivals([]netip.Addr{testVIP}, func(netip.Addr, net.HardwareAddr) { heard.Add(1) })
			answered := make(chan ARPAnswer, 100)
			ours.Answers(func(a ARPAnswer) { answered <- a })
			eventually(t, "the bridge forwards", func() bool {
				must(t, theirs.Announce(testVIP))
				return heard.Load() > 0
			})
			heard.Store(0)
			packet, began := flood(ours.own, theirs.own), time.Now()
			for n := range 20_000 {
				must(t, theirs.send(packet, broadcast))
				if n%1000 == 999 {
					eventually(t, "a question is answered in the flood", func() bool {
						must(t, ours.Ask(us.addr, []ARPQuestion{{Addr: third.addr}}))
						select {
						case <-answered:
							return true
						case <-time.After(10 * time.Millisecond):
							return false
						}
					})
				}
			}
			// The burst, one for each interval, and what has waited when the flood was noticed.
			most := int64(arpBurst + time.Since(began)/arpInterval + 500)
			if got := heard.Load(); got > most || got == 0 {
				t.Errorf("%d of 20000 packets were heard in %v, want at most %d", got, time.Since(began), most)
			}
			eventually(t, "a rival is heard after the flood", func() bool {
				before := heard.Load()
				must(t, theirs.Announce(testVIP))
				time.Sleep(time.Millisecond)
				return heard.Load() > before
			})
		})
	}
}
