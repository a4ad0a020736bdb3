package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"topdog/election"
	"topdog/internal/lab/observe"
	"topdog/wire"
)

const (
	// drawEvery is how often the picture is drawn, if it has changed. The shortest
	// flash of an LED lasts as long.
	drawEvery = 50 * time.Millisecond
	// silentAfter is for how long nobody must have answered to be shown so.
	silentAfter = 20 * time.Millisecond
	// showProblemFor is how long a failure stays on the screen.
	showProblemFor = 5 * time.Second
	// outagesKept bounds the history.
	outagesKept = 32
)

// Live draws the boards on a terminal and does what the keys ask for, until a key or ctx
// ends it. The terminal is given back as it was.
func Live(ctx context.Context, o Options, in, out *os.File) (err error) {
	g, err := newGroup(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	t, err := openTerminal(in, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }() // also when something panics

	ctx, cancel := context.WithCancel(ctx)
	l := &live{group: g, terminal: t, jobs: make(chan job, 16)}
	typed := make(chan []byte)
	var readErr error
	l.wg.Go(func() { defer cancel(); readErr = t.read(ctx, typed) })
	l.wg.Go(func() { l.work(ctx) })
	defer func() { err = errors.Join(err, readErr) }()
	defer l.wg.Wait()
	defer cancel()
	return l.run(ctx, typed)
}

// live is a picture that lives.
type live struct {
	*group
	terminal *terminal
	jobs     chan job
	wg       sync.WaitGroup
	keys     keys

	seen    int // answers of the client that were looked at
	outages []outage

	mu        sync.Mutex
	problem   string
	problemAt time.Time
}

// job is what a key has asked for; it may take a while.
type job func(context.Context) error

// outage is a gap with what is known of its cause.
type outage struct {
	observe.Gap
	why string
}

// run draws and does what is asked for until it is told to quit.
func (l *live) run(ctx context.Context, typed <-chan []byte) error {
	l.jobs <- l.switchAllOn
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	for {
		if err := l.terminal.show(l.look()); err != nil {
			return fmt.Errorf("draw the picture: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-l.failed:
			return err
		case input := <-typed:
			for _, c := range l.keys.parse(input) {
				if c.verb == doQuit {
					return nil
				}
				l.queue(c)
			}
		case <-tick.C:
		}
	}
}

// work does one job after the other, so that the picture never stands still.
func (l *live) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case do := <-l.jobs:
			if err := do(ctx); err != nil && ctx.Err() == nil {
				l.reportProblem(err.Error())
			}
		}
	}
}

func (l *live) reportProblem(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problem, l.problemAt = text, time.Now()
}

func (l *live) switchAllOn(context.Context) error {
	for _, b := range l.boards {
		if err := l.switchOn(b.number); err != nil {
			return err
		}
	}
	return nil
}

// queue puts what a command asks for into the queue of jobs. Which board is meant is decided when
// the job's turn comes: the leader may be another one by then.
func (l *live) queue(c command) {
	if c.board > len(l.boards) {
		l.reportProblem(fmt.Sprintf("there is no board %d", c.board))
		return
	}
	var do job
	switch c.verb {
	case doPower:
		do = func(context.Context) error {
			if l.state(c.board).power == running {
				return l.cutPower(c.board)
			}
			return l.switchOn(c.board)
		}
	case doCable:
		do = func(context.Context) error { return l.cable(c.board, !l.state(c.board).cable) }
	case doResign:
		do = func(ctx context.Context) error {
			leader, ok := l.leading()
			if !ok {
				return errors.New("nobody leads, so nobody can resign")
			}
			return l.resign(ctx, leader)
		}
	case doStop:
		do = l.stopOrStart
	}
	select {
	case l.jobs <- do:
	default:
		l.reportProblem("that was too fast")
	}
}

// stopOrStart stops the leader's daemon, or starts one that was stopped before.
func (l *live) stopOrStart(context.Context) error {
	for _, b := range l.boards {
		if l.state(b.number).power == stopped {
			return l.switchOn(b.number)
		}
	}
	leader, ok := l.leading()
	if !ok {
		return errors.New("nobody leads, so there is no leader to stop")
	}
	return l.stop(leader)
}

