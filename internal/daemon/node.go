package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"topdog/election"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/systemd"
	"topdog/wire"
)

// Config is what a node must know.
type Config struct {
	Addresses []Address // the floating addresses
	Interface string    // empty: the one whose subnet contains the first address
	Group     string
	Key       []byte  // 32 bytes, or nil for a group without authentication
	ID        wire.ID // 0: made of the board's own address
	Name      string
	Priority  uint8
	Preempt   bool
	Heartbeat time.Duration
	Algorithm wire.Algorithm
	Detector  election.DetectorKind
	Fanout    election.Fanout
	Measure   election.ScoreSource
	// ScoreCommand is the program with its arguments that finds out the board's
	// importance, for ScoreFromCommand.
	ScoreCommand []string
	Port         uint16       // of the group; where peers listen
	Peers        []netip.Addr // spoken to by unicast as well
	Socket       string       // path of the control socket; empty for none
	Version      string
}

// Address is a floating address. Bits 0 takes the length of the subnet in which it is found.
type Address struct {
	IP   netip.Addr
	Bits int
}

// Node is a running board.
type Node struct {
	cfg      Config
	around   Surroundings
	log      *logrus.Entry
	notifier *systemd.Notifier
	led      *lights
	console  *console.Server
	observe  func(election.Change)
	now      func() time.Duration

	started  time.Duration
	tasks    errgroup.Group  // what runs beside the loop
	ctx      context.Context // of the tasks
	endTasks context.CancelFunc

	inbox     chan *packet
	free      chan *packet
	requests  chan func()
	snapshots chan netio.Snapshot
	killed    chan struct{}
	kill      sync.Once

	link     link
	self     wire.ID
	outdated bool           // the id belongs to another board now; a new one is due
	core     *election.Core // nil until the board's own address is known
	guard    *wire.Guard
	codec    *wire.Codec
	sequence wire.Sequence
	life     wire.Incarnation
	paths    map[wire.ID]*path
	message  wire.Message // the one that is being taken in
	out      []byte       // the datagram that is being sent
	finished bool
	probes   int           // how often the address was probed, to tell the answers apart
	followed chan<- string // who leads next, for the one who asked for it

	holding    holding
	trace      trace
	deadman    deadman
	importance importance
	news       news
	drops      [wire.DropReasons]uint64
	counts     counters
	alarm      alarm
	fedAt      time.Duration // when systemd's watchdog was fed
}

// counters count what is worth knowing and has no other place.
type counters struct {
	received, sent, sendErrors, unaddressed, restored, rejoined, rivals uint64
}

// Options are the parts of a node that not every owner wants to set.
type Options struct {
	Log *logrus.Entry // nil: silent
	// Observe is told, in the loop, of every change of role or leader.
	Observe func(election.Change)
}

