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
	told  time.Duration // when it was logged
	lasts time.Duration
}

const (
	// forever is for problems that last until they are solved.
	forever time.Duration = 1<<63 - 1
	// problemsMax bounds what is remembered.
	problemsMax = 32
	// tellEvery bounds how often the same problem is logged, and retellEvery how
	// often it is when it says something else. What others cause, they can have say something
	// else with each packet, so that is logged once in retellOthersEvery.
	tellEvery         = 10 * time.Minute
	retellEvery       = 10 * time.Second
	retellOthersEvery = time.Minute
)

func (p *problem) is(kind console.ProblemKind, board wire.ID) bool {
	return p.kind == kind && p.board == board
}

// note notes a problem, perhaps with another board, and reports whether it should
// be logged: when it is new, or says something new, or was not logged for long.
func (p *problems) note(kind console.ProblemKind, board wire.ID, text string, lasts time.Duration) (tell bool) {
	now := p.now()
	i := slices.IndexFunc(p.list, func(known problem) bool { return known.is(kind, board) })
	if i < 0 {
		if len(p.list) == problemsMax {
			// What others cause gives way to what is wrong on this board.
			oldest := max(0, slices.IndexFunc(p.list, func(known problem) bool { return known.lasts != forever }))
			p.list = slices.Delete(p.list, oldest, oldest+1)
		}
		p.list = append(p.list, problem{kind: kind, board: board, text: text, seen: now, told: now, lasts: lasts})
		return true
	}
	known := &p.list[i]
	retell := retellEvery
	if lasts != forever {
		retell = retellOthersEvery
	}
	tell = now-known.told > tellEvery || (known.text != text && now-known.told > retell)
	if tell {
		known.told = now
	}
	known.text, known.seen, known.lasts = text, now, lasts
	return tell
}

// end ends a problem of this board.
func (p *problems) end(kind console.ProblemKind) {
	p.list = slices.DeleteFunc(p.list, func(known problem) bool { return known.is(kind, wire.Nobody) })
}

// current returns the problems that exist, but for those that are over although their time is not.
func (p *problems) current(over func(console.ProblemKind, wire.ID) bool) (found []console.Problem) {
	now := p.now()
	p.list = slices.DeleteFunc(p.list, func(known problem) bool {
		return known.lasts != forever && now-known.seen > known.lasts
	})
	for _, known := range p.list {
		if over(known.kind, known.board) {
			continue
		}
		found = append(found, console.Problem{Kind: known.kind, Board: idText(known.board), Text: known.text})
	}
	return found
}
