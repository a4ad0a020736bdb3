package election

import (
	"fmt"
	"time"
	"topdog/wire"
)

// Every takeover from a leader that was alive is known as such afterwards. Then the group
// learns a longer grace, which would have been enough:
//
//   - A leader that stood still finds out, when it runs again, by how much it is too late. If
//     it still leads it announces a longer grace at once. Else it wishes for one in its HELLO.
//   - A leader whose frames did not arrive for a while cannot know. The board that has replaced
//     it does: it hears that board lead on.
//
// A leader grants the longest grace that any board wishes for, if its own patience allows it.
// What took longer than that was replaced rightly. So was a leader whose carrier was gone: it
// does not lead on, so nobody learns from it.
//
// A longer grace makes every takeover from a dead leader slower, so it is halved as long as
// nothing happens that half of it would not have been enough for.

// patience is what this board has learned about the grace that the group needs. It outlives
// roles and leaders: a new leader goes on with it.
type patience struct {
	learned time.Duration // the grace; 0 if nothing was learned
	halveAt Instant       // unless a leader finds until then that it is still needed
	lesson  Lesson
	granted bool          // the leader of this board has announced what it has learned
	told    bool          // that leader was told that it has not
	remind  time.Duration // of what was needed of late, in the next HELLO; 0 if there is nothing to tell
}

// Lesson is from what a board has learned.
type Lesson struct {
	Kind  LessonKind
	Board wire.ID       // that was late, that wishes for more, or that has announced it
	Late  time.Duration // by how much it was, if this board has measured that
	At    Instant
}

// LessonKind says how a board has learned.
type LessonKind uint8

// The kinds of lessons.
const (
	LessonNone LessonKind = iota
	LessonOverslept
	LessonReplaced
	LessonWished
	LessonAnnounced
	lessonCount
)

// lessons are the identifiers, which are part of the JSON that docs/status.md describes.
var lessons = [lessonCount]string{
	LessonNone: "none", LessonOverslept: "overslept", LessonReplaced: "replaced_alive",
	LessonWished: "wished", LessonAnnounced: "announced",
}

func (k LessonKind) String() string { return name(lessons[:], uint8(k), "lesson") }

// Describe says for people what happened, with the name of the board.
func (l *Lesson) Describe(board string) string {
	switch l.Kind {
	case LessonOverslept:
		return fmt.Sprintf("%s stood still while it led, and was late by %v", board, brief(l.Late))
	case LessonReplaced:
		return fmt.Sprintf("%s was replaced although it was alive; it was heard again after %v", board, brief(l.Late))
	case LessonWished:
		return board + " has asked for it"
	case LessonAnnounced:
		return board + " has announced it"
	default:
		return "nothing was learned"
	}
}

