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
	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/internal/lab/observe"
	"topdog/wire"
)

// Bounds of the options.
const (
	MinBoards     = 2
	MaxBoards     = 20
	DefaultBoards = 5

	MinHeartbeat     = election.MinInterval
	MaxHeartbeat     = 2 * time.Second
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
}

// Validate says what is wrong with the options, if anything.
func (o Options) Validate() error {
	switch {
	case o.Boards < MinBoards || o.Boards > MaxBoards:
		return fmt.Errorf("%d boards: must be %d to %d", o.Boards, MinBoards, MaxBoards)
	case o.Heartbeat < MinHeartbeat || o.Heartbeat > MaxHeartbeat || o.Heartbeat%time.Millisecond != 0:
		return fmt.Errorf("a heartbeat every %v: must be %v to %v, in whole milliseconds", o.Heartbeat, MinHeartbeat, MaxHeartbeat)
	}
	return nil
}

// ground is what the boards stand on: loopback or network namespaces. Boards
// are counted from 1 everywhere. A board's methods are called in turn, never at
// the same time.
type ground interface {
	// about says in a few words what it is.
	about() string
	// board returns a board's own address, and what its node needs to know.
	board(n int) (addr netip.Addr, iface string, group netip.AddrPort)
	// platform returns what a board's daemon uses of its machine; the LED is not filled in.
	platform(n int, cfg *config.Config) daemon.Platform
	// power tells that a board is being switched on, before its node runs, or
	// that it is losing its power at this moment.
	power(n int, on bool) error
	// cable pulls a board's cable out or puts it back.
	cable(n int, in bool) error
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
	running
)

// board is one of the boards.
type board struct {
	number int
	name   string
	addr   netip.Addr
	id     wire.ID
	led    *gpio.Recorder

	// The life of the node; only actions touch it, and they come one at a time.
	node *daemon.Daemon
	stop context.CancelFunc
	done chan struct{} // closed when the node has ended
	err  error         // why, once done is closed

	// What is known of it; the cluster's mu guards it.
	power  power
	cable  bool // it is in
	role   election.Role
	leader wire.ID // whom it follows
	term   wire.Term
	rose   election.Reason // why it became the leader when it last did
}

// Cluster is the boards, what they stand on, and the client. Its actions may be
// called from any goroutine; they wait for each other.
type Cluster struct {
	options Options
	manners manners
	group   string
	key     config.Key
	ground  ground
	client  *observe.Asker
	started time.Time

	acting sync.Mutex // held by an action
	boards []*board
	failed chan error // holds the first failure of a node, which is a mistake in topdog

	mu      sync.Mutex
	changed chan struct{} // closed at the next change of any board, and replaced
	deeds   []deed        // what was done to the boards lately, oldest first
}

// deed is something that was done to a board.
type deed struct {
	at   time.Time
	text string
}

// maxDeeds bounds what is remembered of what was done.
const maxDeeds = 64

// NewCluster prepares the boards and starts the client. No board has power yet.
func NewCluster(o Options) (*Cluster, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	m, err := mannersOf(o)
	if err != nil {
		return nil, err
	}
	key, err := config.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	// A name and a key of its own keep this demo apart from every other one on
	// this machine, and from a real group.
	c := &Cluster{
		options: o,
		manners: m,
		group:   "demo " + rand.Text(),
		key:     key,
		changed: make(chan struct{}),
		failed:  make(chan error, 1),
		started: time.Now(),
	}
	if o.Namespaces {
		c.ground, err = newNamespaces(o.Boards)
	} else {
		c.ground, err = newLoopback(o.Boards)
	}
	if err != nil {
		return nil, err
	}
	for n := 1; n <= o.Boards; n++ {
		addr, _, _ := c.ground.board(n)
		name := fmt.Sprintf("pi%d", n)
		c.boards = append(c.boards, &board{
			number: n, name: name, addr: addr, id: wire.IDFromAddr(addr),
			led:   gpio.NewRecorder("the LED of "+name, 16),
			cable: true,
		})
	}
	if c.client, err = c.ground.ask(askEvery); err != nil {
		return nil, errors.Join(err, c.ground.close())
	}
	return c, nil
}

// Close cuts the power of all boards and frees everything.
func (c *Cluster) Close() error {
	c.acting.Lock()
	defer c.acting.Unlock()
	for _, b := range c.boards {
		if b.node != nil {
			b.node.Kill()
		}
	}
	var errs []error
	for _, b := range c.boards {
		errs = append(errs, b.join())
	}
	c.client.Close()
	return errors.Join(append(errs, c.ground.close())...)
}

// observe takes in a change that a node tells of. It is called in the node's loop.
func (c *Cluster) observe(b *board, change election.Change) {
	c.update(func() {
		b.role, b.leader, b.term = change.To, change.NewLeader, change.Term
		if change.To == election.Leader {
			b.rose = change.Reason
		}
	})
}

// update changes what is known of the boards and wakes who waits for that.
func (c *Cluster) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// agreed returns the board that leads, if there is exactly one, and all boards
// that can hear it follow it.
func (c *Cluster) agreed() (leader *board, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.boards {
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
	for _, b := range c.boards {
		if b != leader && b.reachable() && (b.role != election.Follower || b.leader != leader.id) {
			return nil, false
		}
	}
	return leader, true
}

// reachable reports whether a board takes part. The cluster's mu is held.
func (b *board) reachable() bool { return b.power == running && b.cable }

// awaitAgreed waits until all boards agree on a leader who satisfies want, and
// the client has had an answer from it since.
func (c *Cluster) awaitAgreed(ctx context.Context, want func(*board) bool) (*board, error) {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if leader, ok := c.agreed(); ok && want(leader) {
			if _, err := c.client.WaitAnswer(ctx, func(n int) bool { return n == leader.number }); err != nil {
				return nil, fmt.Errorf("%s leads, but does not answer at %v", leader.name, c.ground.floating())
			}
			return leader, nil
		}
		select {
		case <-changed:
		case err := <-c.failed:
			return nil, err
		case <-ctx.Done():
			return nil, fmt.Errorf("the boards do not agree on a leader: %s", c.describe())
		}
	}
}

// describe says in words what each board is, for errors.
func (c *Cluster) describe() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	texts := make([]string, 0, len(c.boards))
	for _, b := range c.boards {
		switch {
		case b.power != running:
			texts = append(texts, b.name+" is off")
		case b.role == election.Follower:
			texts = append(texts, fmt.Sprintf("%s follows %s", b.name, c.nameOf(b.leader)))
		default:
			texts = append(texts, fmt.Sprintf("%s is %v", b.name, b.role))
		}
	}
	return strings.Join(texts, ", ")
}

// nameOf names the board with an id.
func (c *Cluster) nameOf(id wire.ID) string {
	for _, b := range c.boards {
		if b.id == id {
			return b.name
		}
	}
	return id.String()
}

// name names a board by its number; 0 is nobody.
func (c *Cluster) name(n int) string {
	if n == 0 {
		return ""
	}
	return c.boards[n-1].name
}
