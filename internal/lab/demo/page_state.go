package demo

import (
	"time"

	"topdog/internal/console"
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
		Takeover:   s.takeovers.current().Number,
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
