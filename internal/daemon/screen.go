package daemon

import (
	"sync"
	"sync/atomic"
	"time"

	"topdog/netio"
	"topdog/wire"
)

// screen keeps from the inbox what no board of this group has sent. Else junk that comes faster than the loop
// handles it would take the places of heartbeats. It is used by the goroutines that read the sockets, which have
// time for a tag each: the loop has not.
type screen struct {
	mu    sync.Mutex // of what follows
	codec *wire.Codec
	// passedAt is when a packet of each kind of junk was let through last. The loop tells people of some, and the core
	// of boards that speak another version.
	passedAt [wire.DropReasons]time.Duration
	// strangers limits what a board of the group has signed some time, and what comes from an address where none is
	// known: it is a new board, or a recording.
	strangers wire.Limit

	dropped  [wire.DropReasons]atomic.Uint64
	overRate atomic.Uint64 // of strangers
}

const (
	// junkEvery is how often one packet of a kind of junk reaches the loop. People are told once a minute.
	junkEvery = 100 * time.Millisecond
	// otherVersionEvery is the same for what boards of another version say. There may be as many as of this one
	// while a group is upgraded, and the core heeds each.
	otherVersionEvery = 5 * time.Millisecond
)

// strangerRate allows two packets each of 255 boards that start together.
var strangerRate = wire.Rate{Every: 2 * time.Millisecond, Burst: 2 * 255}

// use has the screen verify with other keys. The codec must not be used elsewhere.
func (s *screen) use(codec *wire.Codec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codec = codec
}

// passes reports whether the loop is to see a packet. It counts those that it is not.
func (s *screen) passes(d *netio.Datagram) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	drop := s.codec.Check(d.Data)
	switch {
	case !drop.Dropped() && !d.Known && !s.strangers.Allow(d.At, strangerRate):
		s.overRate.Add(1)
		return false
	case !drop.Dropped():
		return true
	}
	every := junkEvery
	if drop.Reason == wire.OtherVersion {
		every = otherVersionEvery
	}
	if last := s.passedAt[drop.Reason]; last == 0 || d.At-last >= every {
		s.passedAt[drop.Reason] = d.At
		return true
	}
	s.dropped[drop.Reason].Add(1)
	return false
}
