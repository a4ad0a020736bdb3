package daemon

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// inBubble runs a test on a fake LAN in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, l *fakeLAN)) {
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLAN(t)
		defer l.close()
		test(t, l)
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (l *fakeLAN) wantHolders(want ...int) {
	l.t.Helper()
	assert.Equal(l.t, want, l.holders(), "wrong holders")
}

func (l *fakeLAN) three() (one, two, three *fakeBoard) {
	one, two, three = l.board(1, nil), l.board(2, nil), l.board(3, nil)
	pass(2 * time.Second)
	l.wantHolders(3)
	return one, two, three
}

// texts returns what problems say to people.
func texts(problems []console.Problem) (texts []string) {
	for _, p := range problems {
		texts = append(texts, p.Text)
	}
	return texts
}

func (b *fakeBoard) wantProblem(t *testing.T, part string) {
	t.Helper()
	s := b.mustStatus(t)
	if !slices.ContainsFunc(s.Problems, func(p console.Problem) bool { return strings.Contains(p.Text, part) }) {
		t.Errorf("board %d does not tell of %q; its problems: %q", b.number, part, s.Problems)
	}
}

func (b *fakeBoard) wantNoProblem(t *testing.T) {
	t.Helper()
	if problems := besidesSpares(b.mustStatus(t)); len(problems) > 0 {
		t.Errorf("board %d has problems: %q", b.number, problems)
	}
}

// onLoop runs what touches the state of a daemon where that is allowed.
func (b *fakeBoard) onLoop(t testing.TB, do func()) {
	t.Helper()
	assert.NoError(t, b.tasks.call(t.Context(), func() error { do(); return nil }))
}

func (b *fakeBoard) mustStatus(t *testing.T) console.Status {
	t.Helper()
	s, err := b.Status(t.Context())
	assert.NoError(t, err)
	return s
}

// besidesSpares are the problems of a board, but for one that a board which is alone always has.
func besidesSpares(s console.Status) []console.Problem {
	return slices.DeleteFunc(slices.Clone(s.Problems), func(p console.Problem) bool { return p.Kind == console.ProblemNoSpare })
}

func TestElectsAndAnnounces(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three := l.three()
		three.get(func() { assert.Is(t, 1, three.announced, "announced as it was acquired") })
		s := one.mustStatus(t)
		if s.Leader != "10.0.0.3" || s.LeaderName != "pi3" || s.HeirName != "pi2" || !s.Held() {
			t.Errorf("wrong view of the leader: %+v", s)
		}
		var names []string
		for _, b := range s.Boards {
			names = append(names, b.Name+" "+b.Role)
		}
		assert.Equal(t, []string{"pi3 leader", "pi2 heir", "pi1 follower"}, names, "wrong boards")
		if one.led.On() && three.led.Edges() == nil {
			t.Error("the LEDs do not show the roles")
		}
	})
}

// TestCannotHold has a board win that may not add addresses.
func TestCannotHold(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.board(1, nil)
		l.board(2, nil)
		three := l.board(3, func(_ *config.Config, b *fakeBoard) { b.acquireFails = errNoPermission })
		pass(2 * time.Second)
		l.wantHolders(2)
		three.wantProblem(t, "not permitted")
	})
}

// TestCannotHoldAlone has nobody to hand over to: it goes on trying, and shows that it does not hold the address.
func TestCannotHoldAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(_ *config.Config, b *fakeBoard) { b.acquireFails = errNoPermission })
		pass(2 * time.Second)
		l.wantHolders()
		one.wantProblem(t, "not permitted")
		if s := one.mustStatus(t); s.Held() || s.Holding {
			t.Errorf("the status says that the address is held: %+v", s)
		}
		one.get(func() { one.acquireFails = nil })
		pass(time.Second)
		l.wantHolders(1)
	})
}

func TestAddressDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.get(func() { three.holding, three.announced = false, 0 })
		three.change(func(*netio.Snapshot) {})
		pass(time.Millisecond)
		l.wantHolders(3)
		three.get(func() {
			if three.restores != 1 || three.announced != 1 {
				t.Errorf("restored %d times and announced %d times, want 1 and 1", three.restores, three.announced)
			}
		})
		assert.Is(t, 1, three.mustStatus(t).Counters.AddressRestored, "the counter")
	})
}

// TestEthernetAddressChanges: a bond fails over, or somebody sets another address. All who know the board by the
// old one hear of the new one at once.
func TestEthernetAddressChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three := l.three()
		for _, test := range []struct {
			board    *fakeBoard
			changes  func(*netio.Snapshot)
			announce int      // the floating address
			resolve  []string // its own address among them
		}{
			{three, func(s *netio.Snapshot) { s.Link.HardwareAddr = net.HardwareAddr{2, 0, 0, 0, 9, 3} }, 1, []string{"10.0.0.3"}},
			{one, func(s *netio.Snapshot) { s.Link.HardwareAddr = net.HardwareAddr{2, 0, 0, 0, 9, 1} }, 0, []string{"10.0.0.1"}},
			{three, func(*netio.Snapshot) {}, 0, nil},
		} {
			test.board.get(func() { test.board.announced, test.board.resolved = 0, nil })
			test.board.change(test.changes)
			pass(time.Millisecond)
			test.board.get(func() {
				var resolved []string
				for _, addr := range test.board.resolved {
					resolved = append(resolved, addr.String())
				}
				assert.Is(t, test.announce, test.board.announced, "board %d has announced the floating address", test.board.number)
				assert.Equal(t, test.resolve, resolved, "board %d has spoken of", test.board.number)
			})
		}
		l.wantHolders(3)
	})
}

// TestRenewalWaits has the kernel be busy for others while the lifetime is started over: the leader
// goes on to send heartbeats, and renews when the kernel lets it.
func TestRenewalWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three := l.three()
		term := three.mustStatus(t).Term
		waits := make(chan struct{})
		three.get(func() { three.renewWaits = waits })
		pass(3 * time.Second)
		l.wantHolders(3)
		assert.Is(t, term, two.mustStatus(t).Term, "the term, if the lead has not moved")
		three.get(func() { three.renewWaits, three.holding, three.announced = nil, false, 0 }) // somebody deletes it
		close(waits)
		pass(time.Millisecond)
		l.wantHolders(3)
		three.get(func() {
			if three.restores != 1 || three.announced != 1 {
				t.Errorf("restored %d times and announced %d times, want 1 and 1", three.restores, three.announced)
			}
		})
	})
}

// TestRejoinWaits has a leader that gets no multicast join the group again, and the kernel be busy for others.
func TestRejoinWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three := l.three()
		term := three.mustStatus(t).Term
		waits := make(chan struct{})
		three.get(func() { three.noMulticast, three.rejoinWaits = true, waits })
		pass(rejoinAfter + time.Second)
		close(waits)
		pass(time.Second)
		l.wantHolders(3)
		assert.Is(t, term, two.mustStatus(t).Term, "the term, if the lead has not moved")
		assert.Is(t, 1, three.mustStatus(t).Counters.GroupRejoined, "how often it has joined again")
	})
}

// renewalWaits has a renewal of the board's address wait for the kernel until goOn is called.
func (b *fakeBoard) renewalWaits() (goOn func()) {
	waits := make(chan struct{})
	b.get(func() { b.renewed = waits })
	pass(renewEvery)
	return func() {
		pass(time.Millisecond)
		b.get(func() { b.renewed = nil })
		close(waits)
		pass(time.Millisecond)
	}
}

// TestDeletedWhileRenewing has somebody delete the address when a renewal that waits has looked at it
// already: it is renewed once more.
func TestDeletedWhileRenewing(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		goOn := three.renewalWaits()
		three.get(func() { three.holding = false })
		three.change(func(*netio.Snapshot) {})
		goOn()
		l.wantHolders(3)
	})
}

