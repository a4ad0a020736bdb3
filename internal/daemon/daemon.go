package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/systemd"
	"topdog/wire"
)

// Daemon is a running board.
type Daemon struct {
	cfg      config.Config
	version  string
	platform Platform
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
	Log     *logrus.Entry // nil: silent
	Version string        // of the program
	// Observe is told, in the loop, of every change of role or leader.
	Observe func(election.Change)
}

// New returns a node that does not run yet. The error says what is wrong with the configuration.
func New(cfg *config.Config, platform Platform, o Options) (*Daemon, error) {
	if err := check(cfg); err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	codec, err := wire.NewCodec(cfg.Group, cfg.Key.Bytes())
	if err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	if o.Log == nil {
		o.Log = silent()
	}
	d := &Daemon{
		cfg:       *cfg,
		version:   o.Version,
		platform:  platform,
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
	d.ctx, d.endTasks = context.WithCancel(context.Background())
	for range inboxSize {
		d.free <- new(packet)
	}
	d.now = netio.Now
	if platform.Now != nil {
		d.now = platform.Now
	}
	d.trace = newTrace(d.now, platform.Now != nil)
	d.platform = d.traced(platform)
	d.started = d.now()
	d.console = console.NewServer(cfg.Socket, socketMode, d)
	d.console.Report = func(err error) { d.tell(func() { d.log.Warn(err) }) }
	d.news.now = d.now
	d.holding.fitAt = never
	d.importance = importance{commands: make(chan []string, 1), toldAt: -time.Hour}
	d.led = newLights(d.ledOpener(), func(err error) {
		d.tell(func() {
			if d.news.trouble(console.ProblemLED, err.Error(), forever) {
				d.log.Warn(err)
			}
		})
	})
	return d, nil
}

// check refuses a configuration with which no core could be made: a board that has
// told systemd that it is ready must not find out then.
func check(cfg *config.Config) error {
	if len(cfg.Addresses) == 0 {
		return errors.New("no floating address is configured")
	}
	if cfg.ScoreSource == election.ScoreFromCommand && len(cfg.ScoreCommand) == 0 {
		return errors.New("the score is what a command prints, and no command is configured")
	}
	board := cfg.Config
	board.ID = max(board.ID, 1) // Nobody stands for the board's address, which is not known yet
	_, err := literature.NewCore(board, 0)
	return err
}

// Run runs the board until ctx ends; then it hands over, if it leads, and lets
// go of everything. Nothing that happens to the board ends it before.
func (d *Daemon) Run(ctx context.Context) error {
	defer d.endTasks()
	d.tasks.Go(func() error { return d.led.run(d.ctx) })
	d.tasks.Go(func() error { return d.findAndWatch(d.ctx) })
	if d.cfg.ScoreSource == election.ScoreFromCommand {
		command := d.cfg.ScoreCommand // the loop may replace it
		d.tasks.Go(func() error { return d.measure(d.ctx, command) })
	}
	if d.cfg.Socket != "" {
		d.tasks.Go(func() error { return d.serveConsole(d.ctx) })
	}
	d.loop(ctx)
	d.leave()
	d.endTasks()
	return d.tasks.Wait()
}

// Kill ends the node as a power cut would: without a word to anybody.
func (d *Daemon) Kill() {
	d.kill.Do(func() { close(d.killed) })
}

// stopWithin bounds how long a stopping leader waits for its successor.
const stopWithin = 500 * time.Millisecond

// loop takes in one thing at a time until the board has left the group.
func (d *Daemon) loop(ctx context.Context) {
	d.report("start", d.notifier.Ready())
	d.alarm = d.newAlarm()
	d.startDeadman()
	d.light()
	stop, deadline := ctx.Done(), (<-chan time.Time)(nil)
	for !d.finished {
		d.rest()
		select {
		case <-d.killed:
			return
		case <-stop:
			stop, deadline = nil, time.After(stopWithin)
			d.rouse()
			d.stop()
		case <-deadline:
			d.log.Warn("no successor answered in time; leaving without one")
			return
		case p := <-d.inbox:
			d.rouse()
			d.takeIn(p)
		case s := <-d.snapshots:
			d.rouse()
			d.see(s)
		case do := <-d.requests:
			d.rouse()
			do()
		case <-d.alarm.Rings():
			d.alarm.at = never
			d.rouse()
			d.wake()
		}
		d.settleIn()
		d.renewIdentity()
	}
}

// rest sets the alarm to the next thing that is due.
func (d *Daemon) rest() {
	d.trace.rest()
	now := d.now()
	next := never
	if d.core != nil {
		if at, ok := d.core.Deadline(); ok {
			next = min(next, at)
		}
	}
	next = min(next, d.holding.due(), d.link.due())
	if every := d.notifier.WatchdogInterval(); every > 0 {
		next = min(next, d.fedAt+every)
	}
	d.alarm.set(next, now)
}

// wake does what is due. The core comes first: if this process was asleep it
// lets go of the address before anything renews it.
func (d *Daemon) wake() {
	// What has arrived meanwhile may change what is due. What arrives while this
	// is taken in has to wait, or a flood would keep the leader from its heartbeat.
	for range len(d.inbox) {
		d.takeIn(<-d.inbox)
	}
	now := d.now()
	if d.core != nil {
		if at, ok := d.core.Deadline(); ok && at <= now {
			d.trace.woke(at, now)
			d.act(d.core.Wake(now))
		}
	}
	d.hold(d.now())
	d.mend(d.now())
	if every := d.notifier.WatchdogInterval(); every > 0 && now >= d.fedAt+every {
		d.fedAt = now
		d.report("feed the watchdog", d.notifier.Watchdog())
	}
}

// stop begins to leave the group.
func (d *Daemon) stop() {
	d.report("say that we stop", d.notifier.Stopping())
	if d.core == nil {
		d.finished = true
		return
	}
	d.trace.asked()
	d.act(d.core.Stop(d.now()))
}

// leave lets go of everything that the loop owns.
func (d *Daemon) leave() {
	d.letGo()
	if d.deadman.device != nil {
		d.report("close the dead man's switch", d.deadman.device.Close())
	}
	d.closeLink()
	d.report("close the alarm", d.alarm.Close())
}

// request has something done in the loop. It is dropped when the node ends.
func (d *Daemon) request(do func()) {
	select {
	case d.requests <- do:
	case <-d.ctx.Done():
	}
}

// tell is request for those whom the loop may wait for: it never blocks, and is
// dropped when the loop is far behind.
func (d *Daemon) tell(do func()) {
	select {
	case d.requests <- do:
	default:
	}
}

// ask has something done in the loop and waits for it.
func (d *Daemon) ask(ctx context.Context, do func()) error {
	answered := make(chan struct{})
	select {
	case d.requests <- func() { do(); close(answered) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.ctx.Done():
		return errStopping
	}
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.ctx.Done():
		return errStopping
	}
}

var errStopping = errors.New("the daemon is stopping")

// report logs a failure of something that the election does not depend on.
func (d *Daemon) report(what string, err error) {
	if err != nil {
		d.log.Warnf("%s: %v", what, err)
	}
}

// serveConsole answers people and programs. A socket that cannot be made is
// reported and tried again; the election does not depend on it.
func (d *Daemon) serveConsole(ctx context.Context) error {
	for {
		err := d.console.Run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		d.tell(func() {
			if err != nil && d.news.trouble(console.ProblemControlSocket, err.Error(), forever) {
				d.log.Warn(err)
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
