package daemon

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"topdog/election"
	"topdog/election/literature"
	"topdog/election/silence"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// number returns the number of an algorithm that exists.
func number(t *testing.T, name string) wire.Algorithm {
	t.Helper()
	a, ok := literature.AlgorithmNamed(name)
	if !ok {
		t.Fatalf("there is no algorithm %q", name)
	}
	return a
}

// untilElected lets time pass until one board holds the address and all that have a
// link follow it, and returns its number.
func (l *fakeLAN) untilElected(t *testing.T, boards ...*fakeBoard) (leader int) {
	t.Helper()
	lack := ""
	for range 300 { // of virtual time, which costs nothing
		pass(100 * time.Millisecond)
		holders := l.holders()
		if lack = fmt.Sprintf("holders %v", holders); len(holders) != 1 {
			continue
		}
		lack = ""
		for _, b := range boards {
			if s := b.mustStatus(t); s.LeaderName != fmt.Sprint("pi", holders[0]) || !s.Held() {
				lack += fmt.Sprintf("pi%d is a %s and follows %q; ", b.number, s.Role, s.LeaderName)
			}
		}
		if lack == "" {
			return holders[0]
		}
	}
	t.Fatalf("the boards elect nobody within 30 s: %s", lack)
	return 0
}

// promises says, of the algorithms in which the best board always takes the lead, which of four boards with equal priorities
// and scores is the best. It is the papers' word.
var promises = map[string]int{"bully": 4, "score": 4, "modified": 4, "candidates": 4, "minid": 1}

// TestAlgorithms elects, pulls the leader's cable and puts it back, with each
// algorithm, each fanout and each detector.
func TestAlgorithms(t *testing.T) {
	for _, name := range literature.Algorithms() {
		for _, fanout := range election.Fanouts() {
			for _, detector := range silence.Detectors() {
				t.Run(name+"/"+fanout+"/"+detector, func(t *testing.T) {
					inBubble(t, func(t *testing.T, l *fakeLAN) {
						configure := func(c *config.Config, _ *fakeBoard) {
							c.Algorithm = number(t, name)
							c.Fanout, _ = election.FanoutNamed(fanout)
							c.Detector, _ = silence.DetectorNamed(detector)
						}
						for n := 1; n <= 4; n++ {
							l.board(n, configure)
						}
						first := l.untilElected(t, l.boards...)
						s := l.boards[0].mustStatus(t)
						if s.Algorithm != name || s.Fanout != fanout || s.Detector.Kind != detector {
							t.Errorf("the status says algorithm %q, fanout %q, detector %q", s.Algorithm, s.Fanout, s.Detector.Kind)
						}
						// What tells that it is really in use: how late a heartbeat may be.
						follower := l.boards[first%4].mustStatus(t).Detector
						if late := follower.MarginMs; (detector == "fixed") != (late == 210) || (detector == "ask") != (follower.Questions > 1) {
							t.Errorf("the detector %s lets a heartbeat be late by %v ms, and asks %d times", detector, late, follower.Questions)
						}
						l.wantOrder(t, name)

						old := l.boards[first-1]
						heir := l.boards[first%4].mustStatus(t).HeirName
						old.change(func(s *netio.Snapshot) { s.Link.Up = false })
						next := l.untilElected(t, slices.DeleteFunc(slices.Clone(l.boards), func(b *fakeBoard) bool { return b == old })...)
						if got := fmt.Sprint("pi", next); got != heir {
							t.Errorf("%s leads now, and %s was called the heir", got, heir)
						}
						old.change(func(s *netio.Snapshot) { s.Link.Up = true })
						pass(10 * time.Second)
						last := l.untilElected(t, l.boards...)
						pass(10 * time.Second)
						l.wantHolders(last)
						if best := promises[name]; best > 0 && (first != best || last != best) || best == 0 && last != next {
							t.Errorf("pi%d led, pi%d after it, and pi%d when it was back; the best is pi%d (0: whoever leads)", first, next, last, best)
						}
						for _, b := range l.boards {
							s := b.mustStatus(t)
							if len(s.Problems) > 0 || s.Counters.MessagesWithoutRoute > 0 {
								t.Errorf("pi%d has the problems %q, and %d messages without an address", b.number, s.Problems, s.Counters.MessagesWithoutRoute)
							}
							if trusted := len(s.Trusted); trusted != map[string]int{"agents": 4}[name] {
								t.Errorf("pi%d says that %d boards are trusted", b.number, trusted)
							}
						}
					})
				})
			}
		}
	}
}