// TestDeletedWhileFormerRenewalRuns is the same with a renewal of the time before, which has ended by now.
func TestDeletedWhileFormerRenewalRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		goOn := three.renewalWaits()
		three.onLoop(t, func() {
			three.address.release()
			three.address.acquire()
		})
		three.get(func() { three.holding = false })
		three.change(func(*netio.Snapshot) {})
		goOn()
		l.wantHolders(3)
	})
}

// TestFailedWhileDeleted has a renewal fail while another one runs: what is not held is not renewed, and acquired again later.
func TestFailedWhileDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.onLoop(t, func() {
			a := three.address
			retryAt := a.renewAt
			a.renewed(a.acquired, false, errNoPermission)
			a.renewed(a.acquired, true, nil)
			if a.held || a.renewAt != retryAt || a.restored > 0 {
				t.Errorf("held: %t; it tries to acquire the address %v later; restored %d times", a.held, a.renewAt-retryAt, a.restored)
			}
		})
	})
}

// TestExpiredAsksFirst has a renewal find out that the lifetime is over. The board may have been replaced
// meanwhile, so the core is asked before the address is acquired again.
func TestExpiredAsksFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.onLoop(t, func() {
			acquired := three.address.acquired
			three.address.renewed(acquired, false, netio.ErrExpired)
			if three.address.acquired != acquired || three.address.held {
				t.Error("it has acquired the address at once")
			}
		})
		pass(time.Millisecond)
		l.wantHolders(3)
		three.onLoop(t, func() {
			if !three.address.held {
				t.Error("it does not hold the address")
			}
		})
	})
}

// TestReleasedWhileRenewing has a leader go whose renewal has found out that the address was deleted.
func TestReleasedWhileRenewing(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.onLoop(t, func() {
			former := three.address.acquired
			three.carryOut(three.core.Stop(three.now()))
			three.address.renewed(former, true, nil)
			assert.Is(t, 0, three.address.restored, "restored addresses that it counts")
		})
	})
}

func TestInterfaceComesLater(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(_ *config.Config, b *fakeBoard) {
			b.state.Present, b.state.Missing = false, "no interface has an IPv4 address yet"
		})
		pass(time.Second)
		one.wantProblem(t, "no interface has an IPv4 address yet")
		one.change(func(s *netio.Snapshot) { s.Present, s.Missing, s.Link.Addrs = true, "", nil })
		pass(time.Second)
		one.wantProblem(t, "has no IPv4 address (yet)")
		one.change(func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")} })
		pass(time.Second)
		l.wantHolders(1)
	})
}

// TestInterfaceMadeAnew has the leader's USB adapter pulled and plugged: the same
// name, another index, dead sockets.
func TestInterfaceMadeAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		var before *fakeTransport
		three.get(func() { before = three.transport })
		three.change(func(s *netio.Snapshot) { s.Link.Index = 7 })
		pass(time.Second)
		select {
		case <-before.closed:
		default:
			t.Error("the deaf sockets are still open")
		}
		l.wantHolders(2)
		assert.Is(t, "10.0.0.2", three.mustStatus(t).Leader, "the leader of the board that must be in again")
	})
}

// TestOtherInterface: the leader's own address goes to another interface. It holds the address there. In its former life nothing is
// asked of the new one.
func TestOtherInterface(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.change(func(s *netio.Snapshot) { s.Link.Name, s.Link.Index = "wlan0", 3 })
		pass(time.Second)
		l.wantHolders(2)
		s := three.mustStatus(t)
		assert.Is(t, "wlan0, led by 10.0.0.2", s.Interface+", led by "+s.Leader, "how the board takes part")
		l.boards[1].Kill()
		pass(time.Second)
		l.wantHolders(3)
		three.get(func() {
			assert.Equal(t, []string{"eth0", "wlan0"}, three.heldOn, "interfaces for which the address was prepared")
		})
	})
}

