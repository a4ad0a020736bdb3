package netio

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

func openTestAnnouncer(t testing.TB, b *board) *Announcer {
	t.Helper()
	eth0 := b.link(t, "eth0")
	a, err := b.openAnnouncer(eth0.Index)
	must(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// hasOwner tells whether somebody has the address.
func (a *Announcer) hasOwner(t testing.TB, addr netip.Addr, times int, spacing time.Duration) bool {
	t.Helper()
	_, found, err := a.Probe(t.Context(), addr, times, spacing)
	must(t, err)
	return found
}

// sendAs sends a packet as it is, whoever it says that its sender is.
func (a *Announcer) sendAs(t testing.TB, destination hardwareAddr, packet arpPacket) {
	t.Helper()
	to := a.socket.to(destination)
	must(t, a.socket.Control(func(fd uintptr) { must(t, sendFrame(int(fd), packet.append(nil), to)) }))
}

type rival struct {
	Addr netip.Addr
	MAC  string
}

func (b *board) mac(t testing.TB) string { return b.link(t, "eth0").HardwareAddr.String() }

func TestProbeAndRivals(t *testing.T) {
	l := newLAN(t, 3)
	us, them, client := l.boards[0], l.boards[1], l.boards[2]
	ours, theirs := openTestAnnouncer(t, us), openTestAnnouncer(t, them)
	ctx := t.Context()
	const quick = 50 * time.Millisecond
	// The very first packets may come before the bridge forwards.
	eventually(t, "the bridge forwards", func() bool {
		owner, found, err := ours.Probe(ctx, them.addr, 1, quick)
		must(t, err)
		return found && owner.String() == them.mac(t)
	})

	t.Run("free", func(t *testing.T) {
		assert.Is(t, false, ours.hasOwner(t, testVIP, 2, quick), "a free address has an owner")
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(ctx)
		reason := errors.New("no longer wanted")
		cancel(reason)
		_, _, err := ours.Probe(ctx, testVIP, 1, time.Hour)
		assert.ErrorIs(t, err, reason, "")
	})
	t.Run("both probe", func(t *testing.T) {
		// Neither has it, yet whoever probes second must step back.
		done := make(chan string, 1)
		go func() {
			owner, _, _ := ours.Probe(ctx, testVIP, 1, testTimeout)
			done <- owner.String()
		}()
		eventually(t, "we probe", func() bool { return probing(ours) })
		must(t, theirs.socket.send(broadcast, probe(testVIP)))
		assert.Is(t, them.mac(t), receive(t, "our probe to end", done), "who was found")
	})

	rivals := make(chan rival, 10)
	ours.Rivals([]netip.Addr{testVIP}, func(addr netip.Addr, mac net.HardwareAddr) {
		rivals <- rival{addr, mac.String()}
	})
	t.Run("rival", func(t *testing.T) {
		must(t, ours.Announce(testVIP))                            // our own is none
		must(t, theirs.Announce(netip.MustParseAddr("10.77.0.9"))) // nor is another address
		must(t, theirs.Announce(testVIP))
		for range 2 { // the request and the reply
			assert.Is(t, rival{testVIP, them.mac(t)}, receive(t, "the rival", rivals), "the rival")
		}
	})
	t.Run("no longer ours", func(t *testing.T) {
		ours.Rivals(nil, nil)
		must(t, theirs.Announce(testVIP))
		ours.hasOwner(t, them.addr, 1, testTimeout) // its answer comes after the announcement
		if len(rivals) > 0 {
			t.Errorf("heard of %v although nothing is ours", <-rivals)
		}
	})

	// A neighbour that knows the old place believes the announcement at once.
	t.Run("announce", func(t *testing.T) {
		vip := netip.PrefixFrom(testVIP, 32)
		them.addAddr(t, "eth0", vip)
		ask(t, client, testVIP)
		eventually(t, "the client knows the old holder", func() bool { return neighbour(t, client, testVIP) == them.mac(t) })
		them.delAddr(t, "eth0", vip)
		us.addAddr(t, "eth0", vip)
		must(t, ours.Announce(testVIP))
		eventually(t, "the client knows the new holder", func() bool { return neighbour(t, client, testVIP) == us.mac(t) })
	})

	// After a bond has failed over, or `ip link set address`, what is sent names the address that the
	// interface has now, and what is sent to that is heard.
	t.Run("another Ethernet address", func(t *testing.T) {
		fresh := net.HardwareAddr{2, 0, 0, 0, 0, 0x99}
		must(t, us.handle.LinkSetHardwareAddr(l.link(us.handle, "eth0"), fresh))
		must(t, ours.Announce(testVIP))
		eventually(t, "the client knows the new address", func() bool { return neighbour(t, client, testVIP) == fresh.String() })
		assert.Is(t, true, ours.hasOwner(t, them.addr, 1, testTimeout), "an answer is heard")
		ours.Rivals([]netip.Addr{testVIP}, func(addr netip.Addr, mac net.HardwareAddr) { rivals <- rival{addr, mac.String()} })
		defer ours.Rivals(nil, nil)
		theirs.sendAs(t, broadcast, announcements(testVIP)[0].from(hardwareAddr(fresh))) // reflected
		must(t, theirs.Announce(testVIP))
		assert.Is(t, rival{testVIP, them.mac(t)}, receive(t, "the rival", rivals), "the first rival")
	})

	t.Run("link down and up", func(t *testing.T) {
		eth0 := l.link(us.handle, "eth0")
		must(t, us.handle.LinkSetDown(eth0))
		assert.ErrorIs(t, ours.Announce(testVIP), ErrLinkDown, "announcing")
		_, _, err := ours.Probe(ctx, testVIP, 1, quick)
		assert.ErrorIs(t, err, ErrLinkDown, "probing")
		must(t, us.handle.LinkSetUp(eth0))
		eventually(t, "we hear again", func() bool { return ours.hasOwner(t, them.addr, 1, quick) })
	})

	t.Run("close during a probe", func(t *testing.T) {
		failed := make(chan error)
		go func() {
			_, _, err := ours.Probe(ctx, netip.MustParseAddr("10.77.0.55"), 1, time.Hour)
			failed <- err
		}()
		eventually(t, "it probes", func() bool { return probing(ours) })
		must(t, ours.Close())
		assert.ErrorIs(t, receive(t, "the probe to end", failed), net.ErrClosed, "")
	})
}

func probing(a *Announcer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting) > 0
}

func TestOpenAnnouncerErrors(t *testing.T) {
	b := newLAN(t, 1).boards[0]
	tun := openFloating(t, b, FloatingOptions{Method: HoldTUN}).State().Device
	_, err := b.openAnnouncer(b.link(t, tun).Index)
	assert.ErrorContains(t, err, "not an Ethernet address", "a tunnel")
	_, err = b.openAnnouncer(9999)
	assert.ErrorIs(t, err, ErrLinkDown, "no such interface")
}

// TestAnnouncing is when the addresses are announced that a board holds, and when everybody is asked who else has them.
func TestAnnouncing(t *testing.T) {
	const never = 1 << 62
	lapse := func(from, to time.Duration) func(now time.Duration) bool {
		return func(now time.Duration) bool { return now < from || now >= to }
	}
	for name, test := range map[string]struct {
		lasts func(now time.Duration) bool // the lease
		works func(now time.Duration) bool // the link
		anew  time.Duration                // when they are announced anew
		told  int                          // how often the daemon is told that they could not be
		want  []string
	}{
		"a long lease": {want: []string{"0s", "1.1s", "2.2s", "4.4s", "10s, asks", "1m10s, asks", "2m10s, asks"}},
		"a claim":      {anew: 3 * time.Second, want: []string{"0s", "1.1s", "2.2s", "3s", "4.1s", "5.2s", "7.4s", "13s, asks", "1m13s, asks", "2m13s, asks"}},
		"a lease that was over as the addresses were acquired": {
			lasts: lapse(0, 130*time.Millisecond),
			want:  []string{"140ms", "1.24s", "2.34s", "4.54s", "10.14s, asks", "1m10.14s, asks", "2m10.14s, asks"},
		},
		"a lease that goes on": {
			lasts: lapse(70*time.Second, 100*time.Second),
			want:  []string{"0s", "1.1s", "2.2s", "4.4s", "10s, asks", "1m40s", "1m41.1s", "1m42.2s", "1m44.4s", "1m50s, asks"},
		},
		"a lease that nothing was due in": {
			lasts: lapse(20*time.Second, 60*time.Second),
			want:  []string{"0s", "1.1s", "2.2s", "4.4s", "10s, asks", "1m10s, asks", "2m10s, asks"},
		},
		"a link that fails": {
			works: lapse(time.Second, 1500*time.Millisecond),
			want:  []string{"0s", "1.5s", "2.6s", "3.7s", "5.9s", "11.5s, asks", "1m11.5s, asks", "2m11.5s, asks"},
			told:  1,
		},
		"a firewall for half a minute": {
			works: lapse(time.Second, 30*time.Second),
			want:  []string{"0s", "30.1s", "31.2s", "32.3s", "34.5s", "40.1s, asks", "1m40.1s, asks"},
			told:  1 + 28, // and then once a second
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var said []string
				a := announcing{say: func(addrs []netip.Addr, ask bool) error {
					if test.works != nil && !test.works(time.Since(start)) {
						return ErrLinkDown
					}
					text := map[bool]string{true: ", asks"}[ask]
					said = append(said, time.Since(start).String()+text)
					assert.Equal(t, []netip.Addr{testVIP}, addrs, "announced")
					return nil
				}}
				told := 0
				a.failed = func(err error) {
					assert.ErrorIs(t, err, ErrLinkDown, "told")
					told++
				}
				a.hold([]netip.Addr{testVIP}, func() bool { return test.lasts == nil || test.lasts(time.Since(start)) })
				anew := time.AfterFunc(cmp.Or(test.anew, never), a.anew)
				time.Sleep(150 * time.Second)
				anew.Stop()
				a.hold(nil, nil)
				assert.Equal(t, test.want, said, "announced at")
				assert.Is(t, test.told, told, "how often it was told that they could not be announced")
				a.anew()
				time.Sleep(time.Hour)
				assert.Is(t, len(test.want), len(said), "announcements, those after the release included")
			})
		})
	}
}

