package daemon

import (
	"context"
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

// Announcer speaks ARP and Neighbor Discovery: it tells the neighbours where an address is, and asks the hosts of the link;
// netio.Announcer is the real one. Ask, Resolve, Watch and Doubt are about IPv4 alone, as the election is.
type Announcer interface {
	// Hold has the addresses that are ours announced, at once and then again and again, while lasts reports that this board
	// may answer for them. Without addresses it ends that. AnnounceAnew begins it anew.
	Hold(ours []netip.Addr, lasts func() bool)
	AnnounceAnew()
	// Unannounced sets who is told why that failed.
	Unannounced(failed func(error))
	Probe(ctx context.Context, addr netip.Addr, n int, spacing time.Duration) (owner net.HardwareAddr, found bool, err error)
	Rivals(ours []netip.Addr, heard func(netip.Addr, net.HardwareAddr))
	Answers(heard func(netio.ARPAnswer))
	// Watch has the machine that has a floating address asked for it again and again. Watched sets who is told of news.
	Watch(netio.AddressWatch) error
	Watched(heard func(netio.WatchReport))
	Ask(questions []netio.ARPQuestion) error
	Resolve(addr netip.Addr) error
	// Doubt asks as well, and has the frames of other hosts counted until Calm. Heard returns how many have come since.
	Doubt(netio.Doubt) error
	Heard() (frames uint64, senders []netio.Neighbour, err error)
	Calm() error
	Close() error
}

// Platform is what a daemon uses of the machine that it runs on. What needs rights is done by another process, the holder,
// which shares the memory of the lease with the daemon.
type Platform struct {
	// Now reads a monotonic clock.
	Now func() time.Duration
	// ClockRate measures by how much that clock runs faster than it should, as a share, since it
	// was asked last; nil if nothing can tell.
	ClockRate func() (off float64, measured bool)
	// Watch reports the state of the interface and its changes until ctx ends.
	Watch func(ctx context.Context, o netio.WatchOptions, notify func(netio.Snapshot)) error
	// OpenTransport opens the sockets on the interface.
	OpenTransport func(iface string, local netip.Addr) (Transport, error)
	// OpenSecond opens the sockets of the second path. It is called only if there is one. CloseSecond ends the use of what it
	// needs; nil for nothing.
	OpenSecond  func(iface string, local netip.Addr) (Transport, error)
	CloseSecond func() error
	// OpenAddresses prepares to hold the addresses on the interface; nil for a board that never
	// holds them.
	OpenAddresses func(iface string, addresses []netip.Prefix) (Addresses, error)
	// OpenAnnouncer opens what speaks ARP and Neighbor Discovery on the interface with that index, where this board's own address is local. It is
	// not called for a witness.
	OpenAnnouncer func(index int, local netip.Addr) (Announcer, error)
	// ReadNeighbours returns the hosts on the link; nil means that nothing knows them.
	ReadNeighbours func(index int) (netio.Neighbours, error)
	// OpenLED opens a light.
	OpenLED func(gpio.Spec) (gpio.LED, error)
	// NewTimer makes what wakes the loop.
	NewTimer func() (Timer, error)
	// OpenFence makes the lease, and what in the kernel enforces it; nil means that nothing ends a
	// lease.
	OpenFence func() (Fence, error)
	// StartDeadman gives the dead man's switch of the fence's lease; nil means that there is none.
	StartDeadman func() Deadman
	// Checker runs the checks and the score command; nil means that none run.
	Checker Checker
	// Awake returns for how long the machine has been awake since its boot.
	Awake func() time.Duration
}

// RealOptions say what of the real machine a daemon uses, besides what is configured.
type RealOptions struct {
	// Holder is what has the rights; nil for this process, without a fence and a dead man's switch.
	Holder *netio.Holder
	// SecondHolder is the same for the second path.
	SecondHolder *netio.Holder
	// Checker runs the checks; nil for none.
	Checker Checker
	Log     *logrus.Entry // may be nil if no socket is configured
}

// Real returns the real machine. It must be called before the first socket is opened, see gpio.Init.
func Real(cfg *config.Config, o RealOptions) Platform {
	gpio.Init(cfg.LED)
	floating := ipsOf(cfg.Addresses)
	var tag wire.GroupTag // see netio.Options
	if cfg.Several || cfg.SecondPath {
		tag = wire.TagOf(cfg.Group)
	}
	p := Platform{
		Now:       netio.Now,
		ClockRate: netio.NewRateMeter().Measure,
		Watch:     netio.Watch,
		OpenTransport: func(iface string, local netip.Addr) (Transport, error) {
			return opened[Transport](netio.Open(netio.Options{Interface: iface, Local: local, Group: cfg.Multicast, Floating: floating, Tag: tag}))
		},
		OpenSecond: func(iface string, local netip.Addr) (Transport, error) {
			o := secondOptions(cfg)
			return opened[Transport](netio.Open(netio.Options{Interface: iface, Local: local, Group: o.Group, Tag: o.Tag}))
		},
		OpenAddresses: func(iface string, addresses []netip.Prefix) (Addresses, error) {
			return opened[Addresses](netio.NewFloatingIP(netio.FloatingOptions{Interface: iface, Addresses: addresses, Method: cfg.Hold}))
		},
		OpenAnnouncer: func(index int, local netip.Addr) (Announcer, error) {
			return opened[Announcer](netio.OpenAnnouncer(index, local, floating...))
		},
		ReadNeighbours: netio.ReadNeighbours,
		OpenLED:        realLED(cfg, o.Log),
		Checker:        o.Checker,
		Awake:          func() time.Duration { return boottime.Read(unix.CLOCK_MONOTONIC) }, // stands still in a suspend
		NewTimer:       func() (Timer, error) { return opened[Timer](netio.NewTimer()) },
	}
	if o.Holder != nil {
		p.useHolder(cfg, o.Holder)
	}
	if o.SecondHolder != nil {
		p.OpenSecond = func(iface string, local netip.Addr) (Transport, error) {
			return opened[Transport](o.SecondHolder.OpenSockets(netio.Options{Interface: iface, Local: local, Group: cfg.Multicast}))
		}
		p.CloseSecond = o.SecondHolder.Close
	}
	return p
}

// HolderOptions are what a holder does for a board that is in these groups: first for each group, and then for each second path.
// To the holder, that is another group, without addresses.
func HolderOptions(groups config.Groups) (all []netio.HolderOptions) {
	for _, cfg := range groups {
		all = append(all, holderOptions(cfg))
	}
	for _, cfg := range groups.WithSecondPath() {
		all = append(all, secondOptions(cfg))
	}
	for i := range all {
		for k := range all {
			if i != k && sharePort(&all[i], &all[k]) {
				all[i].Others = append(all[i].Others, all[k].Tag)
			}
		}
	}
	return all
}

// sharePort reports whether two may have sockets at the same port of the same interface. One that is found later may be any.
func sharePort(a, b *netio.HolderOptions) bool {
	return a.Group.Port() == b.Group.Port() && (a.Interface == "" || b.Interface == "" || a.Interface == b.Interface)
}

// secondOptions are what a holder does for the second path of a group.
func secondOptions(cfg *config.Config) netio.HolderOptions {
	return netio.HolderOptions{Interface: cfg.SecondInterface, Group: cfg.Multicast, Tag: wire.TagOf(wire.OnSecondPath(cfg.Group))}
}

func holderOptions(cfg *config.Config) netio.HolderOptions {
	o := netio.HolderOptions{Interface: cfg.Interface, Floating: ipsOf(cfg.Addresses), Group: cfg.Multicast, Tag: wire.TagOf(cfg.Group), Method: cfg.Hold}
	for _, a := range cfg.Addresses {
		if a.Bits != config.FromSubnet {
			o.Prefixes = append(o.Prefixes, netip.PrefixFrom(a.IP, a.Bits))
		}
	}
	return o
}

// useHolder has the holder do what needs rights. The holder also enforces a lease: by a fence, and by a dead man's switch.
func (p *Platform) useHolder(cfg *config.Config, h *netio.Holder) {
	p.StartDeadman = func() Deadman { return h }
	p.OpenTransport = func(iface string, local netip.Addr) (Transport, error) {
		return opened[Transport](h.OpenSockets(netio.Options{Interface: iface, Local: local, Group: cfg.Multicast, Floating: ipsOf(cfg.Addresses)}))
	}
	p.OpenAddresses = func(iface string, addresses []netip.Prefix) (Addresses, error) {
		return opened[Addresses](h.OpenFloating(iface, addresses))
	}
	p.OpenAnnouncer = func(index int, _ netip.Addr) (Announcer, error) { return opened[Announcer](h.OpenAnnouncer(index)) }
	p.OpenFence = func() (Fence, error) { return opened[Fence](h.OpenFence()) }
}

// opened returns what was opened, or a nil interface: an interface with a nil pointer in it is not nil.
func opened[I any](what any, err error) (i I, failed error) {
	if err == nil {
		i = what.(I)
	}
	return i, err
}

// realLED returns what opens a light, and leaves a note for `topdog cleanup`. If notes cannot be written, that is logged
// once: it matters only to a daemon that gets killed.
func realLED(cfg *config.Config, log *logrus.Entry) func(gpio.Spec) (gpio.LED, error) {
	var options gpio.Options
	if cfg.Socket != "" {
		var once sync.Once
		options.NotesIn = cfg.NotesDir()
		options.Report = func(err error) { once.Do(func() { log.Warn(err) }) }
	}
	return func(spec gpio.Spec) (gpio.LED, error) { return gpio.Open(spec, options) }
}

// Witness is the machine of a witness: a voter that never leads. It has no address to hold, no light and no holder, and
// announces nothing, so it needs no privilege. What it has are the sockets of the group and the watch over the interface.
func Witness(cfg *config.Config) Platform {
	p := Real(witnessed(cfg), RealOptions{})
	p.OpenFence, p.OpenAddresses, p.ReadNeighbours, p.OpenAnnouncer = nil, nil, nil, nil
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

// never is a time that does not come.
const never time.Duration = 1<<63 - 1

// Timer expires once, at a time that can be moved; netio.Timer is the real one.
type Timer interface {
	Set(after time.Duration)
	Expired() <-chan struct{}
	Close() error
}

// Checker runs the checks and the score command in a process of its own; check.Process is the real one.
type Checker interface {
	// Send doesn't block. The process ends when there is nothing to run.
	Send(check.Order) error
	Reports() <-chan check.Report // closed when the process can't be started any more
	// Try runs each check of an order once, beside the others, and returns why each fails, or "".
	Try(context.Context, check.Order) ([]string, error)
	Kill()
	Stop()
}

// Deadman releases the addresses, and says so, when this daemon no longer can;
// netio.Holder is the real one.
type Deadman interface {
	Prepare(netio.PreparedResign) error
	// Lost is closed when it has ended, or does not answer any more.
	Lost() <-chan struct{}
	PID() int
	// Close ends its use, as the end of this process would: if a lease lasts, it releases the address, and tells the
	// other boards.
	Close() error
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
	Cover(interfaces []int) error
	CoverAgain() error
	// Closes reports whether the fence keeps everybody off the addresses once the lease has ended.
	Closes() bool
	State() (kind netio.FenceKind, problem string)
	Close() error
}

// ipsOf are the floating addresses without their prefix lengths.
func ipsOf(floating []config.Address) (all []netip.Addr) {
	for _, f := range floating {
		all = append(all, f.IP)
	}
	return all
}
