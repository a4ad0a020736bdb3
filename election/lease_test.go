package election

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/wire"
)

// TestLease holds for how long a leader can be sure of itself.
func TestLease(t *testing.T) {
	const ms = time.Millisecond
	asked := func(interval time.Duration) time.Duration { return interval + Grace(interval)*3/4 }
	follows := func(m *wire.Message) { m.Hello.Following = 2 }
	for _, test := range []struct {
		name   string
		change func(*Config)
		play   func(b *board)
		want   time.Duration
	}{
		{"alone", nil, func(*board) {}, 0},
		{"with a follower", nil, func(b *board) { b.hear(1, wire.TypeHello, follows) }, asked(testInterval)},
		{"with one that never leads", nil, func(b *board) {
			b.hear(1, wire.TypeHello, follows, func(m *wire.Message) { m.Priority = 0 })
		}, 0},
		{"with one that left", nil, func(b *board) {
			b.hear(1, wire.TypeHello, follows)
			b.hear(1, wire.TypeResign, func(m *wire.Message) { m.Priority = 0 })
		}, 0},
		{"with one that was not heard for long", nil, func(b *board) {
			b.hear(1, wire.TypeHello, follows)
			b.sleep(helloLosses * helloFloor)
		}, 0},
		{"10 ms", func(c *Config) { c.Interval = 10 * ms }, func(b *board) { b.hear(1, wire.TypeHello, follows) }, asked(10 * ms)},
		{"1 s", func(c *Config) { c.Interval = time.Second }, func(b *board) { b.hear(1, wire.TypeHello, follows) }, asked(time.Second)},
		{"fixed", func(c *Config) { c.Detector = DetectorFixed }, func(b *board) { b.hear(1, wire.TypeHello, follows) }, 260 * ms},
		{"nfd-e", func(c *Config) { c.Detector = DetectorNFDE }, func(b *board) { b.hear(1, wire.TypeHello, follows) }, 175 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBoard(t, func(c *Config) {
				if test.change != nil {
					test.change(c)
				}
			})
			b.takeLead()
			test.play(b)
			if got := b.Lease(); got != test.want {
				t.Errorf("the lease lasts for %v, want %v", got, test.want)
			}
		})
	}
}

// takeLead makes the board lead, however long it has to listen.
func (b *board) takeLead() {
	b.t.Helper()
	for range 100 {
		b.sleep(100 * time.Millisecond)
		b.Probed(b.clock, false)
		if b.role == Leader {
			return
		}
	}
	b.t.Fatalf("the board does not lead, it is a %v", b.role)
}

// TestLeaseEndsBeforeTheReign: with none of the detectors does a follower take over
// from a leader that is still within its lease.
func TestLeaseEndsBeforeTheReign(t *testing.T) {
	for _, interval := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		for _, algorithm := range []wire.Algorithm{
			wire.AlgorithmHeir, wire.AlgorithmBully, wire.AlgorithmScore, wire.AlgorithmModified,
			wire.AlgorithmCandidates, wire.AlgorithmMinID, wire.AlgorithmAgents,
		} {
			for _, detector := range []DetectorKind{DetectorAsk, DetectorFixed, DetectorNFDE} {
				if detector == DetectorAsk && (algorithm == wire.AlgorithmCandidates || algorithm == wire.AlgorithmMinID) {
					// They take over without a question, and so within the grace, also
					// from a leader that has no switch.
					continue
				}
				name := fmt.Sprintf("%v %v %v", algorithm, detector, interval)
				t.Run(name, func(t *testing.T) {
					l := newLab(t, func(c *Config) { c.Algorithm, c.Detector, c.Interval = algorithm, detector, interval })
					l.settle()
					leader := l.leader()
					leases := leader.Lease()
					if leases == 0 {
						t.Fatal("the leader thinks that it is alone")
					}
					last := l.beats[leader.cfg.ID]
					l.frozen = leader.cfg.ID
					l.run(20*interval + 5*time.Second) // the deadline of the algorithm score is 2 s
					taken, ok := l.taken[l.leaderBut(leader)]
					if !ok || taken < last {
						t.Fatal("nobody has taken over")
					}
					if taken < last+leases {
						t.Errorf("taken over after %v, within the lease of %v", taken-last, leases)
					}
				})
			}
		}
	}
}

