package daemon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/lamp"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/watched"
	"topdog/netio"
	"topdog/wire"
)

// fakeLAN connects fake boards in memory, so that whole daemons run in virtual
// time (testing/synctest does not like real sockets).
type fakeLAN struct {
	t      *testing.T
	start  time.Time
	mu     sync.Mutex
	boards []*fakeBoard
	owner  net.HardwareAddr // of the floating address, if a foreign machine has it
	owner6 net.HardwareAddr // likewise of the one of IPv6
	hosts  []netip.Addr     // that are no boards, and answer ARP; the first is the gateway

	inner sync.Mutex             // of what follows; a board may be locked already
	wire  map[netio.Path][]frame // on their way, the oldest first
	story []string               // what all boards have logged, each line with its time
	loses []scene.Filter         // what the switch does not pass
}

// the floating address of all tests, and the one that some have beside it.
var (
	floating  = netip.MustParseAddr("10.0.0.100")
	floating6 = netip.MustParseAddr("fd00::100")
)

// ownAddress is that of a board.
func ownAddress(number int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(number)}) }

// fakeBoard is the machine that a daemon runs on.
type fakeBoard struct {
	*Daemon
	lan       *fakeLAN
	number    int
	snapshots chan netio.Snapshot
	state     netio.Snapshot
	led       *lamp.Recorder
	end       context.CancelFunc
	ended     chan error

	mu           sync.Mutex
	transport    *fakeTransport
	announcer    *fakeAnnouncer
	acquireFails error
	openFails    error // of the holder
	noSockets    error
	mute         bool          // what it sends is lost
	version      string        // of its program
	unlimited    string        // why its kernel drops no flood
	overflows    atomic.Uint64 // packets for which its sockets had no room
	deaf         bool          // what is sent to it is lost
	clockOff     float64
	noMulticast  bool   // the switch passes no multicast to it
	firewall     bool   // its kernel drops all that is sent to its sockets
	dropsOthers  bool   // its kernel drops what is of other groups
	dead         bool   // the whole machine is off
	silent       bool   // its kernel does not answer for the floating address
	frames       uint64 // of hosts that are no boards, which have reached it
	questions    []netio.ARPQuestion
	resolved     []netip.Addr
	releaseFails error
	onAcquire    func()
	onOpen       func(what string) // what takes the holder long; nil for nothing
	mayAnnounce  func() bool       // reports whether it may announce the address; nil before it was acquired
	heldOn       []string          // the interfaces for which the address was prepared
	sendTakes    time.Duration     // from the call until the datagram leaves
	sent         int
	holding      bool
	holding6     bool // the address of IPv6
	noIPv6       bool // its kernel takes none
	noProbe6     error
	announced    int
	restores     int
	acquired     bool          // and not released; holding is what the kernel has
	renewed      chan struct{} // a renewal that has done its work waits until it is closed; nil for none
	renewWaits   chan struct{} // a renewal waits until it is closed; nil for none
	rejoinWaits  chan struct{} // likewise for joining the group again
	heard        []election.Change
	told         []console.Transition                     // to whoever follows it
	logged       []string                                 // each with its level in front
	unicasts     int                                      // how many datagrams it sent to one board
	onSend       func(datagram []byte, to netip.AddrPort) // told of each; to is zero for a multicast
	fence        *fakeFence                               // nil for none
	deadman      func() Deadman
	openLED      func() (gpio.LED, error) // nil opens led
	checker      *fakeChecker
	stateDir     string      // for what outlives the daemon
	second       *fakeSecond // nil for no second path
}

func newFakeLAN(t *testing.T) *fakeLAN {
	return &fakeLAN{t: t, start: time.Now(), hosts: []netip.Addr{router}, wire: map[netio.Path][]frame{}}
}

// board makes a board and starts its daemon. change may alter the configuration
// and the machine before.
func (l *fakeLAN) board(number int, change func(*config.Config, *fakeBoard)) *fakeBoard {
	b := &fakeBoard{
		lan: l, number: number,
		snapshots: make(chan netio.Snapshot, 16),
		led:       lamp.NewRecorder(fmt.Sprint("LED of ", number), 1000),
		ended:     make(chan error, 1),
		checker:   newFakeChecker(),
	}
	own := netip.PrefixFrom(ownAddress(number), 24)
	b.state = netio.Snapshot{Present: true, Link: netio.Link{
		Name: "eth0", Index: 2, Up: true, Addrs: []netip.Prefix{own},
		HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, byte(number)},
	}}
	cfg := config.Config{
		Config: election.Config{
			Name: fmt.Sprint("pi", number), Priority: 100, Interval: 100 * time.Millisecond, Algorithm: wire.AlgorithmHeir,
		},
		Addresses: []config.Address{{IP: floating}}, Group: "test", Keys: config.Keyring{Signs: testKey(7)},
		Multicast: wire.DefaultGroup, Witness: config.Witness{Gateway: true}, LogLevel: logrus.DebugLevel,
	}
	if change != nil {
		change(&cfg, b)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.AddHook(b)
	daemon, err := New(&cfg, b.machine(), Options{Log: logrus.NewEntry(log), Version: b.version, StateDir: b.stateDir, Observe: func(c election.Change) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.heard = append(b.heard, c)
	}})
	assert.NoError(l.t, err)
	b.Daemon = daemon
	publish := daemon.transitions.publish
	daemon.transitions.publish = func(n console.Transition) {
		b.get(func() { b.told = append(b.told, n) })
		publish(n)
	}
	l.mu.Lock()
	l.boards = append(l.boards, b)
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(l.t.Context())
	b.end = cancel
	b.snapshots <- b.state
	go func() { b.ended <- b.run(ctx) }()
	return b
}

