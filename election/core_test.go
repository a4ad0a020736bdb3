package election

import (
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
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
			assert.ErrorContains(t, err, test.want, "")
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
	assert.Is(t, 3, b.leader, "follows")
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
	assert.Equal(t, []string{"notice about 5000"}, got, "")
}

// TestLostPackets: a follower whose leader is due, and that has lost packets, waits for one more heartbeat, once.
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
}

// TestManyQueries: the others tell the first question of a board from those that follow it. The 257th is not taken for the first.
func TestManyQueries(t *testing.T) {
	for asked, want := range map[int]uint8{1: 1, 255: 255, 256: 255, 257: 255} {
		assert.Is(t, want, query(wire.PurposeJoin, asked).Query.Round, "of question %d the round is", asked)
	}
}
