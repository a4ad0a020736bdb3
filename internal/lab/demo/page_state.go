package demo

import (
	"context"
	"time"

	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/internal/lab/demopage"
)

// Documents of the page. Their keys and values are identifiers, described in docs/demo.md. Points in time are
// nanoseconds since the demo began; a null is something that has not happened.

// pageState is how the boards stand.
type pageState struct {
	Boards      []pageBoard  `json:"boards"`
	LossPercent int          `json:"loss_percent"` // of the boards' packets
	Answers     []pageRun    `json:"answers"`      // who answered the client when, the oldest first
	Actions     []pageAction `json:"actions"`      // what was done, the newest first
	Takeover    int          `json:"takeover"`     // number of the last change of leader, 0 before the first
	TwoHolders  int64        `json:"two_holders_ns"`
}

// pageBoard is one board.
type pageBoard struct {
	Number int    `json:"number"`
	Power  bool   `json:"power"`
	Daemon string `json:"daemon"`     // one of the daemon constants
	Ended  string `json:"ended_text"` // why it is daemonEnded; "" otherwise
	Cable  bool   `json:"cable"`
	Deaf   bool   `json:"deaf"`
	Mute   bool   `json:"mute"`
	Apart  bool   `json:"apart"` // on the other part of a split LAN than the client

	Role    string     `json:"role"` // as in topdog status; "" if its daemon does not run
	Heir    bool       `json:"heir"` // first of those that would take over, in the order of the algorithm
	Term    uint32     `json:"term"`
	Follows int        `json:"follows"` // number of a board, itself if it leads; 0 for none
	Holds   bool       `json:"holds"`   // it has the floating address
	Grade   string     `json:"grade"`   // how fit it is to lead, as in topdog status; "" if it was not asked yet
	Sees    []pageView `json:"sees"`    // its own view of the others
	Light   pageLight  `json:"light"`
}

// What a board's daemon does (pageBoard.Daemon).
const (
	daemonRuns    = "running"
	daemonFrozen  = "frozen"
	daemonStopped = "stopped"
	daemonKilled  = "killed"
	daemonEnded   = "ended" // by itself
	daemonOff     = "off"   // the board has no power
)

// pageView is what a board takes another one for.
type pageView struct {
	Board int    `json:"board"`
	As    string `json:"as"` // a role, or one of the view constants
}

// Beside roles, a board takes others for these (pageView.As).
const (
	seenSilent  = "silent"
	seenGone    = "gone"
	seenUnknown = "unknown"
)

// pageLight is what an LED has done lately.
type pageLight struct {
	Lit     bool    `json:"lit"`      // since the last edge
	EdgesNs []int64 `json:"edges_ns"` // when it was switched, the oldest first
}

// pageRun is a time in which one board answered.
type pageRun struct {
	Board  int    `json:"board"`
	FromNs int64  `json:"from_ns"`
	ToNs   *int64 `json:"to_ns"` // null while it goes on
}

// pageAction is something that was done, and what has followed until the next one.
type pageAction struct {
	Number       int           `json:"number"`
	AtNs         int64         `json:"at_ns"`
	Action       demopage.Verb `json:"action"`
	Board        int           `json:"board"` // 0 for all
	Text         string        `json:"text"`
	OutageNs     int64         `json:"outage_ns"`        // the longest; 0 for none
	OutageGoesOn bool          `json:"outage_goes_on"`   // it has lasted so long until now
	PausedNs     int64         `json:"client_paused_ns"` // for how much of it the client itself stood still
	Before       int           `json:"before"`           // who answered before the outage, and after it; 0 for nobody
	After        int           `json:"after"`
	Moves        int           `json:"moves"` // how often another board answered than before
	TwoHoldersNs int64         `json:"two_holders_ns"`
}

const (
	// actionsShown and edgesShown bound the document.
	actionsShown = 12
	edgesShown   = 8
	// answersFor is how far back it tells who answered.
	answersFor = 20 * time.Second
)

// at is a point in time as the documents have it.
func (g *group) at(t time.Time) int64 { return int64(t.Sub(g.started)) }

// document describes the boards.
func (s *pageSource) document() pageState {
	state := pageState{
		Boards: s.states(), Answers: s.watch.answers(time.Now().Add(-answersFor)), Actions: s.watch.followed(actionsShown),
		TwoHolders: int64(s.lan.holders().Since(s.started).Overlap()),
		Takeover:   s.watch.lastTakeover().Number,
	}
	for i, b := range s.boards {
		state.Boards[i].Light = s.light(b)
	}
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	state.LossPercent = s.loss
	return state
}

// mayInherit reports whether the board follows another one, and the others know: one that is mute is not heard by them, and would
// not be heard as a leader.
func (b *pageBoard) mayInherit() bool { return b.Follows != 0 && b.Follows != b.Number && !b.Mute }

// runs reports whether the board has a daemon, which may be frozen.
func (b *pageBoard) runs() bool { return b.Daemon == daemonRuns || b.Daemon == daemonFrozen }

// leads reports whether the board leads, as its daemon said last.
func (b *pageBoard) leads() bool { return b.Role == console.RoleLeader }

// light is what the LED of a board has done lately.
func (g *group) light(b *board) pageLight {
	edges := b.led.Edges()
	edges = edges[max(0, len(edges)-edgesShown):]
	l := pageLight{EdgesNs: []int64{}}
	for _, e := range edges {
		l.Lit = e.On
		l.EdgesNs = append(l.EdgesNs, g.at(e.At))
	}
	return l
}

