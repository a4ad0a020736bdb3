package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/internal/config"
	"topdog/netio"
	"topdog/wire"
)

// fakeDeadman is a switch that works in virtual time. It sends the RESIGN from
// a port of its own, as a companion does, and keeps what it is told.
type fakeDeadman struct {
	board  *fakeBoard
	exited chan struct{}

	mu       sync.Mutex
	armed    bool
	fired    bool
	lease    time.Duration // from now, when it was extended last; 0 is for ever
	timer    *time.Timer
	plans    []netio.ReleasePlan
	disarmed int
	closed   bool
	refuses  error         // of Prepare
	slow     time.Duration // between the end of a lease and the RESIGN
	firedAt  time.Duration
}

// withSwitch gives a board a switch. The returned function gives the latest one.
func withSwitch(b *fakeBoard) func() *fakeDeadman {
	var latest *fakeDeadman
	b.deadman = func() (Deadman, error) {
		latest = &fakeDeadman{board: b, exited: make(chan struct{})}
		return latest, nil
	}
	return func() *fakeDeadman { return latest }
}

func (d *fakeDeadman) Prepare(e netio.ReleasePlan) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses != nil {
		return d.refuses
	}
	d.plans = append(d.plans, e)
	return nil
}

func (d *fakeDeadman) Arm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed, d.fired, d.lease = true, false, 0
}

func (d *fakeDeadman) Disarm() (inTime bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	inTime = !d.fired
	d.armed, d.fired = false, false
	d.disarmed++
	return inTime
}

func (d *fakeDeadman) Extend(by time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fired {
		return false
	}
	d.lease = by
	if d.timer != nil {
		d.timer.Stop()
	}
	if by > 0 {
		d.timer = time.AfterFunc(by, d.fire)
	}
	return true
}

// fire is the end of a lease.
func (d *fakeDeadman) fire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.armed || d.fired {
		return
	}
	d.fired, d.firedAt = true, time.Since(d.board.lan.start)
	plan := d.plans[len(d.plans)-1]
	d.board.get(func() { d.board.holding = false })
	time.AfterFunc(d.slow+fakeLatency, func() { d.board.lan.resign(d.board, plan) })
}

// untilFired waits for the end of the lease.
func (d *fakeDeadman) untilFired(t *testing.T) {
	t.Helper()
	for range 10 * 1000 {
		if d.Fired() {
			return
		}
		pass(100 * time.Microsecond)
	}
	t.Fatal("the lease has not run out in a second")
}

// resign sends the RESIGN of a plan to those whom it is for.
func (l *fakeLAN) resign(from *fakeBoard, e netio.ReleasePlan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.boards {
		other.mu.Lock()
		if r := other.transport; r != nil && other != from && len(e.Resign) > 0 {
			for _, to := range e.To {
				if to.Addr().IsMulticast() || to.Addr() == r.local {
					r.inbox <- netio.Datagram{
						Data: e.Resign, Multicast: to.Addr().IsMulticast(),
						From: netip.AddrPortFrom(from.transport.local, 40000),
					}
				}
			}
		}
		other.mu.Unlock()
	}
}

func (d *fakeDeadman) Fired() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fired
}

func (d *fakeDeadman) Exited() <-chan struct{} { return d.exited }
func (d *fakeDeadman) PID() int                { return 4711 }

func (d *fakeDeadman) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed, d.armed = true, false
		select {
		case <-d.exited:
		default:
			close(d.exited)
		}
	}
	return nil
}

func (d *fakeDeadman) get(read func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	read()
}

// lastPlan is what the companion was given last, decoded.
func (d *fakeDeadman) lastPlan(t *testing.T) (e netio.ReleasePlan, m wire.Message) {
	t.Helper()
	d.get(func() {
		if len(d.plans) > 0 {
			e = d.plans[len(d.plans)-1]
		}
	})
	if len(e.Resign) > 0 {
		if drop := testCodec(t, d.board.cfg.Key.Bytes()).Decode(&m, e.Resign); drop.Dropped() {
			t.Fatalf("the RESIGN is no message: %v", drop)
		}
	}
	return e, m
}

