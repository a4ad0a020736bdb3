package console

import (
	"sync"
	"time"
)

// room is how many there may be: in all, and of each user.
type room struct{ all, each int }

// seats are the connections that are served.
type seats struct {
	connections room
	streams     room
	hooks       room // streams beyond all others, for those on whom others depend

	mu    sync.Mutex
	taken []*seat // the oldest first
}

// seat is one of them.
type seat struct {
	user   uint32
	since  time.Time
	asked  bool // its request has arrived, so it is not silent
	kind   streamKind
	hangUp func()
}

// streamKind says whether a connection is a stream of events, and for whom.
type streamKind int

const (
	noStream streamKind = iota
	plainStream
	hookStream
)

// young is how long whoever has connected may take to ask before it has to go for somebody else. A program
// asks at once, but on a busy board it may have to wait for a processor.
const young = 200 * time.Millisecond

// sit gives a connection a seat, for which somebody else may have to go: of a user who has all the seats that one
// may have, the oldest that has asked nothing; and if all seats are taken, one of the user who has most of
// them, though it may have asked. So nobody is kept out by one user. It is false if there is no seat.
func (s *seats) sit(at *seat) bool {
	goes, ok := s.place(at)
	if goes != nil {
		goes.hangUp()
	}
	return ok
}

func (s *seats) place(at *seat) (goes *seat, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	goes, ok = s.connections.find(s.taken, at.user, func(old *seat) bool { return !old.asked && at.since.Sub(old.since) >= young })
	if ok {
		s.remove(goes)
		s.taken = append(s.taken, at)
	}
	return goes, ok
}

// ask notes that the request of a connection has arrived.
func (s *seats) ask(at *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at.asked = true
}

// follow makes a stream of a connection. It is false if there are too many.
func (s *seats) follow(at *seat, kind streamKind) bool {
	goes, ok := s.stream(at, kind)
	if goes != nil {
		goes.hangUp()
	}
	return ok
}

func (s *seats) stream(at *seat, kind streamKind) (goes *seat, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	streams := s.of(kind)
	goes, ok = s.roomFor(kind).find(streams, at.user, func(*seat) bool { return false }) // none is silent
	if ok {
		s.remove(goes)
		at.kind = kind
	}
	return goes, ok
}

// roomFor is for how many streams of a kind there is room.
func (s *seats) roomFor(kind streamKind) room {
	if kind == hookStream {
		return s.hooks
	}
	return s.streams
}

// of returns the connections of a kind. s.mu is held.
func (s *seats) of(kind streamKind) (found []*seat) {
	for _, at := range s.taken {
		if at.kind == kind {
			found = append(found, at)
		}
	}
	return found
}

// leave gives a seat back.
func (s *seats) leave(at *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(at)
}

// remove removes a seat, if it is there. s.mu is held.
func (s *seats) remove(at *seat) {
	for i, old := range s.taken {
		if old == at {
			s.taken = append(s.taken[:i], s.taken[i+1:]...)
			return
		}
	}
}

// find looks for room for one more of a user. goes is who has to go for that, or nil.
func (r room) find(taken []*seat, user uint32, mayGo func(*seat) bool) (goes *seat, ok bool) {
	count := map[uint32]int{}
	most := user
	for _, at := range taken {
		if count[at.user]++; count[at.user] > count[most] {
			most = at.user
		}
	}
	switch {
	case count[user] >= r.each:
		goes = oldest(taken, user, mayGo)
		return goes, goes != nil
	case len(taken) < r.all:
		return nil, true
	case count[most] <= count[user]+1: // then he would be the next one to go
		goes = oldest(taken, user, mayGo)
		return goes, goes != nil
	}
	if goes = oldest(taken, most, mayGo); goes == nil {
		goes = oldest(taken, most, func(*seat) bool { return true })
	}
	return goes, true
}

// oldest returns the oldest connection of a user that may go, or nil.
func oldest(taken []*seat, user uint32, mayGo func(*seat) bool) *seat {
	for _, at := range taken {
		if at.user == user && mayGo(at) {
			return at
		}
	}
	return nil
}