// ask makes the board resolve addr, by sending something to it.
func ask(t testing.TB, b *board, addr netip.Addr) {
	t.Helper()
	c := openForeign(t, b)
	_, err := c.WriteToUDPAddrPort([]byte("who are you"), netip.AddrPortFrom(addr, 9))
	must(t, err)
}

// neighbour is the Ethernet address that the board has for addr, "" if none.
func neighbour(t testing.TB, b *board, addr netip.Addr) string {
	t.Helper()
	all, err := dump(func() ([]netlink.Neigh, error) {
		return b.handle.NeighList(b.link(t, "eth0").Index, netlink.FAMILY_V4)
	})
	must(t, err)
	for _, n := range all {
		if n.IP.String() == addr.String() && len(n.HardwareAddr) == 6 {
			return n.HardwareAddr.String()
		}
	}
	return ""
}

// A host that has an address on any device answers who asks its Ethernet address, a host that
// has it not does not, and each answer is to a question that was asked before.
func TestAsk(t *testing.T) {
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		l := newLAN(t, 3)
		us, holder, other := l.boards[0], l.boards[1], l.boards[2]
		a := openTestAnnouncer(t, us)
		answers := make(chan ARPAnswer, 100)
		a.Answers(func(answer ARPAnswer) { answers <- answer })
		f := openFloating(t, holder, FloatingOptions{Method: method})
		must(t, f.Acquire())
		question := func(of *board, addr netip.Addr) ARPQuestion {
			return ARPQuestion{Addr: addr, To: of.link(t, "eth0").HardwareAddr}
		}
		eventually(t, "the bridge forwards", func() bool {
			must(t, a.Ask([]ARPQuestion{question(other, other.addr)}))
			select {
			case <-answers:
				return true
			case <-time.After(10 * time.Millisecond):
				return false
			}
		})
		for len(answers) > 0 {
			<-answers
		}
		before := Now()
		// The other board does not have the floating address, and is asked for it in vain.
		must(t, a.Ask([]ARPQuestion{question(other, testVIP)}))
		must(t, a.Ask([]ARPQuestion{question(holder, testVIP), {Addr: other.addr}}))
		after := Now()
		got := map[netip.Addr]ARPAnswer{}
		for range 2 {
			answer := receive(t, "an answer", answers)
			got[answer.Addr] = answer
		}
		for _, addr := range []netip.Addr{testVIP, other.addr} {
			if at := got[addr].AskedAt; at < before || at > after {
				t.Errorf("%v has answered what was asked at %v, want between %v and %v", addr, at, before, after)
			}
		}
		must(t, f.Release())
		must(t, a.Ask([]ARPQuestion{question(holder, testVIP), question(other, other.addr)}))
		assert.Is(t, other.addr, receive(t, "an answer", answers).Addr, "who answers after the release")
		if len(answers) > 0 {
			t.Errorf("one answer more: %v", <-answers)
		}
	})
}

