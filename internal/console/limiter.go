package console

import (
	"sync"
	"time"
)

// pace lets so many through at once, and after that one at a time. It is the generic cell rate algorithm
// (ITU-T I.371): all that has to be remembered is one point in time.
type pace struct {
	burst int
	every time.Duration
}

// turn is when the next one is let through, given what was remembered, and what to remember then.
func (p pace) turn(full, now time.Time) (at, next time.Time) {
	if full.Before(now) {
		full = now
	}
	at, next = full.Add(-time.Duration(p.burst-1)*p.every), full.Add(p.every)
	if at.Before(now) {
		at = now
	}
	return at, next
}

// turns say when whoever has connected is served: each user at one pace, and all together at another one. So
// whoever asks too fast waits, and costs the daemon nothing meanwhile.
type turns struct {
	each, all pace
	patience  time.Duration // whoever would have to wait for longer has no turn

	users map[uint32]time.Time
	total time.Time
}

// usersMax is how many users are remembered until those are forgotten whom it does not change. All together
// are not let through at such a pace that more than a few hundred could count.
const usersMax = 64

// next is when a user has his turn who connects now. It is false if that would be too late.
func (t *turns) next(user uint32, now time.Time) (at time.Time, ok bool) {
	at, his := t.each.turn(t.users[user], now)
	free, total := t.all.turn(t.total, now)
	if at.Before(free) {
		at = free
	}
	if at.Sub(now) > t.patience {
		return at, false
	}
	if t.users == nil {
		t.users = make(map[uint32]time.Time)
	}
	if len(t.users) >= usersMax {
		for id, full := range t.users {
			if full.Before(now) {
				delete(t.users, id)
			}
		}
	}
	t.users[user], t.total = his, total
	return at, true
}

// room is how many there may be: in all, and of each user.
type room struct{ all, each int }

// places are those of the connections that are served.
type places struct {
	connections room
	streams     room
	hooks       room // streams beyond all others, for those on whom others depend

	mu    sync.Mutex
	taken []*place // the oldest first
}

// place is one of them.
type place struct {
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

// take gives a connection a place, for which somebody else may have to go: of a user who has all the places that one
// may have, the oldest that has asked nothing; and if all places are taken, one of the user who has most of
// them, though it may have asked. So nobody is kept out by one user. It is false if there is no place.
func (p *places) take(at *place) bool {
	goes, ok := p.makeRoom(at)
	if goes != nil {
		goes.hangUp()
	}
	return ok
}

func (p *places) makeRoom(at *place) (goes *place, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	goes, ok = p.connections.find(p.taken, at.user, func(old *place) bool { return !old.asked && at.since.Sub(old.since) >= young })
	if ok {
		p.remove(goes)
		p.taken = append(p.taken, at)
	}
	return goes, ok
}

// ask notes that the request of a connection has arrived.
func (p *places) ask(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.asked = true
}

// follow makes a stream of a connection. It is false if there are too many.
func (p *places) follow(at *place, kind streamKind) bool {
	goes, ok := p.stream(at, kind)
	if goes != nil {
		goes.hangUp()
	}
	return ok
}

func (p *places) stream(at *place, kind streamKind) (goes *place, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	streams := p.of(kind)
	goes, ok = p.roomFor(kind).find(streams, at.user, func(*place) bool { return false }) // none is silent
	if ok {
		p.remove(goes)
		at.kind = kind
	}
	return goes, ok
}

// roomFor is for how many streams of a kind there is room.
func (p *places) roomFor(kind streamKind) room {
	if kind == hookStream {
		return p.hooks
	}
	return p.streams
}

// of returns the connections of a kind. p.mu is held.
func (p *places) of(kind streamKind) (found []*place) {
	for _, at := range p.taken {
		if at.kind == kind {
			found = append(found, at)
		}
	}
	return found
}

// leave gives a place back.
func (p *places) leave(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(at)
}

// remove removes a place, if it is there. p.mu is held.
func (p *places) remove(at *place) {
	for i, old := range p.taken {
		if old == at {
			p.taken = append(p.taken[:i], p.taken[i+1:]...)
			return
		}
	}
}

// find looks for room for one more of a user. goes is who has to go for that, or nil.
func (r room) find(taken []*place, user uint32, mayGo func(*place) bool) (goes *place, ok bool) {
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
		goes = oldest(taken, most, func(*place) bool { return true })
	}
	return goes, true
}

// oldest returns the oldest connection of a user that may go, or nil.
func oldest(taken []*place, user uint32, mayGo func(*place) bool) *place {
	for _, at := range taken {
		if at.user == user && mayGo(at) {
			return at
		}
	}
	return nil
}