// run runs the daemon. If its loop panics, that is how it has ended, so that a test can say what it was doing.
func (b *fakeBoard) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			b.leave()
		}
	}()
	return b.Run(ctx)
}

// testKey is a group key that is made of one byte.
func testKey(b byte) config.Key {
	ring, err := config.ParseKeys("test", fmt.Appendf(nil, "%x", bytes.Repeat([]byte{b}, wire.KeySize)))
	if err != nil {
		panic(err)
	}
	return ring.Signs
}

// reload has the board apply its configuration with a change.
func (b *fakeBoard) reload(change func(*config.Config)) {
	b.tasks.post(func() {
		cfg := b.cfg
		change(&cfg)
		b.reconfigure(&cfg)
	})
}

// Levels and Fire make the board keep what its daemon logs (logrus.Hook).
func (b *fakeBoard) Levels() []logrus.Level { return logrus.AllLevels }

func (b *fakeBoard) Fire(e *logrus.Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logged = append(b.logged, e.Level.String()+": "+e.Message)
	b.lan.inner.Lock()
	defer b.lan.inner.Unlock()
	b.lan.story = append(b.lan.story, fmt.Sprintf("%12v  board %d  %s: %s", time.Since(b.lan.start), b.number, e.Level, e.Message))
	return nil
}

// close ends all daemons, so that the bubble can end.
func (l *fakeLAN) close() {
	for _, b := range l.boards {
		b.Kill()
		if err := <-b.ended; err != nil {
			l.t.Errorf("board %d ended with %v", b.number, err)
		}
		b.playAgain()
	}
}

// holders are the boards that hold the address.
func (l *fakeLAN) holders() []int { return l.holdersOf(func(b *fakeBoard) bool { return b.holding }) }

// holders6 are those that hold the one of IPv6.
func (l *fakeLAN) holders6() []int { return l.holdersOf(func(b *fakeBoard) bool { return b.holding6 }) }

func (l *fakeLAN) holdersOf(holds func(*fakeBoard) bool) (numbers []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.boards {
		b.mu.Lock()
		if holds(b) {
			numbers = append(numbers, b.number)
		}
		b.mu.Unlock()
	}
	return numbers
}

// machine is the board as its daemon finds it.
func (b *fakeBoard) machine() Platform {
	p := b.bareMachine()
	if b.fence != nil {
		p.OpenFence = func() (Fence, error) { return b.fence, nil }
	}
	return p
}

func (b *fakeBoard) bareMachine() Platform {
	now := func() time.Duration { return time.Since(b.lan.start) }
	return Platform{
		Now: now, Awake: now, NewTimer: newFakeTimer,
		ClockRate: func() (float64, bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.clockOff, true
		},
		Watch: func(ctx context.Context, o netio.WatchOptions, notify func(netio.Snapshot)) error {
			if o.Interface == fakeSecondInterface {
				return b.watchSecond(ctx, notify)
			}
			for {
				select {
				case <-ctx.Done():
					return nil
				case s := <-b.snapshots:
					notify(s)
				}
			}
		},
		OpenTransport: func(_ string, local netip.Addr) (Transport, error) {
			b.opens("the sockets")
			if b.noSockets != nil {
				return nil, b.noSockets
			}
			t := &fakeTransport{board: b, local: local, inbox: make(chan netio.Datagram, 1000), closed: make(chan struct{})}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.transport = t
			return t, nil
		},
		OpenSecond: b.openSecond,
		OpenAddresses: func(iface string, addresses []netip.Prefix) (Addresses, error) {
			b.opens("the addresses")
			if b.openFails != nil {
				return nil, b.openFails
			}
			b.get(func() { b.heldOn = append(b.heldOn, iface) })
			return fakeAddresses{b, slices.ContainsFunc(addresses, func(p netip.Prefix) bool { return p.Addr() == floating6 })}, nil
		},
		OpenAnnouncer: func(int, netip.Addr) (Announcer, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.announcer = &fakeAnnouncer{board: b}
			b.announcer.Reaches = b.announcer.reachesHolder
			b.announcer.Now = func() time.Duration { return time.Since(b.lan.start) }
			return b.announcer, nil
		},
		ReadNeighbours: b.lan.neighbours,
		OpenLED: func(gpio.Spec) (gpio.LED, error) {
			if b.openLED != nil {
				return b.openLED()
			}
			return b.led, nil
		},
		StartDeadman: b.deadman,
		Checker:      b.checker,
	}
}

