package election

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/wire"
)

func TestConfig(t *testing.T) {
	good := Config{
		ID: 1, Name: "pi1", Priority: 100, Interval: testInterval, Algorithm: wire.AlgorithmHeir,
	}
	for _, test := range []struct {
		name   string
		change func(*Config)
		want   string // what the error says, or nothing
	}{
		{"as it should be", func(*Config) {}, ""},
		{"never leads", func(c *Config) { c.Priority = 0 }, ""},
		{"highest priority", func(c *Config) { c.Priority = 254 }, ""},
		{"no id", func(c *Config) { c.ID = 0 }, "an id other than 0"},
		{"priority too high", func(c *Config) { c.Priority = 255 }, "at most 254, is 255"},
		{"fast", func(c *Config) { c.Interval = 10 * time.Millisecond }, ""},
		{"too fast", func(c *Config) { c.Interval = 9 * time.Millisecond }, "interval 9ms is less than 10ms"},
		{"slow", func(c *Config) { c.Interval = 10 * time.Second }, ""},
		{"too slow", func(c *Config) { c.Interval = 11 * time.Second }, "interval 11s is more than 10s"},
		{"fractions", func(c *Config) { c.Interval = 10500 * time.Microsecond }, "interval 10.5ms is not a whole number of milliseconds"},
		{"long name", func(c *Config) { c.Name = strings.Repeat("x", 32) }, ""},
		{"too long a name", func(c *Config) { c.Name = strings.Repeat("x", 33) }, "longer than 32 bytes"},
		{"name with a newline", func(c *Config) { c.Name = "pi\n1" }, `"pi\n1" is not printable`},
		{"name that is not UTF-8", func(c *Config) { c.Name = "pi\xff" }, `"pi\xff" is not printable`},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := good
			test.change(&cfg)
			_, err := New(cfg, Heir, 0)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && err == nil:
				t.Errorf("accepted, want an error that says %q", test.want)
			case test.want != "" && !strings.Contains(err.Error(), test.want):
				t.Errorf("the error %q does not say %q", err, test.want)
			}
		})
	}
}

// TestWakeBeforeTheDeadline: a Wake that comes too early does nothing.
func TestWakeBeforeTheDeadline(t *testing.T) {
	b := newBoard(t)
	for range 200 {
		at, ok := b.Deadline()
		if !ok {
			t.Fatalf("a %v that waits for nothing", b.role)
		}
		if early := at - 1; early > b.clock {
			if effects := b.Wake(early); len(effects) > 0 {
				t.Errorf("woken 1ns too early the %v does %v", b.role, described(effects))
			}
			if again, _ := b.Deadline(); again != at {
				t.Errorf("woken 1ns too early the deadline moved from %v to %v", at, again)
			}
		}
		b.clock = max(b.clock, at)
		for _, e := range b.Wake(b.clock) {
			if e.Kind == EffectProbe {
				b.Probed(b.clock, false)
			}
		}
		if again, ok := b.Deadline(); ok && again == at && b.role != Candidate {
			t.Fatalf("woken at %v the %v still waits for it", at, b.role)
		}
	}
	if b.role != Leader {
		t.Errorf("alone, the board became %v", b.role)
	}
}

// TestClockNeverTurnsBack: an event that was stamped before another one and
// comes after it is taken for as late as that one.
func TestClockNeverTurnsBack(t *testing.T) {
	b := newBoard(t)
	b.sleep(200 * time.Millisecond)
	deadline, _ := b.Deadline()
	b.Wake(b.clock - 150*time.Millisecond)
	if again, _ := b.Deadline(); again != deadline || b.now != b.clock {
		t.Errorf("the core's time went from %v to %v, its deadline from %v to %v", b.clock, b.now, deadline, again)
	}
}

