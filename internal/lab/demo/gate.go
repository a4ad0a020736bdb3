package demo

import (
	"errors"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"topdog/gpio"
	"topdog/internal/daemon"
	"topdog/internal/lab/scene"
	"topdog/netio"
)

// gate is where a daemon waits while its process stands still, as after SIGSTOP. All boards are in
// this process, so the process itself cannot be stopped. Instead, whatever the daemon reads or does
// passes the gate: the clock, which the loop reads before each event, the sockets, the address and the light. The
// zero value is open.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil while it is open
	ended  bool          // the process is no more
}

// shut has everybody wait.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
}

// open lets everybody pass.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

// end opens the gate for a process that is no more: it may finish, and nothing that it does happens.
func (g *gate) end() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.open()
}

// pass returns when the gate is open. It reports false if the process is no more.
func (g *gate) pass() bool {
	for {
		g.mu.Lock()
		closed, ended := g.closed, g.ended
		g.mu.Unlock()
		if closed == nil {
			return !ended
		}
		<-closed
	}
}

// gated has a daemon wait at a gate. Its fence and its dead man's switch do not: they are the
// kernel's, and a process of its own.
func gated(p daemon.Platform, g *gate) daemon.Platform {
	p.Now = func() time.Duration {
		g.pass()
		return netio.Now()
	}
	openTransport, openAddresses, openLED := p.OpenTransport, p.OpenAddresses, p.OpenLED
	p.OpenTransport = func(iface string, local netip.Addr) (daemon.Transport, error) {
		t, err := openTransport(iface, local)
		// Datagrams that nobody reads wait in their socket, as those of a process that stands still.
		return passing{t, func(netip.Addr) bool { return g.pass() }, g.pass}, err
	}
	p.OpenAddresses = func(iface string, addresses []netip.Prefix) (daemon.Addresses, error) {
		h, err := openAddresses(iface, addresses)
		return gatedAddresses{h, g}, err
	}
	p.OpenLED = func(spec gpio.Spec) (gpio.LED, error) {
		led, err := openLED(spec)
		return gatedLED{led, g}, err
	}
	return p
}

// gatedAddresses is an address that a process which stands still neither acquires nor releases.
type gatedAddresses struct {
	daemon.Addresses
	gate *gate
}

func (h gatedAddresses) Acquire() error {
	if !h.gate.pass() {
		return errKilled
	}
	return h.Addresses.Acquire()
}

func (h gatedAddresses) Renew() (restored bool, err error) {
	if !h.gate.pass() {
		return false, errKilled
	}
	return h.Addresses.Renew()
}

func (h gatedAddresses) Release() error {
	h.gate.pass()
	return h.Addresses.Release()
}

// errKilled is what a daemon meets that was killed and has not noticed yet.
var errKilled = errors.New("the daemon was killed")

// gatedLED is a light that stays as it was while the process stands still.
type gatedLED struct {
	gpio.LED
	gate *gate
}

func (l gatedLED) Set(on bool) error {
	if !l.gate.pass() {
		return nil
	}
	return l.LED.Set(on)
}

// filters are what a LAN loses, for whoever reads or sends meanwhile. The zero value loses nothing.
type filters struct {
	certain atomic.Pointer[[]scene.Filter]
	shares  atomic.Pointer[[]scene.Filter] // of the packets between boards, by chance
}

func (f *filters) set(all []scene.Filter) {
	certain, shares := sharesApart(all)
	f.certain.Store(&certain)
	f.shares.Store(&shares)
}

// sharesApart are the filters that lose everything, and those that lose a share.
func sharesApart(all []scene.Filter) (certain, shares []scene.Filter) {
	for _, f := range all {
		if f.Share > 0 {
			shares = append(shares, f)
		} else {
			certain = append(certain, f)
		}
	}
	return certain, shares
}

// nowhere is a machine that no filter names: what does not come from a board there is lost on its way to all.
const nowhere = math.MinInt

// lost reports whether nothing comes from one machine to another.
func (f *filters) lost(from, to int) bool {
	all := f.certain.Load()
	return all != nil && scene.Lost(*all, from, to, false, nil)
}

// draw says whether the next packet between two boards is lost by chance.
func (f *filters) draw() bool {
	all := f.shares.Load()
	return all != nil && scene.Lost(*all, nowhere, nowhere, false, rand.Float64)
}

// passing is a transport that hears and says only what it may.
type passing struct {
	daemon.Transport
	hears  func(from netip.Addr) bool
	speaks func() bool
}

func (p passing) Serve(deliver func(netio.Datagram)) error {
	return p.Transport.Serve(func(d netio.Datagram) {
		if p.hears(d.From.Addr().Unmap()) {
			deliver(d)
		}
	})
}

// Multicast accepts a packet that may not leave, and throws it away, as the kernel does.
func (p passing) Multicast(b []byte) error {
	if !p.speaks() {
		return nil
	}
	return p.Transport.Multicast(b)
}

// Broadcast is as Multicast.
func (p passing) Broadcast(b []byte) error {
	if !p.speaks() {
		return nil
	}
	return p.Transport.Broadcast(b)
}

// Unicast is as Multicast.
func (p passing) Unicast(b []byte, to netip.AddrPort) error {
	if !p.speaks() {
		return nil
	}
	return p.Transport.Unicast(b, to)
}
