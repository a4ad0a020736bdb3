package daemon

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

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
	end      time.Duration // of the lease, on the board's clock
	lease    time.Duration // how far away that was when it was set last; 0 is for ever
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

func (d *fakeDeadman) Extend(end time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fired {
		return false
	}
	d.end, d.lease = end, 0
	if d.timer != nil {
		d.timer.Stop()
	}
	if end != netio.NoEnd {
		d.lease = end - time.Since(d.board.lan.start)
		d.timer = time.AfterFunc(d.lease, d.fire)
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
				if other.hears(to.Addr()) {
					r.inbox <- netio.Datagram{
						Data: e.Resign, Path: pathTo(to.Addr()),
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