// TestOrderOfEffects holds the promises that keep clients from being misled: the
// address is released before anybody hears of it, and taken before.
func TestOrderOfEffects(t *testing.T) {
	for _, test := range []struct {
		name string
		play func(b *board) []Effect
		want []string
	}{
		{"claim", func(b *board) []Effect {
			b.sleep(400 * time.Millisecond)
			return b.Probed(b.clock, false)
		}, []string{"candidate -> leader: there is no leader", "take", "COORDINATOR to all"}},

		{"resign", func(b *board) []Effect {
			b.lead()
			b.hear(1, wire.TypeHello)
			effects, err := b.Resign(b.clock)
			if err != nil {
				b.t.Error(err)
			}
			return effects
		}, []string{"release", "leader -> follower: the leader resigned", "RESIGN to all"}},

		{"stop", func(b *board) []Effect {
			b.lead()
			b.hear(1, wire.TypeHello)
			return b.Stop(b.clock)
		}, []string{"release", "leader -> follower: the leader's daemon stopped", "RESIGN to all"}},

		{"stop alone", func(b *board) []Effect {
			b.lead()
			return b.Stop(b.clock)
		}, []string{"release", "leader -> follower: the leader's daemon stopped", "RESIGN to all", "finished"}},

		{"stop as a follower", func(b *board) []Effect {
			b.hear(3, wire.TypeHeartbeat, leading)
			return b.Stop(b.clock)
		}, []string{"RESIGN to all", "finished"}},

		{"stop without a link", func(b *board) []Effect {
			b.Link(b.clock, false)
			return b.Stop(b.clock)
		}, []string{"finished"}},

		{"hear the successor of a stopping leader", func(b *board) []Effect {
			b.lead()
			b.hear(1, wire.TypeHello)
			b.Stop(b.clock)
			return b.hear(1, wire.TypeCoordinator, leading)
		}, []string{"follower -> follower: a new leader proclaimed itself", "finished"}},

		{"lose the link while stopping", func(b *board) []Effect {
			b.lead()
			b.hear(1, wire.TypeHello)
			b.Stop(b.clock)
			return b.Link(b.clock, false)
		}, []string{"follower -> isolated: the link was lost", "finished"}},

		{"be named as successor", func(b *board) []Effect {
			b.hear(3, wire.TypeHeartbeat, leading)
			return b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
		}, []string{"follower -> leader: the leader handed over", "take", "COORDINATOR to all"}},

		{"lose the link", func(b *board) []Effect {
			b.lead()
			return b.Link(b.clock, false)
		}, []string{"release", "leader -> isolated: the link was lost"}},

		{"meet a rival above", func(b *board) []Effect {
			b.lead()
			return b.hear(3, wire.TypeHeartbeat, leading)
		}, []string{"notice about 3", "release", "leader -> follower: another leader has served meanwhile", "RESIGN to all"}},

		{"meet a rival below", func(b *board) []Effect {
			b.lead()
			return b.hear(1, wire.TypeHeartbeat, leading)
		}, []string{"notice about 1", "HEARTBEAT to all", "RIVAL to 1"}},

		{"hear a rival below give up", func(b *board) []Effect {
			b.lead()
			b.hear(1, wire.TypeHeartbeat, leading)
			return b.hear(1, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
		}, []string{"take", "COORDINATOR to all"}},

		{"let go for a rival above that lets go for this board", func(b *board) []Effect {
			b.lead()
			b.hear(3, wire.TypeHeartbeat, leading)
			return b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
		}, []string{"follower -> follower: the leader resigned"}},

		{"be asked for the lead by a board above", func(b *board) []Effect {
			b.lead()
			return b.hear(3, wire.TypeQuery, func(m *wire.Message) { m.Query.Purpose = wire.PurposeHandover })
		}, []string{"release", "leader -> follower: a board of higher rank asked for the lead", "RESIGN to all"}},

		{"be asked for the lead by a board below", func(b *board) []Effect {
			b.lead()
			return b.hear(1, wire.TypeQuery, func(m *wire.Message) { m.Query.Purpose = wire.PurposeHandover })
		}, nil},

		{"be told never to lead", func(b *board) []Effect {
			b.lead()
			b.hear(1, wire.TypeHello)
			return b.Reprioritise(b.clock, 0, false)
		}, []string{"release", "leader -> follower: its priority was set to 0", "RESIGN to all", "HELLO to all"}},

		{"be told never to lead while asking", func(b *board) []Effect {
			b.sleep(250 * time.Millisecond)
			return b.Reprioritise(b.clock, 0, false)
		}, []string{"candidate -> follower: its priority was set to 0", "HELLO to all"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBoard(t)
			got := described(test.play(b))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestResignErrors: a person is told why nothing happened.
func TestResignErrors(t *testing.T) {
	b := newBoard(t)
	b.hear(3, wire.TypeHeartbeat, leading)
	_, err := b.Resign(b.clock)
	if want := "this board does not lead (it is a follower; the leader is 3)"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %v", err, want)
	}

	b = newBoard(t)
	b.lead()
	if _, err := b.Resign(b.clock); !errors.Is(err, errNoSuccessor) {
		t.Errorf("the error is %v, want %v", err, errNoSuccessor)
	}
	b.hear(3, wire.TypeHello, func(m *wire.Message) { m.Priority = 0 })
	if _, err := b.Resign(b.clock); !errors.Is(err, errNoSuccessor) {
		t.Errorf("with a board that never leads the error is %v, want %v", err, errNoSuccessor)
	}
	if b.role != Leader {
		t.Errorf("after all that the board is a %v", b.role)
	}
}

// TestStopEnds: a leader that stops waits for its successor, but not for ever.
func TestStopEnds(t *testing.T) {
	b := newBoard(t)
	b.lead()
	b.hear(1, wire.TypeHello)
	b.Stop(b.clock)
	if effects := b.Stop(b.clock); len(effects) > 0 {
		t.Errorf("told twice to stop it does %v", described(effects))
	}
	var got []string
	for range 100 {
		got = append(got, described(b.sleep(5*time.Millisecond))...)
		if len(got) > 0 && got[len(got)-1] == "finished" {
			break
		}
	}
	// Each time it names somebody after 5, 10 and 10 ms more, until 25 ms are over. After 50 ms the
	// others act by themselves, so no third board is named.
	want := append(slices.Repeat([]string{"RESIGN to all"}, 3*2), "finished")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTakeInUse: a foreign machine has the address at a cold start, and goes on to have it. A board
// that may claims when that has lasted for so long.
func TestTakeInUse(t *testing.T) {
	for _, test := range []struct {
		takes bool
		want  time.Duration
	}{
		{false, time.Minute},
		{true, TakeInUseAfter},
	} {
		b := newBoard(t)
		b.cfg.TakeInUse = test.takes
		var found Instant
		for b.clock < time.Minute && b.role != Leader {
			if b.role == Candidate && b.candidacy.probe == probePending {
				if found == 0 {
					found = b.clock
				}
				b.Probed(b.clock, true)
			}
			b.sleep(10 * time.Millisecond)
		}
		took := b.clock - found
		if claims := b.role == Leader; claims != test.takes || claims && (took < test.want || took > test.want+time.Second) {
			t.Errorf("may claim %v: the board is a %v after %v", test.takes, b.role, took)
		}
		if b.TakesInUse() != test.takes {
			t.Errorf("may claim %v, and it says %v", test.takes, b.TakesInUse())
		}
	}
}

// TestProbeThatNobodyWaitsFor: it ends after somebody else has become the leader.
func TestProbeThatNobodyWaitsFor(t *testing.T) {
	for _, taken := range []bool{false, true} {
		b := newBoard(t)
		b.sleep(260 * time.Millisecond)
		if b.role != Candidate {
			t.Fatalf("the board is a %v", b.role)
		}
		b.hear(3, wire.TypeCoordinator, leading)
		if effects := b.Probed(b.clock, taken); len(effects) > 0 || b.role != Follower {
			t.Errorf("taken %v: a %v does %v", taken, b.role, described(effects))
		}
	}
}

// TestForgottenLeader: a full roster drops the dead to make room, the leader too.
// A board that never leads goes on waiting for that leader, and must not stumble.
func TestForgottenLeader(t *testing.T) {
	b := newBoard(t, func(c *Config) { c.Priority = 0 })
	b.hear(3, wire.TypeHeartbeat, leading)
	b.sleep(10 * time.Second)
	for id := range wire.ID(wire.MaxBoards - 1) {
		b.hear(1000+id, wire.TypeHello)
	}
	if b.roster.Peer(3) != nil {
		t.Fatal("the roster still has the leader")
	}
	b.Status(b.clock)
	b.Reprioritise(b.clock, 50, true)
	b.Reprioritise(b.clock, 0, true)
	b.hear(1001, wire.TypeElection)
	b.sleep(10 * time.Second)
	if b.leader != 3 {
		t.Errorf("follows %v, want 3", b.leader)
	}
	b.hear(1001, wire.TypeHeartbeat, leading)
	if b.leader != 1001 {
		t.Errorf("follows %v, want the new leader, 1001", b.leader)
	}
}

// TestForgottenSuspect: the same for a board that asks, and is told again and
// again that one of higher rank holds an election.
func TestForgottenSuspect(t *testing.T) {
	b := newBoard(t)
	b.hear(3, wire.TypeHeartbeat, leading)
	asked := 0
	for i := range wire.ID(2000) {
		b.hear(1000+i%(wire.MaxBoards-2), wire.TypeHello, func(m *wire.Message) { m.Priority = 50 })
		b.hear(9, wire.TypeHello)
		b.sleep(5 * time.Millisecond)
		if b.role == Candidate {
			asked++
			b.hear(9, wire.TypeAnswer)
		}
		if i == 1500 {
			b.hear(8, wire.TypeHello) // one too many, unless the leader makes room
		}
	}
	if b.roster.Peer(3) != nil || asked == 0 || b.leader != 3 {
		t.Errorf("the roster has the leader: %v; asked %d times; follows %v", b.roster.Peer(3) != nil, asked, b.leader)
	}
}

// TestFullRoster: the 256th board is ignored, and a person is told once.
func TestFullRoster(t *testing.T) {
	b := newBoard(t)
	for id := range wire.ID(wire.MaxBoards - 1) {
		b.hear(1000+id, wire.TypeHello)
	}
	got := described(b.hear(5000, wire.TypeHello))
	got = append(got, described(b.hear(5000, wire.TypeHello))...)
	if diff := cmp.Diff([]string{"notice about 5000"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWordOvertakenByClaim: what the new leader said before its claim, and what
// arrives after it, does not mean that it has given up.
func TestWordOvertakenByClaim(t *testing.T) {
	b := newBoard(t)
	before := b.from(3, wire.TypeHello)
	b.hear(3, wire.TypeCoordinator, leading)
	b.Step(b.clock, before)
	if b.role != Follower || b.leader != 3 {
		t.Errorf("a %v that follows %v, want a follower of 3", b.role, b.leader)
	}
	b.hear(3, wire.TypeHello) // and what it says after it does
	if b.leader == 3 {
		t.Error("follows a board that says that it does not lead")
	}
}

// TestOvertakenHeartbeat: a leader multicasts its heartbeat and broadcasts a question behind it, and the question is read
// first, from another socket. Its followers do not take it for late. One that has resigned meanwhile is not heard any more.
func TestOvertakenHeartbeat(t *testing.T) {
	for _, test := range []struct {
		behind wire.Type
		follow bool
	}{
		{wire.TypeQuery, true}, {wire.TypeHello, true}, {wire.TypeResign, false},
	} {
		b := newBoard(t)
		for range 20 {
			b.hear(3, wire.TypeHeartbeat, leading)
			b.sleep(testInterval)
		}
		heartbeat := b.from(3, wire.TypeHeartbeat, leading)
		b.hear(3, test.behind, func(m *wire.Message) { m.Leading = test.follow })
		b.Step(b.clock, heartbeat)
		b.sleep(testInterval / 2)
		if follows := b.role == Follower && b.leader == 3; follows != test.follow {
			t.Errorf("%v overtakes a heartbeat, and half an interval later: a %v that follows %v", test.behind, b.role, b.leader)
		}
	}
}

// TestStaleLeaderOfSameTerm: both sides of a partition used the same term. A
// board that never leads, and so never asks, must not wait for the leader of the
// higher rank for ever when that one has become a follower (TestHeals, seed 11830).
func TestStaleLeaderOfSameTerm(t *testing.T) {
	b := newBoard(t, func(c *Config) { c.Priority = 0 })
	b.hear(3, wire.TypeHeartbeat, leading)
	b.hear(1, wire.TypeHeartbeat, leading)
	if b.leader != 3 {
		t.Fatalf("follows %v while both lead, want 3, which has the higher rank", b.leader)
	}
	b.sleep(time.Second)
	b.hear(1, wire.TypeHeartbeat, leading)
	if b.leader != 1 {
		t.Errorf("follows %v, which is silent, want 1", b.leader)
	}
}

// TestNeverLeadDoesNotMeasure: only those that may have to ask measure the round trip to the leader.
func TestNeverLeadDoesNotMeasure(t *testing.T) {
	for priority, want := range map[uint8]int{0: 0, 100: roundTripMeasurements} {
		b := newBoard(t, func(c *Config) { c.Priority = priority })
		b.hear(3, wire.TypeHeartbeat, leading)
		queries := 0
		for range 20 {
			for _, line := range described(b.sleep(50 * time.Millisecond)) {
				if line == "QUERY to 3" {
					queries++
				}
			}
			b.hear(3, wire.TypeHeartbeat, leading)
		}
		if queries != want {
			t.Errorf("priority %d: measured the round trip to the leader %d times in a second, want %d", priority, queries, want)
		}
	}
}

// TestLostPackets: a follower whose leader is due, and that has lost packets, waits for one more heartbeat, once. A leader
// that has lost some yields to whoever has claimed meanwhile.
func TestLostPackets(t *testing.T) {
	suspectedAfter := func(lost bool) time.Duration {
		b := newBoard(t)
		for range 20 {
			b.hear(3, wire.TypeHeartbeat, leading)
			b.sleep(testInterval)
		}
		b.hear(3, wire.TypeHeartbeat, leading)
		heard := b.clock
		for b.role == Follower {
			at, ok := b.Deadline()
			if !ok {
				t.Fatal("the follower waits for nothing")
			}
			b.clock = at
			if lost {
				b.LostPackets(at)
				if later, _ := b.Deadline(); later > at {
					continue
				}
			}
			b.Wake(at)
		}
		return b.clock - heard
	}
	without, with := suspectedAfter(false), suspectedAfter(true)
	if more := with - without; more < testInterval || more > testInterval+without {
		t.Errorf("the leader is suspected after %v, and after %v if packets are lost all the time; want one heartbeat more", without, with)
	}

	b := newBoard(t)
	b.lead()
	b.LostPackets(b.clock)
	b.hear(1, wire.TypeCoordinator, leading, func(m *wire.Message) { m.Term += 1 })
	if b.role != Follower || b.leader != 1 {
		t.Errorf("a %v that follows %v, want a follower of 1, which has claimed the lead while this leader lost packets", b.role, b.leader)
	}
}
