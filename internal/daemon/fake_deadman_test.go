package daemon

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/netio"
	"topdog/wire"
)

// fakeFence is a lease in virtual time. Nothing in a kernel enforces it, unless closes says so.
type fakeFence struct {
	board   *fakeBoard
	running *fakeDeadman // that runs; nil for none

	mu       sync.Mutex
	armed    bool // the lease has begun
	fired    bool
	end      time.Duration // of the lease, on the board's clock
	lease    time.Duration // how far away that was when it was set last; 0 is for ever
	timer    *time.Timer
	later    bool // the holder was to look later than at the end of a lease
	disarmed int  // how often the address was released
	closes   bool // the kernel drops what is for the address
	shut     bool // by the daemon
	covered  [][]int

	coverFails error
	coverWaits chan struct{} // covering waits until it is closed; nil for none
}

// fakeDeadman is a switch that works in virtual time. It sends the RESIGN from
// a port of its own, as a holder does, and keeps what it is told.
type fakeDeadman struct {
	*fakeFence
	lost chan struct{}

	prepared []netio.PreparedResign
	closed   bool
	refuses  error         // of Prepare
	slow     time.Duration // between the end of a lease and the RESIGN
	firedAt  time.Duration
}

// withSwitch gives a board a lease and a switch. The returned function gives the latest one.
func withSwitch(b *fakeBoard) func() *fakeDeadman {
	var latest *fakeDeadman
	b.fence = &fakeFence{board: b}
	b.deadman = func() Deadman {
		latest = newFakeDeadman(b)
		return latest
	}
	return func() *fakeDeadman { return latest }
}

func newFakeDeadman(b *fakeBoard) *fakeDeadman {
	d := &fakeDeadman{fakeFence: b.fence, lost: make(chan struct{})}
	b.fence.running = d
	return d
}

func (d *fakeDeadman) Prepare(r netio.PreparedResign) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuses != nil {
		return d.refuses
	}
	d.prepared = append(d.prepared, r)
	return nil
}

func (f *fakeFence) Begin(end time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.fired, f.shut = true, false, false
	f.set(end, end)
}

func (f *fakeFence) Extend(end, wake time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fired {
		return false
	}
	f.set(end, wake)
	return true
}

func (f *fakeFence) set(end, wake time.Duration) {
	f.end, f.lease, f.later = end, 0, f.later || wake > end
	if end != netio.NoEnd {
		f.lease = end - time.Since(f.board.lan.start)
	}
	f.watch(wake)
}

func (f *fakeFence) watch(until time.Duration) {
	if f.timer != nil {
		f.timer.Stop()
	}
	if until != netio.NoEnd {
		f.timer = time.AfterFunc(until-time.Since(f.board.lan.start), f.expire)
	}
}

// expire is when the lease runs out.
func (f *fakeFence) expire() {
	f.mu.Lock()
	running := f.running
	f.mu.Unlock()
	if running != nil {
		running.fire()
	}
}

func (f *fakeFence) Shut() (inTime bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	inTime = !f.fired
	f.armed, f.fired, f.shut = false, false, true
	return inTime
}

func (f *fakeFence) Released() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut = false
	f.disarmed++
}

func (f *fakeFence) Fired() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

func (f *fakeFence) Cover(interfaces []int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.covered = append(f.covered, interfaces)
	return f.coverFails
}

func (f *fakeFence) CoverAgain() error {
	var waits chan struct{}
	f.get(func() { waits = f.coverWaits })
	if waits != nil {
		<-waits
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.coverFails
}

func (f *fakeFence) Close() error { return nil }

func (f *fakeFence) Closes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closes
}

func (f *fakeFence) State() (netio.FenceKind, string) {
	if f.Closes() {
		return netio.FenceTCX, ""
	}
	return netio.FenceNone, "this is a test"
}

// fire is the end of a lease.
func (d *fakeDeadman) fire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.armed || d.fired {
		return
	}
	d.fired, d.firedAt = true, time.Since(d.board.lan.start)
	var prepared netio.PreparedResign
	if len(d.prepared) > 0 {
		prepared = d.prepared[len(d.prepared)-1]
	}
	d.board.get(func() { d.board.holding, d.board.holding6 = false, false })
	time.AfterFunc(d.slow+fakeLatency, func() { d.board.lan.resign(d.board, prepared) })
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

// resign sends a prepared RESIGN to those whom it is for.
func (l *fakeLAN) resign(from *fakeBoard, e netio.PreparedResign) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.boards {
		other.mu.Lock()
		if r := other.transport; r != nil && other != from && len(e.Datagram) > 0 {
			for _, to := range e.To {
				if other.hears(to.Addr()) {
					r.inbox <- netio.Datagram{
						Data: e.Datagram, Path: pathTo(to.Addr()),
						From: netip.AddrPortFrom(from.transport.local, 40000),
					}
				}
			}
		}
		other.mu.Unlock()
	}
}

func (d *fakeDeadman) Lost() <-chan struct{} { return d.lost }
func (d *fakeDeadman) PID() int              { return 4711 }

func (d *fakeDeadman) Close() error {
	d.fire() // as when the daemon's process ends
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		if d.running == d {
			d.running = nil
		}
	}
	return nil
}

func (f *fakeFence) get(read func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	read()
}

// lastPrepared is what it was given last, decoded.
func (d *fakeDeadman) lastPrepared(t *testing.T) (e netio.PreparedResign, m wire.Message) {
	t.Helper()
	d.get(func() {
		if len(d.prepared) > 0 {
			e = d.prepared[len(d.prepared)-1]
		}
	})
	if len(e.Datagram) > 0 {
		if drop := testCodec(t, d.board.cfg.Keys.Secrets()...).Decode(&m, e.Datagram); drop.Dropped() {
			t.Fatalf("the RESIGN is no message: %v", drop)
		}
	}
	return e, m
}

func testCodec(t *testing.T, keys ...[]byte) *wire.Codec {
	t.Helper()
	codec, err := wire.NewCodec("test", keys...)
	assert.NoError(t, err)
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
	codec := testCodec(t, b.cfg.Keys.Secrets()...)
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
