package daemon

import (
	"slices"
	"time"

	"topdog/internal/console"
	"topdog/wire"
)

// problems are what is wrong at the moment, as far as this board knows.
type problems struct {
	now  func() time.Duration
	list []problem
}

// problem is something that a person should look into. It ends when it is solved, or when it was not seen for a while.
type problem struct {
	kind  console.ProblemKind
	board wire.ID // the board that it is about, or wire.Nobody
	text  string
	seen  time.Duration // for the last time
	lasts time.Duration // it ends when it was not seen for that long
	over  bool          // it has ended, and is remembered so that it is not logged again and again
	back  bool          // it was over when it was last noted

	told   string        // what the log said of it last
	toldAt time.Duration // when
	quiet  time.Duration // for how long after that the log says nothing of it
}

const (
	// forever is for problems that last until they are solved.
	forever time.Duration = 1<<63 - 1
	// problemsMax bounds what is remembered.
	problemsMax = 32
	// tellEvery is how often a problem that stays as it is is logged.
	tellEvery = time.Hour
	// retellEvery is for how long the log is silent about a problem that was just logged, even if its text changes or
	// it comes back. Each line doubles that time, up to tellEvery: a problem that changes all the time is logged some
	// thirty times a day. Other machines can change the text of a problem that they cause with each packet, so its
	// time begins with retellOthersEvery.
	retellEvery       = 10 * time.Second
	retellOthersEvery = time.Minute
)

// note enters a problem of a board, or of this one for wire.Nobody.
func (p *problems) note(kind console.ProblemKind, board wire.ID, text string, lasts time.Duration) *problem {
	now := p.now()
	p.expire(now)
	i := slices.IndexFunc(p.list, func(k problem) bool { return k.kind == kind && k.board == board })
	if i < 0 {
		p.makeRoom()
		p.list = append(p.list, problem{kind: kind, board: board, toldAt: now - tellEvery})
		i = len(p.list) - 1
	}
	k := &p.list[i]
	k.back, k.over = k.over, false
	k.text, k.seen, k.lasts = text, now, lasts
	return k
}

// tell reports whether a problem that was noted is to be logged now: when it is new, says something else or has come back, or
// was not logged for long.
func (k *problem) tell(now time.Duration) bool {
	since, news := now-k.toldAt, k.text != k.told
	switch {
	case since >= tellEvery:
		k.quiet = retellEvery
		if k.lasts != forever {
			k.quiet = retellOthersEvery
		}
	case (news || k.back) && since >= k.quiet, news && k.back && k.lasts == forever: // a problem that others cause can wait
		k.quiet = min(2*k.quiet, tellEvery)
	default:
		return false
	}
	k.told, k.toldAt = k.text, now
	return true
}

// makeRoom forgets a problem if there are as many as may be: one that is over; else one that others cause or that is about
// another board, which gives way to what is wrong on this one; else the oldest.
func (p *problems) makeRoom() {
	if len(p.list) < problemsMax {
		return
	}
	i := slices.IndexFunc(p.list, func(k problem) bool { return k.over })
	if i < 0 {
		i = max(0, slices.IndexFunc(p.list, func(k problem) bool { return k.lasts != forever || k.board != wire.Nobody }))
	}
	p.list = slices.Delete(p.list, i, i+1)
}

// end ends the problems of a kind, except those with these boards.
func (p *problems) end(kind console.ProblemKind, except map[wire.ID]string) {
	for i := range p.list {
		k := &p.list[i]
		if _, still := except[k.board]; k.kind == kind && !still {
			k.over = true
		}
	}
}

// expire ends what was not seen for its time, and forgets what has been over for long.
func (p *problems) expire(now time.Duration) {
	for i := range p.list {
		if k := &p.list[i]; k.lasts != forever && now-k.seen > k.lasts {
			k.over = true
		}
	}
	p.list = slices.DeleteFunc(p.list, func(k problem) bool { return k.over && now-k.toldAt >= tellEvery })
}

// current returns the problems that exist, except those that are over although their time is not.
func (p *problems) current(over func(console.ProblemKind, wire.ID) bool) (found []console.Problem) {
	p.expire(p.now())
	for _, k := range p.list {
		if k.over || over(k.kind, k.board) {
			continue
		}
		found = append(found, console.Problem{Kind: k.kind, Board: idText(k.board), Text: k.text})
	}
	return found
}

// unheardFor is how long a board must hear too little before people are told. Boards that are switched on together do not
// start at the same moment, and a burst of lost packets is over by then.
const unheardFor = 2 * time.Second

// condition is something that is on or off, with the time when it came on.
type condition struct {
	on    bool
	since time.Duration
}

// update takes in whether it is on, and reports whether it has been on for longer than unheardFor.
func (c *condition) update(now time.Duration, on bool) (long bool) {
	if on && !c.on {
		c.since = now
	}
	c.on = on
	return on && now-c.since >= unheardFor
}
