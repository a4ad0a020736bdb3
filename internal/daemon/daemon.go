package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/election/literature"
	"topdog/election/record"
	"topdog/election/steps"
	"topdog/gpio"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// Daemon is a running board: the core that decides, and the owners of everything that carries out what the core decides.
type Daemon struct {
	shared
	board    *Board
	cfg      config.Config
	version  string
	witness  bool
	started  time.Duration
	refusals []console.Defence
	observe  func(election.Change)
	console  *console.Group

	core      *record.Core      // nil until the board's own address is known
	recording *record.Recording // of all cores of this daemon
	steps     steps.List        // in which the effects of the core are carried out
	lookAt    time.Duration     // when to look after what no event tells
	clockAt   time.Duration     // when the rate of the clock was looked at last
	clockOff  bool              // it was off then
	stopping  bool              // the board is leaving the group
	lost      error             // the holder, without which the daemon can do nothing; nil while it is there
	finished  bool              // it has left
	killed    chan struct{}
	kill      sync.Once

	majorityMissed condition // too few voters are heard
	portSilent     condition // nothing at all is heard
	unanswered     condition // the leader's kernel does not answer for the address
	portDead       bool      // and has been so for long

	timer       timer
	link        *link
	group       *group      // on the first path
	second      *secondPath // nil for none
	lan         *lan
	address     *address
	lease       *lease
	light       *gpio.Blinker
	transitions *transitions
	checks      *checks
	trying      sync.Mutex // held while checks are tried that are not the daemon's
	drain       *drain
	pausedFor   wire.ID                 // who alone may lead, as it was logged last; Nobody if the group is not paused
	successor   chan<- console.Handover // is told who leads next; nil if no caller waits for that
	firewall    firewall
	duplicate   duplicate // of this board's own address
	silent      silentBoards
}

// Options are the parts of a daemon that not every caller wants to set.
type Options struct {
	Log     *logrus.Entry // nil: silent
	Version string        // of the program
	// Witness makes a witness of the board, whatever its configuration says of the lead.
	Witness bool
	// StateDir is the directory for what outlives the daemon; "" for nowhere.
	StateDir string
	// Refusals are lines of defence of this process that its caller has set up.
	Refusals []console.Defence
	// Observe is told, in the loop, of every change of role or leader.
	Observe func(election.Change)
}

// New returns the daemon of a board that is in one group and has no console. It does not run yet. The error says what is wrong
// with the configuration.
func New(cfg *config.Config, platform Platform, o Options) (*Daemon, error) {
	return NewBoard("", o.Log).Add(cfg, platform, o)
}

// Add adds a group to a board that does not run yet.
func (b *Board) Add(cfg *config.Config, platform Platform, o Options) (*Daemon, error) {
	if err := checkConfig(cfg); err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	if o.Witness {
		cfg = witnessed(cfg)
	}
	if o.Log == nil {
		o.Log = silent()
	}
	now := platform.Now
	d := &Daemon{
		shared: shared{platform: &platform, now: now, tasks: newTasks(), reporter: newReporter(o.Log, b.unit.add(cfg.Group), now)},
		board:  b,
		cfg:    *cfg, version: o.Version, witness: o.Witness, started: now(), observe: o.Observe, refusals: o.Refusals,
		killed: make(chan struct{}), silent: make(silentBoards),
	}
	d.trace, d.recording = newTrace(now, d.idAndName), record.New()
	d.transitions = newTransitions(cfg, func(t console.Transition) { d.console.Publish(t) })
	var err error
	d.link = newLink(d.shared, cfg)
	if d.group, err = newGroup(d.shared, cfg, d.link, &b.exchange, func(board netip.Addr) { d.lan.resolve(board) }); err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	d.group.program = ProgramName(o.Version)
	d.lease = &lease{shared: d.shared, group: d.group}
	d.link.cover = d.lease.cover
	d.address = &address{
		shared: d.shared, link: d.link, group: d.group, lease: d.lease, floating: cfg.Addresses, takes: cfg.TakeInUse,
		firstEnd: func() time.Duration { return d.core.FirstLeaseEnd() }, tellHeld: d.transitions.held, rivalHeard: d.rivalHeard, backOffUntil: never,
	}
	if d.second, err = newSecondPath(d.shared, cfg, &b.exchange, d.group); err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	for _, path := range d.paths() {
		path.mute = d.address.mayAnswer
	}
	d.lan = newLAN(d.shared, cfg.Witness, d.link, d.group, d.lanAnswered, d.watchReported)
	d.checks = newChecks(d.shared, cfg, d.link, d.scoreChanged)
	d.drain = newDrain(d.shared, newDrainFile(o.StateDir, cfg))
	d.light = gpio.NewBlinker(d.ledOpener(), d.ledFailed)
	d.console = b.server.Add(cfg.Group, d)
	b.daemons = append(b.daemons, d)
	return d, nil
}

// checkConfig refuses a configuration with which no core could be made: a board that has told systemd that it is ready must not
// find out then.
func checkConfig(cfg *config.Config) error {
	if !cfg.FirstIPv4().IsValid() {
		return errors.New("no floating IPv4 address is configured, and the election needs one")
	}
	if cfg.ScoreSource == election.ScoreFromCommand && len(cfg.ScoreCommand) == 0 {
		return errors.New("the score is what a command prints, and no command is configured")
	}
	board := cfg.Config
	board.ID = max(board.ID, 1) // 0 stands for the board's address, which is not known yet
	_, err := literature.NewCore(board, 0)
	return err
}

// Run runs the board until ctx ends; then it hands over, if it leads, and closes everything. Nothing but the loss of
// its holder ends it earlier.
func (d *Daemon) Run(ctx context.Context) error {
	wakes, err := d.platform.NewTimer()
	if err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	d.timer = timer{wakes, never}
	d.lease.open()
	d.tasks.run(d.light.Run)
	d.tasks.run(d.link.watch)
	if d.second != nil {
		d.tasks.run(d.second.link.watch)
	}
	defer d.tasks.cancel() // also if the loop panics
	d.loop(ctx)
	d.leave()
	return errors.Join(d.lost, d.tasks.end())
}

// Kill ends the daemon as a power cut would: without a word to anybody.
func (d *Daemon) Kill() {
	d.kill.Do(func() { close(d.killed) })
}