// TestSecondInterface: another interface gets an address in the leader's network. People are told, the sockets hear by it too, and
// nothing moves; likewise when it goes.
func TestSecondInterface(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		began := three.mustStatus(t).Term
		wlan0 := netio.LocalAddr{Prefix: netip.MustParsePrefix("10.0.0.33/24"), Index: 3}
		for _, change := range []func(*netio.Snapshot){
			func(s *netio.Snapshot) {
				s.Local, s.Interfaces, s.Ambiguous = []netio.LocalAddr{wlan0}, []int{2, 3}, "both eth0 and wlan0 contain it"
			},
			func(s *netio.Snapshot) { s.Local, s.Ambiguous = nil, "" },
		} {
			var before *fakeTransport
			three.get(func() { before = three.transport })
			three.change(change)
			pass(time.Second)
			three.get(func() {
				assert.Is(t, true, three.transport == before, "the sockets are those of before")
				assert.Is(t, three.state.Ambiguous != "", before.anyInterface.Load(), "they hear by any interface")
			})
			l.wantHolders(3)
			assert.Is(t, began, three.mustStatus(t).Term, "the term")
			if three.state.Ambiguous == "" {
				three.wantNoProblem(t)
			} else {
				three.wantProblem(t, "both eth0 and wlan0 contain it")
			}
		}
	})
}

// TestOwnAddressChanges moves the leader's own address: it goes on leading.
func TestOwnAddressChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.change(func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.33/24")} })
		pass(2 * time.Second)
		l.wantHolders(3)
		if s := three.mustStatus(t); s.Board.ID != "10.0.0.3" || s.Board.Address != "10.0.0.33" {
			t.Errorf("id %s at %s, want 10.0.0.3 at 10.0.0.33", s.Board.ID, s.Board.Address)
		}
	})
}

// TestOwnAddressGoes takes the leader's own address away: it cannot speak, so another board leads.
func TestOwnAddressGoes(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.change(func(s *netio.Snapshot) { s.Link.Addrs = nil })
		pass(time.Second)
		l.wantHolders(2)
		assert.Is(t, console.RoleIsolated, three.mustStatus(t).Role, "the role without an address")
	})
}

// TestFloatingOfAnotherGroup: a floating address of the board's other groups is not its own, even if it is the only one there.
func TestFloatingOfAnotherGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, _ *fakeBoard) {
			c.OtherAddresses = []netip.Addr{netip.MustParseAddr("10.0.0.200")}
		})
		pass(2 * time.Second)
		assert.Is(t, console.RoleLeader, one.mustStatus(t).Role, "the role before")
		one.change(func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.200/32")} })
		pass(2 * time.Second)
		assert.Is(t, console.RoleIsolated, one.mustStatus(t).Role, "the role without an address")
	})
}

// TestOldAddressIsGivenAway has another board get the address that the leader's
// id was made of.
func TestOldAddressIsGivenAway(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.change(func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.33/24")} })
		pass(time.Second)
		newcomer := l.board(4, func(_ *config.Config, b *fakeBoard) {
			b.state.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.3/24")}
		})
		pass(20 * time.Second)
		assert.Is(t, 1, len(l.holders()), "boards that hold the address")
		assert.Is(t, "10.0.0.33", three.mustStatus(t).Board.ID, "the renumbered board has the id")
		if s := newcomer.mustStatus(t); s.Board.ID != "10.0.0.3" || s.Role == console.RoleBarred {
			t.Errorf("the newcomer is %s with the id %s, want to be in with 10.0.0.3", s.Role, s.Board.ID)
		}
	})
}

// TestForeignOwner: a machine has one of the addresses, of either family, so nobody takes any of them.
func TestForeignOwner(t *testing.T) {
	mac := net.HardwareAddr{0xde, 0xad, 0xbe, 0xef, 0, 1}
	for address, owner := range map[string]func(*fakeLAN) *net.HardwareAddr{
		"10.0.0.100": func(l *fakeLAN) *net.HardwareAddr { return &l.owner },
		"fd00::100":  func(l *fakeLAN) *net.HardwareAddr { return &l.owner6 },
	} {
		inBubble(t, func(t *testing.T, l *fakeLAN) {
			*owner(l) = mac
			one := l.board(1, withBoth)
			pass(3 * time.Second)
			l.wantBoth()
			one.wantProblem(t, "de:ad:be:ef:00:01 already has the address "+address)
			l.mu.Lock()
			*owner(l) = nil
			l.mu.Unlock()
			pass(11 * time.Second)
			l.wantBoth(1)
			one.wantNoProblem(t)
		})
	}
}

