package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
)

// Daemon is a running board: the core that decides, and the owners of all that
// it takes to carry out what the core decides.
type Daemon struct {
	cfg      config.Config
	version  string
	platform Platform
	now      func() time.Duration
	started  time.Duration
	observe  func(election.Change)
	console  *console.Server

	core     *election.Core // nil until the board's own address is known
	finished bool           // the board has left the group
	killed   chan struct{}
	kill     sync.Once

	tasks    *tasks
	timer    timer
	link     *link
	group    *group
	address  *address
	deadman  *deadman
	reporter *reporter
	light    *light
	trace    *trace
	score    *score
	handover handover
}

// Options are the parts of a daemon that not every caller wants to set.
type Options struct {
	Log     *logrus.Entry // nil: silent
	Version string        // of the program
	// Observe is told, in the loop, of every change of role or leader.
	Observe func(election.Change)
}

// New returns a daemon that does not run yet. The error says what is wrong with the configuration.
func New(cfg *config.Config, platform Platform, o Options) (*Daemon, error) {
	if err := check(cfg); err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	d := &Daemon{
		cfg: *cfg, version: o.Version, observe: o.Observe,
		now: netio.Now, killed: make(chan struct{}), tasks: newTasks(),
	}
	if platform.Now != nil {
		d.now = platform.Now
	}
	d.started = d.now()
	d.trace = newTrace(d.now, platform.Now != nil)
	d.platform = d.trace.traced(platform)
	d.reporter = newReporter(o.Log, d.now)
	d.light = newLight(d.ledOpener(), d.ledFailed)
	d.link = newLink(&d.cfg, &d.platform, d.tasks, d.reporter)
	var err error
	if d.group, err = newGroup(&d.cfg, d.link, d.tasks, d.reporter, d.now); err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	d.deadman = &deadman{launch: platform.StartDeadman, group: d.group, tasks: d.tasks, reporter: d.reporter}
	d.address = newAddress(d.cfg.Addresses, &d.platform, d.link, d.group, d.deadman, d.tasks, d.reporter, d.now)
	d.address.rivalHeard = d.rivalHeard
	d.score = newScore(&d.cfg, &d.platform, d.tasks, d.reporter, d.now)
	d.score.changed = d.scoreChanged
	d.console = console.NewServer(cfg.Socket, socketMode, d)
	d.console.Report = func(err error) { d.tasks.tryPost(func() { d.reporter.log.Warn(err) }) }
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
	d.tasks.start(d.light.run)
	d.tasks.start(d.link.watch)
	d.tasks.start(d.score.run)
	d.tasks.start(d.serveConsole)
	defer d.tasks.cancel() // also if the loop panics
	d.loop(ctx)
	d.leave()
	return d.tasks.end()
}

// Kill ends the daemon as a power cut would: without a word to anybody.
func (d *Daemon) Kill() {
	d.kill.Do(func() { close(d.killed) })
}
