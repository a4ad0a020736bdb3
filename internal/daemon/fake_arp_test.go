package daemon

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"topdog/internal/lab/scene"
	"topdog/netio"
)

// pathTo is the way by which a datagram to an address comes; no address means the group.
func pathTo(to netip.Addr) netio.Path {
	switch {
	case !to.IsValid() || to.IsMulticast():
		return netio.PathMulticast
	case to == netio.LimitedBroadcast:
		return netio.PathBroadcast
	case to == floating:
		return netio.PathFloating
	default:
		return netio.PathUnicast
	}
}

// hears reports whether a datagram to an address reaches the board.
func (b *fakeBoard) hears(to netip.Addr) bool {
	switch pathTo(to) {
	case netio.PathMulticast:
		return !b.noMulticast
	case netio.PathUnicast:
		return b.transport.local == to
	case netio.PathFloating:
		return b.holding
	default:
		return true
	}
}

// frame is on its way to all other boards. arrive is what happens to each that it reaches.
type frame struct {
	from   *fakeBoard
	arrive func(other *fakeBoard)
}

// pathARP is that of ARP, which comes to a socket of its own too.
const pathARP netio.Path = 255

// later sends a frame. Timers of one instant fire in any order, and the frames of a switch come to a socket in the order
// in which they were sent. So a timer delivers the frame that has been on its path for longest, and not one of its own.
func (l *fakeLAN) later(from *fakeBoard, path netio.Path, arrive func(other *fakeBoard)) {
	l.inner.Lock()
	l.wire[path] = append(l.wire[path], frame{from, arrive})
	l.inner.Unlock()
	time.AfterFunc(fakeLatency, func() { l.deliver(path) })
}

func (l *fakeLAN) deliver(path netio.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inner.Lock()
	f := l.wire[path][0]
	l.wire[path] = l.wire[path][1:]
	loses := l.loses
	l.inner.Unlock()
	for _, other := range l.boards {
		if other == f.from || scene.Lost(loses, f.from.number, other.number, path == netio.PathMulticast, rand.Float64) {
			continue
		}
		other.mu.Lock()
		if !other.deaf && other.state.Link.Up {
			f.arrive(other)
		}
		other.mu.Unlock()
	}
}

// Hold announces the address once: how often the real one does is tested in netio.
func (a *fakeAnnouncer) Hold(ours []netip.Addr, lasts func() bool) {
	a.board.get(func() { a.ours, a.board.mayAnnounce = ours, lasts })
	a.AnnounceAnew()
}

func (a *fakeAnnouncer) AnnounceAnew() {
	var mute bool
	var lasts func() bool
	a.board.get(func() {
		mute, lasts = a.board.mute, a.board.mayAnnounce
		if len(a.ours) == 0 {
			lasts = nil
		}
	})
	if lasts == nil || !lasts() {
		return
	}
	a.board.get(func() { a.board.announced++ })
	if mute {
		return
	}
	a.board.lan.later(a.board, pathARP, func(other *fakeBoard) {
		if other.announcer != nil {
			other.announcer.holder = a.board.state.Link.HardwareAddr
		}
	})
}