// A question goes to whoever has announced the floating address last.
func TestAskAnnouncer(t *testing.T) {
	l := newLAN(t, 3)
	us := openTestAnnouncer(t, l.boards[0])
	toAnnouncer := []ARPQuestion{{Addr: testVIP, ToAnnouncer: true}}
	announcer := func() string {
		asked := us.addressed(toAnnouncer)
		if len(asked) == 0 {
			return "nobody"
		}
		return asked[0].To.String()
	}
	assert.Is(t, "nobody", announcer(), "who is asked before anybody has announced the address")
	for _, b := range l.boards[1:] {
		theirs := openTestAnnouncer(t, b)
		eventually(t, "the announcement is heard", func() bool {
			must(t, theirs.Announce(testVIP))
			return announcer() == b.mac(t)
		})
	}
	must(t, us.Announce(testVIP))
	must(t, us.socket.send(broadcast, probe(testVIP)))
	assert.Is(t, l.boards[2].mac(t), announcer(), "who is asked: the other board that has announced last")
	same := ARPQuestion{Addr: testVIP, To: l.boards[2].link(t, "eth0").HardwareAddr}
	assert.Is(t, 1, len(us.addressed(append(toAnnouncer, same))), "how often that board is asked")
}

// The neighbours and the gateway are those of the interface.
func TestNeighbours(t *testing.T) {
	l := newLAN(t, 3)
	us, them, third := l.boards[0], l.boards[1], l.boards[2]
	read := func() Neighbours {
		n, err := on(us, func() (Neighbours, error) { return ReadNeighbours(us.link(t, "eth0").Index) })
		must(t, err)
		return n
	}
	assert.Is(t, netip.Addr{}, read().Gateway, "the gateway of a board without a route")
	ask(t, us, netip.MustParseAddr("10.77.0.99")) // nobody
	eventually(t, "the neighbour is known", func() bool {
		ask(t, us, them.addr)
		all := read().Hosts
		return len(all) == 1 && all[0].Addr == them.addr && all[0].MAC.String() == them.mac(t)
	})
	gateways := []*netlink.Route{
		{LinkIndex: us.link(t, "eth0").Index, Gw: them.addr.AsSlice(), Priority: 200},
		{LinkIndex: us.link(t, "eth0").Index, Gw: third.addr.AsSlice(), Priority: 100},
	}
	for _, route := range gateways {
		must(t, us.handle.RouteAdd(route))
		assert.Is(t, netip.AddrFrom4([4]byte(route.Gw.To4())), read().Gateway, "the gateway")
	}
}

