package daemon

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// silent returns what a board says of boards that it does not hear.
func (b *fakeBoard) silentBoards(t *testing.T) (all []string) {
	t.Helper()
	for _, p := range b.mustStatus(t).Problems {
		if p.Kind == console.ProblemBoardSilent {
			all = append(all, p.Text)
		}
	}
	return all
}

// wantSilent waits for what a board says of the one board that it does not hear; "" for nothing.
func (b *fakeBoard) wantSilent(t *testing.T, when, want string) {
	t.Helper()
	if all := b.silentBoards(t); want == "" && len(all) > 0 || want != "" && (len(all) != 1 || !strings.Contains(all[0], want)) {
		t.Errorf("%s, board %d says %q, want %q", when, b.number, all, want)
	}
}

// TestWhySilent makes one of three boards silent in every way, and says what the others then say of it, and for how long they say nothing.
func TestWhySilent(t *testing.T) {
	const (
		daemon = "pi3 (10.0.0.3) is not heard: its kernel answers for 10.0.0.3, so topdog does not run there, or a firewall drops"
		off    = "pi3 (10.0.0.3) is not heard: nothing answers for 10.0.0.3 either: look at its power, its cable"
	)
	for _, test := range []struct {
		name   string
		change func(b *fakeBoard)
		want   string
	}{
		{"its daemon is killed", func(b *fakeBoard) { b.Kill() }, daemon},
		{"it leaves", func(b *fakeBoard) { b.end() }, ""},
		{"its power is pulled", func(b *fakeBoard) { b.get(func() { b.dead, b.mute, b.deaf = true, true, true }) }, off},
		{"its cable is pulled at the switch", func(b *fakeBoard) { b.get(func() { b.mute, b.deaf = true, true }) }, off},
		{"a firewall of its own", func(b *fakeBoard) { b.get(func() { b.firewall = true }) }, ""}, // it leaves, and says why
		{"nothing that it sends arrives", func(b *fakeBoard) { b.get(func() { b.mute = true }) }, off},
	} {
		for _, leads := range []bool{true, false} {
			t.Run(map[bool]string{true: "the leader", false: "a follower"}[leads]+"/"+test.name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, l *fakeLAN) {
					var boards []*fakeBoard
					first := 3
					if !leads {
						first = 2
					}
					boards = append(boards, l.board(first, nil))
					pass(time.Second)
					for n := 1; n <= 3; n++ {
						if n != first {
							boards = append(boards, l.board(n, nil))
						}
					}
					pass(time.Minute)
					l.wantHolders(first)
					var three *fakeBoard
					for _, b := range boards {
						if b.number == 3 {
							three = b
						}
					}
					test.change(three)
					pass(5 * time.Second)
					for _, b := range boards {
						if b != three {
							b.wantSilent(t, "before it is known", "")
						}
					}
					pass(10 * time.Second)
					for _, b := range boards {
						if b != three {
							b.wantSilent(t, "then", test.want)
						}
					}
					pass(3 * time.Minute)
					for _, b := range boards {
						if b != three {
							b.wantSilent(t, "three minutes later", test.want)
							if n := count(b.asked(), "10.0.0.3"); n > 4*silenceAsks {
								t.Errorf("board %d has asked for it %d times in three minutes", b.number, n)
							}
						}
					}
				})
			})
		}
	}
}

// TestSilenceIsOver: who is heard again is no problem, and what is logged of one that comes and goes is folded.
func TestSilenceIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three := l.three()
		pass(time.Minute)
		for range 60 {
			three.get(func() { three.mute = true })
			pass(20 * time.Second)
			one.wantSilent(t, "while it is cut off", "pi3 (10.0.0.3) is not heard: nothing answers")
			three.get(func() { three.mute = false })
			pass(5 * time.Second)
			one.wantSilent(t, "when it is heard again", "")
		}
		n := 0
		one.get(func() {
			for _, line := range one.logged {
				if strings.Contains(line, "is not heard") {
					n++
				}
			}
		})
		if n < 3 || n > 8 {
			t.Errorf("%d lines of 60 silences in 25 minutes, want a few", n)
		}
	})
}

// TestNothingIsSaidByTheCutOff: a board that hears nobody for a reason of its own says that, and of nobody else that it is off.
func TestNothingIsSaidByTheCutOff(t *testing.T) {
	for name, change := range map[string]func(b *fakeBoard){
		"its cable":                func(b *fakeBoard) { b.state.Link.Up = false; b.snapshots <- b.state },
		"its port of the switch":   func(b *fakeBoard) { b.deaf, b.mute = true, true },
		"a firewall of this board": func(b *fakeBoard) { b.firewall = true },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				l.hosts = []netip.Addr{router}
				one, _, _ := l.three()
				pass(time.Minute)
				one.get(func() { change(one) })
				pass(time.Minute)
				one.wantSilent(t, "cut off", "")
			})
		})
	}
}

