package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"topdog/election"
	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/internal/lab/demopage"
	"topdog/internal/lab/lamp"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/scene"
	"topdog/netio"
	"topdog/wire"
)

// Bounds of the options.
const (
	MinBoards     = 2
	MaxBoards     = 20
	DefaultBoards = 5

	minHeartbeat     = election.MinInterval
	maxHeartbeat     = 2 * time.Second
	DefaultHeartbeat = election.DefaultInterval

	// askEvery is how often the client asks. It is the resolution of all outages.
	askEvery = time.Millisecond

	// priority is that of all boards.
	priority = election.DefaultPriority
)

// Options say what is shown.
type Options struct {
	Boards     int
	Heartbeat  time.Duration
	Algorithm  wire.Algorithm
	Namespaces bool // real cables between network namespaces instead of loopback; needs root

	guarded bool // on loopback, boards have a fence and a dead man's switch
}

// Validate says what is wrong with the options, if anything.
func (o Options) Validate() error {
	switch {
	case o.Boards < MinBoards || o.Boards > MaxBoards:
		return fmt.Errorf("%d boards: must be %d to %d", o.Boards, MinBoards, MaxBoards)
	case o.Heartbeat < minHeartbeat || o.Heartbeat > maxHeartbeat || o.Heartbeat%time.Millisecond != 0:
		return fmt.Errorf("a heartbeat every %v: must be %v to %v, in whole milliseconds", o.Heartbeat, minHeartbeat, maxHeartbeat)
	}
	return nil
}

// lan is what connects the boards: loopback or network namespaces. Boards
// are counted from 1 everywhere. A board's methods are called in turn, never at
// the same time.
type lan interface {
	// about says in a few words what it is.
	about() string
	// board returns a board's own address, its interface, and where the group meets.
	board(n int) (addr netip.Addr, iface string, group netip.AddrPort)
	// platform returns what a board's daemon uses of its machine; the LED is not filled in.
	platform(n int, cfg *config.Config) daemon.Platform
	// link tells whether a board has power, before its daemon runs or at the moment in which it loses its power, and whether its cable
	// is in.
	link(n int, powered, plugged bool) error
	// filter has the switch lose frames. These filters take the place of those before.
	filter([]scene.Filter) error
	// killed has what watches over a board's daemon do what it does when the daemon was killed.
	killed(n int)
	// cannot says why an action cannot be done on this LAN; "" if it can.
	cannot(demopage.Verb) string
	// floating is the address that the boards share.
	floating() netip.Addr
	// ask starts the client.
	ask(interval time.Duration) (*observe.Asker, error)
	// holders is the record of who has the address.
	holders() *observe.Holders
	close() error
}

// board is one of the boards.
type board struct {
	number int
	name   string
	addr   netip.Addr
	id     wire.ID
	led    *lamp.Recorder

	// The life of the daemon; only actions touch it, and they come one at a time.
	daemon *daemon.Daemon
	gate   *gate // of the daemon
	stop   context.CancelFunc
	done   chan struct{} // closed when the daemon has ended
	err    error         // why, once done is closed

	// What is known of it; the group's mu guards it.
	asked *daemon.Daemon  // may be asked for its view; nil while it does not run
	is    pageBoard       // but for what others know: who holds the address, the heir, and the light
	rose  election.Reason // why it became the leader when it last did
}

// group is the boards, what connects them, and the client. Actions come one at a time: whoever
// has several people act has a queue for that.
type group struct {
	ctx       context.Context // whoever waits for the boards waits no longer than it lasts
	options   Options
	expected  expectation
	groupName string
	key       config.Key
	lan       lan
	client    *observe.Asker
	started   time.Time
	startedAt time.Duration // the same on the clock of the daemons

	boards []*board
	play   func(line string) error // plays a line of a scene; only actions use it
	errs   []error                 // of daemons that ended by themselves, and were replaced since; only actions touch them
	failed chan error              // holds the first failure of a daemon, which is a mistake in topdog
	marked time.Time               // since when moves count

	mu      sync.Mutex
	changed chan struct{} // closed at the next change of any board, and replaced
	told    int           // how often a daemon has told of a change
	loss    int           // per cent of the boards' packets
	actions []action      // what was done to the boards lately, oldest first
	acted   int           // how many there were
}

// edgesKept bounds what is remembered of a light: some minutes of it.
const edgesKept = 1024

// newGroup prepares the boards and starts the client. No board has power yet.
func newGroup(ctx context.Context, o Options) (*group, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	m, err := expect(o)
	if err != nil {
		return nil, err
	}
	// A name and a key of its own keep this demo apart from every other one on
	// this machine, and from a real group.
	g := &group{
		ctx:       ctx,
		options:   o,
		expected:  m,
		groupName: "demo " + rand.Text(),
		key:       config.NewKey(),
		changed:   make(chan struct{}),
		failed:    make(chan error, 1),
		started:   time.Now(),
		startedAt: netio.Now(),
	}
	if o.Namespaces {
		g.lan, err = newNamespaces(o.Boards)
	} else {
		g.lan, err = newLoopback(o.Boards, o.guarded)
	}
	if err != nil {
		return nil, err
	}
	for n := 1; n <= o.Boards; n++ {
		addr, _, _ := g.lan.board(n)
		name := scene.Name(n)
		b := &board{
			number: n, name: name, addr: addr, id: wire.IDFromAddr(addr),
			led: lamp.NewRecorder("the LED of "+name, edgesKept),
			is:  pageBoard{Cable: true},
		}
		b.gone(daemonOff)
		g.boards = append(g.boards, b)
	}
	g.play = scene.Improvise(g)
	if g.client, err = g.lan.ask(askEvery); err != nil {
		return nil, errors.Join(err, g.lan.close())
	}
	return g, nil
}