func TestWill(t *testing.T) {
	b := newBoard(t)
	if m, ok := b.PresignedResign(); ok {
		t.Errorf("a listener leaves %+v", m)
	}
	b.hear(3, wire.TypeHeartbeat, leading)
	b.hear(1, wire.TypeHello)
	if m, ok := b.PresignedResign(); ok {
		t.Errorf("a follower leaves %+v", m)
	}
	b = newBoard(t)
	b.lead()
	if m, ok := b.PresignedResign(); ok || m.Resign.Successor != wire.Nobody {
		t.Errorf("one that is alone names %+v", m)
	}
	b.hear(1, wire.TypeHello)
	b.hear(3, wire.TypeHello, func(m *wire.Message) { m.Priority = 50 })
	got, ok := b.PresignedResign()
	want := wire.Message{
		Header: wire.Header{Type: wire.TypeResign, Algorithm: wire.AlgorithmHeir, Sender: 2, Term: b.term},
		Resign: wire.Resign{Successor: 1},
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("ok is %t, will (-want +got):\n%s", ok, diff)
	}
	if b.role != Leader || len(b.effects) != 0 && b.effects[0].Kind == EffectRelease {
		t.Error("who makes a will is not dead")
	}
}

// TestLapsed holds that a leader that was let go for does and says nothing but that it is there.
func TestLapsed(t *testing.T) {
	for _, algorithm := range []wire.Algorithm{wire.AlgorithmHeir, wire.AlgorithmBully, wire.AlgorithmMinID, wire.AlgorithmAgents} {
		for _, late := range []time.Duration{0, testInterval + 3*time.Millisecond, 250 * time.Millisecond, 10 * time.Second} {
			t.Run(fmt.Sprintf("%v after %v", algorithm, late), func(t *testing.T) {
				l := newLab(t, func(c *Config) { c.Algorithm = algorithm })
				l.settle()
				b := l.leader()
				if b.role != Leader {
					t.Fatal("it does not lead")
				}
				want := []string{"release", "leader -> follower: " + ReasonLeaseExpired.String()}
				if diff := cmp.Diff(want, described(b.LeaseExpired(l.now+late))); diff != "" {
					t.Errorf("effects (-want +got):\n%s", diff)
				}
				at, ok := b.Deadline()
				if !ok || at < l.now+late {
					t.Errorf("something is due at %v, and it is %v", at, l.now+late)
				}
				var said []string
				for end := l.now + late + 100*time.Millisecond; ok && at <= end; at, ok = b.Deadline() {
					said = append(said, described(b.Wake(at))...)
				}
				// With agents, a follower says OK all the time.
				said = slices.DeleteFunc(said, func(line string) bool { return line == "OK to all" })
				if diff := cmp.Diff([]string{"HELLO to all"}, said); diff != "" {
					t.Errorf("then (-want +got):\n%s", diff)
				}
			})
		}
	}
	t.Run("one that does not lead", func(t *testing.T) {
		b := newBoard(t)
		b.hear(3, wire.TypeHeartbeat, leading)
		if got := described(b.LeaseExpired(b.clock)); len(got) > 0 || b.role != Follower || b.leader != 3 {
			t.Errorf("%v: it is a %v of %v", got, b.role, b.leader)
		}
	})
}

