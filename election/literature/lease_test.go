package literature

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// TestLeaseEndsBeforeTakeover: with none of the detectors does a follower take over
// from a leader that is still within its lease.
func TestLeaseEndsBeforeTakeover(t *testing.T) {
	for _, interval := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		for _, algorithm := range []wire.Algorithm{
			wire.AlgorithmHeir, wire.AlgorithmBully, wire.AlgorithmScore, wire.AlgorithmModified,
			wire.AlgorithmCandidates, wire.AlgorithmMinID, wire.AlgorithmAgents,
		} {
			for _, detector := range []silence.DetectorKind{silence.DetectorAsk, silence.DetectorFixed, silence.DetectorNFDE} {
				if detector == silence.DetectorAsk && (algorithm == wire.AlgorithmCandidates || algorithm == wire.AlgorithmMinID) {
					// They take over without a question, and so within the grace, also
					// from a leader that has no switch.
					continue
				}
				name := fmt.Sprintf("%v %v %v", algorithm, detector, interval)
				t.Run(name, func(t *testing.T) {
					l := newLAN(t, func(c *election.Config) { c.Algorithm, c.Detector, c.Interval = algorithm, detector, interval })
					l.settle()
					leader := l.leader()
					end, ends := leader.LeaseEnd()
					if !ends {
						t.Fatal("the leader thinks that it is alone")
					}
					last := l.beats[leader.Signature().Sender]
					l.frozen = leader.Signature().Sender
					l.run(20*interval + 5*time.Second) // the deadline of the algorithm score is 2 s
					taken, ok := l.acquired[l.leaderBut(leader)]
					if !ok || taken < last {
						t.Fatal("nobody has taken over")
					}
					if taken < end {
						t.Errorf("taken over after %v, within the lease of %v", taken-last, end-last)
					}
				})
			}
		}
	}
}

// TestLeaseExpired holds that a leader whose lease has expired releases the address, and says no more than HELLO.
func TestLeaseExpired(t *testing.T) {
	for _, algorithm := range []wire.Algorithm{wire.AlgorithmHeir, wire.AlgorithmBully, wire.AlgorithmMinID, wire.AlgorithmAgents} {
		for _, late := range []time.Duration{0, testInterval + 3*time.Millisecond, 250 * time.Millisecond, 10 * time.Second} {
			t.Run(fmt.Sprintf("%v after %v", algorithm, late), func(t *testing.T) {
				l := newLAN(t, func(c *election.Config) { c.Algorithm = algorithm })
				l.settle()
				b := l.leader()
				if b.Role() != election.Leader {
					t.Fatal("it does not lead")
				}
				want := []string{"release", "leader -> follower: " + election.ReasonLeaseExpired.String()}
				assert.Equal(t, want, described(b.LeaseExpired(l.now+late)), "effects")
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
				assert.Equal(t, []string{"HELLO to all"}, said, "then")
			})
		}
	}
}

// TestLeaseExpiry plays what happens when the leader's process is frozen: its switch sends
// the pre-signed RESIGN, the heir claims, and when the old leader is back, it follows and disturbs nobody.
func TestLeaseExpiry(t *testing.T) {
	for _, detector := range []silence.DetectorKind{silence.DetectorAsk, silence.DetectorFixed, silence.DetectorNFDE} {
		t.Run(detector.String(), func(t *testing.T) {
			l := newLAN(t, func(c *election.Config) { c.Detector = detector })
			l.settle()
			old := l.cores[3]
			l.record = true
			l.expire(old)
			l.run(50 * time.Millisecond)
			l.note("a second later")
			l.record = false
			l.run(950 * time.Millisecond)
			l.record = true
			l.thaw()
			l.run(100 * time.Millisecond)
			want := []string{
				"3 is let go for, and its pre-signed RESIGN names 2",
				"1: follower -> follower: " + election.ReasonResigned.String(),
				"2: follower -> leader: " + election.ReasonHandover.String(),
				"2: take",
				"2: COORDINATOR to all",
				"1: follower -> follower: " + election.ReasonProclaimed.String(),
				"a second later",
				"3: release",
				"3: leader -> follower: " + election.ReasonLeaseExpired.String(),
				"3: follower -> follower: " + election.ReasonProclaimed.String(),
				"3: HELLO to all",
			}
			assert.Equal(t, want, l.lines, "")
		})
	}
}

