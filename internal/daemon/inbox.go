package daemon

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"topdog/netio"
	"topdog/wire"
)

// inbox is where messages wait for the loop. The goroutines that read the sockets decode and verify each packet, and drop those
// that no board of this group has sent. Otherwise junk that comes faster than the loop handles it would take the places of
// heartbeats. The readers have time to verify each packet; the loop has not.
type inbox struct {
	messages chan *received // from the readers to the loop
	free     chan *received // back

	mu    sync.Mutex // of what follows
	codec *wire.Codec
	next  *received // the next packet is decoded into it
	// passedAt is when the last packet of each kind of junk was let through to the loop, which tells people of some
	// kinds, and the core of boards that speak another version.
	passedAt [wire.DropReasons]time.Duration
	// strangers limits the packets with a good tag that come from addresses where no board is known: they are from
	// new boards, or from somebody who plays recordings.
	strangers wire.Limit

	dropped  [wire.DropReasons]atomic.Uint64
	overRate atomic.Uint64 // of strangers
	overruns atomic.Uint64 // messages for which there was no room
}

// received is a packet on its way from a reader to the loop.
type received struct {
	message wire.Message    // verified; of no use if the packet was dropped, see wire.Codec.Decode
	drop    wire.DropReason // why the packet was not accepted
	from    netip.AddrPort
	path    netio.Path    // the way by which it came
	at      time.Duration // when it was read from its socket
	// elsewhere says that it has come by another interface than that of the sockets.
	elsewhere bool
}

const (
	// inboxSize is how many messages may wait for the loop. A group of 255 says
	// HELLO to a new board with at most that many CHALLENGEs at once.
	inboxSize = 256
	// junkEvery is how often one packet of a kind of junk reaches the loop. People are told once a minute.
	junkEvery = 100 * time.Millisecond
	// otherVersionEvery is the same for packets of another version. While a group is upgraded there may be as many
	// boards of that version as of this one, and the core takes note of each.
	otherVersionEvery = 5 * time.Millisecond
)

// strangerRate allows two packets each of 255 boards that start together.
var strangerRate = wire.Rate{Every: 2 * time.Millisecond, Burst: 2 * 255}

func newInbox(size int, codec *wire.Codec) *inbox {
	i := &inbox{messages: make(chan *received, size), free: make(chan *received, size), codec: codec, next: new(received)}
	for range size {
		i.free <- new(received)
	}
	return i
}

// use has the readers verify with other keys.
func (i *inbox) use(codec *wire.Codec) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.codec = codec
}

// deliver is given each datagram by a reader of the sockets. It never blocks: junk, and what does not fit, is dropped and
// counted, like what does not fit into a socket's buffer.
func (i *inbox) deliver(d netio.Datagram) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.next
	r.drop = i.codec.Decode(&r.message, d.Data).Reason
	if !i.passes(r.drop, &d) {
		return
	}
	select {
	case i.next = <-i.free:
	default:
		i.overruns.Add(1)
		return
	}
	r.from, r.path, r.at, r.elsewhere = d.From, d.Path, d.At, d.Elsewhere
	i.messages <- r // never blocks: there are as many places as messages, next aside
}

// passes reports whether the loop shall see a packet. It counts the others.
func (i *inbox) passes(drop wire.DropReason, d *netio.Datagram) bool {
	switch {
	case drop == wire.Accepted && !d.Known && !i.strangers.Allow(d.At, strangerRate):
		i.overRate.Add(1)
		return false
	case drop == wire.Accepted:
		return true
	}
	every := junkEvery
	if drop == wire.OtherVersion {
		every = otherVersionEvery
	}
	if last := i.passedAt[drop]; last == 0 || d.At-last >= every {
		i.passedAt[drop] = d.At
		return true
	}
	i.dropped[drop].Add(1)
	return false
}

// recycle gives a message back to the readers.
func (i *inbox) recycle(r *received) { i.free <- r }

// clear forgets what waits for the loop.
func (i *inbox) clear() {
	for len(i.messages) > 0 {
		i.recycle(<-i.messages)
	}
}
