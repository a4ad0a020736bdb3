package silence

import (
	"fmt"
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// DefaultGrace is the grace of a group that has learned nothing (see [Grace]). The grace is
// the least time between the moment at which a heartbeat was due and the earliest takeover by
// anybody. Two promises depend on it:
//
//   - A follower: Freshness, which is never before last + H + margin, and all of
//     Questions.Duration go by before anybody claims, and margin + duration ≥ G, where G is
//     what the leader has announced. last is when a heartbeat arrived, so last + H is not
//     before it was due to be sent. Where these change in between, heir waits for Earliest.
//   - The leader: late by more than G for its heartbeat, it doubts that it
//     still leads (see suspended), and its lease has ended before (see LeaseEnd). If it is
//     less late, nobody has taken over. That makes it safe to hold the address between
//     two heartbeats.
//
// So a leader whose lateness has caused a takeover always doubts before it goes on. To make
// takeovers faster, leaders must doubt earlier, and their leases must end earlier. Then a
// leader on a busy board loses the lead more often although it works.
//
// A tenth of the interval costs a tenth of the shortest possible outage; a tick is what
// a busy Linux kernel without real-time priorities needs to run a process that
// became ready.
func DefaultGrace(interval time.Duration) time.Duration { return max(Tick, interval/10) }

// Tick is that of a kernel with CONFIG_HZ=250.
const Tick = 4 * time.Millisecond

// Grace is how late a leader may be, as one board knows it.
//
// The grace is a value of the group. The leader announces it in every HEARTBEAT and
// COORDINATOR, and its lease has three quarters of it. The followers ask, claim and take
// turns by what their leader has announced.
//
// A follower claims no sooner than last + H + G, where last is when a heartbeat came and G
// what it announced (Earliest). A lease ends at sent + H + ¾ of the leader's own grace, where
// sent is not later than last. So a lease is over before a claim if the leader's own grace
// is at most G of the newest heartbeat that the claimant has heard. For that
//
//   - a longer grace is announced first. The lease gets it an interval later, when at least two
//     heartbeats have announced it: to have missed one of them does not matter.
//   - a shorter grace is first that of the lease. It is announced when the last longer lease is
//     over: an interval and the old grace later. A board that misses this is only slow.
//   - a follower that found its leader by another message has not heard what it announces. It
//     supposes the longest grace that it would grant itself.
//   - without a leader there is no lease, and the default is enough.
//
// A claimant that has missed the newest heartbeats claims by an older one, whatever the
// Grace is. Then it is not the lease that excludes a second holder.
//
// Every takeover from a leader that was alive is known as such afterwards. Then the group
// learns a longer grace, which would have been enough:
//
//   - A leader that stood still finds out, when it runs again, how late it is. If it still
//     leads, it announces a longer grace at once. Otherwise it wishes for one in its HELLO.
//   - A leader whose frames did not arrive for a while cannot know. The board that has replaced
//     it does: it hears that board lead on.
//
// A leader grants the longest grace that any board wishes for, within its own patience. A leader
// that was silent for longer than that was replaced rightly. So was one whose carrier was gone:
// it does not lead on, so nobody learns from it.
//
// A longer grace makes every takeover from a dead leader slower. So it is halved as long as
// nothing happens for which half of it would not have been enough.
type Grace struct {
	interval time.Duration
	Limit    time.Duration // the longest grace that this board wishes for or grants
	leads    bool
	follows  bool // another board leads

	heard time.Duration // what the leader of this board has announced; 0 is nothing yet
	// Announced is what this leader says. Its lease has three quarters of Lease.
	Announced, Lease    time.Duration
	raisedAt, loweredAt clock.Instant // when announced became longer, and when lease became shorter

	patience
}

// patience is what this board has learned about the grace that the group needs. It outlives
// roles and leaders: a new leader goes on with it.
type patience struct {
	Learned time.Duration // the grace; 0 if nothing was learned
	// HalveAt is when the grace is halved, unless a leader finds until then that it is still needed.
	HalveAt clock.Instant
	Lesson  Lesson        // from what it was learned
	granted bool          // the leader of this board has announced what it has learned
	told    bool          // that leader was told that it has not
	remind  time.Duration // of what was needed of late, in the next HELLO; 0 if there is nothing to tell
}

// Lesson is from what a board has learned.
type Lesson struct {
	Kind  LessonKind
	Board wire.ID       // that was late, that wishes for more, or that has announced it
	Late  time.Duration // by how much it was late, if this board has measured that
	At    clock.Instant
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

func (k LessonKind) String() string {
	if k < lessonCount {
		return lessons[k]
	}
	return fmt.Sprintf("lesson %d", uint8(k))
}

// Describe says for people what happened, with the name of the board.
func (l *Lesson) Describe(board string) string {
	late := l.Late.Round(100 * time.Microsecond) // as far as a person cares
	switch l.Kind {
	case LessonOverslept:
		return fmt.Sprintf("%s stood still while it led, and was late by %v", board, late)
	case LessonReplaced:
		return fmt.Sprintf("%s was replaced although it was alive; it was heard again after %v", board, late)
	case LessonWished:
		return board + " has asked for it"
	case LessonAnnounced:
		return board + " has announced it"
	default:
		return "nothing was learned"
	}
}

// Rule has the constants of what is learned. docs/figures.md shows what each costs
// and saves; it is a variable for the benchmark that measures that.
var Rule = struct {
	// Factor is how many times its lateness a leader is allowed next time. What stands still,
	// or is lost, begins at any moment before the heartbeat is due: on average the
	// lateness is half of it.
	Factor float64
	// Least is how many times the default grace a lesson is worth at least, if the patience allows
	// that. A lateness of 8 ms may be the end of a pause of 30 ms.
	Least int
	// HalfLife is how long nothing must happen until the grace is halved.
	HalfLife time.Duration
	// Look is by how much the silence grows before a new leader says once more to the one that
	// it has replaced that it leads. If that board lives it answers, and the silence is known.
	Look float64
}{Factor: 2, Least: 4, HalfLife: time.Hour, Look: 1.5}

// DefaultPatience is the longest grace that is learned if none is configured.
func DefaultPatience(interval time.Duration) time.Duration {
	return max(patienceIntervals*interval, patienceMin)
}

// Nobody waits for a leader for longer than for five heartbeats. A machine that is too small
// for its work stands still for a quarter of a second at most, however short the interval is.
const (
	patienceIntervals = 5
	patienceMin       = 250 * time.Millisecond
)

// NewGrace returns the grace of a board with that interval, and with that patience: the longest
// grace that it wishes for or grants. 0 is the default.
func NewGrace(interval, patience time.Duration) Grace {
	if patience == 0 {
		patience = DefaultPatience(interval)
	}
	return Grace{interval: interval, Limit: patience}
}

// Default is the grace of this board's interval, if nothing was learned.
func (g *Grace) Default() time.Duration { return DefaultGrace(g.interval) }

// Follow begins anew, since this board has another leader than before. follows is false if it has none.
func (g *Grace) Follow(follows bool) {
	g.leads, g.follows = false, follows
	g.heard, g.Announced, g.Lease, g.raisedAt, g.loweredAt = 0, 0, 0, 0, 0
	g.granted, g.told = false, false
}

// Lead begins anew, since this board leads. It goes on with what it has learned.
func (g *Grace) Lead(now clock.Instant) {
	g.Follow(false)
	g.leads = true
	g.HalveAt = now + Rule.HalfLife
	want := g.wanted()
	g.Announced, g.Lease, g.raisedAt, g.loweredAt = want, want, now, now
}

// allowed is how late the leader of this board may be: itself, another one, or nobody.
func (g *Grace) allowed() time.Duration {
	switch {
	case g.leads:
		return g.Lease
	case !g.follows:
		return g.Default()
	case g.heard > 0:
		return g.heard
	default:
		return g.Limit
	}
}

// wanted is what this leader would announce if it could do so at once.
func (g *Grace) wanted() time.Duration { return max(g.Learned, g.Default()) }

// Announce is called before a message from which the others count the time until the
// next heartbeat. It brings the grace one step nearer to what is wanted.
func (g *Grace) Announce(now clock.Instant) {
	g.halve(now)
	switch want := g.wanted(); {
	case g.Lease > want:
		g.Lease, g.loweredAt = want, now
	case g.Announced < want:
		g.Announced, g.raisedAt = want, now
	case g.Lease < want && now >= g.raisedAt+g.interval:
		g.Lease = want
	case g.Announced > want && now >= g.loweredAt+g.interval+g.Announced:
		g.Announced = want
	}
}

// OnWire is what this leader has announced, as messages have it: 0 is the default.
func (g *Grace) OnWire() time.Duration {
	if g.Announced == g.Default() || !g.leads {
		return 0
	}
	return g.Announced
}

// Lengthened reports whether the lease became longer within an interval after that time.
func (g *Grace) Lengthened(since clock.Instant) bool {
	return g.Lease == g.Announced && since < g.raisedAt+g.interval
}

// Hear receives what the leader of this board announces. tell says that this board should
// wish for a longer grace in a HELLO soon.
func (g *Grace) Hear(now clock.Instant, leader wire.ID, h *wire.Heartbeat) (tell bool) {
	if g.heard = h.Grace; h.Grace == 0 {
		g.heard = DefaultGrace(h.Interval)
	}
	return g.compare(now, leader, max(h.Grace, g.Default()))
}

// compare compares what the leader announces with what this follower has learned.
func (g *Grace) compare(now clock.Instant, leader wire.ID, announced time.Duration) (tell bool) {
	if !g.granted {
		g.halve(now) // otherwise the leader does, which knows whether it is still needed
	}
	switch known := g.wanted(); {
	case announced > g.Limit: // this board would not do that
	case announced > known:
		g.patience = patience{
			Learned: announced, HalveAt: now + Rule.HalfLife,
			Lesson: Lesson{Kind: LessonAnnounced, Board: leader, At: now}, granted: true, told: true,
		}
	case announced == known:
		g.granted = true
	case g.granted: // the leader has halved it
		g.Learned, g.HalveAt = announced, now+Rule.HalfLife
	}
	if g.granted || g.told || g.Learned == 0 {
		return false
	}
	g.told = true
	return true
}

// Need takes in that a leader would have kept the lead with a grace of that length, and
// not with a shorter one. It reports whether the grace is a longer one now.
func (g *Grace) Need(now clock.Instant, needed time.Duration, l Lesson) (learned bool) {
	g.keep(now, needed)
	if needed <= g.wanted() {
		return false
	}
	want := time.Duration(Rule.Factor * float64(needed))
	if least := wire.RoundGrace(time.Duration(Rule.Least) * g.Default()); least <= g.Limit {
		want = max(want, least)
	}
	return g.learn(now, want, l)
}

// Wish takes in that another board wishes for that grace. It reports whether the grace is a longer
// one now.
func (g *Grace) Wish(now clock.Instant, want time.Duration, l Lesson) (learned bool) {
	g.keep(now, want)
	return g.learn(now, want, l)
}

// Remind takes in that a leader that lives was late by that much. It reports whether the leader
// should be told in a HELLO soon that its grace is still needed.
func (g *Grace) Remind(now clock.Instant, late time.Duration) (tell bool) {
	if late > g.Learned || !g.keep(now, late) {
		return false
	}
	g.remind = late
	return true
}

// Wished is what the HELLO of this follower wishes for; 0 if nothing.
func (g *Grace) Wished() time.Duration {
	switch {
	case g.heard == 0:
		return 0
	case !g.granted:
		return g.Learned
	default:
		return g.remind
	}
}

// Told notes that a HELLO has told everybody what this board wishes for.
func (g *Grace) Told() { g.remind = 0 }

// keep keeps what was learned for another half-life, if half of it would not have been
// enough.
func (g *Grace) keep(now clock.Instant, needed time.Duration) (kept bool) {
	if kept = g.Learned > 0 && needed > g.Learned/2; kept {
		g.HalveAt = now + Rule.HalfLife
	}
	return kept
}

// learn takes in that a longer grace is wanted.
func (g *Grace) learn(now clock.Instant, want time.Duration, l Lesson) (learned bool) {
	want = wire.RoundGrace(want)
	if want > g.Limit || want <= g.wanted() {
		return false
	}
	l.At = now
	g.patience = patience{Learned: want, HalveAt: now + Rule.HalfLife, Lesson: l}
	return true
}

// halve forgets half of what was learned, if its time is over.
func (g *Grace) halve(now clock.Instant) {
	p := &g.patience
	if p.Learned == 0 || now < p.HalveAt {
		return
	}
	p.Learned, p.HalveAt = p.Learned/2, now+Rule.HalfLife
	if p.Learned <= g.Default() {
		*p = patience{}
	}
}
