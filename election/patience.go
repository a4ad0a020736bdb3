package election

import (
	"time"

	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// allow tells the detector which grace the leader has that this board watches.
func (c *Core) allow() { c.detector.Allow(c.grace.Allowed(c.leader != wire.Nobody)) }

// allowAnother is for a board that has another leader than before, leads itself, or has none.
func (c *Core) allowAnother() {
	if c.role == Leader {
		c.grace.Lead(c.now)
	} else {
		c.grace.Follow()
	}
	c.allow()
}

// announceGrace returns the grace for a message from which the others count the time until
// the next heartbeat.
func (c *Core) announceGrace() time.Duration {
	announced := c.grace.Announce(c.now)
	c.allow()
	return announced
}

// wishSoon has a HELLO tell the leader soon that a longer grace is needed.
func (c *Core) wishSoon() { c.hello = c.hello.Before(c.now + resignSettles) }

// needGrace takes in that a leader would have kept the lead with a grace of that length, and
// not with a shorter one.
func (c *Core) needGrace(needed time.Duration, l silence.Lesson) {
	if c.grace.Need(c.now, needed, l) {
		c.notifyPatience()
	}
}

// notifyPatience tells people of a longer grace, if this board announces it.
func (c *Core) notifyPatience() {
	if l := c.grace.Lesson(); c.role == Leader {
		c.notify(Notice{Kind: NoticePatience, Board: l.Board, grace: c.grace.Learned(), lesson: l})
	}
}

// answeredLate is for a candidate whose leader lives: it reminds the leader of a grace that
// was needed. A candidate that stood still itself knows nothing of that.
func (c *Core) answeredLate() {
	late := c.detector.Age(c.now) - c.cfg.Interval
	if c.suspectsLeader() && !c.lastLeader.forgiven && c.grace.Remind(c.now, late) {
		c.wishSoon()
	}
}

// hearWish receives what a HELLO wishes for.
func (c *Core) hearWish(m *wire.Message) {
	if want := m.Hello.Grace; c.role == Leader && want > 0 &&
		c.grace.Wish(c.now, want, silence.Lesson{Kind: silence.LessonWished, Board: m.Sender}) {
		c.notifyPatience()
	}
}

// overslept returns by how much this leader is late for its own heartbeat; 0 if it is not, or if
// nobody is there who could take over. The first heartbeat does not count: to acquire the address
// takes its time, and happens once.
func (c *Core) overslept() (late time.Duration) {
	if c.role != Leader || !c.leading.heartbeat.Reached(c.now) || c.leading.sentAt == c.leading.since {
		return 0
	}
	if _, ok := c.Successor(c.now); !ok {
		return 0
	}
	return c.now - c.leading.heartbeat.At
}

// learnOverslept learns from that. This board may have lost the lead by then, or may not: a lease
// that is over is reason enough.
func (c *Core) learnOverslept(late time.Duration) {
	if late > 0 {
		c.needGrace(lease.GraceFor(late), silence.Lesson{Kind: silence.LessonOverslept, Board: c.cfg.ID, Late: late})
	}
}