// TestNumberedBoards: boards whose ids are no addresses are sent to where they
// were heard from.
func TestNumberedBoards(t *testing.T) {
	for _, name := range literature.Algorithms() {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				for n := 1; n <= 3; n++ {
					l.board(n, func(c *config.Config, _ *fakeBoard) {
						c.Algorithm, c.Fanout, c.ID = number(t, name), election.FanoutUnicast, wire.ID(n)
					})
				}
				old := l.boards[l.untilElected(t, l.boards...)-1]
				pass(5 * time.Second)
				old.change(func(s *netio.Snapshot) { s.Link.Up = false })
				l.untilElected(t, slices.DeleteFunc(slices.Clone(l.boards), func(b *fakeBoard) bool { return b == old })...)
				old.change(func(s *netio.Snapshot) { s.Link.Up = true })
				pass(10 * time.Second)
				l.untilElected(t, l.boards...)
				for _, b := range l.boards {
					if s := b.mustStatus(t); len(s.Problems) > 0 || s.Counters.MessagesWithoutRoute > 0 {
						t.Errorf("pi%d has the problems %q, and %d messages without an address", b.number, s.Problems, s.Counters.MessagesWithoutRoute)
					}
				}
			})
		})
	}
}

// wantOrder checks that all boards list all boards in the same order, best first:
// by rank, which with equal priorities and scores is by id.
func (l *fakeLAN) wantOrder(t *testing.T, algorithm string) {
	t.Helper()
	pass(5 * time.Second) // the names come with the HELLOs
	want := []string{"pi4", "pi3", "pi2", "pi1"}
	if algorithm == "minid" {
		slices.Reverse(want)
	}
	for _, b := range l.boards {
		var names []string
		for _, other := range b.mustStatus(t).Boards {
			names = append(names, other.Name)
			if scored := algorithm == "score"; (other.Score != nil) != scored || scored && *other.Score != 100 {
				t.Errorf("pi%d shows the score %v for %s", b.number, other.Score, other.Name)
			}
		}
		assert.Equal(t, want, names, "the boards as pi%d has them", b.number)
	}
}

// TestDetectorDefault: the status shows which detector is in use, not which is configured.
func TestDetectorDefault(t *testing.T) {
	for _, name := range literature.Algorithms() {
		want := "fixed"
		switch name {
		case "heir":
			want = "ask"
		case "agents":
			want = "nfd-e"
		}
		inBubble(t, func(t *testing.T, l *fakeLAN) {
			one := l.board(1, func(c *config.Config, _ *fakeBoard) { c.Algorithm = number(t, name) })
			assert.Is(t, want, one.mustStatus(t).Detector.Kind, "%s before there is a network: the detector", name)
			pass(10 * time.Second)
			assert.Is(t, want, one.mustStatus(t).Detector.Kind, "%s: the detector", name)
		})
	}
}

// TestOtherAlgorithmIsRefused: of two boards that run different algorithms both
// log one error that names the two, and tell of it in their status.
func TestOtherAlgorithmIsRefused(t *testing.T) {
	names := literature.Algorithms()
	for i, theirs := range names {
		ours := names[(i+1)%len(names)]
		t.Run(ours+" and "+theirs, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				first := l.board(1, func(c *config.Config, _ *fakeBoard) { c.Algorithm = number(t, ours) })
				pass(20 * time.Second)
				l.wantHolders(1)
				second := l.board(2, func(c *config.Config, _ *fakeBoard) { c.Algorithm = number(t, theirs) })
				pass(30 * time.Second)
				l.wantHolders(1)
				if s := second.mustStatus(t); s.Role != console.RoleBarred || s.Held() {
					t.Errorf("the board that came later is a %s", s.Role)
				}
				for _, side := range []struct {
					board                *fakeBoard
					this, otherID, other string
				}{{first, ours, "10.0.0.2", theirs}, {second, theirs, "10.0.0.1", ours}} {
					want := fmt.Sprintf("this board runs the algorithm %s, and board %s runs the algorithm %s: set the same algorithm on all boards of the group",
						side.this, side.otherID, side.other)
					assert.Equal(t, []string{"error: " + want}, side.board.loggedWith("runs the algorithm"), "logged by pi%d", side.board.number)
					if s := side.board.mustStatus(t); !slices.Contains(texts(s.Problems), want) {
						t.Errorf("the problems of pi%d are %q, want %q", side.board.number, s.Problems, want)
					}
				}
			})
		})
	}
}

