package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/lamp"
	"topdog/netio"
	"topdog/wire"
)

// TestNobodyCanHold has three boards that all lack the permission: they must not
// hand the lead around as fast as they can send.
func TestNobodyCanHold(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		for n := 1; n <= 3; n++ {
			l.board(n, func(_ *config.Config, b *fakeBoard) { b.acquireFails = errNoPermission })
		}
		pass(2 * time.Second)
		changes := func() (n int) {
			for _, b := range l.boards {
				b.get(func() { n += len(b.heard) })
			}
			return n
		}
		before := changes()
		pass(time.Second)
		if n := changes() - before; n > 20 {
			t.Errorf("%d changes of role in a second", n)
		}
	})
}

// TestPreemptorCannotHold has the highest board want the lead, and fail to acquire the address.
func TestPreemptorCannotHold(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, nil)
		l.board(2, nil)
		l.board(3, func(c *config.Config, b *fakeBoard) { b.acquireFails, c.Preempt = errNoPermission, true })
		pass(time.Minute)
		leaders := 0
		one.get(func() {
			for _, c := range one.heard {
				if c.LeaderChanged() && c.NewLeader != wire.Nobody {
					leaders++
				}
			}
		})
		if leaders > 8 {
			t.Errorf("the lead changed %d times in a minute", leaders)
		}
	})
}

// TestHolderCannotOpen has a board win on which nothing can hold an address.
func TestHolderCannotOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.board(1, nil)
		l.board(2, nil)
		three := l.board(3, func(_ *config.Config, b *fakeBoard) { b.openFails = errors.New("there is no /dev/net/tun") })
		pass(5 * time.Second)
		l.wantHolders(2)
		three.wantProblem(t, "there is no /dev/net/tun")
	})
}

// TestSocketsCannotOpen says what to do where rights are missing, and adds nothing to an error that says so itself.
func TestSocketsCannotOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		for text, err := range map[string]error{
			"; look at topdog-holder.service, or, by hand, run topdog as root": fmt.Errorf("SO_BINDTODEVICE: %w", syscall.EPERM),
			"; stop it or choose another port":                                 fmt.Errorf("bind to the port: %w: a program of the user mallory (1000) has it; stop it or choose another port", syscall.EADDRINUSE),
		} {
			one := l.board(len(l.boards)+1, func(_ *config.Config, b *fakeBoard) { b.noSockets = err })
			pass(time.Second)
			s := one.mustStatus(t)
			if !slices.ContainsFunc(s.Problems, func(p console.Problem) bool { return strings.HasSuffix(p.Text, text) }) {
				t.Errorf("%v: %q does not end with %q", err, s.Problems, text)
			}
		}
	})
}

// TestSleeperDoesNotDefend has the leader's process stand still while its heir
// takes over. It must not announce the address against its successor.
func TestSleeperDoesNotDefend(t *testing.T) {
	for range 20 { // the loop picks among what has come meanwhile at random
		inBubble(t, func(t *testing.T, l *fakeLAN) {
			_, _, three := l.three()
			pass(30 * time.Second)
			three.get(func() { three.silent = true }) // or the heir would wait
			go three.tasks.post(func() { <-time.After(400 * time.Millisecond) })
			pass(350 * time.Millisecond)
			three.get(func() { three.announced = 0 })
			three.claimed(net.HardwareAddr{2, 0, 0, 0, 0, 2})
			pass(60 * time.Millisecond)
			three.get(func() {
				if three.announced > 0 {
					t.Error("the leader that overslept announced the address against its successor")
				}
			})
			pass(time.Second)
			l.wantHolders(2)
		})
	}
}

// TestRepeatedPacketLeadsNowhere has somebody repeat the leader's last packet from
// an address of his own: what is meant for the leader must not go there.
func TestRepeatedPacketLeadsNowhere(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three := l.three()
		var packet []byte
		three.onLoop(t, func() { packet = append(packet, three.group.out...) })
		pass(time.Millisecond)
		one.transport.inbox <- netio.Datagram{Data: packet, From: netip.MustParseAddrPort("10.0.0.66:9254"), Path: netio.PathMulticast}
		pass(time.Millisecond)
		for _, b := range one.mustStatus(t).Boards {
			if b.Name == "pi3" && b.Address != "10.0.0.3" {
				t.Errorf("pi3 is thought to be at %s", b.Address)
			}
		}
	})
}