// TestLeaseExpiryOfHighest has the boards that always want the highest rank to lead deal with the end of its lease: it is
// back in the lead, and not before the other one has let go.
func TestLeaseExpiryOfHighest(t *testing.T) {
	for _, algorithm := range []wire.Algorithm{
		wire.AlgorithmBully, wire.AlgorithmScore, wire.AlgorithmModified, wire.AlgorithmCandidates,
		wire.AlgorithmMinID, wire.AlgorithmAgents, wire.AlgorithmHeir,
	} {
		for _, frozen := range []time.Duration{0, 5 * time.Millisecond, 250 * time.Millisecond, 10 * time.Second} {
			t.Run(fmt.Sprintf("%v for %v", algorithm, frozen), func(t *testing.T) {
				l := newLAN(t, func(c *election.Config) { c.Algorithm = algorithm; c.Preempt = algorithm == wire.AlgorithmHeir })
				l.settle()
				old := l.leader()
				l.expire(old)
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

// lan is a LAN of three cores, of which each hears at once what another one says.
type lan struct {
	t        *testing.T
	interval time.Duration
	now      election.Instant
	cores    map[wire.ID]*election.Core
	order    []wire.ID
	wire     []parcel
	numbers  map[wire.ID]wire.Sequence
	frozen   wire.ID  // its process does not run
	backlog  []parcel // what it has not read
	holders  map[wire.ID]bool
	doubled  int
	acquired map[wire.ID]election.Instant
	beats    map[wire.ID]election.Instant // when it sent its last heartbeat
	record   bool
	lines    []string
}

// parcel is a message on its way to one board.
type parcel struct {
	to wire.ID
	m  wire.Message
}

func newLAN(t *testing.T, change func(*election.Config)) *lan {
	l := &lan{
		t: t, order: []wire.ID{1, 2, 3}, cores: make(map[wire.ID]*election.Core), numbers: make(map[wire.ID]wire.Sequence),
		holders: make(map[wire.ID]bool), acquired: make(map[wire.ID]election.Instant), beats: make(map[wire.ID]election.Instant),
	}
	for _, id := range l.order {
		cfg := election.Config{
			ID: id, Incarnation: wire.Incarnation(10 * id), Name: fmt.Sprint("pi", id), Priority: 100,
			Interval: testInterval, Algorithm: wire.AlgorithmHeir,
		}
		change(&cfg)
		l.interval = cfg.Interval
		c, err := NewCore(cfg, 0)
		assert.NoError(t, err)
		l.cores[id] = c
	}
	return l
}

// settle has the boards elect a leader. It ends in the middle between two heartbeats.
func (l *lan) settle() {
	l.t.Helper()
	for _, id := range l.order {
		l.act(id, l.cores[id].Link(l.now, true))
	}
	l.run(30 * time.Second)
	for at := l.beats[l.leader().Signature().Sender]; at == l.beats[l.leader().Signature().Sender]; {
		l.run(time.Millisecond)
	}
	l.run(l.interval / 2)
	l.holders = map[wire.ID]bool{l.leader().Signature().Sender: true}
	l.doubled = 0
}

func (l *lan) leader() *election.Core { return l.cores[l.leaderBut(nil)] }

func (l *lan) leaderBut(other *election.Core) wire.ID {
	l.t.Helper()
	for _, id := range l.order {
		if c := l.cores[id]; c != other && c.Role() == election.Leader {
			return id
		}
	}
	l.t.Fatal("nobody leads")
	return wire.Nobody
}

// run lets time pass.
func (l *lan) run(d time.Duration) {
	for end := l.now + d; ; {
		l.carry()
		next, at := wire.Nobody, end+1
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
func (l *lan) carry() {
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

func (l *lan) act(id wire.ID, effects []election.Effect) {
	var probe bool
	for _, e := range effects {
		if e.Kind == election.EffectAskLAN || e.Floating {
			continue // the leader that is frozen answers nothing
		}
		if e.Kind != election.EffectSend || e.Message.Type != wire.TypeHeartbeat && e.Message.Type != wire.TypeQuery {
			l.note("%d: %s", id, described([]election.Effect{e})[0])
		}
		switch e.Kind {
		case election.EffectSend:
			l.numbers[id]++
			l.say(id, e.To, e.Message, l.numbers[id])
			if beats := e.Message.Type == wire.TypeHeartbeat || e.Message.Type == wire.TypeCoordinator; beats && e.To == wire.Nobody {
				l.beats[id] = l.now
			}
		case election.EffectAcquire:
			l.holders[id], l.acquired[id] = true, l.now
			if len(l.holders) > 1 {
				l.doubled++
			}
		case election.EffectRelease:
			delete(l.holders, id)
		case election.EffectProbe:
			probe = true
		}
	}
	if probe {
		l.act(id, l.cores[id].Probed(l.now, false))
	}
}

func (l *lan) say(from, to wire.ID, m wire.Message, number wire.Sequence) {
	m.Incarnation, m.Sequence = wire.Incarnation(10*from), number
	for _, id := range l.order {
		if id != from && (to == wire.Nobody || to == id) {
			l.wire = append(l.wire, parcel{id, m})
		}
	}
}

// expire freezes a leader, and has its switch do what it is for.
func (l *lan) expire(c *election.Core) {
	l.t.Helper()
	resign, ok := c.PresignedResign()
	if !ok {
		l.t.Fatal("there is no pre-signed RESIGN")
	}
	id := c.Signature().Sender
	l.note("%d is let go for, and its pre-signed RESIGN names %d", id, resign.Resign.Successor)
	delete(l.holders, id)
	l.numbers[id] += 1 << 16
	l.frozen = id
	l.say(id, wire.Nobody, resign, l.numbers[id])
}

// thaw has the frozen process go on: it learns first that it was let go for.
func (l *lan) thaw() {
	id, backlog := l.frozen, l.backlog
	l.frozen, l.backlog = wire.Nobody, nil
	l.act(id, l.cores[id].LeaseExpired(l.now))
	l.wire = append(backlog, l.wire...)
	l.carry()
}

func (l *lan) note(format string, args ...any) {
	if l.record {
		l.lines = append(l.lines, fmt.Sprintf(format, args...))
	}
}