// TestMembers: configured peers are known to the election before they are heard,
// as long as ids are addresses.
func TestMembers(t *testing.T) {
	peers := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	local := netip.MustParseAddr("10.0.0.1")
	for _, test := range []struct {
		name string
		id   wire.ID // configured
		want []wire.ID
	}{
		{"id from the address", wire.Nobody, []wire.ID{wire.IDFromAddr(peers[0]), wire.IDFromAddr(peers[1])}},
		{"id from the configuration", 7, nil},
	} {
		g := &group{peers: peers, identity: &identity{configuredID: test.id}}
		assert.Equal(t, test.want, g.members(local), "%s", test.name)
	}
}

// TestUnicastToPeers: with unicast, what concerns a configured peer goes to its
// address although it was never heard.
func TestUnicastToPeers(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, _ *fakeBoard) {
			c.Algorithm, c.Fanout = wire.AlgorithmBully, election.FanoutUnicast
			c.Peers = []netip.Addr{netip.MustParseAddr("10.0.0.9")}
		})
		asked := map[netip.AddrPort]bool{}
		one.get(func() {
			one.onSend = func(datagram []byte, to netip.AddrPort) {
				var m wire.Message
				if drop := one.group.codec.Decode(&m, datagram); !drop.Dropped() && m.Type == wire.TypeElection {
					asked[to] = true
				}
			}
		})
		pass(5 * time.Second)
		l.wantHolders(1)
		if diff := cmp.Diff(map[netip.AddrPort]bool{netip.MustParseAddrPort("10.0.0.9:9254"): true}, asked, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
			t.Errorf("where ELECTION went (-want +got):\n%s", diff)
		}
	})
}

// TestUnaddressed: what concerns a board whose id is no address of this network
// is not sent anywhere, and the board says so.
func TestUnaddressed(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, _ := l.three()
		send := func(to wire.ID) (unicasts int) {
			one.get(func() { unicasts = one.unicasts })
			m := wire.Message{Header: wire.Header{Type: wire.TypeAnswer, Algorithm: wire.AlgorithmHeir, Sender: one.group.self}}
			one.onLoop(t, func() { one.group.send(&election.Effect{To: to, Message: m}) })
			one.get(func() { unicasts = one.unicasts - unicasts })
			return unicasts
		}
		for _, test := range []struct {
			name string
			to   wire.ID
			want int
		}{
			{"a board that was heard", two.group.self, 1},
			{"an address of the network", wire.IDFromAddr(netip.MustParseAddr("10.0.0.77")), 1},
			{"a small number", 7, 0},
			{"an address beyond the link", wire.IDFromAddr(netip.MustParseAddr("8.8.8.8")), 0},
			{"the floating address", wire.IDFromAddr(floating), 0},
		} {
			assert.Is(t, test.want, send(test.to), "%s: datagrams", test.name)
		}
		assert.Is(t, 3, one.mustStatus(t).Counters.MessagesWithoutRoute, "messages that were counted")
		one.wantProblem(t, "the address of board")
		if lines := one.loggedWith("the address of board"); len(lines) != 1 || !strings.HasPrefix(lines[0], "warning: ") {
			t.Errorf("logged %q, want one warning", lines)
		}
	})
}

// TestScoreMatters: the board whose command prints the greatest number leads,
// also when that is another one from one moment to the next.
func TestScoreMatters(t *testing.T) {
	if _, ok := literature.AlgorithmNamed("score"); !ok {
		t.Skip("there is no algorithm score")
	}
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		for n, value := range []uint32{30, 20, 10} {
			one := l.board(n+1, commanded)
			pass(time.Millisecond)
			one.prints(value)
		}
		assert.Is(t, 1, l.untilElected(t, l.boards...), "who leads, though pi1 has the greatest number")
		l.boards[1].prints(4000000000)
		pass(20 * time.Second)
		l.wantHolders(2)
		scores := map[string]uint32{}
		for _, b := range l.boards[2].mustStatus(t).Boards {
			if b.Score != nil {
				scores[b.Name] = *b.Score
			}
		}
		assert.Equal(t, map[string]uint32{"pi1": 30, "pi2": 4000000000, "pi3": 10}, scores, "the scores as pi3 has them")
		// A leader that no longer knows what it is worth lets the next best lead.
		l.boards[1].breaks(`printed "?"`)
		pass(20 * time.Second)
		l.wantHolders(1)
	})
}
