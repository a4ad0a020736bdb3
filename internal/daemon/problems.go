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

	told   string        // what was logged of it last, or "" if it has come back since
	toldAt time.Duration // when
	quiet  time.Duration // for how long nothing of it is logged from then on
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
	if known.over {
		known.over, known.told = false, ""
	}
	since := now - known.toldAt
	tell = since >= tellEvery || text != known.told && since >= known.quiet
	if tell {
		if since >= tellEvery {
			known.quiet = retellEvery
			if lasts != forever {
				known.quiet = retellOthersEvery
			}
		} else {
			known.quiet = min(2*known.quiet, tellEvery)
		}
		known.told, known.toldAt = text, now
	}
	known.text, known.seen, known.lasts = text, now, lasts
	return tell
}

// makeRoom forgets a problem if there are as many as may be: one that is over; else one that others cause, which gives
// way to what is wrong on this board; else the oldest.
func (p *problems) makeRoom() {
	if len(p.list) < problemsMax {
		return
	}
	i := slices.IndexFunc(p.list, func(known problem) bool { return known.over })
	if i < 0 {
		i = max(0, slices.IndexFunc(p.list, func(known problem) bool { return known.lasts != forever }))
	}
	p.list = slices.Delete(p.list, i, i+1)
}

// end ends a problem, perhaps with another board.
func (p *problems) end(kind console.ProblemKind, board wire.ID) {
	for i := range p.list {
		if known := &p.list[i]; known.is(kind, board) {
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