// Probe finds another machine that has the address.
func (a *fakeAnnouncer) Probe(ctx context.Context, addr netip.Addr, n int, spacing time.Duration) (net.HardwareAddr, bool, error) {
	select {
	case <-time.After(time.Duration(n) * spacing):
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	var failed error
	a.board.get(func() { failed = a.board.noProbe6 })
	if addr.Is6() && failed != nil {
		return nil, false, failed
	}
	owner := a.board.ownerOf(addr, nil)
	return owner, owner != nil, nil
}

// reachesHolder reports whether the machine that has announced the floating address last answers for it.
func (a *fakeAnnouncer) reachesHolder() bool {
	var holder net.HardwareAddr
	a.board.get(func() { holder = a.holder })
	return holder != nil && a.board.ownerOf(floating, holder) != nil
}

// ownerOf returns the Ethernet address of another machine that answers a board which asks who has an address, or which asks
// one machine alone.
func (b *fakeBoard) ownerOf(addr netip.Addr, alone net.HardwareAddr) (owner net.HardwareAddr) {
	l := b.lan
	l.mu.Lock()
	defer l.mu.Unlock()
	if addr == floating && l.owner != nil && (alone == nil || slices.Equal(l.owner, alone)) {
		return l.owner
	}
	if addr == floating6 && l.owner6 != nil {
		return l.owner6
	}
	var mine net.HardwareAddr
	var cut bool
	b.get(func() { mine, cut = b.state.Link.HardwareAddr, b.mute || b.deaf })
	l.inner.Lock()
	loses := l.loses
	l.inner.Unlock()
	for _, other := range l.boards {
		lost := cut || scene.Lost(loses, b.number, other.number, false, rand.Float64) || scene.Lost(loses, other.number, b.number, false, rand.Float64)
		other.get(func() {
			if alone != nil && !slices.Equal(other.state.Link.HardwareAddr, alone) {
				return
			}
			if !lost && !slices.Equal(other.state.Link.HardwareAddr, mine) && other.state.Link.Up && !other.deaf && other.answersFor(addr) {
				owner = other.state.Link.HardwareAddr
			}
		})
	}
	return owner
}

// answersFor reports whether the kernel of a board answers for an address, as it does if the daemon stands still. It is called with
// the lock of the board.
func (b *fakeBoard) answersFor(addr netip.Addr) bool {
	switch {
	case b.mute:
		return false
	case addr == floating:
		return b.holding && !b.silent
	case addr == floating6:
		return b.holding6 && !b.silent
	default:
		return !b.dead && b.transport != nil && b.transport.local == addr
	}
}

// Ask is answered by a board that holds the address, for its own one by the kernel of a board, and by the hosts.
func (a *fakeAnnouncer) Ask(questions []netio.ARPQuestion) error {
	b := a.board
	questions = a.addressed(questions)
	askedAt := time.Since(b.lan.start)
	var mute bool
	b.get(func() { b.questions = append(b.questions, questions...); mute = b.mute })
	if mute {
		return nil
	}
	for _, q := range questions {
		answer := func() {
			time.AfterFunc(fakeLatency, func() { a.receive(netio.ARPAnswer{Addr: q.Addr, AskedAt: askedAt}) })
		}
		b.lan.later(b, pathARP, func(other *fakeBoard) {
			if q.Addr == floating && other.answersFor(floating) && slices.Equal(q.To, other.state.Link.HardwareAddr) {
				answer()
			}
			if q.To == nil && !other.dead && !other.mute && slices.ContainsFunc(other.state.Link.Addrs, func(p netip.Prefix) bool { return p.Addr() == q.Addr }) {
				answer()
			}
		})
		time.AfterFunc(fakeLatency, func() {
			b.lan.mu.Lock()
			defer b.lan.mu.Unlock()
			if slices.Contains(b.lan.hosts, q.Addr) {
				answer()
			}
		})
	}
	return nil
}

// addressed fills in who has announced the address last, as netio.Announcer does.
func (a *fakeAnnouncer) addressed(questions []netio.ARPQuestion) (all []netio.ARPQuestion) {
	a.board.get(func() {
		for _, q := range questions {
			if q.ToAnnouncer {
				q.To = a.holder
			}
			same := func(p netio.ARPQuestion) bool { return p.Addr == q.Addr && slices.Equal(p.To, q.To) }
			if (!q.ToAnnouncer || q.To != nil) && !slices.ContainsFunc(all, same) {
				all = append(all, q)
			}
		}
	})
	return all
}

func (a *fakeAnnouncer) Resolve(addr netip.Addr) error {
	a.board.get(func() { a.board.resolved = append(a.board.resolved, addr) })
	return nil
}

// receive gives the board an answer, unless it is deaf.
func (a *fakeAnnouncer) receive(answer netio.ARPAnswer) {
	var answered func(netio.ARPAnswer)
	a.board.get(func() {
		if !a.board.deaf {
			if answer.Addr != floating {
				a.board.frames++
			}
			answered = a.answered
		}
	})
	if answered != nil {
		answered(answer)
	}
}

func (a *fakeAnnouncer) Answers(heard func(netio.ARPAnswer)) {
	a.board.get(func() { a.answered = heard })
}

func (a *fakeAnnouncer) Doubt(d netio.Doubt) error {
	if i := slices.IndexFunc(d.Ignored, func(addr netip.Addr) bool { return !addr.Is4() }); i >= 0 {
		return fmt.Errorf("%v is no IPv4 address", d.Ignored[i]) // as a holder refuses it
	}
	a.board.get(func() { a.baseline = a.board.frames })
	return a.Ask(d.Questions)
}

// Heard counts what has reached the board from hosts that are no boards.
func (a *fakeAnnouncer) Heard() (frames uint64, senders []netio.Neighbour, err error) {
	a.board.get(func() { frames = a.board.frames - a.baseline })
	return frames, nil, nil
}

func (a *fakeAnnouncer) Calm() error { return nil }

// neighbours are the hosts, of which the first is the gateway.
func (l *fakeLAN) neighbours(int) (n netio.Neighbours, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, host := range l.hosts {
		n.Hosts = append(n.Hosts, netio.Neighbour{Addr: host, MAC: net.HardwareAddr{2, 0, 0, 0, 1, byte(i)}})
	}
	if len(l.hosts) > 0 {
		n.Gateway = l.hosts[0]
	}
	return n, nil
}