// New returns a node that does not run yet. The error says what is wrong with the configuration.
func New(cfg Config, around Surroundings, o Options) (*Node, error) {
	if len(cfg.Addresses) == 0 {
		return nil, errors.New("node: no floating address is configured")
	}
	if cfg.Measure == election.ScoreFromCommand && len(cfg.ScoreCommand) == 0 {
		return nil, errors.New("node: the measure is a command, and no command is configured")
	}
	codec, err := wire.NewCodec(cfg.Group, cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	if o.Log == nil {
		o.Log = silent()
	}
	n := &Node{
		cfg:       cfg,
		around:    around,
		log:       o.Log,
		notifier:  systemd.New(),
		observe:   o.Observe,
		inbox:     make(chan *packet, inboxSize),
		free:      make(chan *packet, inboxSize),
		requests:  make(chan func(), 16),
		snapshots: make(chan netio.Snapshot, 1),
		killed:    make(chan struct{}),
		codec:     codec,
		life:      newIncarnation(),
		paths:     make(map[wire.ID]*path),
	}
	n.ctx, n.endTasks = context.WithCancel(context.Background())
	for range inboxSize {
		n.free <- new(packet)
	}
	n.now = netio.Now
	if around.Now != nil {
		n.now = around.Now
	}
	n.trace = newTrace(n.now, around.Now != nil)
	n.around = n.traced(around)
	n.started = n.now()
	n.console = console.NewServer(cfg.Socket, socketMode, n, nil)
	n.console.Report = func(err error) { n.tell(func() { n.log.Warn(err) }) }
	n.news.now = n.now
	n.holding.fitAt = never
	n.importance = importance{commands: make(chan []string, 1), toldAt: -time.Hour}
	n.led = newLights(around.OpenLED, func(err error) {
		n.tell(func() {
			if n.news.trouble("led", err.Error(), forever) {
				n.log.Warn(err)
			}
		})
	})
	return n, nil
}

// Run runs the board until ctx ends; then it hands over, if it leads, and lets
// go of everything. Nothing that happens to the board ends it before.
func (n *Node) Run(ctx context.Context) error {
	defer n.endTasks()
	n.tasks.Go(func() error { return n.led.run(n.ctx) })
	n.tasks.Go(func() error { return n.findAndWatch(n.ctx) })
	if n.cfg.Measure == election.ScoreFromCommand {
		n.tasks.Go(func() error { return n.measure(n.ctx) })
	}
	if n.cfg.Socket != "" {
		n.tasks.Go(func() error { return n.serveConsole(n.ctx) })
	}
	n.loop(ctx)
	n.leave()
	n.endTasks()
	return n.tasks.Wait()
}

// Kill ends the node as a power cut would: without a word to anybody.
func (n *Node) Kill() {
	n.kill.Do(func() { close(n.killed) })
}

// stopWithin bounds how long a stopping leader waits for its successor.
const stopWithin = 500 * time.Millisecond

// loop takes in one thing at a time until the board has left the group.
func (n *Node) loop(ctx context.Context) {
	n.report("start", n.notifier.Ready())
	n.alarm = n.newAlarm()
	n.startDeadman()
	n.light()
	stop, deadline := ctx.Done(), (<-chan time.Time)(nil)
	for !n.finished {
		n.rest()
		select {
		case <-n.killed:
			return
		case <-stop:
			stop, deadline = nil, time.After(stopWithin)
			n.rouse()
			n.stop()
		case <-deadline:
			n.log.Warn("no successor answered in time; leaving without one")
			return
		case p := <-n.inbox:
			n.rouse()
			n.takeIn(p)
		case s := <-n.snapshots:
			n.rouse()
			n.see(s)
		case do := <-n.requests:
			n.rouse()
			do()
		case <-n.alarm.Rings():
			n.alarm.at = never
			n.rouse()
			n.wake()
		}
		n.settleIn()
		n.renewIdentity()
	}
}

// rest sets the alarm to the next thing that is due.
func (n *Node) rest() {
	n.trace.rest()
	now := n.now()
	next := never
	if n.core != nil {
		if at, ok := n.core.Deadline(); ok {
			next = min(next, at)
		}
	}
	next = min(next, n.holding.due(), n.link.due())
	if every := n.notifier.WatchdogInterval(); every > 0 {
		next = min(next, n.fedAt+every)
	}
	n.alarm.set(next, now)
}

// wake does what is due. The core comes first: if this process was asleep it
// lets go of the address before anything renews it.
func (n *Node) wake() {
	// What has arrived meanwhile may change what is due. What arrives while this
	// is taken in has to wait, or a flood would keep the leader from its heartbeat.
	for range len(n.inbox) {
		n.takeIn(<-n.inbox)
	}
	now := n.now()
	if n.core != nil {
		if at, ok := n.core.Deadline(); ok && at <= now {
			n.trace.woke(at, now)
			n.act(n.core.Wake(now))
		}
	}
	n.hold(n.now())
	n.mend(n.now())
	if every := n.notifier.WatchdogInterval(); every > 0 && now >= n.fedAt+every {
		n.fedAt = now
		n.report("feed the watchdog", n.notifier.Watchdog())
	}
}

// stop begins to leave the group.
func (n *Node) stop() {
	n.report("say that we stop", n.notifier.Stopping())
	if n.core == nil {
		n.finished = true
		return
	}
	n.trace.asked()
	n.act(n.core.Stop(n.now()))
}

// leave lets go of everything that the loop owns.
func (n *Node) leave() {
	n.letGo()
	if n.deadman.device != nil {
		n.report("close the dead man's switch", n.deadman.device.Close())
	}
	n.closeLink()
	n.report("close the alarm", n.alarm.Close())
}

// request has something done in the loop. It is dropped when the node ends.
func (n *Node) request(do func()) {
	select {
	case n.requests <- do:
	case <-n.ctx.Done():
	}
}

// tell is request for those whom the loop may wait for: it never blocks, and is
// dropped when the loop is far behind.
func (n *Node) tell(do func()) {
	select {
	case n.requests <- do:
	default:
	}
}

// ask has something done in the loop and waits for it.
func (n *Node) ask(ctx context.Context, do func()) error {
	answered := make(chan struct{})
	select {
	case n.requests <- func() { do(); close(answered) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-n.ctx.Done():
		return errStopping
	}
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-n.ctx.Done():
		return errStopping
	}
}

var errStopping = errors.New("the daemon is stopping")

// report logs a failure of something that the election does not depend on.
func (n *Node) report(what string, err error) {
	if err != nil {
		n.log.Warnf("%s: %v", what, err)
	}
}

// serveConsole answers people and programs. A socket that cannot be made is
// reported and tried again; the election does not depend on it.
func (n *Node) serveConsole(ctx context.Context) error {
	for {
		err := n.console.Run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		n.tell(func() {
			if err != nil && n.news.trouble("console", err.Error(), forever) {
				n.log.Warn(err)
			}
		})
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(consoleRetry):
		}
	}
}

// socketMode lets every user of the board ask for the status; who may make it
// resign is decided by the caller's credentials.
const socketMode = 0o666

// consoleRetry is how long to wait before the control socket is made again.
const consoleRetry = 5 * time.Second

func silent() *logrus.Entry {
	l := logrus.New()
	l.SetLevel(logrus.PanicLevel)
	return logrus.NewEntry(l)
}
