package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/internal/lab/demopage"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/watched"
	"topdog/netio"
	"topdog/wire"
)

// Loopback owns all of 127.0.0.0/8 (RFC 1122, section 3.2.1.3), so every board
// has an address of its own without anybody having to configure one.
var (
	loopbackReserve  = netip.MustParseAddr("127.77.0.1")
	loopbackFloating = netip.MustParseAddr("127.77.0.100")
	loopbackApart    = netip.MustParseAddr("127.77.0.101") // where the floating address is on the other part of a split LAN: no client asks there
	loopbackClient   = netip.MustParseAddr("127.77.0.200")
)

const loopbackInterface = "lo"

// loopback is a LAN made of nothing but sockets on the loopback interface.
type loopback struct {
	port    uint16       // of the group and of the floating address
	reserve *net.UDPConn // keeps other demos away from the port
	index   int          // of the interface
	guarded bool         // boards have a fence and a dead man's switch
	boards  []*loopbackBoard
	record  *observe.Holders
	filters filters
}

// newLoopback finds a port that nobody uses. The kernel chooses it at random,
// and as long as the reserving socket is open gives it to no other demo.
func newLoopback(boards int, guarded bool) (*loopback, error) {
	link, err := net.InterfaceByName(loopbackInterface)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the demo needs the loopback interface: %w", err)
	case link.Flags&net.FlagUp == 0:
		return nil, fmt.Errorf("the demo needs the loopback interface, and %s is down: switch it on with: ip link set %s up", link.Name, link.Name)
	}
	reserve, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopbackReserve, 0)))
	if err != nil {
		return nil, fmt.Errorf("find a free port on %v: %w", loopbackReserve, err)
	}
	l := &loopback{
		port:    reserve.LocalAddr().(*net.UDPAddr).AddrPort().Port(),
		reserve: reserve,
		index:   link.Index,
		guarded: guarded,
		record:  observe.NewHolders(),
	}
	for n := 1; n <= boards; n++ {
		p := &loopbackBoard{l: l, number: n, changed: make(chan struct{}, 1)}
		p.plugged.Store(true)
		l.boards = append(l.boards, p)
	}
	return l, nil
}

func (l *loopback) about() string        { return "real UDP on loopback" }
func (l *loopback) close() error         { return l.reserve.Close() }
func (l *loopback) floating() netip.Addr { return loopbackFloating }

// at is an address at the demo's port.
func (l *loopback) at(addr netip.Addr) netip.AddrPort { return netip.AddrPortFrom(addr, l.port) }

func (l *loopback) holders() *observe.Holders { return l.record }

func (l *loopback) ask(interval time.Duration) (*observe.Asker, error) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopbackClient, 0)))
	if err != nil {
		return nil, fmt.Errorf("open the client's socket: %w", err)
	}
	return observe.StartAsker(observe.OverUDP(conn, l.at(loopbackFloating)), interval), nil
}

func (l *loopback) board(n int) (netip.Addr, string, netip.AddrPort) {
	return l.boards[n-1].addr(), loopbackInterface, l.at(wire.DefaultGroup.Addr())
}

func (l *loopback) link(n int, powered, plugged bool) error {
	b := l.boards[n-1]
	b.powered.Store(powered)
	if b.plugged.Swap(plugged) != plugged {
		select {
		case b.changed <- struct{}{}:
		default: // it has not been seen yet; who sees it sees the latest state
		}
	}
	if !powered {
		return b.Release() // its sockets vanish with it
	}
	return nil
}

// loopbackBoard is where one board stands. It is the board's Addresses as well: to hold
// the floating address is to have a socket bound to it. Two sockets can be, and
// then the kernel as a rule gives the packets to the one that was bound last,
// as a switch gives them to who announced the address last.
type loopbackBoard struct {
	l       *loopback
	number  int
	powered atomic.Bool
	plugged atomic.Bool
	apart   atomic.Bool   // on the other part of a split LAN than the client
	changed chan struct{} // holds a token while the cable is news

	lease atomic.Pointer[loopbackLease] // of the daemon that runs; nil if there is none

	mu        sync.Mutex
	answerer  *observe.Answerer // nil while the board does not have the address
	transport daemon.Transport  // of the daemon that runs; nil if there is none
}

func (b *loopbackBoard) addr() netip.Addr {
	a := loopbackReserve.As4()
	a[3] = byte(10 + b.number)
	return netip.AddrFrom4(a)
}

