package demo

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"

	"topdog/internal/daemon"
	"topdog/internal/lab/scene"
	"topdog/netio"
)

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