func testCodec(t *testing.T, key []byte) *wire.Codec {
	t.Helper()
	codec, err := wire.NewCodec("test", key)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

// armedThree starts three boards, of which the third one leads and has a switch.
func (l *fakeLAN) armedThree(change func(*config.Config)) (one, two, three *fakeBoard, latest func() *fakeDeadman) {
	l.t.Helper()
	alter := func(c *config.Config, b *fakeBoard) {
		if change != nil {
			change(c)
		}
	}
	one, two = l.board(1, alter), l.board(2, alter)
	three = l.board(3, func(c *config.Config, b *fakeBoard) {
		alter(c, b)
		latest = withSwitch(b)
	})
	pass(10 * time.Second)
	l.wantHolders(3)
	return one, two, three, latest
}

// freeze has the board's process stand still for that long.
func (b *fakeBoard) freeze(d time.Duration) {
	go b.tasks.post(func() { <-time.After(d) })
}

// says records what the board sends from now on.
func (b *fakeBoard) says(t *testing.T) func() []wire.Message {
	codec := testCodec(t, b.cfg.Key.Bytes())
	var said []wire.Message
	b.get(func() {
		b.onSend = func(datagram []byte, _ netip.AddrPort) {
			var m wire.Message
			if drop := codec.Decode(&m, datagram); !drop.Dropped() {
				said = append(said, m)
			}
		}
	})
	return func() (all []wire.Message) {
		b.get(func() { all = slices.Clone(said) })
		return all
	}
}

// TestFrozenLeader has the leader's process stand still: the heir leads at once, and
// the old leader follows when it is back, having said nothing that it must not say.
func TestFrozenLeader(t *testing.T) {
	for _, frozen := range []time.Duration{150 * time.Millisecond, 400 * time.Millisecond, 10 * time.Second} {
		for _, algorithm := range []wire.Algorithm{wire.AlgorithmHeir, wire.AlgorithmAgents} {
			for _, key := range []bool{true, false} {
				t.Run(fmt.Sprintf("%v %v key=%t", frozen, algorithm, key), func(t *testing.T) {
					for range 10 { // the loop picks among what has come meanwhile at random
						inBubble(t, func(t *testing.T, l *fakeLAN) {
							l.frozenLeader(t, frozen, func(c *config.Config) {
								c.Algorithm = algorithm
								c.Detector = election.DetectorAsk
								if !key {
									c.Key = config.Key{}
								}
							})
						})
					}
				})
			}
		}
	}
}

func (l *fakeLAN) frozenLeader(t *testing.T, frozen time.Duration, change func(*config.Config)) {
	one, two, three, latest := l.armedThree(change)
	d := latest()
	var lease time.Duration
	d.get(func() { lease = d.lease })
	if want := 100*time.Millisecond + election.Grace(100*time.Millisecond)*3/4; lease != want {
		t.Errorf("the lease lasts for %v, want %v", lease, want)
	}
	e, _ := d.lastPlan(t)
	if e.Link != 7 || !slices.Equal(e.To, []netip.AddrPort{netip.MustParseAddrPort("224.0.0.254:9254")}) {
		t.Errorf("wrong plan: %+v", e)
	}
	said := three.says(t)
	replayed := one.mustStatus(t).Counters.DroppedByReason[wire.Replayed.Identifier()]
	three.freeze(frozen)
	d.untilFired(t)
	if holders := l.holders(); len(holders) > 0 {
		t.Errorf("%v hold the address when the lease has run out", holders)
	}
	pass(time.Millisecond)
	l.wantHolders(2)
	before := len(said())
	pass(frozen + 100*time.Millisecond)
	l.wantHolders(2)
	after := said()[before:]
	if len(after) == 0 {
		t.Error("the old leader says nothing")
	}
	for _, m := range after {
		if m.Leading || m.Type == wire.TypeElection || m.Type == wire.TypeCoordinator {
			t.Errorf("the old leader says %v", m)
		}
	}
	if s := three.mustStatus(t); s.Leader != "10.0.0.2" || s.Role != "follower" && s.Role != "heir" {
		t.Errorf("the old leader is a %s of %q", s.Role, s.Leader)
	}
	// What it says is believed: it is the next heir.
	if s := two.mustStatus(t); s.Heir != "10.0.0.3" {
		t.Errorf("the heir is %q", s.Heir)
	}
	if n := one.mustStatus(t).Counters.DroppedByReason[wire.Replayed.Identifier()]; n != replayed {
		t.Errorf("board 1 has refused %d of its messages as replayed", n-replayed)
	}
	if algorithm := one.cfg.Algorithm; algorithm == wire.AlgorithmHeir {
		three.wantLog(t, "its dead man's switch has released the address", 1)
	}
	// It can lead again, with another lease.
	two.Kill()
	pass(2 * time.Second)
	l.wantHolders(3)
	d.get(func() {
		if !d.armed || d.fired {
			t.Error("the switch is not armed again")
		}
	})
}

// wantLog wants a line to have been logged so often.
func (b *fakeBoard) wantLog(t *testing.T, part string, want int) {
	t.Helper()
	n := 0
	b.get(func() {
		for _, line := range b.logged {
			if strings.Contains(line, part) {
				n++
			}
		}
	})
	if n != want {
		t.Errorf("board %d has logged %q %d times, want %d", b.number, part, n, want)
	}
}

// TestLeaseRunsOutUnderARunningDaemon: a daemon that is late by very little must not overtake its own RESIGN,
// or the others hear that it has resigned and not in whose favour.
func TestLeaseRunsOutUnderARunningDaemon(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three, latest := l.armedThree(nil)
		d := latest()
		d.get(func() { d.slow = 300 * time.Microsecond })
		asked := 0
		for _, b := range []*fakeBoard{one, two} {
			said := b.says(t)
			defer func() {
				for _, m := range said() {
					if m.Type == wire.TypeElection {
						asked++
					}
				}
				if asked > 0 {
					t.Errorf("%d times it was asked who leads", asked)
				}
			}()
		}
		d.fire()
		three.tasks.post(func() {}) // the loop turns
		pass(2 * time.Millisecond)
		l.wantHolders(2)
		pass(30 * time.Millisecond)
		if s := one.mustStatus(t); s.Leader != "10.0.0.2" {
			t.Errorf("board 1 follows %q", s.Leader)
		}
		// Nobody listens where the RESIGN came from.
		if err := one.tasks.call(t.Context(), func() {
			if addr := one.group.routes[three.group.self].addr; addr != netip.MustParseAddrPort("10.0.0.3:9254") {
				t.Errorf("board 1 would send to %v", addr)
			}
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRouteAfterAPresignedResign: it comes last of all that one has heard of a dead board.
func TestRouteAfterAPresignedResign(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three, latest := l.armedThree(nil)
		three.freeze(time.Second)
		latest().untilFired(t)
		pass(time.Millisecond)
		if err := one.tasks.call(t.Context(), func() {
			if addr := one.group.routes[three.group.self].addr; addr != netip.MustParseAddrPort("10.0.0.3:9254") {
				t.Errorf("board 1 would send to %v", addr)
			}
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLeaseOfOneAlone has nobody who could depose the leader.
func TestLeaseOfOneAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		var latest func() *fakeDeadman
		one := l.board(1, func(_ *config.Config, b *fakeBoard) { latest = withSwitch(b) })
		pass(2 * time.Second)
		l.wantHolders(1)
		d := latest()
		d.get(func() {
			if !d.armed || d.lease != 0 {
				t.Errorf("armed: %t, for %v", d.armed, d.lease)
			}
		})
		if e, _ := d.lastPlan(t); len(e.Resign) > 0 || len(e.To) > 0 {
			t.Errorf("it has a RESIGN for nobody: %+v", e)
		}
		one.freeze(time.Second)
		pass(900 * time.Millisecond)
		l.wantHolders(1)
		pass(time.Second)
		if d.Fired() {
			t.Error("a lease for ever has run out")
		}

		two := l.board(2, nil)
		pass(2 * time.Second)
		l.wantHolders(1)
		d.get(func() {
			if d.lease == 0 {
				t.Error("a leader that can be deposed has a lease for ever")
			}
		})
		if _, resign := d.lastPlan(t); resign.Resign.Successor != two.group.self {
			t.Errorf("the RESIGN names %v", resign.Resign.Successor)
		}
	})
}

func TestPresignedResignIsKeptUpToDate(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three, latest := l.armedThree(nil)
		d := latest()
		count := func() (n int) {
			d.get(func() { n = len(d.plans) })
			return n
		}
		sequence := func() (s wire.Sequence) {
			if err := three.tasks.call(t.Context(), func() { s = three.group.sequence }); err != nil {
				t.Fatal(err)
			}
			return s
		}
		wantWill := func(successor wire.ID) wire.Message {
			t.Helper()
			_, resign := d.lastPlan(t)
			want := wire.Message{
				Header: wire.Header{
					Type: wire.TypeResign, Algorithm: wire.AlgorithmHeir, Sender: three.group.self,
					Term: resign.Term, Incarnation: three.group.incarnation, Sequence: resign.Sequence,
				},
				Resign: wire.Resign{Successor: successor},
			}
			if diff := cmp.Diff(want, resign); diff != "" {
				t.Errorf("the RESIGN (-want +got):\n%s", diff)
			}
			if resign.Sequence <= sequence()+presignAhead/4 {
				t.Errorf("the RESIGN has number %d, and the board is at %d", resign.Sequence, sequence())
			}
			return resign
		}
		first := wantWill(two.group.self)
		before := count()
		pass(3 * time.Second)
		if n := count() - before; n > 0 {
			t.Errorf("nothing has changed, and it was signed %d times more", n)
		}

		two.Kill()
		pass(10 * time.Second)
		wantWill(one.group.self)

		// Numbers are used up.
		if err := three.tasks.call(t.Context(), func() { three.group.sequence += presignAhead*3/4 + 1 }); err != nil {
			t.Fatal(err)
		}
		pass(200 * time.Millisecond)
		if again := wantWill(one.group.self); again.Sequence <= first.Sequence {
			t.Errorf("the RESIGN has number %d, and had %d", again.Sequence, first.Sequence)
		}

		// Another term.
		before = count()
		if err := three.tasks.call(t.Context(), func() { three.carryOut(three.core.Step(three.now(), rivalOf(three))) }); err != nil {
			t.Fatal(err)
		}
		pass(200 * time.Millisecond)
		if _, resign := d.lastPlan(t); resign.Term <= first.Term || count() == before {
			t.Errorf("the RESIGN is of term %d", resign.Term)
		}

		// Other peers.
		three.reload(func(c *config.Config) {
			c.Peers = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.3")}
		})
		pass(200 * time.Millisecond)
		e, _ := d.lastPlan(t)
		want := []netip.AddrPort{netip.MustParseAddrPort("224.0.0.254:9254"), netip.MustParseAddrPort("10.0.0.1:9254")}
		if !slices.Equal(e.To, want) {
			t.Errorf("the RESIGN goes to %v, want %v", e.To, want)
		}

		// Another address, and other sockets.
		before = count()
		three.change(func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.33/24")} })
		pass(200 * time.Millisecond)
		l.wantHolders(3)
		if count() == before {
			t.Error("the companion sends from an address that is gone")
		}
	})
}

// rivalOf is a message of a board that has led in a later term and does not any more.
func rivalOf(b *fakeBoard) *wire.Message {
	return &wire.Message{Header: wire.Header{
		Type: wire.TypeHello, Algorithm: wire.AlgorithmHeir, Sender: 99, Term: b.core.Signature().Term + 5,
		Incarnation: 1, Sequence: 1, Priority: 0,
	}, Hello: wire.Hello{Interval: time.Second}}
}

// TestOldPlanIsBetterThanNone has the companion refuse a new plan. That is no reason to
// let a leader be deposed that runs.
func TestOldPlanIsBetterThanNone(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three, latest := l.armedThree(nil)
		d := latest()
		d.get(func() { d.refuses = errors.New("no room") })
		two.Kill()
		pass(20 * time.Second)
		l.wantHolders(3)
		if d.Fired() {
			t.Error("the lease of a leader that runs has run out")
		}
		three.wantLog(t, "no room", 1) // once a minute
		d.get(func() { d.refuses = nil })
		pass(200 * time.Millisecond)
		if _, resign := d.lastPlan(t); resign.Resign.Successor != l.boards[0].group.self {
			t.Errorf("the RESIGN names %v", resign.Resign.Successor)
		}
	})
}

// TestLetsGoItself has the switch disarmed before the successor is named, so that
// the pre-signed RESIGN never comes on top of another.
func TestLetsGoItself(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(t *testing.T, b *fakeBoard)
	}{
		{"resign", func(t *testing.T, b *fakeBoard) {
			if _, err := b.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{"stop", func(_ *testing.T, b *fakeBoard) { b.end() }},
		{"cable", func(_ *testing.T, b *fakeBoard) { b.change(func(s *netio.Snapshot) { s.Link.Up = false }) }},
		{"kill", func(_ *testing.T, b *fakeBoard) { b.Kill() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				_, _, three, latest := l.armedThree(nil)
				d := latest()
				codec := testCodec(t, three.cfg.Key.Bytes())
				three.get(func() {
					three.onSend = func(datagram []byte, _ netip.AddrPort) {
						var m wire.Message
						codec.Decode(&m, datagram)
						d.get(func() {
							if m.Type == wire.TypeResign && d.armed {
								t.Error("the switch is armed when the successor is named")
							}
						})
					}
				})
				test.do(t, three)
				pass(time.Second)
				l.wantHolders(2)
				d.get(func() {
					if d.armed || d.fired || d.disarmed == 0 {
						t.Errorf("armed: %t, fired: %t, disarmed %d times", d.armed, d.fired, d.disarmed)
					}
					if ends := test.name == "stop" || test.name == "kill"; d.closed != ends {
						t.Errorf("closed: %t", d.closed)
					}
				})
			})
		})
	}
}

