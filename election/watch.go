package election

import (
	"errors"
	"fmt"
	"time"

	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

// Between two heartbeats nobody hears of the leader. So the board that comes next asks for what users care about, the floating
// address, more often than that: its owner sends ARP requests to the machine that has the address. The kernel of the leader answers,
// and its daemon has nothing to do with that. If answers fail to come, this board suspects the leader. What follows is the same as
// when a heartbeat is missed, but sooner: the leader is asked, the LAN is asked, and so is the address once more. Nobody
// takes over sooner than a grace after the answer that was missed.
//
// With votes nobody watches. The voters have promised the leader their support until after its next heartbeat, so it would
// bring nothing.

// watching is what a board remembers of the suspicions that its watch has led to.
type watching struct {
	pause  time.Duration // after the last one that was in vain
	vainAt Instant       // when that was
}

// A leader that lives, and whose address fails to answer, is suspected again and again. Each time costs some packets, and all
// boards must answer. So the watch pauses, for twice as long each time. It forgets that when it has led to nothing for a while.
const (
	watchPauseMin = time.Second
	watchPauseMax = time.Minute
)

// WatchState says why a board watches the address of its leader, or does not.
type WatchState uint8

// The states.
const (
	WatchOff     WatchState = iota // it is configured so, or the algorithm does not provide for it
	WatchVotes                     // the algorithm has votes
	WatchNotNext                   // another board comes next, or this board has no leader
	WatchPaused                    // it has led to suspicions in vain
	WatchRuns                      // it asks
	watchStateCount
)

var watchStates = [watchStateCount]string{
	WatchOff: "off", WatchVotes: "votes", WatchNotNext: "not_next", WatchPaused: "paused", WatchRuns: "runs",
}

// String returns the state for programs: it is part of the JSON that docs/status.md describes.
func (s WatchState) String() string { return name(watchStates[:], uint8(s), "state of the watch") }

// Watch returns the board whose address this board asks for, and how often; every is 0 if it asks for none. Its owner looks
// after every call. It tells the core what comes of it by AddressMissed and AddressReturned.
func (c *Core) Watch() (leader wire.ID, every time.Duration) {
	if c.WatchState() != WatchRuns {
		return wire.Nobody, 0
	}
	if c.cfg.Watch == 0 {
		return c.leader, DefaultWatch(c.cfg.Interval)
	}
	return c.leader, c.cfg.Watch
}

// WatchState says why this board watches the address of its leader, or does not.
func (c *Core) WatchState() WatchState {
	follows := (c.role == Follower || c.role == Candidate) && c.leader != wire.Nobody
	switch w := &c.watching; {
	case c.cfg.Watch == NoWatch || !c.definition.watches || c.detectorKind() != silence.DetectorAsk:
		if c.votes.needed() {
			return WatchVotes
		}
		return WatchOff
	case !follows || !c.rank().Eligible() || c.succession() > 0:
		return WatchNotNext
	case w.pause > 0 && c.now < w.vainAt+w.pause:
		return WatchPaused
	}
	return WatchRuns
}

// AddressMissed tells that the address that this board watches has answered nothing that it was asked since then.
func (c *Core) AddressMissed(now, since Instant) []Effect {
	c.enter(now)
	c.addressMissed(since)
	return c.effects
}

// addressMissed begins to suspect the leader. A heartbeat that was read after the question may have been sent before it. Then the
// leader is suspected when the next answer is due, unless the address has returned by then.
func (c *Core) addressMissed(since Instant) {
	_, every := c.Watch()
	switch {
	case every == 0 || c.role != Follower || c.named.Set || c.vouchedFor(): // a board that was named claims anyway, and sooner
	case c.detector.Missed(since):
		c.turn(ReasonAddressSilent)
	default:
		c.following.missed = clock.Due(c.now - c.detector.Age(c.now) + every)
	}
}

// AddressReturned tells that the address that this board watches answers again.
func (c *Core) AddressReturned(now Instant) []Effect {
	c.enter(now)
	c.evidence.at = c.now
	c.detector.Returned()
	c.following.missed = clock.Deadline{}
	if c.missesAddress() && c.now < c.detector.Freshness() {
		c.becomeFollower(c.leader, ReasonAddressReturned)
	}
	c.beginAnew()
	return c.effects
}

// missesAddress reports whether this board is a candidate because the address did not answer.
func (c *Core) missesAddress() bool {
	return c.role == Candidate && c.candidacy.cause == ReasonAddressSilent
}

// pauseWatch is called when a suspicion was in vain.
func (c *Core) pauseWatch() {
	w := &c.watching
	if c.now > w.vainAt+w.pause+watchPauseMax {
		w.pause = 0
	}
	w.pause, w.vainAt = min(max(2*w.pause, watchPauseMin), watchPauseMax), c.now
}

// MinWatch is as close as two questions to a watched address may follow each other: RoundTripMin, and time for the answer to
// be late.
const MinWatch = 2 * time.Millisecond

// NoWatch is the Config.Watch of a board that watches nobody.
const NoWatch time.Duration = -1

// DefaultWatch is how often the address of a leader is asked for that sends heartbeats at that interval. A hundred times a second
// costs the board that asks less than a hundredth of a core, and the LAN 200 frames of 64 bytes.
func DefaultWatch(interval time.Duration) time.Duration { return min(10*time.Millisecond, interval/2) }

// CheckWatch says what is wrong with the time between two questions to a watched address, where heartbeats come at that interval. The
// words follow the time, as in "1ms is less than 2ms".
func CheckWatch(watch, interval time.Duration) error {
	switch {
	case watch < MinWatch:
		return fmt.Errorf("is less than %v, in which an answer may come", MinWatch)
	case watch > interval/2:
		return errors.New("is more than half of the heartbeat interval, so it would gain nothing")
	}
	return nil
}