func (b *fakeBoard) opens(what string) {
	if b.onOpen != nil {
		b.onOpen(what)
	}
}

// change alters the state of the board's interface.
func (b *fakeBoard) change(alter func(*netio.Snapshot)) {
	b.get(func() { alter(&b.state) })
	b.snapshots <- b.state
}

func (b *fakeBoard) get(read func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	read()
}

// fakeTimer runs in virtual time.
type fakeTimer struct {
	timer   *time.Timer
	expired chan struct{}
}

func newFakeTimer() (Timer, error) {
	t := &fakeTimer{expired: make(chan struct{}, 1)}
	t.timer = time.AfterFunc(time.Hour, func() {
		select {
		case t.expired <- struct{}{}:
		default:
		}
	})
	return t, nil
}

func (t *fakeTimer) Set(after time.Duration) { t.timer.Reset(after) }

func (t *fakeTimer) Expired() <-chan struct{} { return t.expired }

func (t *fakeTimer) Close() error {
	t.timer.Stop()
	return nil
}

// fakeTransport hands datagrams to the other boards after a fifth of a millisecond.
type fakeTransport struct {
	board        *fakeBoard
	local        netip.Addr
	inbox        chan netio.Datagram
	closed       chan struct{}
	seen         atomic.Uint64 // by the interface
	fromOwn      atomic.Uint64
	others       sync.Map      // who has sent what is of other groups
	heard        atomic.Uint64 // by the sockets
	own          atomic.Uint64 // by the sockets, of its own
	anyInterface atomic.Bool
	once         sync.Once
}

const fakeLatency = 200 * time.Microsecond

func (t *fakeTransport) Serve(deliver func(netio.Datagram)) error {
	for {
		select {
		case <-t.closed:
			return nil
		case d := <-t.inbox:
			d.At = time.Since(t.board.lan.start)
			deliver(d)
		}
	}
}

func (t *fakeTransport) Multicast(b []byte) error { return t.send(b, netip.Addr{}, 0) }

func (t *fakeTransport) Broadcast(b []byte) error {
	return t.send(b, netio.LimitedBroadcast, wire.DefaultGroup.Port())
}

func (t *fakeTransport) Unicast(b []byte, to netip.AddrPort) error {
	return t.send(b, to.Addr(), to.Port())
}

func (t *fakeTransport) send(b []byte, to netip.Addr, port uint16) error {
	var up, mute, firewall bool
	var takes time.Duration
	t.board.get(func() {
		if up = t.board.state.Link.Up; up {
			t.board.sent++
		}
		mute, takes, firewall = t.board.mute, t.board.sendTakes, t.board.firewall
	})
	if !up {
		return fmt.Errorf("fake: %w", netio.ErrLinkDown)
	}
	time.Sleep(takes)
	t.board.get(func() {
		if to.IsValid() {
			t.board.unicasts++
		}
		if t.board.onSend != nil {
			t.board.onSend(b, netip.AddrPortFrom(to, port))
		}
	})
	if to == netio.LimitedBroadcast && !firewall {
		t.own.Add(1) // it comes back
	}
	if mute {
		return nil
	}
	d := netio.Datagram{Data: append([]byte(nil), b...), Path: pathTo(to)}
	d.From = netip.AddrPortFrom(t.local, wire.DefaultGroup.Port())
	t.board.lan.later(t.board, d.Path, func(other *fakeBoard) {
		if r := other.transport; r != nil && other.hears(to) {
			if r.local == t.local { // the kernel drops what comes from its own address
				if !to.IsValid() {
					r.fromOwn.Add(1)
				}
				return
			}
			if other.dropsOthers && wire.GroupTag(binary.BigEndian.Uint16(d.Data[wire.GroupTagEnd-2:])) != wire.TagOf(other.cfg.Group) {
				r.others.Store(t.local, true)
				return
			}
			if d.Path == netio.PathMulticast || d.Path == netio.PathBroadcast {
				r.seen.Add(1)
			}
			if other.firewall {
				return
			}
			r.heard.Add(1)
			select {
			case r.inbox <- d:
			default:
			}
		}
	})
	return nil
}