// boardState is what changes about a board.
type boardState struct {
	power   power
	why     string // its daemon ended by itself; "" if it did not
	frozen  bool
	cable   bool
	deaf    bool
	mute    bool
	apart   bool
	role    election.Role
	leader  string
	follows int // number of the board that it follows, itself if it leads; 0 for none
	term    uint32
}

func (g *group) state(n int) boardState {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.boards[n-1]
	s := boardState{
		power: b.power, why: b.why, frozen: b.frozen, cable: b.cable, deaf: b.deaf, mute: b.mute, apart: b.apart,
		role: b.role, term: uint32(b.term),
	}
	if b.leader != wire.Nobody {
		s.leader, s.follows = g.nameOf(b.leader), g.numberOf(b.leader)
	}
	return s
}

// leads reports whether the board's daemon runs and leads, as it said last.
func (s *boardState) leads() bool { return s.power == running && s.role == election.Leader }

// leading returns a board that leads, if there is any.
func (g *group) leading() (n int, ok bool) {
	for _, b := range g.boards {
		if s := g.state(b.number); s.leads() {
			return b.number, true
		}
	}
	return 0, false
}

// look collects what the picture shows.
func (l *live) look() view {
	v := view{
		Algorithm: l.options.Algorithm.String(), Heartbeat: l.options.Heartbeat,
		LAN: l.lan.about(), Address: l.lan.floating().String(),
		Boards:     l.lookAtBoards(),
		TwoHolders: l.lan.holders().Since(l.started).Overlap(),
		Which:      l.keys.which,
	}
	who, silent := l.client.Last()
	v.Answers = l.name(who)
	if silent > silentAfter {
		v.Silent = silent
	}
	l.collect()
	now := time.Now()
	for _, o := range slices.Backward(l.outages) {
		v.Outages = append(v.Outages, outageView{
			Ago: now.Sub(o.To), Lasted: o.Duration(), Before: l.name(o.Before), After: l.name(o.After), Why: o.why,
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.problemAt) < showProblemFor {
		v.Problem = l.problem
	}
	return v
}

// lookAtBoards collects what the picture shows of the boards.
func (g *group) lookAtBoards() []boardView {
	holders := g.lan.holders().Current()
	views := make([]boardView, len(g.boards))
	for i, b := range g.boards {
		s := g.state(b.number)
		views[i] = boardView{
			Number: b.number, Name: b.name, Address: b.addr.String(), Lit: b.led.On(),
			Role: s.role.String(), Term: s.term,
			Leads: s.leads(), Holds: slices.Contains(holders, b.number),
			Running: s.power == running, Plugged: s.cable,
		}
		switch {
		case s.power == powerOff:
			views[i].Role = "no power"
		case s.power == stopped:
			views[i].Role = "stopped"
		case s.power == killed:
			views[i].Role = "killed"
		case s.power == ended:
			views[i].Role = "ended"
		case s.role == election.Follower:
			views[i].Follows = s.leader
		}
	}
	// The heir is the first of the followers in the algorithm's order.
	if heir := g.best(func(b *board) bool { return views[b.number-1].Follows != "" }); heir != nil {
		views[heir.number-1].Role = "heir"
	}
	return views
}

// collect adds the client's latest gaps to the history, if they are worth it:
// another board answers now, or a person might have felt it.
func (l *live) collect() {
	gaps, total := l.client.Gaps(l.seen)
	l.seen = total
	for _, g := range gaps {
		if g.Before == 0 || !noticed(g) {
			continue
		}
		if len(l.outages) == outagesKept {
			l.outages = append(l.outages[:0], l.outages[1:]...)
		}
		l.outages = append(l.outages, outage{g, l.cause(g)})
	}
}

// noticed reports whether a gap is worth to be shown: another board answers now, or a person might
// have felt it.
func noticed(g observe.Gap) bool {
	return g.Before != g.After || g.Duration() >= silentAfter && g.Paused < g.Duration()/2
}

// cause says why there was a gap: because of what was done to the boards right
// before it, or else what the new leader gives as the reason.
func (g *group) cause(gap observe.Gap) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range slices.Backward(g.actions) {
		if d.at.Before(gap.To) && d.at.After(gap.From.Add(-5*askEvery)) {
			return d.text
		}
	}
	if gap.Before != gap.After {
		return g.boards[gap.After-1].rose.String()
	}
	return ""
}
