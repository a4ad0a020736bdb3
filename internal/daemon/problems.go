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

// problem is something that a person should look into. It ends when it is solved,
// or when it has not been seen for a while.
type problem struct {
	kind  console.ProblemKind
	board wire.ID // which it is about, or wire.Nobody
	text  string
	seen  time.Duration // for the last time
	lasts time.Duration
	over  bool // it has ended, and is remembered so that it is not told again and again

	told   string        // what was logged of it last
	toldAt time.Duration // when
	quiet  time.Duration // for how long nothing of it is logged from then on
	waits  bool          // to be logged when that is over
}

const (
	// forever is for problems that last until they are solved.
	forever time.Duration = 1<<63 - 1
	// problemsMax bounds what is remembered.
	problemsMax = 32
	// tellEvery is how often a problem is logged that stays as it is.
	tellEvery = time.Hour
	// retellEvery is how long nothing is logged of a problem that was, whether it says something else, or comes back. Each
	// line doubles that, up to tellEvery: what changes all the time is logged some thirty times a day. What others cause,
	// they can have say something else with each packet, so that begins with retellOthersEvery.
	retellEvery       = 10 * time.Second
	retellOthersEvery = time.Minute
)

func (p *problem) is(kind console.ProblemKind, board wire.ID) bool {
	return p.kind == kind && p.board == board
}

// note notes a problem, perhaps with another board, and reports whether it should be logged: when it is new, or says
// something else or has come back, or was not logged for long.
func (p *problems) note(kind console.ProblemKind, board wire.ID, text string, lasts time.Duration) (tell bool) {
	now := p.now()
	p.expire(now)
	i := slices.IndexFunc(p.list, func(known problem) bool { return known.is(kind, board) })
	if i < 0 {
		p.makeRoom()
		p.list = append(p.list, problem{kind: kind, board: board, toldAt: now - tellEvery})
		i = len(p.list) - 1
	}
	known := &p.list[i]
	since, news, back := now-known.toldAt, text != known.told, known.over
	known.over = false
	switch {
	case since >= tellEvery, (news || back) && since >= known.quiet:
		tell = true
	case news && back:
		tell = lasts == forever // it may not be noted again; and what others cause can wait
	}
	known.text, known.seen, known.lasts = text, now, lasts
	if tell {
		known.telling(now)
	}
	return tell
}

// wait has a problem logged later that was noted, and is not to be logged yet. It may not be noted again.
func (p *problems) wait(kind console.ProblemKind, board wire.ID) {
	for i := range p.list {
		if known := &p.list[i]; known.is(kind, board) {
			known.waits = known.text != known.told
		}
	}
}

// due is when a problem is to be logged that waits for that.
func (p *problems) due() time.Duration {
	next := never
	for i := range p.list {
		if known := &p.list[i]; known.waits && !known.over {
			next = min(next, known.toldAt+known.quiet)
		}
	}
	return next
}

// overdue returns what is to be logged now of the problems that have waited for it.
func (p *problems) overdue() (texts []string) {
	now := p.now()
	for i := range p.list {
		if known := &p.list[i]; known.waits && !known.over && now >= known.toldAt+known.quiet {
			texts = append(texts, known.text)
			known.telling(now)
		}
	}
	return texts
}

// telling enters that a problem is logged now. It is quieter each time.
func (k *problem) telling(now time.Duration) {
	if now-k.toldAt >= tellEvery {
		k.quiet = retellEvery
		if k.lasts != forever {
			k.quiet = retellOthersEvery
		}
	} else {
		k.quiet = min(2*k.quiet, tellEvery)
	}
	k.told, k.toldAt, k.waits = k.text, now, false
}

// makeRoom forgets a problem if there are as many as may be: one that is over; else one that others cause, or that is about another board,
// which gives way to what is wrong on this one; else the oldest.
func (p *problems) makeRoom() {
	if len(p.list) < problemsMax {
		return
	}
	i := slices.IndexFunc(p.list, func(known problem) bool { return known.over })
	if i < 0 {
		i = max(0, slices.IndexFunc(p.list, func(known problem) bool { return known.lasts != forever || known.board != wire.Nobody }))
	}
	p.list = slices.Delete(p.list, i, i+1)
}

// end ends a problem of this board.
func (p *problems) end(kind console.ProblemKind) {
	for i := range p.list {
		if known := &p.list[i]; known.is(kind, wire.Nobody) {
			known.over = true
		}
	}
}

// keep ends the problems of a kind with all boards but these.
func (p *problems) keep(kind console.ProblemKind, said map[wire.ID]string) {
	for i := range p.list {
		known := &p.list[i]
		if _, still := said[known.board]; known.kind == kind && !still {
			known.over = true
		}
	}
}

// expire ends what has not been seen for its time, and forgets what is over for long.
func (p *problems) expire(now time.Duration) {
	for i := range p.list {
		if known := &p.list[i]; known.lasts != forever && now-known.seen > known.lasts {
			known.over = true
		}
	}
	p.list = slices.DeleteFunc(p.list, func(known problem) bool { return known.over && now-known.toldAt >= tellEvery })
}

// current returns the problems that exist, but for those that are over although their time is not.
func (p *problems) current(over func(console.ProblemKind, wire.ID) bool) (found []console.Problem) {
	p.expire(p.now())
	for _, known := range p.list {
		if known.over || over(known.kind, known.board) {
			continue
		}
		found = append(found, console.Problem{Kind: known.kind, Board: idText(known.board), Text: known.text})
	}
	return found
}

// unheardFor is how long a board must hear too little before people are told. Boards that are
// switched on together do not start at the same moment, and a burst of lost packets is over by then.
const unheardFor = 2 * time.Second

// lasting is something that is so, or not.
type lasting struct {
	so    bool
	since time.Duration
}

// update takes in whether it is so, and reports whether it has been for longer than unheardFor.
func (l *lasting) update(now time.Duration, so bool) (long bool) {
	if so && !l.so {
		l.since = now
	}
	l.so = so
	return so && now-l.since >= unheardFor
}