// brief rounds a time as far as a person cares.
func brief(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// patienceRule has the constants of what is learned. docs/figures.md shows what each costs
// and saves; it is a variable for the test that measures that.
var patienceRule = struct {
	// factor is how many times its lateness a leader is allowed next time. What stands still,
	// or is lost, begins at any moment before the heartbeat is due: on average the
	// lateness is half of it.
	factor float64
	// least is how many times the default grace a lesson is worth at least, if the patience allows
	// that. A lateness of 8 ms may be the end of a pause of 30 ms.
	least int
	// halfLife is how long nothing must happen until the grace is halved.
	halfLife time.Duration
	// look is by how much the silence grows before a new leader says once more to the one that
	// it has replaced that it leads. If that board lives it answers, and the silence is known.
	look float64
}{factor: 2, least: 4, halfLife: time.Hour, look: 1.5}

// patienceLimit is the longest grace that this board wishes for or grants.
func (c *Core) patienceLimit() time.Duration {
	if c.cfg.Patience > 0 {
		return c.cfg.Patience
	}
	return DefaultPatience(c.cfg.Interval)
}

// DefaultPatience is the longest grace that is learned if none is configured.
func DefaultPatience(interval time.Duration) time.Duration {
	return max(patienceIntervals*interval, patienceMin)
}

// Nobody waits for a leader for longer than for five heartbeats. A machine that is too small
// for what it does stands still for a quarter of a second at most, however short the interval is.
const (
	patienceIntervals = 5
	patienceMin       = 250 * time.Millisecond
)

// needGrace takes in that a leader would have kept the lead with a grace of that length, and
// not with a shorter one.
func (c *Core) needGrace(needed time.Duration, l Lesson) {
	c.keepGrace(needed)
	if needed > max(c.patience.learned, c.defaultGrace()) {
		want := time.Duration(patienceRule.factor * float64(needed))
		if least := wire.RoundGrace(time.Duration(patienceRule.least) * c.defaultGrace()); least <= c.patienceLimit() {
			want = max(want, least)
		}
		c.learnGrace(want, l)
	}
}

// keepGrace keeps what was learned for another half-life, if half of it would not have been
// enough.
func (c *Core) keepGrace(needed time.Duration) (kept bool) {
	if kept = c.patience.learned > 0 && needed > c.patience.learned/2; kept {
		c.patience.halveAt = c.now + patienceRule.halfLife
	}
	return kept
}

// learnGrace takes in that a longer grace is wanted.
func (c *Core) learnGrace(want time.Duration, l Lesson) {
	want = wire.RoundGrace(want)
	if want > c.patienceLimit() || want <= max(c.patience.learned, c.defaultGrace()) {
		return
	}
	l.At = c.now
	c.patience = patience{learned: want, halveAt: c.now + patienceRule.halfLife, lesson: l}
	if c.role == Leader {
		c.notify(Notice{Kind: NoticePatience, Board: l.Board, grace: want, lesson: l})
	}
}

// halvePatience forgets half of what was learned, if its time is over.
func (c *Core) halvePatience() {
	p := &c.patience
	if p.learned == 0 || c.now < p.halveAt {
		return
	}
	p.learned, p.halveAt = p.learned/2, c.now+patienceRule.halfLife
	if p.learned <= c.defaultGrace() {
		*p = patience{}
	}
}

// followPatience compares what the leader announces with what this follower has learned.
func (c *Core) followPatience(announced time.Duration) {
	p := &c.patience
	if !p.granted {
		c.halvePatience() // else the leader does, which knows whether it is still needed
	}
	known := max(p.learned, c.defaultGrace())
	switch {
	case announced > c.patienceLimit(): // this board would not do that
	case announced > known:
		*p = patience{learned: announced, lesson: Lesson{Kind: LessonAnnounced, Board: c.leader, At: c.now}}
		p.halveAt = c.now + patienceRule.halfLife
		p.granted, p.told = true, true
	case announced == known:
		p.granted = true
	case p.granted: // the leader has halved it
		p.learned, p.halveAt = announced, c.now+patienceRule.halfLife
	}
	if !p.granted && !p.told && p.learned > 0 {
		p.told = true
		c.hello = c.hello.Before(c.now + resignSettles)
	}
}

// wishedGrace is what this board's HELLO wishes for; 0 if nothing.
func (c *Core) wishedGrace() time.Duration {
	switch {
	case c.role != Follower || c.grace.heard == 0:
		return 0
	case !c.patience.granted:
		return c.patience.learned
	default:
		return c.patience.remind
	}
}

// answeredLate is for a candidate whose leader lives: it reminds the leader of a grace that
// was needed. A candidate that stood still itself knows nothing of that.
func (c *Core) answeredLate() {
	late := c.detector.Age(c.now) - c.cfg.Interval
	if c.suspectsLeader() && !c.lastLeader.forgiven && late <= c.patience.learned && c.keepGrace(late) {
		c.patience.remind = late
		c.hello = c.hello.Before(c.now + resignSettles)
	}
}

// hearWish receives what a HELLO wishes for.
func (c *Core) hearWish(m *wire.Message) {
	if want := m.Hello.Grace; c.role == Leader && want > 0 {
		c.keepGrace(want)
		c.learnGrace(want, Lesson{Kind: LessonWished, Board: m.Sender})
	}
}

// overslept returns by how much this leader is late for its own heartbeat; 0 if it is not, or if
// nobody is there who could take over. The first heartbeat does not count: to acquire the address
// takes its time, and happens once.
func (c *Core) overslept() (late time.Duration) {
	if c.role != Leader || !c.leading.heartbeat.Reached(c.now) || c.leading.sentAt == c.leading.since {
		return 0
	}
	if _, ok := c.successor(); !ok {
		return 0
	}
	return c.now - c.leading.heartbeat.At
}

// learnOverslept learns from that. This board may have lost the lead by then, or may not: a lease
// that is over is reason enough.
func (c *Core) learnOverslept(late time.Duration) {
	if late > 0 {
		c.needGrace(leaseGrace(late), Lesson{Kind: LessonOverslept, Board: c.cfg.ID, Late: late})
	}
}