// TestLogIsBounded sends packets with a wrong key from many sources.
func TestLogIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(_ *config.Config, b *fakeBoard) { b.acquireFails = errNoPermission })
		pass(2 * time.Second)
		key := make([]byte, wire.KeySize)
		key[0] = 1
		other, err := wire.NewCodec("test", key)
		assert.NoError(t, err)
		packet, err := other.Append(nil, &wire.Message{
			Header: wire.Header{Type: wire.TypeHalt, Algorithm: wire.AlgorithmHeir, Sender: 9, Incarnation: 1, Sequence: 1},
		})
		assert.NoError(t, err)
		before := 0
		one.get(func() { before = len(one.logged) })
		for n := range 2000 {
			from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), wire.DefaultGroup.Port())
			one.transport.inbox <- netio.Datagram{Data: packet, From: from, Path: netio.PathMulticast}
			pass(time.Millisecond)
		}
		one.get(func() {
			if n := len(one.logged) - before; n > 10 {
				t.Errorf("%d lines were logged in 2 s", n)
			}
		})
		one.wantProblem(t, "not permitted") // was not pushed out
	})
}

// TestStrangersAreClaims: whoever has no key chooses what its packets look like, and what their source is.
// People are told of a claim, and once a minute for each reason.
func TestStrangersAreClaims(t *testing.T) {
	hello := func(keys ...[]byte) func(*testing.T) []byte {
		return func(t *testing.T) []byte { return signed(t, 77, 5, keys...) }
	}
	ours, other := bytes.Repeat([]byte{7}, wire.KeySize), bytes.Repeat([]byte{1}, wire.KeySize)
	old := func(t *testing.T) []byte {
		packet := signed(t, 77, 5, other)
		packet[0] = packet[0]&0x1f | 1<<5 // the version is in the high bits
		return packet
	}
	for _, test := range []struct {
		name   string
		keys   config.Keyring
		packet func(*testing.T) []byte
		says   string
	}{
		{"another key", config.Keyring{Signs: testKey(7)}, hello(other), "fail authentication"},
		{"without a key", config.Keyring{Signs: testKey(7)}, hello(), "are not authenticated, and this group has a key"},
		{"with a key, and this board has none", config.Keyring{}, hello(ours), "are authenticated, and this board has no key"},
		{"another version", config.Keyring{Signs: testKey(7)}, old, "have another version of the protocol"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				one := l.board(1, func(c *config.Config, _ *fakeBoard) { c.Keys = test.keys })
				pass(2 * time.Second)
				one.get(func() { one.logged = nil })
				packet := test.packet(t)
				for n := range 170 {
					from := netip.AddrFrom4([4]byte{10, 0, 0, byte(101 + n%100)})
					one.played(packet, netip.AddrPortFrom(from, wire.DefaultGroup.Port()))
					pass(time.Second)
				}
				one.get(func() {
					if n := len(one.logged); n > 3 {
						t.Errorf("%d lines were logged in 170 s, want one a minute: %q", n, one.logged)
					}
				})
				one.wantProblem(t, "packets of somebody who claims to be 10.0.0.170 "+test.says)
			})
		})
	}
}

// TestForgedClaimsAreFolded has somebody claim the address with another MAC address each second, for a quarter of an hour: each line in the log
// doubles the time to the next one.
func TestForgedClaimsAreFolded(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		pass(time.Minute)
		three.get(func() { three.logged = nil })
		for n := range 16 * 60 {
			three.claimed(net.HardwareAddr{2, 0, 0, 0, byte(n >> 8), byte(n)})
			pass(time.Second)
		}
		three.wantLog(t, "find that machine", 5) // after 0, 1, 3, 7 and 15 minutes
	})
}

