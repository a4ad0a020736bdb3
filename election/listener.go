package election

import (
	"time"
	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

// listenerState is that of a listener.
type listenerState struct {
	end   clock.Deadline // it has listened long enough
	query clock.Deadline // it asks once more who leads
}

// coldStart is what a board knows that has begun to listen and not found a leader yet. It
// lasts until there is one, whatever the board becomes meanwhile.
type coldStart struct {
	pending bool
	// retry is for how long the board listens after the next probe that finds the address in
	// use; it doubles. 0 means that no probe has found that.
	retry time.Duration
	since Instant // when a probe found that first
	taken bool    // this board claims nevertheless, see Config.TakeInUse
}

// listenHalves is how many half intervals a board listens before it speaks.
// Every half interval it asks who leads, so even at 40 % loss it misses a
// living leader less than once in a thousand times.
const listenHalves = 5

// probeRetryMin and probeRetryMax bound how long a board waits after it found
// the address in use; the kernel removes a frozen holder's address within 2.5 s.
const (
	probeRetryMin = time.Second
	probeRetryMax = 10 * time.Second
)

// TakeInUseAfter is for how long a foreign machine must have had the address to be ignored. A board
// that is merely unheard, or an address that a frozen holder's kernel still has, is found out by then.
const TakeInUseAfter = 10 * time.Second

// becomeListener is for a board that must hear before it speaks: it has just
// started, its link has just come up, or a conflict has just ended.
func (c *Core) becomeListener(reason Reason, window time.Duration) {
	c.become(Listener, wire.Nobody, reason)
	c.coldStart.pending = true
	c.asking.forget()
	_, after := c.inquiry()
	c.listening = listenerState{end: clock.Due(c.now + window), query: clock.Due(c.now + after)}
	c.hello = clock.Due(c.now)
}

// listenWindow is how long a board hears before it speaks: for so long that a
// leader which died just before is missed, and the election of its successor is
// over. heir misses it within an interval and asks for a few milliseconds.
func (c *Core) listenWindow() time.Duration {
	window := listenHalves * c.cfg.Interval / 2
	if c.detectorKind() == silence.DetectorAsk {
		return window
	}
	return max(window, c.suspectAfter()+c.algorithm.ElectionDuration()+c.cfg.Interval/2)
}

// suspectAfter is for how long a leader must be silent to be suspected.
func (c *Core) suspectAfter() time.Duration { return c.cfg.Interval + c.detector.Quality().Margin }

// listenerHearsLeader makes a listener that has found a leader its follower.
func (c *Core) listenerHearsLeader(m *wire.Message) {
	if m.Reply && c.asking.count == 1 {
		c.timeAnswer() // of several queries, the first may have come before anybody led
	}
	c.becomeFollower(m.Sender, ReasonHeardLeader)
	if c.hooks.leader != nil {
		c.hooks.leader.Joined()
	}
}

// sendQuery asks who leads.
func (c *Core) sendQuery() {
	audience, _ := c.inquiry()
	c.asking.ask(c.now)
	m := wire.Message{
		Header: wire.Header{Type: wire.TypeQuery},
		Query:  wire.Query{Purpose: wire.PurposeJoin, Round: uint8(c.asking.count)},
	}
	if audience == nil {
		c.multicast(m) // to everybody, known or not
		if c.asking.count > 1 {
			c.sendFloating(m) // nobody has answered that
		}
	} else {
		c.tell(audience, m)
	}
	c.listening.query = clock.Due(c.now + c.queryInterval())
}

// queryInterval is the time until a listener asks once more. As long as a foreign
// machine has the address there is no hurry, and everybody listens.
func (c *Core) queryInterval() time.Duration {
	if c.coldStart.retry > 0 {
		return max(c.cfg.Interval/2, probeRetryMin)
	}
	return c.cfg.Interval / 2
}