// numberAt is the board with an address.
func (l *loopback) numberAt(addr netip.Addr) int {
	return slices.IndexFunc(l.boards, func(b *loopbackBoard) bool { return b.addr() == addr }) + 1
}

// linked reports whether the board is on the LAN at all.
func (b *loopbackBoard) linked() bool { return b.powered.Load() && b.plugged.Load() }

// speaks reports whether packets leave the board.
func (b *loopbackBoard) speaks() bool { return b.linked() && !b.l.filters.lost(b.number, nowhere) }

// hearsFrom reports whether a packet from an address comes to the board.
func (b *loopbackBoard) hearsFrom(from netip.Addr) bool {
	return b.linked() && !b.l.filters.lost(b.l.numberAt(from), b.number) && !b.l.filters.draw()
}

// hearsClient reports whether what the client says to all comes to the board.
func (b *loopbackBoard) hearsClient() bool {
	return b.linked() && !b.l.filters.lost(scene.Client, b.number)
}

// reachesAddress reports whether a board that has the address answers this one.
func (b *loopbackBoard) reachesAddress() bool {
	return slices.ContainsFunc(b.l.boards, func(other *loopbackBoard) bool {
		if other == b || !other.holds() || !other.hearsFrom(b.addr()) || !b.hearsFrom(other.addr()) {
			return false
		}
		lease := other.lease.Load()
		return lease == nil || lease.open()
	})
}

// holds reports whether the board has the address.
func (b *loopbackBoard) holds() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answerer != nil
}

// answers reports whether the client gets the board's answer to a question that it has sent.
func (b *loopbackBoard) answers() bool {
	if !b.hearsClient() || b.l.filters.lost(b.number, scene.Client) {
		return false
	}
	lease := b.lease.Load()
	return lease == nil || lease.open()
}

func (l *loopback) platform(n int, _ *config.Config) daemon.Platform {
	p := l.boards[n-1]
	platform := daemon.Platform{
		Now:      netio.Now,
		Awake:    netio.Now,
		NewTimer: func() (daemon.Timer, error) { return netio.NewTimer() },
		Watch:    p.watch,
		OpenTransport: func(iface string, local netip.Addr) (daemon.Transport, error) {
			conn, err := netio.Open(netio.Options{
				Interface: iface, Local: local, Group: l.at(wire.DefaultGroup.Addr()), Shared: true,
			})
			if err != nil {
				return nil, err
			}
			t := passing{conn, p.hearsFrom, p.speaks}
			p.mu.Lock()
			p.transport = t
			p.mu.Unlock()
			return t, nil
		},
		OpenAddresses: func(string, []netip.Prefix) (daemon.Addresses, error) { return p, nil },
		OpenAnnouncer: func(int, netip.Addr) (daemon.Announcer, error) {
			return &noNeighbours{hears: p.hearsClient, Asker: watched.Asker{Reaches: p.reachesAddress, Now: netio.Now}}, nil
		},
	}
	if l.guarded {
		platform.OpenFence, platform.StartDeadman = p.openFence, p.startDeadman
	}
	return platform
}