// TestResignKeepsALaterCaller has a caller who resigned go away when somebody else
// waits for the successor already: that one must still learn who it is.
func TestResignKeepsALaterCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.get(func() { three.mute = true }) // nobody hears that it resigns
		first, leave := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := three.Resign(first)
			ended <- err
		}()
		pass(time.Millisecond)
		later := make(chan console.Handover, 1)
		three.onLoop(t, func() { three.successor = later })
		leave()
		assert.ErrorIs(t, <-ended, context.Canceled, "the first caller")
		pass(time.Millisecond)
		three.onLoop(t, func() {
			if three.successor != later {
				t.Error("the later caller was forgotten")
			}
		})
	})
}

// TestProbeWithoutALink has the link be lost when the core wants a probe, and the
// loop be so busy that its queue is full: the core must learn how the probe ended.
func TestProbeWithoutALink(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, nil)
		pass(2 * time.Second)
		one.onLoop(t, func() {
			announcer := one.address.announcer
			one.address.announcer = nil
			defer func() { one.address.announcer = announcer }()
			for range cap(one.tasks.posted) {
				one.tasks.tryPost(func() {})
			}
			one.address.probe(one.probed)
		})
		pass(time.Millisecond)
		one.wantProblem(t, "probe for the address: the link was lost")
	})
}

// TestLoneLeaderFrozen: a leader without an heir has no end of its lease, so its kernel answers while its daemon stands still. The board
// that is switched on meanwhile finds that out, claims nothing, and follows the leader that goes on.
func TestLoneLeaderFrozen(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(_ *config.Config, b *fakeBoard) { withSwitch(b) })
		pass(2 * time.Second)
		l.wantHolders(1)
		go one.tasks.post(func() { <-time.After(3 * time.Second) })
		two := l.board(2, nil)
		pass(2900 * time.Millisecond)
		l.wantHolders(1)
		pass(10 * time.Second)
		assert.Is(t, console.RoleFollower, two.mustStatus(t).Role, "the role of the board that was switched on")
		two.wantNoProblem(t)
		l.wantHolders(1)
	})
}

// TestLogDoesNotLie has the address be claimed and not be had.
func TestLogDoesNotLie(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(_ *config.Config, b *fakeBoard) { b.acquireFails = errNoPermission })
		pass(2 * time.Second)
		one.get(func() {
			for _, line := range one.logged {
				if strings.Contains(line, "holds 10.0.0.100") {
					t.Errorf("logged %q", line)
				}
			}
		})
	})
}

func TestLEDRecovers(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		tries := 0
		one := l.board(1, func(_ *config.Config, b *fakeBoard) {
			b.openLED = func() (gpio.LED, error) {
				if tries++; tries < 2 {
					return nil, errors.New("the chip is busy")
				}
				return lamp.NewRecorder("another LED", 1000), nil
			}
		})
		pass(5 * time.Minute)
		if s := one.mustStatus(t); len(besidesSpares(s)) > 0 || s.LEDText != "another LED, lit, with a short gap every second" {
			t.Errorf("LED %q, problems %q", s.LEDText, s.Problems)
		}
	})
}

// TestNumberedOut has a board come to the end of its sequence numbers.
func TestNumberedOut(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.onLoop(t, func() { three.group.sequence = lastSequence })
		pass(5 * time.Second)
		l.wantHolders(2)
		assert.Is(t, "10.0.0.2", three.mustStatus(t).Leader, "the leader of the board that must be in again")
	})
}

// TestAddressGoesWhilePacketsWait has the board's own address go, as with DHCP, while packets that came for it wait to be handled.
func TestAddressGoesWhilePacketsWait(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, _ := l.three()
		one.tasks.post(func() {
			<-time.After(300 * time.Millisecond) // the leader's heartbeats come meanwhile
			if len(one.group.inbox.messages) == 0 {
				t.Error("no packet waits, so this test tests nothing")
			}
			gone := one.state
			gone.Link.Addrs = nil
			one.linkChanged(gone)
		})
		pass(time.Second)
		assert.Is(t, console.RoleIsolated, one.mustStatus(t).Role, "the role without an address")
		one.change(func(*netio.Snapshot) {}) // it is back
		pass(time.Second)
		l.wantHolders(3)
		assert.Is(t, "10.0.0.3", one.mustStatus(t).Leader, "whom it follows")
	})
}