// pageAbout is what stays the same.
type pageAbout struct {
	LAN         string           `json:"lan"` // "loopback" or "namespaces"
	LANText     string           `json:"lan_text"`
	Algorithm   string           `json:"algorithm"`
	HeartbeatNs int64            `json:"heartbeat_ns"`
	Address     string           `json:"address"`
	AskEveryNs  int64            `json:"ask_every_ns"`
	Boards      []pageName       `json:"boards"`
	Actions     []pagePossible   `json:"actions"`
	Elsewhere   []measuredFigure `json:"measured_elsewhere"`
}

// pageName is a board as it is called.
type pageName struct {
	Number  int    `json:"number"`
	Name    string `json:"name"`
	Address string `json:"address"`
}

// pagePossible is an action, and why it cannot be done here.
type pagePossible struct {
	Action         demopage.Verb `json:"action"`
	ImpossibleText string        `json:"impossible_text"` // "" if it can be done
}

func (g *group) about() pageAbout {
	a := pageAbout{
		LAN: "loopback", LANText: g.lan.about(), Algorithm: g.options.Algorithm.String(), HeartbeatNs: int64(g.options.Heartbeat),
		Address: g.lan.floating().String(), AskEveryNs: int64(askEvery), Elsewhere: keepalivedFigures,
	}
	if g.options.Namespaces {
		a.LAN = "namespaces"
	}
	for _, b := range g.boards {
		a.Boards = append(a.Boards, pageName{b.number, b.name, b.addr.String()})
	}
	for _, verb := range demopage.Verbs() {
		a.Actions = append(a.Actions, pagePossible{verb, g.lan.cannot(verb)})
	}
	return a
}

const (
	// askViewsEvery is how often the boards are asked for their own view, and tellWithin how long one
	// may take to tell something.
	askViewsEvery = 250 * time.Millisecond
	tellWithin    = 200 * time.Millisecond
)

// askViews asks all boards for their own view, and notes what they tell.
func (g *group) askViews(ctx context.Context) {
	told, _ := askAll(ctx, g, (*daemon.Daemon).Status)
	g.mu.Lock()
	defer g.mu.Unlock()
	for n, s := range told {
		if is := &g.boards[n-1].is; is.runs() {
			is.Grade, is.Sees = s.Grade, g.viewOf(&s)
		}
	}
}

// askAll asks all daemons that run and are not frozen. It reports whether all of them have told in time.
func askAll[T any](ctx context.Context, g *group, ask func(*daemon.Daemon, context.Context) (T, error)) (told map[int]T, all bool) {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	type answer struct {
		board int
		told  T
		err   error
	}
	answers := make(chan answer, len(g.boards))
	asked := 0
	for _, b := range g.boards {
		g.mu.Lock()
		d, may := b.asked, b.is.Daemon == daemonRuns
		g.mu.Unlock()
		if !may {
			continue
		}
		asked++
		go func() {
			t, err := ask(d, ctx)
			answers <- answer{b.number, t, err}
		}()
	}
	told, all = map[int]T{}, true
	for range asked {
		select {
		case a := <-answers:
			switch {
			case a.err == nil:
				told[a.board] = a.told
			case ctx.Err() != nil:
				all = false
			}
		case <-ctx.Done(): // a daemon that was frozen in the middle of it answers when it goes on
			return told, false
		}
	}
	return told, all
}

// viewOf is what a board takes the others for.
func (g *group) viewOf(s *console.Status) []pageView {
	sees := []pageView{} // a board that is alone sees nobody, and its page goes through them
	for i := range s.Boards {
		o := &s.Boards[i]
		n := g.numberWhere(func(b *board) bool { return b.name == o.Name })
		if o.Self || n == 0 {
			continue
		}
		as := o.Role
		switch {
		case o.Gone:
			as = seenGone
		case o.Stale:
			as = seenSilent
		case as == "":
			as = seenUnknown
		}
		sees = append(sees, pageView{n, as})
	}
	return sees
}

// measuredFigure is what was measured of keepalived with its defaults, and of topdog in the same session, on other
// machines than this one. A test holds that docs/benchmarks.md says the same.
type measuredFigure struct {
	Event          string          `json:"event_text"` // as in docs/benchmarks.md
	Actions        []demopage.Verb `json:"actions"`    // what can be done here that is alike
	Runs           int             `json:"runs"`
	MedianNs       int64           `json:"median_ns"`        // outage of keepalived
	MostNs         int64           `json:"most_ns"`          // likewise, the longest of all runs
	TopdogMedianNs int64           `json:"topdog_median_ns"` // outage of topdog, there
	TwoHolders     string          `json:"two_holders_text"` // for how long two boards have the address; "" for never
}

// keepalivedFigures are all of them.
var keepalivedFigures = []measuredFigure{
	{"the leader's cable is pulled", []demopage.Verb{demopage.CableOut, demopage.PowerOff}, 20, figure(2688), figure(3400), figure(68.8), ""},
	{"SIGKILL of the leader's daemon", []demopage.Verb{demopage.Kill}, 20, figure(6.1), figure(17.5), figure(2.0), "until repaired"},
	{"SIGSTOP of the leader's daemon for 10 s, then SIGCONT", []demopage.Verb{demopage.Freeze}, 20, figure(7.4), figure(20.7), figure(4.7), "as long as it is frozen"},
	{"SIGTERM (systemctl stop)", []demopage.Verb{demopage.Stop}, 20, figure(419), figure(421), figure(2.1), ""},
	{"hand-over by command", []demopage.Verb{demopage.Resign}, 20, figure(416), figure(421), figure(2.0), ""},
}

// figure is a number of milliseconds in nanoseconds.
func figure(ms float64) int64 { return int64(ms * float64(time.Millisecond)) }