// TestRefusedBoards: a board whose packets are refused is named with the reason and the remedy, once, whether it was a member before, is
// listed as a peer, or neither. Who has its own group, and never had to do with this one, is nobody's business.
func TestRefusedBoards(t *testing.T) {
	for _, test := range []struct {
		name         string
		peer, member bool
		change       func(c *config.Config)
		want         string
		problem      string // another one, of the refusal itself
	}{
		{"another group, once a member", false, true, func(c *config.Config) { c.Group = "kiosk" }, `pi3 (10.0.0.3) is not heard: it takes part in another group: write group = "test"`, ""},
		{"another group, and a peer", true, false, func(c *config.Config) { c.Group = "kiosk" }, `10.0.0.3 is not heard: it takes part in another group: write group = "test"`, ""},
		{"another group that has nothing to do with this one", false, false, func(c *config.Config) { c.Group = "kiosk" }, "", ""},
		{"another key, once a member", false, true, func(c *config.Config) { c.Keys = config.Keyring{Signs: testKey(1)} }, "", "fail authentication"},
		{"no key, and a peer", true, false, func(c *config.Config) { c.Keys = config.Keyring{} }, "", "copy the key file to it"},
		{"a peer that does not run", true, false, nil, "10.0.0.3 is not heard: nothing answers for 10.0.0.3", ""},
	} {
		for _, kernel := range []bool{true, false} {
			t.Run(test.name+map[bool]string{true: ", dropped in the kernel", false: ", dropped by the daemon"}[kernel], func(t *testing.T) {
				inBubble(t, func(t *testing.T, l *fakeLAN) {
					own := func(c *config.Config, b *fakeBoard) {
						if test.peer {
							c.Peers = []netip.Addr{ownAddress(1), ownAddress(2), ownAddress(3)}
						}
						b.dropsOthers = kernel
					}
					one := l.board(1, own)
					l.board(2, own)
					pass(2 * time.Second)
					if test.member {
						three := l.board(3, own)
						pass(5 * time.Second)
						three.end()
						pass(time.Second)
					}
					if test.change != nil {
						l.board(3, func(c *config.Config, b *fakeBoard) {
							own(c, b)
							c.Addresses = []config.Address{{IP: netip.MustParseAddr("10.0.0.101")}}
							test.change(c)
						})
					}
					pass(30 * time.Second)
					one.wantSilent(t, "after a while", test.want)
					if test.problem != "" {
						one.wantProblem(t, test.problem)
					}
				})
			})
		}
	}
}

// TestNobodyWonders has boards that are not heard any more, as they should be.
func TestNobodyWonders(t *testing.T) {
	peers := func(c *config.Config, _ *fakeBoard) { c.Peers = []netip.Addr{ownAddress(1), ownAddress(3)} }
	for name, play := range map[string]func(l *fakeLAN){
		"a peer leaves": func(l *fakeLAN) {
			l.board(1, peers)
			three := l.board(3, peers)
			pass(10 * time.Second)
			three.end()
		},
		"a board gets another address, and another id with that": func(l *fakeLAN) {
			l.board(1, nil)
			three := l.board(3, nil)
			pass(10 * time.Second)
			three.change(func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.33/24")} })
		},
		"a board gets another address while it is off": func(l *fakeLAN) {
			l.board(1, nil)
			three := l.board(3, nil)
			pass(10 * time.Second)
			three.Kill()
			l.board(33, func(c *config.Config, _ *fakeBoard) { c.Name = "pi3" })
		},
		"a board leaves this group, and is of another one, too": func(l *fakeLAN) {
			l.board(1, nil)
			l.board(3, func(c *config.Config, _ *fakeBoard) {
				c.Group, c.Addresses = "kiosk", []config.Address{{IP: netip.MustParseAddr("10.0.0.101")}}
			})
			three := l.board(3, nil)
			pass(10 * time.Second)
			three.end()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				play(l)
				pass(time.Minute)
				l.boards[0].wantSilent(t, "a minute later", "")
			})
		})
	}
}

// TestKilledLeader: the holder of a leader whose daemon is killed says RESIGN for it. That is no board that has left.
func TestKilledLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three, latest := l.armedThree(nil)
		pass(time.Minute)
		prepared, _ := latest().lastPrepared(t)
		three.Kill()
		l.resign(three, prepared)
		pass(30 * time.Second)
		for _, b := range []*fakeBoard{one, two} {
			b.wantSilent(t, "after the leader was killed", "pi3 (10.0.0.3) is not heard: its kernel answers")
		}
	})
}

