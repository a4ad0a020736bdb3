package console

import "time"

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
