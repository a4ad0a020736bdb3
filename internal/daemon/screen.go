package daemon

import (
	"sync"
	"sync/atomic"
	"time"

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

	dropped [wire.DropReasons]atomic.Uint64
}

const (
	// junkEvery is how often one packet of a kind of junk reaches the loop. People are told once a minute.
	junkEvery = 100 * time.Millisecond
	// otherVersionEvery is the same for what boards of another version say. There may be as many as of this one
	// while a group is upgraded, and the core heeds each.
	otherVersionEvery = 5 * time.Millisecond
)

// use has the screen verify with other keys. The codec must not be used elsewhere.
func (s *screen) use(codec *wire.Codec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codec = codec
}

// passes reports whether the loop is to see a packet that was read at that time. It counts those that it is not.
func (s *screen) passes(datagram []byte, at time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	drop := s.codec.Check(datagram)
	if !drop.Dropped() {
		return true
	}
	every := junkEvery
	if drop.Reason == wire.OtherVersion {
		every = otherVersionEvery
	}
	if last := s.passedAt[drop.Reason]; last == 0 || at-last >= every {
		s.passedAt[drop.Reason] = at
		return true
	}
	s.dropped[drop.Reason].Add(1)
	return false
}