// TestTakesAnAddressInUse: somebody answers for the address as long as nobody leads. The boards wait for as long,
// unless they are told not to, and say what they do.
func TestTakesAnAddressInUse(t *testing.T) {
	for _, test := range []struct {
		takes  bool
		after  time.Duration
		holder []int
		says   string
	}{
		{false, 10 * time.Second, nil, "no board takes it until that machine is silent, unless take_in_use = true"},
		{false, 5 * time.Minute, nil, "already has the address"},
		{true, 9 * time.Second, nil, "a board takes it when that has lasted for 10s, since take_in_use = true"},
		{true, 12 * time.Second, []int{3}, "and this board takes it all the same, since take_in_use = true"},
	} {
		t.Run(fmt.Sprintf("take_in_use = %v, after %v", test.takes, test.after), func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				l.owner = net.HardwareAddr{0xde, 0xad, 0xbe, 0xef, 0, 1}
				for number := 1; number <= 3; number++ {
					l.board(number, func(c *config.Config, _ *fakeBoard) { c.TakeInUse = test.takes })
				}
				pass(test.after)
				l.wantHolders(test.holder...)
				l.boards[2].wantProblem(t, test.says)
				if test.holder != nil {
					pass(5 * time.Minute)
					l.wantHolders(test.holder...)
				}
			})
		})
	}
}

// A board that claims at the same time has the address before it is heard. That is nothing to tell people.
func TestOwnerOfAMoment(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.owner = net.HardwareAddr{0xde, 0xad, 0xbe, 0xef, 0, 1}
		one := l.board(1, nil)
		pass(time.Second)
		if got := one.mustStatus(t).Reason; got != election.ReasonAddressInUse.Identifier() {
			t.Fatalf("the board is so because of %q: it has not found the owner", got)
		}
		l.mu.Lock()
		l.owner = nil
		l.mu.Unlock()
		pass(2 * time.Second)
		l.wantHolders(1)
		one.wantLog(t, "already has the address", 0)
	})
}

func TestDefendsTheAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		pass(time.Minute)
		mac := net.HardwareAddr{0xde, 0xad, 0xbe, 0xef, 0, 1}
		for _, test := range []struct {
			name       string
			claims     int
			every      time.Duration
			want, logs int
		}{
			{"a burst", 20, 0, 5, 1},
			{"one a second", 30, time.Second, 30, 1},
			{"a flood", 3000, 10 * time.Millisecond, 64, 0}, // for 30 s: five, and then two a second
		} {
			pass(70 * time.Second)
			three.get(func() { three.announced, three.logged = 0, nil })
			for range test.claims {
				three.claimed(mac)
				pass(test.every)
			}
			pass(time.Millisecond)
			three.get(func() { assert.Is(t, test.want, three.announced, "%s: claims that were answered", test.name) })
			three.wantProblem(t, mac.String())
			three.wantLog(t, "find that machine", test.logs)
			l.wantHolders(3)
		}
	})
}

// TestDefence counts which claims are answered within a minute.
func TestDefence(t *testing.T) {
	for _, test := range []struct {
		name  string
		every time.Duration
		want  int
	}{
		{"one a second", time.Second, 60},
		{"two a second", 500 * time.Millisecond, 120},
		{"ten a second", 100 * time.Millisecond, 124}, // five, and then two a second
		{"a flood", time.Millisecond, 124},
	} {
		var limit wire.Limit
		got := 0
		for at := time.Duration(0); at < time.Minute; at += test.every {
			if limit.Allow(time.Hour+at, defences) {
				got++
			}
		}
		assert.Is(t, test.want, got, "%s: claims that were answered", test.name)
	}
}