// close cuts the power of all boards and frees everything.
func (g *group) close() error {
	for _, b := range g.boards {
		if b.daemon != nil {
			b.daemon.Kill()
			b.gate.end()
		}
	}
	errs := g.errs
	for _, b := range g.boards {
		errs = append(errs, b.join())
	}
	g.client.Close()
	return errors.Join(append(errs, g.lan.close())...)
}

// start runs the daemon of a board.
func (g *group) start(b *board) error {
	_, iface, group := g.lan.board(b.number)
	cfg := &config.Config{
		Config: election.Config{
			ID: b.id, Name: b.name, Priority: priority,
			Interval: g.options.Heartbeat, Algorithm: g.options.Algorithm,
		},
		Addresses: []config.Address{{IP: g.lan.floating()}},
		Paths:     config.Paths{Interface: iface},
		Group:     g.groupName,
		Keys:      config.Keyring{Signs: g.key},
		Multicast: group,
	}
	platform := g.lan.platform(b.number, cfg)
	platform.OpenLED = func(gpio.Spec) (gpio.LED, error) { return b.led, nil }
	b.gate = &gate{}
	n, err := daemon.New(cfg, gated(platform, b.gate), daemon.Options{
		Version: "demo", Observe: func(change election.Change) { g.observe(b, change) },
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", b.name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.daemon, b.stop, b.done, b.err = n, cancel, make(chan struct{}), nil
	g.update(func() {
		b.gone(daemonRuns)
		b.asked, b.is.Role = n, election.Isolated.String()
	})
	go g.run(ctx, b)
	return nil
}

// run runs a board's daemon to its end. A daemon that panics ends the show, and is
// reported when the terminal has been put in order.
func (g *group) run(ctx context.Context, b *board) {
	defer close(b.done)
	defer func() {
		if p := recover(); p != nil {
			b.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			select {
			case g.failed <- fmt.Errorf("%s: %w", b.name, b.err):
			default: // another one was first
			}
		}
	}()
	b.err = b.daemon.Run(ctx)
	g.noteEnd(ctx, b)
}

// noteEnd notes that a daemon has ended, if nobody made it end.
func (g *group) noteEnd(ctx context.Context, b *board) {
	g.update(func() {
		if !b.is.runs() || ctx.Err() != nil {
			return
		}
		b.gone(daemonEnded)
		b.is.Ended = "it ended by itself, without an error"
		if b.err != nil {
			b.is.Ended = b.err.Error()
		}
	})
}

// reap makes room for the next daemon of a board whose daemon has ended by itself. Its error is told when the show ends.
func (g *group) reap(b *board) {
	if g.state(b.number).Daemon == daemonEnded {
		g.errs = append(g.errs, b.join())
	}
}

// join waits until a board's daemon has ended.
func (b *board) join() error {
	if b.daemon == nil {
		return nil
	}
	<-b.done
	b.stop()
	b.daemon = nil
	if b.err != nil {
		return fmt.Errorf("%s: %w", b.name, b.err)
	}
	return nil
}

// end ends a board's daemon of which nothing is to be seen or heard any more.
func (b *board) end() error {
	if b.daemon == nil {
		return nil
	}
	b.daemon.Kill()
	b.gate.end()
	return b.join()
}

// gone notes that the board's daemon is no more, or another one. The group's mu is held.
func (b *board) gone(now string) {
	b.asked = nil
	b.is = pageBoard{
		Number: b.number, Power: now != daemonOff, Daemon: now, Cable: b.is.Cable, Deaf: b.is.Deaf, Mute: b.is.Mute, Apart: b.is.Apart,
		Sees: []pageView{},
	}
}

// observe notes a change that a daemon tells of. It is called in the daemon's loop.
func (g *group) observe(b *board, change election.Change) {
	g.update(func() {
		if !b.is.runs() {
			return // it was killed, and has not noticed
		}
		g.told++
		b.is.Role, b.is.Follows, b.is.Term = change.To.String(), g.numberOf(change.NewLeader), uint32(change.Term)
		if change.To == election.Leader {
			b.rose = change.Reason
		}
	})
}

// update changes what is known of the boards and wakes who waits for that.
func (g *group) update(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	close(g.changed)
	g.changed = make(chan struct{})
}

// state is what is known of a board.
func (g *group) state(n int) pageBoard {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.boards[n-1].is
}

// states are those of all boards, with who has the address, who is the heir, and whose light is lit.
func (g *group) states() (all []pageBoard) {
	holders := g.lan.holders().Current()
	for _, b := range g.boards {
		is := g.state(b.number)
		is.Holds, is.Light.Lit = slices.Contains(holders, b.number), b.led.On()
		all = append(all, is)
	}
	if heir := g.best(func(b *board) bool { return all[b.number-1].mayInherit() }); heir != nil {
		all[heir.number-1].Heir = true
	}
	return all
}

// leading returns a board that leads, if there is any.
func (g *group) leading() (n int, ok bool) {
	for _, b := range g.boards {
		if is := g.state(b.number); is.leads() {
			return b.number, true
		}
	}
	return 0, false
}

// numberOf is the number of the board with an id; 0 if it is none of them.
func (g *group) numberOf(id wire.ID) int {
	return g.numberWhere(func(b *board) bool { return b.id == id })
}

// numberWhere is the number of the board for which something holds; 0 if it is none of them.
func (g *group) numberWhere(holds func(*board) bool) int {
	return slices.IndexFunc(g.boards, holds) + 1
}

// name names a board by its number; 0 is nobody.
func (g *group) name(n int) string {
	if n == 0 {
		return ""
	}
	return g.boards[n-1].name
}