// A datagram for a host whose Ethernet address the kernel has asked for in vain is sent as soon as
// it is resolved, and not when the kernel asks again.
func TestResolve(t *testing.T) {
	l := newLAN(t, 2)
	us, other := l.boards[0], l.boards[1]
	a := openTestAnnouncer(t, us)
	us.do(t, func() error {
		return os.WriteFile("/proc/sys/net/ipv4/neigh/eth0/retrans_time_ms", []byte("60000"), 0)
	})
	const port = 7950
	ear, mouth := other.listen(t, netip.AddrPortFrom(other.addr, port)), us.listen(t, netip.AddrPortFrom(us.addr, port))

	must(t, l.bridge.LinkSetDown(l.link(l.bridge, "br0")))
	_, err := mouth.WriteToUDPAddrPort([]byte("vote"), netip.AddrPortFrom(other.addr, port))
	must(t, err)
	must(t, l.bridge.LinkSetUp(l.link(l.bridge, "br0")))
	heard := make(chan string, 1)
	go func() {
		var buffer [8]byte
		n, _, _ := ear.ReadFrom(buffer[:])
		heard <- string(buffer[:n])
	}()
	eventually(t, "the datagram arrives", func() bool {
		must(t, a.Resolve(other.addr)) // more than once: the first may come before the bridge forwards
		select {
		case text := <-heard:
			return text == "vote"
		case <-time.After(10 * time.Millisecond):
			return false
		}
	})
}

// Of a flood of ARP some packets are heard, a question is answered all the same, and afterwards
// every rival is heard again.
func TestFloodOfARP(t *testing.T) {
	ownIP := netip.MustParseAddr("10.77.0.1")
	for name, flood := range map[string]func(own, their hardwareAddr) (arpPacket, hardwareAddr){
		"claims": func(_, their hardwareAddr) (arpPacket, hardwareAddr) {
			return announcements(testVIP)[0].from(their), broadcast
		},
		"replies": func(own, their hardwareAddr) (arpPacket, hardwareAddr) {
			return arpPacket{arpReply, their, testVIP, own, ownIP}, own
		},
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
			packet, to := flood(hardwareAddr(us.link(t, "eth0").HardwareAddr), hardwareAddr(them.link(t, "eth0").HardwareAddr))
			began := time.Now()
			for n := range 20_000 {
				theirs.sendAs(t, to, packet)
				if n%1000 == 999 {
					eventually(t, "a question is answered in the flood", func() bool {
						must(t, ours.Ask([]ARPQuestion{{Addr: third.addr}}))
						select {
						case <-answered:
							return true
						case <-time.After(10 * time.Millisecond):
							return false
						}
					})
				}
			}
			// The burst, one for each interval, and what has waited each time the flood was noticed: a socket has room for
			// some 280 packets of ARP by the kernel's default, net.core.rmem_default.
			const room = 280
			took := time.Since(began)
			most := int64(time.Duration(arpRate.Burst) + took/arpRate.Every + (1+took/arpPause)*room)
			if got := heard.Load(); got > most || got == 0 {
				t.Errorf("%d of 20000 packets were heard in %v, want at most %d", got, took, most)
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
