package daemon

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/gpio"
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