// TestMovedToABusyGroup: a board of another group is found among others of that group that say more.
func TestMovedToABusyGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		own := func(_ *config.Config, b *fakeBoard) { b.dropsOthers = true }
		kiosk := func(c *config.Config, b *fakeBoard) {
			own(c, b)
			c.Group, c.Addresses = "kiosk", []config.Address{{IP: netip.MustParseAddr("10.0.0.101")}}
		}
		one := l.board(1, own)
		l.board(2, own)
		three := l.board(3, own)
		pass(5 * time.Second)
		three.Kill()
		for n := 4; n <= 9; n++ {
			l.board(n, kiosk)
		}
		pass(5 * time.Second)
		l.board(3, kiosk)
		pass(15 * time.Second)
		for range 100 {
			pass(time.Second)
			one.wantSilent(t, "all the time", "it takes part in another group")
		}
	})
}

// TestOneProblemForOneBoard: also of a board with an id of its own, which is listed as a peer by its address; and none for this board's own
// former address.
func TestOneProblemForOneBoard(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		peers := func(c *config.Config, _ *fakeBoard) {
			c.Peers = []netip.Addr{ownAddress(1), ownAddress(2), ownAddress(3)}
		}
		one := l.board(1, peers)
		two := l.board(2, peers)
		three := l.board(3, func(c *config.Config, b *fakeBoard) { peers(c, b); c.ID = 33 })
		pass(10 * time.Second)
		one.ownAddress(77)
		pass(time.Minute)
		one.wantSilent(t, "with another address", "")
		two.wantSilent(t, "while another board has another address", "")
		three.Kill()
		pass(20 * time.Second)
		two.wantSilent(t, "when a board with an id of its own is dead", "pi3 (33) is not heard: its kernel answers for 10.0.0.3")
	})
}

// TestManySilentBoards are one problem, and few lines: it is the network. What is wrong on this board is not pushed out by it.
func TestManySilentBoards(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, nil)
		var others []*fakeBoard
		for n := 2; n <= 2+silentMax; n++ {
			others = append(others, l.board(n, nil))
		}
		pass(10 * time.Second)
		for _, b := range others {
			b.Kill()
		}
		one.get(func() { one.logged = nil })
		pass(10 * time.Minute)
		one.wantSilent(t, "with many", "5 boards are not heard, among them pi2 (10.0.0.2), pi3 (10.0.0.3), pi4 (10.0.0.4), pi5 (10.0.0.5): look at the switches")
		one.wantLogged(t, "boards are not heard", 1)
		one.wantLogged(t, "is not heard", 1) // the leader, whose death is known first
	})
}

// TestStrangersAreNotMissed: whoever sends what is refused from an address of which no board is known makes no silent board of it.
func TestStrangersAreNotMissed(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three := l.three()
		var packet []byte
		three.get(func() { three.onSend = func(d []byte, _ netip.AddrPort) { packet = append([]byte(nil), d...) } })
		pass(10 * time.Second)
		three.get(func() { three.onSend = nil })
		one.get(func() { one.logged = nil })
		for i := range 600 {
			one.played(packet[:wire.MinPacket], netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + i%60)}), 9254))
			pass(101 * time.Millisecond)
		}
		one.wantSilent(t, "then", "")
		one.get(func() { assert.Is(t, 0, len(one.logged), "lines: %q", one.logged) })
	})
}

// TestAddressOfAnotherGroup: two groups have one floating address. The machine that has it is said to be perhaps a board of the other group.
func TestAddressOfAnotherGroup(t *testing.T) {
	for _, kernel := range []bool{true, false} {
		inBubble(t, func(t *testing.T, l *fakeLAN) {
			three := l.board(3, func(c *config.Config, _ *fakeBoard) { c.Group = "kiosk" })
			pass(5 * time.Second)
			l.mu.Lock()
			l.owner = three.state.Link.HardwareAddr
			l.mu.Unlock()
			one := l.board(1, func(_ *config.Config, b *fakeBoard) { b.dropsOthers = kernel })
			pass(20 * time.Second)
			l.wantHolders(3)
			one.wantProblem(t, "02:00:00:00:00:03 already has the address 10.0.0.100")
			one.wantProblem(t, "boards of another group of topdog are heard, such as 10.0.0.3: if one of them is the machine, give all the same `group` and key")
		})
	}
}

// TestWhyRefused: each reason to drop a packet of this board's own group either says what is wrong with the board that has sent it, or is
// told of by itself, or is nothing.
func TestWhyRefused(t *testing.T) {
	nothing := map[wire.DropReason]bool{
		wire.Accepted: true, wire.TooLong: true, // which no topdog sends
		wire.Own: true, wire.Duplicate: true, // by which a board is heard
		wire.OtherVersion: true, // the core notices it
	}
	for i := range wire.DropReasons {
		reason := wire.DropReason(i)
		ways := 0
		_, told := dropTexts[reason]
		for _, way := range []bool{nothing[reason], told, whyRefused(reason, "test") != ""} {
			if way {
				ways++
			}
		}
		assert.Is(t, 1, ways, "ways in which %v is dealt with", reason)
	}
}
