package daemon

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// TestFrozenLeader has the leader's process stand still: the heir leads at once, and
// the old leader follows when it is back, having said nothing that it must not say.
func TestFrozenLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred and twenty clusters take seconds")
	}
	for _, frozen := range []time.Duration{150 * time.Millisecond, 400 * time.Millisecond, 10 * time.Second} {
		for _, algorithm := range []wire.Algorithm{wire.AlgorithmHeir, wire.AlgorithmAgents} {
			for _, key := range []bool{true, false} {
				t.Run(fmt.Sprintf("%v %v key=%t", frozen, algorithm, key), func(t *testing.T) {
					for range 10 { // the loop picks among what has come meanwhile at random
						inBubble(t, func(t *testing.T, l *fakeLAN) {
							l.frozenLeader(t, frozen, func(c *config.Config) {
								c.Algorithm = algorithm
								c.Detector = silence.DetectorAsk
								if !key {
									c.Keys = config.Keyring{}
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
	if want := 100*time.Millisecond + silence.DefaultGrace(100*time.Millisecond)*3/4; lease != want {
		t.Errorf("the lease lasts for %v, want %v", lease, want)
	}
	e, _ := d.lastPrepared(t)
	if !slices.Equal(e.To, []netip.AddrPort{netip.MustParseAddrPort("224.0.0.254:9254")}) {
		t.Errorf("wrong destinations: %+v", e)
	}
	said := three.says(t)
	replayed := one.mustStatus(t).Counters.DroppedByReason[wire.Replayed.Identifier()]
	three.freeze(frozen)
	d.untilFired(t)
	l.wantHolders()
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
	assert.Is(t, "10.0.0.3", two.mustStatus(t).Heir, "the heir")
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

// TestLeaseIsCountedFromBeforeTheHeartbeat has the process stand still between reading the clock
// and sending: the others may count from the reading, so the lease must not begin later.
func TestLeaseIsCountedFromBeforeTheHeartbeat(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		const pause, interval = 20 * time.Millisecond, time.Second
		_, _, three, latest := l.armedThree(func(c *config.Config) { c.Interval = interval })
		said := three.says(t)
		three.get(func() { three.sendTakes = pause })
		before := three.now()
		for len(said()) == 0 {
			pass(time.Millisecond)
		}
		sent := three.now()
		three.get(func() { three.sendTakes = 0 })
		pass(pause + time.Millisecond) // a new leader broadcasts its heartbeat as well
		lease := interval + silence.DefaultGrace(interval)*3/4
		latest().get(func() {
			if latest().end < before+lease || latest().end > sent-pause+lease {
				t.Errorf("the lease ends %v after the heartbeat was sent, want at most %v", latest().end-sent, lease-pause)
			}
		})
	})
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
		assert.Is(t, "10.0.0.2", one.mustStatus(t).Leader, "whom board 1 follows")
		// Nobody listens where the RESIGN came from.
		one.onLoop(t, func() {
			assert.Is(t, netip.MustParseAddr("10.0.0.3"), one.group.addressOf(three.group.self), "where board 1 would send to")
		})
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
		if e, _ := d.lastPrepared(t); len(e.Datagram) > 0 || len(e.To) > 0 {
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
		if _, resign := d.lastPrepared(t); resign.Resign.Successor != two.group.self {
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
				codec := testCodec(t, three.cfg.Keys.Secrets()...)
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
				three.onLoop(t, func() {
					latest().fire()
					do(three)
					l.wantHolders()
				})
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

// TestHolderLost: a leader that has lost its holder hands over, and its daemon ends with the reason.
func TestHolderLost(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three, latest := l.armedThree(nil)
		close(latest().lost)
		pass(10 * time.Millisecond)
		l.wantHolders(2)
		three.wantLog(t, "the holder (process 4711), which has the address and the sockets, has ended or stands still", 1)
		pass(time.Second)
		err := <-three.ended
		if err == nil || !strings.Contains(err.Error(), "the holder (process 4711)") {
			t.Errorf("the daemon ended with %v", err)
		}
		three.ended <- nil // for whoever waits for all boards
	})
}

// TestEveryEventChecksTheSwitch has the lease end while the loop does something else.
// Whatever happens next, the board must not say that it leads.
func TestEveryEventChecksTheSwitch(t *testing.T) {
	for name, event := range map[string]func(*fakeBoard){
		"a packet": func(b *fakeBoard) {
			r := <-b.group.inbox.free
			r.drop = wire.TooShort
			b.receive(r)
		},
		"a link change": func(b *fakeBoard) { b.linkChanged(b.state) },
		"a request":     func(*fakeBoard) {},
		"the timer":     func(b *fakeBoard) { b.timerExpired() },
		"a stop":        func(b *fakeBoard) { b.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				_, _, three, _ := l.armedThree(nil)
				three.onLoop(t, func() {
					<-time.After(400 * time.Millisecond)
					said := three.says(t)
					three.handle(func() { event(three) })
					if role := three.core.Role(); role == election.Leader || three.address.held {
						t.Errorf("the board is a %v, holds the address: %t", role, three.address.held)
					}
					for _, m := range said() {
						if m.Leading {
							t.Errorf("it says %v", m.Type)
						}
					}
				})
			})
		})
	}
}