// Rejoin waits, as the real one does, while the kernel is busy for others.
func (t *fakeTransport) Rejoin() error {
	var waits chan struct{}
	t.board.get(func() { waits = t.board.rejoinWaits })
	if waits != nil {
		<-waits
	}
	return nil
}

func (t *fakeTransport) Drain() {}
func (t *fakeTransport) Arrivals() netio.Arrivals {
	return netio.Arrivals{Counted: true, Seen: t.seen.Load(), FromOwn: t.fromOwn.Load(), Heard: t.heard.Load(), Own: t.own.Load()}
}

func (t *fakeTransport) OtherGroups() (all []netip.Addr) {
	t.others.Range(func(addr, _ any) bool { all = append(all, addr.(netip.Addr)); return true })
	t.others.Clear()
	return all
}
func (t *fakeTransport) SetIncarnation(wire.Incarnation) {}
func (t *fakeTransport) ByAnyInterface(may bool) error   { t.anyInterface.Store(may); return nil }
func (t *fakeTransport) Know(netip.Addr)                 {}
func (t *fakeTransport) Unlimited() string               { return t.board.unlimited }
func (t *fakeTransport) Drops() netio.Drops              { return netio.Drops{Overflows: t.board.overflows.Load()} }

func (t *fakeTransport) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}

// fakeAddresses holds nothing but a flag for each family.
type fakeAddresses struct {
	board *fakeBoard
	both  bool // there is an address of IPv6 too
}

func (h fakeAddresses) Acquire() error {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	if h.board.acquireFails != nil {
		return h.board.acquireFails
	}
	if h.board.onAcquire != nil {
		h.board.onAcquire()
	}
	h.board.holding, h.board.acquired = true, true
	h.board.holding6 = h.both && !h.board.noIPv6
	return nil
}

// Renew refuses, as the real one does, what was released before it has begun.
func (h fakeAddresses) Renew() (restored bool, err error) {
	wait := func(of *chan struct{}) {
		var waits chan struct{}
		h.board.get(func() { waits = *of })
		if waits != nil {
			<-waits
		}
	}
	wait(&h.board.renewWaits)
	h.board.get(func() {
		if !h.board.acquired {
			err = netio.ErrNotHeld
			return
		}
		may6 := h.both && !h.board.noIPv6
		restored = !h.board.holding || may6 && !h.board.holding6
		h.board.holding, h.board.holding6 = true, may6
		if restored {
			h.board.restores++
		}
	})
	wait(&h.board.renewed)
	return restored, err
}

func (h fakeAddresses) Release() error {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	if h.board.releaseFails != nil {
		return h.board.releaseFails
	}
	h.board.holding, h.board.holding6, h.board.acquired = false, false, false
	return nil
}

func (h fakeAddresses) State() netio.HoldState {
	state := netio.HoldState{Method: netio.HoldTUN, Reason: "in a test", Device: "nothing"}
	h.board.get(func() {
		if h.both && h.board.acquired && !h.board.holding6 {
			state.Problem = "add fd00::100 to nothing: IPv6 is switched off"
		}
	})
	return state
}

func (h fakeAddresses) Close() error { return h.Release() }

// fakeAnnouncer counts, and finds the foreign machine that the LAN has.
type fakeAnnouncer struct {
	watched.Asker
	board    *fakeBoard
	rivals   func(netip.Addr, net.HardwareAddr)
	ours     []netip.Addr
	answered func(netio.ARPAnswer)
	holder   net.HardwareAddr // who has announced the floating address last
	baseline uint64           // what had reached the board when it began to doubt
}

func (a *fakeAnnouncer) Unannounced(func(error)) {}

func (a *fakeAnnouncer) Rivals(ours []netip.Addr, heard func(netip.Addr, net.HardwareAddr)) {
	a.board.mu.Lock()
	defer a.board.mu.Unlock()
	a.ours, a.rivals = ours, heard
}

// claimed has the board hear the floating address be claimed by another machine.
func (b *fakeBoard) claimed(mac net.HardwareAddr) { b.hearsClaim(floating, mac) }

func (b *fakeBoard) hearsClaim(addr netip.Addr, mac net.HardwareAddr) {
	var heard func(netip.Addr, net.HardwareAddr)
	b.get(func() {
		if slices.Contains(b.announcer.ours, addr) {
			heard = b.announcer.rivals
		}
	})
	if heard != nil {
		heard(addr, mac)
	}
}

func (a *fakeAnnouncer) Close() error {
	a.Asker.Close()
	return nil
}

var errNoPermission = errors.New("operation not permitted")

// wantLog wants a line to have been logged so often.
func (b *fakeBoard) wantLog(t *testing.T, part string, want int) {
	t.Helper()
	if n := len(b.loggedWith(part)); n != want {
		t.Errorf("board %d has logged %q %d times, want %d", b.number, part, n, want)
	}
}