// TestStopOfAFrozenLeader has the order to stop wait when the process is back.
func TestStopOfAFrozenLeader(t *testing.T) {
	for range 10 {
		inBubble(t, func(t *testing.T, l *fakeLAN) {
			_, _, three, latest := l.armedThree(nil)
			end := make(chan struct{})
			goOn := sync.OnceFunc(func() { close(end) })
			defer goOn()
			go three.tasks.post(func() { <-end })
			latest().untilFired(t)
			said := three.says(t)
			three.end()
			pass(10 * time.Millisecond) // by so much a leader that has no switch may be late
			goOn()
			pass(time.Second)
			l.wantHolders(2)
			for _, m := range said() {
				if m.Leading || m.Resign.Successor != wire.Nobody {
					t.Errorf("it says %v, successor %v", m, m.Resign.Successor)
				}
			}
		})
	}
}

// TestLeaseRunsOutMeanwhile has the lease run out while the loop is at something.
func TestLeaseRunsOutMeanwhile(t *testing.T) {
	for name, do := range map[string]func(b *fakeBoard){
		"it proclaims itself": func(b *fakeBoard) {
			b.carryOut(b.core.Step(b.now(), rivalOf(b)))
			if b.core.Role() == election.Leader {
				b.lan.t.Error("it goes on as the leader")
			}
		},
		"it renews": func(b *fakeBoard) { b.address.renew(b.now()) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				_, _, three, latest := l.armedThree(nil)
				said := three.says(t)
				if err := three.tasks.call(t.Context(), func() {
					latest().fire()
					do(three)
					if holders := l.holders(); len(holders) > 0 {
						t.Errorf("%v hold the address", holders)
					}
				}); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				l.wantHolders(2)
				for _, m := range said() {
					if m.Leading {
						t.Errorf("it says %v", m)
					}
				}
				three.get(func() {
					if three.restores > 0 {
						t.Error("it has put the address back")
					}
				})
			})
		})
	}
}

func TestCompanionIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three, latest := l.armedThree(nil)
		former := latest()
		close(former.exited)
		pass(restartDeadman / 2)
		if latest() != former {
			t.Error("replaced too soon: what ends at once must not be started all the time")
		}
		former.get(func() {
			if !former.closed {
				t.Error("the former one was not closed")
			}
		})
		l.wantHolders(3) // with or without
		pass(restartDeadman/2 + time.Millisecond)
		d := latest()
		if d == former {
			t.Fatal("not replaced after a second")
		}
		d.get(func() {
			if !d.armed || len(d.plans) != 1 || d.lease == 0 {
				t.Errorf("armed: %t with %d plans for %v", d.armed, len(d.plans), d.lease)
			}
		})
		three.wantLog(t, "the dead man's switch (process 4711) has ended", 1)

		// It fires as the former one did.
		three.freeze(400 * time.Millisecond)
		pass(150 * time.Millisecond)
		l.wantHolders(2)
	})
}

func TestCompanionCannotStart(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		tries := 0
		var d *fakeDeadman
		one := l.board(1, func(_ *config.Config, b *fakeBoard) {
			b.deadman = func() (Deadman, error) {
				if tries++; tries <= 3 {
					return nil, errors.New("there is no room for another process")
				}
				d = &fakeDeadman{board: b, exited: make(chan struct{})}
				return d, nil
			}
		})
		pass(2 * time.Second)
		l.wantHolders(1) // the election does not depend on it
		one.wantProblem(t, "no room for another process")
		one.wantLog(t, "no room for another process", 1)
		pass(2 * time.Second)
		if d == nil {
			t.Fatalf("tried %d times", tries)
		}
		d.get(func() {
			if !d.armed {
				t.Error("not armed when it has started at last")
			}
		})
		for _, p := range one.mustStatus(t).Problems {
			t.Errorf("there still is a problem: %s", p)
		}
	})
}

// TestEveryEventChecksTheSwitch has the lease end while the loop does something else.
// Whatever happens next, the board must not say that it leads.
func TestEveryEventChecksTheSwitch(t *testing.T) {
	for name, event := range map[string]func(*fakeBoard) event{
		"a packet":      func(b *fakeBoard) event { return <-b.group.free },
		"a link change": func(b *fakeBoard) event { return linkChange(b.state) },
		"a request":     func(*fakeBoard) event { return posted(func() {}) },
		"the timer":     func(*fakeBoard) event { return timerExpired{} },
		"a stop":        func(*fakeBoard) event { return stopRequest{} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				_, _, three, _ := l.armedThree(nil)
				if err := three.tasks.call(t.Context(), func() {
					<-time.After(400 * time.Millisecond)
					said := three.says(t)
					three.handle(event(three))
					if role := three.core.Role(); role == election.Leader || three.address.held {
						t.Errorf("the board is a %v, holds the address: %t", role, three.address.held)
					}
					for _, m := range said() {
						if m.Leading {
							t.Errorf("it says %v", m.Type)
						}
					}
				}); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
