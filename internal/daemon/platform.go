package daemon

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"topdog/gpio"
	"topdog/internal/boottime"
	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/netio"
	"topdog/wire"
)

// Transport carries datagrams between the boards of the group; netio.Conn is the real one.
type Transport interface {
	Serve(deliver func(netio.Datagram)) error
	Multicast(b []byte) error
	Broadcast(b []byte) error
	Unicast(b []byte, to netip.AddrPort) error
	Rejoin() error
	Drain()
	Drops() netio.Drops
	Know(board netip.Addr)
	Unlimited() string
	Arrivals() netio.Arrivals
	OtherGroups() []netip.Addr
	SetIncarnation(own wire.Incarnation)
	ByAnyInterface(may bool) error
	Close() error
}

// Addresses holds the floating addresses; netio.FloatingIP is the real one.
type Addresses interface {
	Acquire() error
	Renew() (restored bool, err error)
	Release() error
	State() netio.HoldState
	Close() error
}

// Announcer speaks ARP: it tells the neighbours where an address is, and asks the hosts of the link; netio.Announcer is the real one.
type Announcer interface {
	Announce(addr netip.Addr) error
	Probe(ctx context.Context, addr netip.Addr, n int, spacing time.Duration) (owner net.HardwareAddr, found bool, err error)
	Rivals(ours []netip.Addr, heard func(netip.Addr, net.HardwareAddr))
	Answers(heard func(netio.ARPAnswer))
	Ask(questions []netio.ARPQuestion) error
	Resolve(addr netip.Addr) error
	// Doubt asks as well, and has the frames of other hosts counted until Calm. Heard returns how many have come since.
	Doubt(netio.Doubt) error
	Heard() (frames uint64, senders []netio.Neighbour, err error)
	Calm() error
	Close() error
}

// Neighbours knows the hosts on the link; netio.NeighbourTable is the real one.
type Neighbours interface {
	List() ([]netio.Neighbour, error)
	Gateway() (gateway netip.Addr, found bool, err error)
	Close() error
}

// Platform is what a daemon uses of the machine that it runs on. What needs rights is done by another
// process, the holder, see UseHolder. The daemon shares the memory of the lease with it.
type Platform struct {
	// Now reads a monotonic clock; nil means netio.Now.
	Now func() time.Duration
	// ClockRate measures by how much that clock runs faster than it should, as a share, since it
	// was asked last; nil if nothing can tell.
	ClockRate func() (off float64, measured bool)
	// FindInterface returns the interface whose subnet contains the address.
	FindInterface func(netip.Addr) (netio.Choice, error)
	// Watch reports the state of the interface and its changes until ctx ends.
	Watch func(ctx context.Context, o netio.WatchOptions, notify func(netio.Snapshot)) error
	// OpenTransport opens the sockets on the interface.
	OpenTransport func(iface string, local netip.Addr) (Transport, error)
	// OpenAddresses prepares to hold the addresses on the interface; nil for a board that
	// never does.
	OpenAddresses func(iface string, addresses []netip.Prefix) (Addresses, error)
	// OpenAnnouncer opens what reaches the neighbours on the interface with that index, where this board's own address is local.
	OpenAnnouncer func(index int, local netip.Addr) (Announcer, error)
	// OpenNeighbours opens what knows the hosts on the link; nil means that nothing does.
	OpenNeighbours func(index int) (Neighbours, error)
	// OpenLED opens a light.
	OpenLED func(gpio.Spec) (gpio.LED, error)
	// NewTimer makes what wakes the loop; nil means a timer of the Go runtime.
	NewTimer func() (Timer, error)
	// OpenFence makes the lease, and what in the kernel enforces it; nil means that nothing ends a
	// lease.
	OpenFence func(addresses []netip.Addr) (Fence, error)
	// StartDeadman gives the dead man's switch of the fence's lease; nil means that there is none.
	StartDeadman func() Deadman
	// Checker runs the checks and the score command; nil means that none run.
	Checker Checker
	// Trier runs the checks of another configuration once; nil means that nothing does.
	Trier Checker
	// Awake returns for how long the machine has been awake since its boot; nil: as long as Now says.
	Awake func() time.Duration
}

// RealOptions say what of the real machine a daemon uses, besides what is configured.
type RealOptions struct {
	// Holder is what has the rights; nil for this process, without a fence and a dead man's switch.
	Holder *netio.Holder
	// Checker runs the checks, and Trier tries others once; nil for none.
	Checker, Trier Checker
	Log            *logrus.Entry // may be nil if no socket is configured
}

