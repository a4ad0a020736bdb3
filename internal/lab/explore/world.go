package explore

import (
	"fmt"
	"slices"
	"time"

	"topdog/election"
	"topdog/election/steps"
	"topdog/wire"
)

// maxBoards is how many boards a world may have.
const maxBoards = 4

// world is everything at one moment: the boards, what is under way between them, what stands
// still, and when it is. It is copied wherever something else could happen as well.
type world struct {
	*scope  `hash:"-"`
	now     time.Duration
	boards  [maxBoards]board // the first scope.size of them
	flights []flight
	cut     [maxBoards][maxBoards]bool // from, to
	mute    [maxBoards]bool            // the board is heard by nobody
	deaf    [maxBoards]bool            // the board hears nobody

	waits    []wait          // what may go on
	instants []time.Duration // at which that may be
	// remarkable says that something has just happened after which it may be as well.
	remarkable bool

	both               bool // two boards answer
	bothSince, bothEnd time.Duration

	faults    int // how many may still happen
	lives     int // how many daemons were started
	resigned  int // how many of scope.resigns have come
	violation string
	tracer    *tracer `hash:"-"` // nil unless somebody looks
}

// happening is what happens next.
type happening struct {
	kind  happeningKind
	at    time.Duration
	board int // or the number of the flight
}

type happeningKind uint8

const (
	happensNothing happeningKind = iota
	happensInstant
	happensResign // whoever leads is asked to
	happensArrival
	happensSwitch
	happensDaemon
)

// next returns what happens next if nothing goes wrong. Of what is due at the same instant,
// the network comes first, and the daemons last.
func (w *world) next() (h happening) {
	consider := func(kind happeningKind, at time.Duration, i int) {
		if h.kind == happensNothing || at < h.at {
			h = happening{kind, at, i}
		}
	}
	for _, at := range w.instants {
		consider(happensInstant, max(at, w.now), 0)
	}
	if w.resigned < len(w.resigns) {
		consider(happensResign, max(w.resigns[w.resigned], w.now), 0)
	}
	for i := range w.flights {
		consider(happensArrival, max(w.flights[i].at, w.now), i)
	}
	for i := range w.boards[:w.size] {
		if at, ok := w.boards[i].toggleAt(w.now); ok {
			consider(happensSwitch, at, i)
		}
	}
	for i := range w.boards[:w.size] {
		if at, ok := w.boards[i].daemonAt(w.now); ok {
			consider(happensDaemon, at, i)
		}
	}
	return h
}

// advance lets happen what happens next.
func (w *world) advance(h happening) {
	w.now = max(w.now, h.at)
	w.remarkable = w.everywhere
	switch h.kind {
	case happensInstant:
		at := slices.Index(w.instants, slices.Min(w.instants))
		w.instants = slices.Delete(w.instants, at, at+1)
		w.remarkable = true
	case happensResign:
		w.resigned++
		for i := range w.boards[:w.size] {
			if d := &w.boards[i].daemon; d.role == election.Leader {
				d.steps = append(d.steps, plain(steps.Check), plain(stepRead), plain(stepResign))
			}
		}
	case happensArrival:
		w.arrive(h.board)
	case happensSwitch:
		w.runToggle(&w.boards[h.board])
	case happensDaemon:
		w.run(&w.boards[h.board])
	}
	w.judge()
}

// judge looks for what must never be. It is called after everything that happens, and in
// between nobody begins to answer.
func (w *world) judge() {
	holders := 0
	ends := time.Duration(0) // when only one will answer, if nothing happens until then
	for i := range w.boards[:w.size] {
		b := &w.boards[i]
		if !w.judgeBoard(b) {
			continue
		}
		holders++
		end := b.clock.global(b.kernel.word)
		if w.bug == bugNoFence || b.kernel.word == wordIdle {
			end = wordForever
		}
		if holders == 1 || end < ends {
			ends = end
		}
	}
	if over := min(w.now, w.bothEnd) - w.bothSince; w.both && over > w.tolerance {
		w.violation = fmt.Sprintf("two boards answer for the address, for %v", over)
	}
	switch {
	case holders < 2:
		w.both, w.bothSince = false, 0
	case !w.both:
		w.both, w.bothSince = true, w.now
		if w.tolerance == 0 {
			w.violation = "two boards answer for the address"
		}
	}
	w.bothEnd = ends
}

// judgeBoard reports whether a board answers.
func (w *world) judgeBoard(b *board) bool {
	answers := w.answers(b)
	if answers && !b.reign.answering {
		w.remarkable = true
		w.tracef("board %d answers for the address", b.id)
	}
	if !answers && b.reign.answering {
		w.tracef("board %d answers no more", b.id)
	}
	b.reign.answering = answers
	// A leader that was alone has a lease without an end until it has found time to set one.
	if answers && w.judgeLease && b.kernel.word != wordForever && b.clock.local(w.now) > b.reign.until {
		w.violation = fmt.Sprintf("board %d answers for the address after its lease", b.id)
	}
	return answers
}

// start switches on the daemon of a board.
func (w *world) start(b *board) {
	w.lives++
	b.incarnation = wire.Incarnation(w.lives)
	b.kernel = kernel{cable: b.kernel.cable, word: wordIdle}
	b.toggle = deadman{}
	now := b.clock.local(w.now)
	cfg := election.Config{
		ID: b.id, Incarnation: b.incarnation, Priority: election.DefaultPriority,
		Interval: w.interval, Algorithm: wire.AlgorithmHeir, SecondPath: w.secondPath,
	}
	definition := election.Heir
	if w.strict {
		cfg.Algorithm, definition = wire.AlgorithmStrict, election.Strict
		cfg.Voters = w.voters(b)
	}
	core, err := election.New(cfg, definition, now)
	if err != nil {
		panic(err)
	}
	b.daemon = daemon{core: core, at: w.now, read: now, set: wordIdle}
	if w.bug == bugVotesAtOnce && w.lives > w.size {
		*promiseOf(core).until = now
	}
	b.daemon.steps = []step{plain(stepRead), plain(stepUnplugged)}
}

// voters is the list of a board: all boards have the same one, but for a seeded bug.
func (w *world) voters(b *board) []wire.ID {
	if w.bug == bugOtherVoters && b.id == 1 {
		return []wire.ID{1}
	}
	ids := make([]wire.ID, w.size)
	for i := range ids {
		ids[i] = wire.ID(i + 1)
	}
	return ids
}
