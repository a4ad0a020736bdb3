package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/internal/lab/demopage"
	"topdog/internal/lab/lamp"
	"topdog/internal/lab/observe"
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
	// power tells that a board is being switched on, before its daemon runs, or
	// that it is losing its power at this moment.
	power(n int, on bool) error
	// cable pulls a board's cable out or puts it back.
	cable(n int, in bool) error
	// impair makes a board deaf, mute, both or neither.
	impair(n int, deaf, mute bool) error
	// lose has the boards lose a share of the packets that they receive.
	lose(share float64) error
	// split lets the LAN fall in two, with the client on the part without these boards; none for one LAN.
	split(apart []int) error
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

// power is whether a board runs.
type power int

const (
	powerOff power = iota // without power
	stopped               // with power, but its daemon was stopped in good order
	killed                // with power, but its daemon was killed
	ended                 // with power, but its daemon ended by itself
	running
)

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
	asked  *daemon.Daemon // may be asked for its view; nil while it does not run
	power  power
	frozen bool // its daemon stands still
	cable  bool // it is in
	deaf   bool
	mute   bool
	apart  bool // on the other part of a split LAN than the client
	role   election.Role
	leader wire.ID // whom it follows
	term   wire.Term
	rose   election.Reason // why it became the leader when it last did
	why    string          // its daemon ended by itself; "" if it did not
}

// group is the boards, what connects them, and the client. Its actions may be
// called from any goroutine; they wait for each other.
type group struct {
	options   Options
	expected  expectation
	groupName string
	key       config.Key
	lan       lan
	client    *observe.Asker
	started   time.Time
	startedAt time.Duration // the same on the clock of the daemons

	acting sync.Mutex // held by an action
	boards []*board
	errs   []error    // of daemons that ended by themselves, and were replaced since; only actions touch them
	failed chan error // holds the first failure of a daemon, which is a mistake in topdog

	mu      sync.Mutex
	changed chan struct{} // closed at the next change of any board, and replaced
	told    int           // how often a daemon has told of a change
	loss    int           // per cent of the boards' packets
	actions []action      // what was done to the boards lately, oldest first
	acted   int           // how many there were
}

// action is something that was done to the boards.
type action struct {
	number int // from 1
	at     time.Time
	deed
}

// deed is what is done: a verb, the board that it is about (0 for all), and both in words.
type deed struct {
	verb  demopage.Verb
	board int
	text  string
}

// maxActions bounds what is remembered of what was done, and edgesKept what is remembered of
// a light: some minutes of it.
const (
	maxActions = 64
	edgesKept  = 1024
)

// newGroup prepares the boards and starts the client. No board has power yet.
func newGroup(o Options) (*group, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	m, err := expect(o)
	if err != nil {
		return nil, err
	}
	key := config.NewKey()
	// A name and a key of its own keep this demo apart from every other one on
	// this machine, and from a real group.
	g := &group{
		options:   o,
		expected:  m,
		groupName: "demo " + rand.Text(),
		key:       key,
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
		name := fmt.Sprintf("pi%d", n)
		g.boards = append(g.boards, &board{
			number: n, name: name, addr: addr, id: wire.IDFromAddr(addr),
			led:   lamp.NewRecorder("the LED of "+name, edgesKept),
			cable: true,
		})
	}
	if g.client, err = g.lan.ask(askEvery); err != nil {
		return nil, errors.Join(err, g.lan.close())
	}
	return g, nil
}

// close cuts the power of all boards and frees everything.
func (g *group) close() error {
	g.acting.Lock()
	defer g.acting.Unlock()
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

// observe notes a change that a daemon tells of. It is called in the daemon's loop.
func (g *group) observe(b *board, change election.Change) {
	g.update(func() {
		if b.power != running {
			return // it was killed, and has not noticed
		}
		g.told++
		b.role, b.leader, b.term = change.To, change.NewLeader, change.Term
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

// agreed returns the board that leads, if there is exactly one, and all boards
// that can hear it follow it.
func (g *group) agreed() (leader *board, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.boards {
		if b.power == running && b.role == election.Leader {
			if leader != nil {
				return nil, false
			}
			leader = b
		}
	}
	if leader == nil || !leader.cable {
		return nil, false
	}
	for _, b := range g.boards {
		if b != leader && b.reachable() && (b.role != election.Follower || b.leader != leader.id) {
			return nil, false
		}
	}
	return leader, true
}

// reachable reports whether a board takes part. The group's mu is held.
func (b *board) reachable() bool { return b.power == running && b.cable }

// awaitAgreed waits until all boards agree on a leader who satisfies want, and
// the client has had an answer from it since.
func (g *group) awaitAgreed(ctx context.Context, want func(*board) bool) (*board, error) {
	for {
		g.mu.Lock()
		changed := g.changed
		g.mu.Unlock()
		lack := "the boards do not agree on a leader: " + g.describe()
		if leader, ok := g.agreed(); ok && want(leader) {
			if g.answers(ctx, leader, changed) {
				return leader, nil
			}
			lack = fmt.Sprintf("%s leads, but does not answer at %v", leader.name, g.lan.floating())
		}
		select {
		case <-changed:
		case err := <-g.failed:
			return nil, err
		case <-ctx.Done():
			return nil, errors.New(lack)
		}
	}
}

// answers waits for an answer from a leader, as long as the boards are what they were: one that has lost the lead
// meanwhile never answers.
func (g *group) answers(ctx context.Context, leader *board, changed <-chan struct{}) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-changed:
			stop()
		case <-ctx.Done():
		}
	}()
	_, err := g.client.WaitAnswer(ctx, func(n int) bool { return n == leader.number })
	return err == nil
}

// describe says in words what each board is, for errors.
func (g *group) describe() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	texts := make([]string, 0, len(g.boards))
	for _, b := range g.boards {
		switch {
		case b.power != running:
			texts = append(texts, b.name+" is off")
		case b.role == election.Follower:
			texts = append(texts, fmt.Sprintf("%s follows %s", b.name, g.nameOf(b.leader)))
		default:
			texts = append(texts, fmt.Sprintf("%s is %v", b.name, b.role))
		}
	}
	return strings.Join(texts, ", ")
}

// nameOf names the board with an id.
func (g *group) nameOf(id wire.ID) string {
	for _, b := range g.boards {
		if b.id == id {
			return b.name
		}
	}
	return id.String()
}

// numberOf is the number of the board with an id; 0 if it is none of them.
func (g *group) numberOf(id wire.ID) int {
	for _, b := range g.boards {
		if b.id == id {
			return b.number
		}
	}
	return 0
}

// name names a board by its number; 0 is nobody.
func (g *group) name(n int) string {
	if n == 0 {
		return ""
	}
	return g.boards[n-1].name
}