// TestLapse plays what happens when the leader's process is frozen: its switch says the
// will, the heir claims, and when the old leader is back, it follows and disturbs nobody.
func TestLapse(t *testing.T) {
	for _, detector := range []DetectorKind{DetectorAsk, DetectorFixed, DetectorNFDE} {
		t.Run(detector.String(), func(t *testing.T) {
			l := newLab(t, func(c *Config) { c.Detector = detector })
			l.settle()
			old := l.cores[3]
			l.record = true
			l.lapse(old)
			l.run(50 * time.Millisecond)
			l.note("a second later")
			l.record = false
			l.run(950 * time.Millisecond)
			l.record = true
			l.thaw()
			l.run(100 * time.Millisecond)
			want := []string{
				"3 is let go for, and its will names 2",
				"1: follower -> follower: " + ReasonResigned.String(),
				"2: follower -> leader: " + ReasonHandover.String(),
				"2: take",
				"2: COORDINATOR to all",
				"1: follower -> follower: " + ReasonProclaimed.String(),
				"a second later",
				"3: release",
				"3: leader -> follower: " + ReasonLeaseExpired.String(),
				"3: follower -> follower: " + ReasonProclaimed.String(),
				"3: HELLO to all",
			}
			if diff := cmp.Diff(want, l.lines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLapseOfHighest has the boards that always want the highest rank to lead deal with its lapse: it is
// back in the lead, and not before the other one has let go.
func TestLapseOfHighest(t *testing.T) {
	for _, algorithm := range []wire.Algorithm{
		wire.AlgorithmBully, wire.AlgorithmScore, wire.AlgorithmModified, wire.AlgorithmCandidates,
		wire.AlgorithmMinID, wire.AlgorithmAgents, wire.AlgorithmHeir,
	} {
		for _, frozen := range []time.Duration{0, 5 * time.Millisecond, 250 * time.Millisecond, 10 * time.Second} {
			t.Run(fmt.Sprintf("%v for %v", algorithm, frozen), func(t *testing.T) {
				l := newLab(t, func(c *Config) { c.Algorithm = algorithm; c.Preempt = algorithm == wire.AlgorithmHeir })
				l.settle()
				old := l.leader()
				l.lapse(old)
				l.run(frozen)
				l.thaw()
				l.run(10 * time.Second)
				if l.doubled > 0 {
					t.Errorf("two boards held the address %d times", l.doubled)
				}
				if len(l.holders) != 1 {
					t.Errorf("%d boards hold the address", len(l.holders))
				}
			})
		}
	}
}

// lab is a LAN of three cores, of which each hears at once what another one says.
type lab struct {
	t       *testing.T
	now     Instant
	cores   map[wire.ID]*Core
	order   []wire.ID
	wire    []parcel
	numbers map[wire.ID]wire.Sequence
	frozen  wire.ID  // its process does not run
	backlog []parcel // what it has not read
	lapsed  bool     // it was let go for
	holders map[wire.ID]bool
	doubled int
	taken   map[wire.ID]Instant
	beats   map[wire.ID]Instant // when it sent its last heartbeat
	record  bool
	lines   []string
}

// parcel is a message on its way to one board.
type parcel struct {
	to wire.ID
	m  wire.Message
}

func newLab(t *testing.T, change func(*Config)) *lab {
	l := &lab{
		t: t, order: []wire.ID{1, 2, 3}, cores: make(map[wire.ID]*Core), numbers: make(map[wire.ID]wire.Sequence),
		holders: make(map[wire.ID]bool), taken: make(map[wire.ID]Instant), beats: make(map[wire.ID]Instant),
	}
	for _, id := range l.order {
		cfg := Config{
			ID: id, Incarnation: wire.Incarnation(10 * id), Name: fmt.Sprint("pi", id), Priority: 100,
			Interval: testInterval, Algorithm: wire.AlgorithmHeir,
		}
		change(&cfg)
		c, err := New(cfg, 0)
		if err != nil {
			t.Fatal(err)
		}
		l.cores[id] = c
	}
	return l
}

// settle has the boards elect a leader. It ends in the middle between two heartbeats.
func (l *lab) settle() {
	l.t.Helper()
	for _, id := range l.order {
		l.act(id, l.cores[id].Link(l.now, true))
	}
	l.run(30 * time.Second)
	for at := l.beats[l.leader().cfg.ID]; at == l.beats[l.leader().cfg.ID]; {
		l.run(time.Millisecond)
	}
	l.run(l.leader().cfg.Interval / 2)
	l.holders = map[wire.ID]bool{l.leader().cfg.ID: true}
	l.doubled = 0
}

func (l *lab) leader() *Core { return l.cores[l.leaderBut(nil)] }

func (l *lab) leaderBut(other *Core) wire.ID {
	l.t.Helper()
	for _, id := range l.order {
		if c := l.cores[id]; c != other && c.role == Leader {
			return id
		}
	}
	l.t.Fatal("nobody leads")
	return wire.Nobody
}

// run lets time pass.
func (l *lab) run(d time.Duration) {
	for end := l.now + d; ; {
		l.carry()
		next, at := wire.Nobody, never
		for _, id := range l.order {
			if due, ok := l.cores[id].Deadline(); ok && id != l.frozen && due < at {
				next, at = id, due
			}
		}
		if next == wire.Nobody || at > end {
			l.now = end
			return
		}
		l.now = max(l.now, at)
		l.act(next, l.cores[next].Wake(l.now))
	}
}

// carry delivers what is on the wire.
func (l *lab) carry() {
	for len(l.wire) > 0 {
		p := l.wire[0]
		l.wire = l.wire[1:]
		if p.to == l.frozen {
			l.backlog = append(l.backlog, p)
			continue
		}
		l.act(p.to, l.cores[p.to].Step(l.now, &p.m))
	}
}

func (l *lab) act(id wire.ID, effects []Effect) {
	var probe bool
	for _, e := range effects {
		if e.Kind != EffectSend || e.Message.Type != wire.TypeHeartbeat && e.Message.Type != wire.TypeQuery {
			l.note("%d: %s", id, described([]Effect{e})[0])
		}
		switch e.Kind {
		case EffectSend:
			l.numbers[id]++
			l.say(id, e.To, e.Message, l.numbers[id])
			if beats := e.Message.Type == wire.TypeHeartbeat || e.Message.Type == wire.TypeCoordinator; beats && e.To == wire.Nobody {
				l.beats[id] = l.now
			}
		case EffectAcquire:
			l.holders[id], l.taken[id] = true, l.now
			if len(l.holders) > 1 {
				l.doubled++
			}
		case EffectRelease:
			delete(l.holders, id)
		case EffectProbe:
			probe = true
		}
	}
	if probe {
		l.act(id, l.cores[id].Probed(l.now, false))
	}
}

func (l *lab) say(from, to wire.ID, m wire.Message, number wire.Sequence) {
	m.Incarnation, m.Sequence = l.cores[from].cfg.Incarnation, number
	for _, id := range l.order {
		if id != from && (to == wire.Nobody || to == id) {
			l.wire = append(l.wire, parcel{id, m})
		}
	}
}

// lapse freezes a leader, and has its switch do what it is for.
func (l *lab) lapse(c *Core) {
	l.t.Helper()
	will, ok := c.PresignedResign()
	if !ok {
		l.t.Fatal("there is no will")
	}
	id := c.cfg.ID
	l.note("%d is let go for, and its will names %d", id, will.Resign.Successor)
	delete(l.holders, id)
	l.numbers[id] += 1 << 16
	l.frozen, l.lapsed = id, true
	l.say(id, wire.Nobody, will, l.numbers[id])
}

// thaw has the frozen process go on: it learns first that it was let go for.
func (l *lab) thaw() {
	id, backlog := l.frozen, l.backlog
	l.frozen, l.backlog = wire.Nobody, nil
	l.act(id, l.cores[id].LeaseExpired(l.now))
	l.wire = append(backlog, l.wire...)
	l.carry()
}

func (l *lab) note(format string, args ...any) {
	if l.record {
		l.lines = append(l.lines, fmt.Sprintf(format, args...))
	}
}
