package netio

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/bpf"
)

// A flood of ARP that concerns this board would cost it a core: somebody who speaks as a
// floating address thirty thousand times a second, or replies to what nobody has asked. So
// packets have a rate. Beyond it the kernel drops all but the replies that this board waits
// for, and lets the rest in again a moment later. A rival is then heard some times a second,
// which is more often than this board answers one.
const (
	// arpBurst is how many packets may come at once: two for each floating address when a
	// leader announces them, and the answers of some neighbours.
	arpBurst = 128
	// arpInterval is the time of one packet in the long run: 50 packets a second, of which
	// each wakes the program.
	arpInterval = 20 * time.Millisecond
	// arpPause is for how long the rest is dropped.
	arpPause = 100 * time.Millisecond
)

// arpRate is the rate of packets, as the generic cell rate algorithm of ITU-T I.371 keeps it.
type arpRate struct {
	due time.Duration // when the next packet would come at the rate
}

// exceeded counts a packet, and reports whether there were too many.
func (r *arpRate) exceeded(now time.Duration) bool {
	r.due = max(r.due, now) + arpInterval
	return r.due-now > arpBurst*arpInterval
}

// throttle counts a packet that was read. It is called with reading locked.
func (a *Announcer) throttle(fd uintptr) {
	if len(a.holders) == 0 || a.throttled || !a.rate.exceeded(Now()) {
		return // what was in the queue before does not count
	}
	a.throttled = true
	a.passAwaited(fd)
	time.AfterFunc(arpPause, a.passAll)
}

// passAwaited has the kernel drop all but the replies that this board waits for. Without that
// filter, which the kernel may have no memory for, the flood goes on.
func (a *Announcer) passAwaited(fd uintptr) {
	_ = setFilter(int(fd), awaitedFilter(a.awaited()))
}

// awaited are the addresses that this board has asked and that have not answered.
func (a *Announcer) awaited() []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	awaited := slices.Collect(maps.Keys(a.asked))
	for p := range a.probes {
		awaited = append(awaited, p.addr)
	}
	return awaited
}

// passAll ends the dropping. It is tried again if the kernel refuses it.
func (a *Announcer) passAll() {
	a.reading.Lock()
	defer a.reading.Unlock()
	_ = a.socket.Control(func(fd uintptr) { // else it is closed
		if setFilter(int(fd), a.filter()) != nil {
			time.AfterFunc(arpPause, a.passAll)
			return
		}
		a.throttled = false
	})
}

// filter is the filter of all times without a flood.
func (a *Announcer) filter() []bpf.Instruction {
	addresses := slices.Collect(maps.Keys(a.holders))
	if a.local.IsValid() {
		addresses = append(addresses, a.local)
	}
	return arpFilter(addresses)
}

// renewAwaited tells the kernel of new questions. It is called with reading locked.
func (a *Announcer) renewAwaited() {
	if a.throttled {
		_ = a.socket.Control(a.passAwaited) // else it is closed
	}
}
