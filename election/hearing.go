package election

import (
	"time"
	"topdog/election/clock"
	"topdog/election/roster"
	"topdog/wire"
)

// A leader whose port receives nothing any more is heard by all, so nobody deposes it, and
// nobody can reach its address. It finds that out by itself: its followers' HELLOs fail to come.

// hearing is what a leader does to find out whether its port still receives.
type hearing struct {
	since Instant        // when it began to ask
	asked int            // how often it has
	again clock.Deadline // it asks once more, or has asked often enough
}

const (
	// hearingQuestions is how often a leader asks before it takes its port for dead: at 40 %
	// loss, three followers and a witness that answer are all unheard less than once in a million times.
	hearingQuestions = 4
	// helloLate is how late the HELLOs of the followers may be at least, for boards that are slow.
	helloLate = 100 * time.Millisecond
)

// hearsFollowers reports whether the followers were heard of late. A message may fail to come
// because its sender has gone; so this board doubts itself only when all are missed, and if
// it could have heard anybody else: one of two boards alone never does.
func (c *Core) hearsFollowers() bool {
	due, live := c.roster.NextHello(c.now)
	due = max(due, c.evidence.at+roster.HelloFloor)
	others := live > 1 || c.evidence.foreign && live > 0
	return !others || c.now < due+max(c.cfg.Interval, helloLate)
}

// checkHearing is called with every scheduled heartbeat, so that nobody is woken for it. With
// votes a leader misses the majority before that.
func (c *Core) checkHearing() {
	if c.hooks.electorate == nil && !c.leading.hearing.again.Set && !c.paused() && !c.hearsFollowers() {
		c.leading.hearing = hearing{since: c.now}
		c.askHearing()
	}
}

// askHearing asks the followers and the LAN, and believes the silence when that was often enough.
func (c *Core) askHearing() {
	h := &c.leading.hearing
	switch {
	case c.evidence.at > h.since:
		return
	case h.asked == hearingQuestions:
		c.goneDeaf()
		return
	}
	h.asked++
	c.multicast(wire.Message{
		Header: wire.Header{Type: wire.TypeQuery},
		Query:  wire.Query{Purpose: wire.PurposeJoin, Round: uint8(h.asked)},
	})
	c.askLAN()
	h.again = clock.Due(c.now + max(c.cfg.Interval/hearingQuestions, c.answerWithin()))
}

// goneDeaf releases the address. The others may still hear this board, so it names one
// successor; it could not hear the answer, and to name another one would make two holders.
func (c *Core) goneDeaf() {
	c.handOver(wire.Nobody, ReasonDeaf, 1)
}

// answerLeader tells a leader that has asked whether its port receives that it does. Some do,
// and not all.
func (c *Core) answerLeader(m *wire.Message) {
	if c.succession() < witnesses {
		c.sayHello(m.Sender)
	}
}