// TestOtherKey: a board with another key, or without one, takes part in nothing, also not while the address is free for a moment.
// Both sides are told.
func TestOtherKey(t *testing.T) {
	for _, test := range []struct {
		name         string
		keys         config.Keyring
		theirs, ours string
	}{
		{"another key", config.Keyring{Signs: testKey(1)}, "fail authentication", "packets of somebody who claims to be 10.0.0.4 fail authentication"},
		{"no key", config.Keyring{}, "are authenticated, and this board has no key: if that is a board of this group, copy the key file",
			"are not authenticated, and this group has a key: if that is a board of this group, copy the key file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				one, two, three := l.three()
				owned := func(by net.HardwareAddr) { // whoever leads answers ARP
					l.mu.Lock()
					l.owner = by
					l.mu.Unlock()
				}
				owned(three.state.Link.HardwareAddr)
				four := l.board(4, func(c *config.Config, _ *fakeBoard) { c.Keys = test.keys })
				pass(3 * time.Second)
				l.wantHolders(3)
				one.wantProblem(t, test.ours)
				four.wantProblem(t, test.theirs)
				four.wantProblem(t, three.state.Link.HardwareAddr.String()+" already has the address 10.0.0.100")
				if s := four.mustStatus(t); s.Held() {
					t.Errorf("it says that %s leads", s.Leader)
				}
				three.Kill()
				owned(nil)
				pass(200 * time.Millisecond)
				l.wantHolders(2)
				owned(two.state.Link.HardwareAddr)
				pass(time.Minute)
				l.wantHolders(2)
			})
		})
	}
}

// TestClonesStartTogether: of several boards with one id that are switched on together, the one with the
// highest incarnation stays, as fast as if it were alone. All others stay out, and all say why.
func TestClonesStartTogether(t *testing.T) {
	for _, keys := range []config.Keyring{{Signs: testKey(7)}, {}} {
		for _, n := range []int{2, 3, 5} {
			t.Run(fmt.Sprintf("%d boards, %v", n, keys.Signs), func(t *testing.T) {
				inBubble(t, func(t *testing.T, l *fakeLAN) {
					for number := range n {
						l.board(1+number, func(c *config.Config, _ *fakeBoard) { c.ID, c.Keys = 7, keys })
					}
					pass(450 * time.Millisecond)
					stays := slices.MaxFunc(l.boards, func(a, b *fakeBoard) int {
						return int(a.group.incarnation) - int(b.group.incarnation)
					})
					for range 60 {
						l.wantHolders(stays.number)
						pass(500 * time.Millisecond)
					}
					for _, b := range l.boards {
						b.wantProblem(t, "has this board's id 7")
						if hosts := b.group.hosts(); slices.Contains(hosts, netip.Addr{}) {
							t.Errorf("board %d knows of hosts without an address: %v", b.number, hosts)
						}
						if s := b.mustStatus(t); b != stays && (s.Role != console.RoleBarred || s.Held()) {
							t.Errorf("board %d is a %s, want barred; it says that the address is held: %v", b.number, s.Role, s.Held())
						}
					}
				})
			})
		}
	}
}

// TestGarbage has packets arrive that mean nothing.
func TestGarbage(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three := l.three()
		var packets [][]byte
		for n := range 100 {
			packets = append(packets, slices.Repeat([]byte{byte(n)}, n))
		}
		var garbler Transport
		two.get(func() { garbler = two.transport })
		for _, p := range packets {
			assert.NoError(t, garbler.Multicast(p))
		}
		pass(time.Second)
		l.wantHolders(3)
		var dropped uint64
		for _, n := range three.mustStatus(t).Counters.DroppedByReason {
			dropped += n
		}
		if dropped < 100 {
			t.Errorf("%d packets were counted as dropped, want the 100 that were garbage", dropped)
		}
	})
}
