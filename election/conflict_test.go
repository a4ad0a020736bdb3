package election

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/wire"
)

// namesake has the core hear a message of a board with its own id, whose process
// started so long before this one.
func (b *board) namesake(kind wire.Type, older time.Duration, change ...func(*wire.Message)) []Effect {
	m := b.from(2, kind, change...)
	m.Incarnation = 99
	m.Hello.Age = (b.clock + older).Truncate(time.Second)
	return b.DuplicateID(b.clock, m)
}

// TestNamesakeSettles holds who of two boards with one id leaves.
func TestNamesakeSettles(t *testing.T) {
	for _, test := range []struct {
		name string
		play func(b *board)
		want Role
	}{
		{"newcomer hears one that leads", func(b *board) {
			b.namesake(wire.TypeHeartbeat, time.Hour, leading)
		}, Barred},
		{"newcomer hears one that follows", func(b *board) {
			b.namesake(wire.TypeHello, -time.Hour, func(m *wire.Message) { m.Hello.Following = 3 })
		}, Barred},
		{"newcomer hears another newcomer, which is older", func(b *board) {
			b.namesake(wire.TypeHello, 5*time.Second)
		}, Barred},
		{"newcomer hears another newcomer, which is younger", func(b *board) {
			b.clock = 5 * time.Second
			b.namesake(wire.TypeHello, -5*time.Second)
		}, Listener},
		{"newcomer hears the question of another newcomer", func(b *board) {
			b.namesake(wire.TypeQuery, 0)
		}, Listener},
		{"newcomer hears the proof of another newcomer", func(b *board) {
			b.namesake(wire.TypeProof, 0)
		}, Listener},
		{"newcomer hears another newcomer ask for a proof", func(b *board) {
			b.namesake(wire.TypeChallenge, 0)
		}, Listener},
		{"newcomer hears the proof of one that leads", func(b *board) {
			b.namesake(wire.TypeProof, 0, leading)
		}, Barred},
		{"leader hears an older one", func(b *board) {
			b.lead()
			b.namesake(wire.TypeHello, 5*time.Second)
		}, Barred},
		{"leader hears a younger one", func(b *board) {
			b.sleep(10 * time.Second)
			b.lead()
			b.namesake(wire.TypeHello, -5*time.Second)
		}, Leader},
		{"leader hears the heartbeat of one", func(b *board) {
			b.lead()
			b.namesake(wire.TypeHeartbeat, time.Hour, leading) // without its age
		}, Leader},
		{"equal ages, lower incarnation", func(b *board) { b.namesake(wire.TypeHello, 0) }, Barred},
		{"equal ages, higher incarnation", func(b *board) {
			b.cfg.Incarnation = 100
			b.namesake(wire.TypeHello, 0)
		}, Listener},
		{"nearly equal ages at first", func(b *board) {
			b.sleep(2 * time.Second)
			b.Probed(b.clock, false)
			b.namesake(wire.TypeHello, -time.Second)
		}, Leader},
		{"nearly equal ages in a conflict that lasts", func(b *board) {
			b.sleep(2 * time.Second)
			for range 6 {
				b.namesake(wire.TypeHello, -time.Second)
				b.sleep(time.Second)
			}
		}, Barred},
		{"without a link", func(b *board) {
			b.Link(b.clock, false)
			b.namesake(wire.TypeHeartbeat, time.Hour, leading)
		}, Isolated},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBoard(t)
			test.play(b)
			if b.role != test.want {
				t.Errorf("the board is a %v, want %v", b.role, test.want)
			}
		})
	}
}