// Real returns the real machine. It must be called before the first socket is
// opened, see gpio.Init.
func Real(cfg *config.Config, o RealOptions) Platform {
	gpio.Init(cfg.LED)
	floating := ipsOf(cfg.Addresses)
	s := Platform{
		ClockRate:     netio.NewRateMeter().Measure,
		FindInterface: netio.FindInterface,
		Watch:         netio.Watch,
		OpenTransport: func(iface string, local netip.Addr) (Transport, error) {
			c, err := netio.Open(netio.Options{Interface: iface, Local: local, Group: cfg.Multicast, Floating: floating})
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		OpenAddresses: func(iface string, addresses []netip.Prefix) (Addresses, error) {
			f, err := netio.NewFloatingIP(netio.FloatingOptions{
				Interface: iface, Addresses: addresses, Method: cfg.Hold,
			})
			if err != nil {
				return nil, err
			}
			return f, nil
		},
		OpenAnnouncer: func(index int, local netip.Addr) (Announcer, error) {
			a, err := netio.OpenAnnouncer(index, local, floating...)
			if err != nil {
				return nil, err
			}
			return a, nil
		},
		OpenNeighbours: func(index int) (Neighbours, error) {
			n, err := netio.OpenNeighbours(index)
			if err != nil {
				return nil, err
			}
			return n, nil
		},
		OpenLED: realLED(cfg, o.Log),
		Checker: o.Checker,
		Trier:   o.Trier,
		Awake:   awakeSinceBoot,
		NewTimer: func() (Timer, error) {
			t, err := netio.NewTimer()
			if err != nil {
				return nil, err
			}
			return t, nil
		},
	}
	if o.Holder != nil {
		s.useHolder(cfg, o.Holder)
	}
	return s
}

// HolderOptions are what a holder does for a board with that configuration.
func HolderOptions(cfg *config.Config) netio.HolderOptions {
	o := netio.HolderOptions{Interface: cfg.Interface, Floating: ipsOf(cfg.Addresses), Group: cfg.Multicast, Tag: wire.TagOf(cfg.Group), Method: cfg.Hold}
	for _, a := range cfg.Addresses {
		if a.Bits != config.FromSubnet {
			o.Prefixes = append(o.Prefixes, netip.PrefixFrom(a.IP, a.Bits))
		}
	}
	return o
}

// useHolder has another process do what needs rights. It also enforces a lease: by a fence, and by a dead man's switch.
func (p *Platform) useHolder(cfg *config.Config, h *netio.Holder) {
	p.StartDeadman = func() Deadman { return h }
	p.OpenTransport = func(iface string, local netip.Addr) (Transport, error) {
		return opened[Transport](h.OpenSockets(netio.Options{Interface: iface, Local: local, Group: cfg.Multicast, Floating: ipsOf(cfg.Addresses)}))
	}
	p.OpenAddresses = func(iface string, addresses []netip.Prefix) (Addresses, error) {
		return opened[Addresses](h.OpenFloating(iface, addresses))
	}
	p.OpenAnnouncer = func(index int, _ netip.Addr) (Announcer, error) { return opened[Announcer](h.OpenAnnouncer(index)) }
	p.OpenFence = func([]netip.Addr) (Fence, error) { return opened[Fence](h.OpenFence()) }
}

// opened is what was opened. A pointer that is nil is no interface that is nil.
func opened[I any](what any, err error) (i I, failed error) {
	if err == nil {
		i = what.(I)
	}
	return i, err
}

// realLED returns what opens a light, with a note for `topdog cleanup`. That notes
// cannot be written is logged once: it matters only to a daemon that gets killed.
func realLED(cfg *config.Config, log *logrus.Entry) func(gpio.Spec) (gpio.LED, error) {
	var options gpio.Options
	if cfg.Socket != "" {
		var once sync.Once
		options.NotesIn = cfg.NotesDir()
		options.Report = func(err error) { once.Do(func() { log.Warn(err) }) }
	}
	return func(spec gpio.Spec) (gpio.LED, error) { return gpio.Open(spec, options) }
}

// Witness is the machine of a witness: a voter that never leads. It has no address to hold, no
// light and no holder, and speaks no ARP, so it needs no privilege. What it has are the
// sockets of the group and the watch over the interface.
func Witness(cfg *config.Config) Platform {
	p := Real(witnessed(cfg), RealOptions{})
	p.OpenFence, p.OpenAddresses, p.OpenNeighbours = nil, nil, nil
	p.OpenAnnouncer = func(int, netip.Addr) (Announcer, error) { return noARP{}, nil }
	return p
}

// witnessed is the configuration of a board as a witness uses it: it may be the same file.
func witnessed(cfg *config.Config) *config.Config {
	c := *cfg
	c.Priority, c.Preempt, c.LED = 0, false, gpio.Spec{}
	c.Witness = config.Witness{} // it never claims, so it need not know whether its port receives
	c.Checks = nil               // likewise
	return &c
}

// noARP is an Announcer that announces nothing, asks nobody and hears nothing.
type noARP struct{}

func (noARP) Announce(netip.Addr) error { return nil }

func (noARP) Rivals([]netip.Addr, func(netip.Addr, net.HardwareAddr)) {}

func (noARP) Answers(func(netio.ARPAnswer)) {}

func (noARP) Ask([]netio.ARPQuestion) error { return nil }

func (noARP) Resolve(netip.Addr) error { return nil }

func (noARP) Doubt(netio.Doubt) error { return nil }

func (noARP) Heard() (uint64, []netio.Neighbour, error) { return 0, nil, nil }

func (noARP) Calm() error { return nil }

func (noARP) Close() error { return nil }

// Probe is never called: only who may lead looks whether the address is free.
func (noARP) Probe(context.Context, netip.Addr, int, time.Duration) (net.HardwareAddr, bool, error) {
	return nil, false, errors.New("a witness holds no address")
}

// Timer expires once, at a time that can be moved; netio.Timer is the real one.
type Timer interface {
	Set(after time.Duration)
	Expired() <-chan struct{}
	Close() error
}

// timer wakes the loop.
type timer struct {
	Timer
	at time.Duration // for when it is set; never if it has expired since
}

// never is a time that does not come.
const never time.Duration = 1<<63 - 1

// newTimer returns the machine's timer, or, where it has none, one of the Go runtime.
func newTimer(open func() (Timer, error), r *reporter) timer {
	if open != nil {
		t, err := open()
		if err == nil {
			return timer{t, never}
		}
		r.log.Warnf("%v; using the Go runtime's timers, which are less exact", err)
	}
	t := &runtimeTimer{expired: make(chan struct{}, 1)}
	t.timer = time.AfterFunc(time.Hour, func() {
		select {
		case t.expired <- struct{}{}:
		default:
		}
	})
	return timer{t, never}
}

// set has it expire at a time, unless it will anyway: most events move nothing.
func (t *timer) set(at, now time.Duration) {
	if t.at != at {
		t.at = at
		t.Set(max(0, at-now))
	}
}

// unset is called when it has expired.
func (t *timer) unset() { t.at = never }

// runtimeTimer is a timer of the Go runtime, which also runs in virtual time.
type runtimeTimer struct {
	timer   *time.Timer
	expired chan struct{}
}

func (t *runtimeTimer) Set(after time.Duration) { t.timer.Reset(after) }

func (t *runtimeTimer) Expired() <-chan struct{} { return t.expired }

func (t *runtimeTimer) Close() error {
	t.timer.Stop()
	return nil
}

// Checker runs the checks and the score command in a process of its own; check.Process is the real one.
type Checker interface {
	// Send doesn't block. An order with nothing to run ends the process.
	Send(check.Order) error
	Reports() <-chan check.Report // closed when the process can't be started any more
	Kill()
	Stop() error
}

// Deadman releases the addresses, and says so, when this daemon no longer can;
// netio.Holder is the real one.
type Deadman interface {
	Prepare(netio.PreparedResign) error
	// Lost is closed when it has ended, or does not answer any more.
	Lost() <-chan struct{}
	PID() int
	// Close ends its use. Abandon does so as the end of this process would: it releases the address, and tells the
	// other boards.
	Close() error
	Abandon() error
}

// Fence is the lease of the leader, and what enforces it in the kernel; netio.HeldFence is the
// real one.
type Fence interface {
	// Begin, Extend, Shut, Released and Fired are about the lease, which the daemon shares with the kernel and
	// the holder.
	Begin(end time.Duration)
	Extend(end, wake time.Duration) bool
	Shut() (inTime bool)
	Released()
	Fired() bool
	// Cover puts the fence on interfaces. It may be called outside of the loop.
	Cover(interfaces []int, first int) error
	CoverAgain() error
	// Closes reports whether the fence keeps everybody off the addresses once the lease has ended.
	Closes() bool
	State() (kind netio.FenceKind, problem string)
	Close() error
}

// awakeSinceBoot reads CLOCK_MONOTONIC, which stands still while the machine is suspended.
func awakeSinceBoot() time.Duration { return boottime.Read(unix.CLOCK_MONOTONIC) }