// watch reports the cable as the kernel reports a carrier.
func (b *loopbackBoard) watch(ctx context.Context, _ netio.WatchOptions, notify func(netio.Snapshot)) error {
	for {
		notify(b.snapshot())
		select {
		case <-b.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// snapshot makes the loopback interface look like the board's own.
func (b *loopbackBoard) snapshot() netio.Snapshot {
	own := netip.PrefixFrom(b.addr(), 24)
	s := netio.Snapshot{
		Present: true,
		Link: netio.Link{
			Name: loopbackInterface, Index: b.l.index, Up: b.plugged.Load(), Addrs: []netip.Prefix{own},
			HardwareAddr: make(net.HardwareAddr, 6), // as the loopback interface has it
		},
		Local: []netio.LocalAddr{{Prefix: own, Index: b.l.index, Device: loopbackInterface}},
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answerer != nil {
		s.Local = append(s.Local, netio.LocalAddr{Prefix: netip.PrefixFrom(loopbackFloating, 32), Index: b.l.index, Device: loopbackInterface})
	}
	return s
}

// Acquire binds a socket to the floating address.
func (b *loopbackBoard) Acquire() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.answerer != nil:
		return nil
	case !b.powered.Load():
		return errors.New("the board has no power")
	}
	// A board counts as a holder from before its socket is bound until after it is closed,
	// so that no moment with two holders is missed.
	began := time.Now()
	if err := b.answer(); err != nil {
		return err
	}
	b.l.record.Set(began, b.number, true)
	return nil
}

// answer begins to answer on a new socket. The mutex is held.
func (b *loopbackBoard) answer() error {
	at := loopbackFloating
	if b.apart.Load() {
		at = loopbackApart
	}
	conn, err := observe.ListenAt(b.l.at(at))
	if err != nil {
		return err
	}
	b.answerer = observe.StartAnswerer(conn, b.number, b.answers)
	return nil
}

// Renew has nothing to do: nobody else closes the socket, and it has no lifetime.
func (b *loopbackBoard) Renew() (restored bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answerer == nil {
		return false, netio.ErrNotHeld
	}
	return false, nil
}

// Release closes the socket. It may be called at any time.
func (b *loopbackBoard) Release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answerer == nil {
		return nil
	}
	err := b.answerer.Close()
	b.answerer = nil
	b.l.record.Set(time.Now(), b.number, false)
	return err
}

func (b *loopbackBoard) Close() error { return b.Release() }

func (b *loopbackBoard) State() netio.HoldState {
	return netio.HoldState{Method: netio.HoldAuto, Reason: "a socket, which the kernel closes with the process", Device: loopbackInterface}
}

// filter has the switch lose frames. A board and the client that do not reach each other at all are on two parts of the LAN, and
// each part may have its holder.
func (l *loopback) filter(all []scene.Filter) error {
	l.filters.set(all)
	var stay []*loopbackBoard
	var failed []error
	for _, b := range l.boards {
		apart := l.filters.lost(b.number, scene.Client) && l.filters.lost(scene.Client, b.number)
		if b.apart.Swap(apart) == apart {
			stay = append(stay, b)
			continue
		}
		failed = append(failed, b.answerAnew())
	}
	// The socket that was bound last gets the questions. A board that comes back has not announced
	// itself to the client's switch, so those that were there all the time come after it.
	if len(stay) < len(l.boards) {
		for _, b := range stay {
			failed = append(failed, b.answerAnew())
		}
	}
	return errors.Join(failed...)
}

// answerAnew has a board that holds the address do so on a new socket, and close the former one.
func (b *loopbackBoard) answerAnew() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answerer == nil {
		return nil
	}
	former := b.answerer
	if err := b.answer(); err != nil {
		return err
	}
	return former.Close()
}

// killed has the dead man's switch of a board do its work.
func (l *loopback) killed(n int) {
	if lease := l.boards[n-1].lease.Load(); lease != nil {
		lease.daemonKilled()
	}
}

// cannot says nothing: on loopback, everything can be done.
func (l *loopback) cannot(demopage.Verb) string { return "" }

// noNeighbours is the announcer of an interface without ARP: there is nobody to
// tell anything, and nobody else who could have the address.
type noNeighbours struct {
	watched.Asker
	hears func() bool
}

func (*noNeighbours) Hold([]netip.Addr, func() bool) {}
func (*noNeighbours) AnnounceAnew()                  {}

func (*noNeighbours) Probe(ctx context.Context, _ netip.Addr, n int, spacing time.Duration) (net.HardwareAddr, bool, error) {
	select { // listen as long as a real probe would, so that the show is not faster than life
	case <-time.After(time.Duration(n) * spacing):
		return nil, false, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

func (*noNeighbours) Unannounced(func(error)) {}

func (*noNeighbours) Rivals([]netip.Addr, func(netip.Addr, net.HardwareAddr)) {}
func (*noNeighbours) Answers(func(netio.ARPAnswer))                           {}
func (*noNeighbours) Ask([]netio.ARPQuestion) error                           { return nil }
func (*noNeighbours) Resolve(netip.Addr) error                                { return nil }
func (*noNeighbours) Doubt(netio.Doubt) error                                 { return nil }
func (*noNeighbours) Calm() error                                             { return nil }

func (n *noNeighbours) Close() error {
	n.Asker.Close()
	return nil
}

// Heard counts what arrives on the port of the board: the client never stops asking.
func (n *noNeighbours) Heard() (uint64, []netio.Neighbour, error) {
	if n.hears() {
		return 1, nil, nil
	}
	return 0, nil, nil
}