// TestConflictEffects: an established board says at once how old it is, so that
// the other one need not wait for its next HELLO, and tells people once.
func TestConflictEffects(t *testing.T) {
	b := newBoard(t)
	b.sleep(10 * time.Second)
	b.lead()
	for _, want := range [][]string{{"notice about 2", "HELLO to all"}, nil, nil} {
		got := described(b.namesake(wire.TypeHello, -5*time.Second))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	got := described(b.namesake(wire.TypeHello, time.Hour))
	want := []string{"release", "leader -> barred: another board has the same id"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestBarredReturns: it is silent as long as the conflict lasts, and then listens.
func TestBarredReturns(t *testing.T) {
	other := func(m *wire.Message) { m.Algorithm = wire.AlgorithmBully }
	for _, test := range []struct {
		name   string
		hear   func(b *board)
		reason Reason
	}{
		{"namesake", func(b *board) { b.namesake(wire.TypeHeartbeat, 0, leading) }, ReasonDuplicateID},
		{"other algorithm", func(b *board) { b.hear(3, wire.TypeHeartbeat, leading, other) }, ReasonOtherAlgorithm},
		{"other version", func(b *board) { b.OtherVersion(b.clock, 3) }, ReasonOtherVersion},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBoard(t)
			for range 30 {
				test.hear(b)
				if b.role != Barred {
					t.Fatalf("the board is a %v", b.role)
				}
				if effects := b.sleep(barredFor / 2); len(effects) > 0 {
					t.Fatalf("while the conflict lasts it does %v", described(effects))
				}
			}
			if n := b.Status(b.clock).Counts[test.reason]; n != 1 {
				t.Errorf("it was barred %d times, want once", n)
			}
			// What it does not take part in, it does not believe.
			b.hear(1, wire.TypeHeartbeat, leading)
			if b.role != Barred {
				t.Errorf("a message of the group made it a %v", b.role)
			}
			got := described(b.sleep(barredFor / 2))
			want := []string{"barred -> listener: the conflict is over", "HELLO to all", "QUERY to all"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestBarredKeepNobodyOut: boards that stay out go on to prove that they live, and that alone must
// not keep others out.
func TestBarredKeepNobodyOut(t *testing.T) {
	b := newBoard(t)
	b.namesake(wire.TypeHello, 5*time.Second)
	for elapsed := time.Duration(0); elapsed < barredFor; elapsed += barredFor / 5 {
		if b.role != Barred {
			t.Fatalf("after %v the board is a %v", elapsed, b.role)
		}
		b.namesake(wire.TypeChallenge, 0)
		b.namesake(wire.TypeProof, 0)
		b.sleep(barredFor / 5)
	}
	if b.role != Listener {
		t.Errorf("after %v without another message the board is a %v", barredFor, b.role)
	}
}

// TestAgeIsTold: a namesake that has just proven itself may not have listened to what this board has
// said before, so that is said again: soon, and then once in an interval.
func TestAgeIsTold(t *testing.T) {
	b := newBoard(t)
	var told []time.Duration
	note := func(effects []Effect) {
		for _, line := range described(effects) {
			if line == "HELLO to all" {
				told = append(told, b.clock)
			}
		}
	}
	began := b.clock
	for b.clock < began+220*time.Millisecond {
		note(b.namesake(wire.TypeProof, 0))
		note(b.sleep(5 * time.Millisecond))
	}
	want := []time.Duration{began, began + 100*time.Millisecond, began + 200*time.Millisecond}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("when it says how old it is (-want +got):\n%s", diff)
	}
}

// TestOtherVersion: a board stays out of a group that speaks another version, unless it is in
// a group of its own version already.
func TestOtherVersion(t *testing.T) {
	for _, test := range []struct {
		name string
		play func(b *board)
		want Role
	}{
		{"listener", func(*board) {}, Barred},
		{"leader", func(b *board) { b.lead() }, Leader},
		{"follower", func(b *board) { b.hear(3, wire.TypeHeartbeat, leading) }, Follower},
		{"follower without a leader", func(b *board) {
			b.hear(3, wire.TypeHeartbeat, leading)
			b.hear(3, wire.TypeResign)
		}, Barred},
	} {
		b := newBoard(t)
		test.play(b)
		if got := described(b.OtherVersion(b.clock, 9)); len(got) == 0 || got[0] != "notice about 9" {
			t.Errorf("%s: %v, want a notice first", test.name, got)
		}
		if b.role != test.want {
			t.Errorf("%s: the board is a %v, want a %v", test.name, b.role, test.want)
		}
	}
}
