package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/config"
	"topdog/internal/console"
)

// Board runs a daemon for each group that a board is in. These have a core, a lease and sockets each. They share the console,
// what systemd is told, and the UDP port.
type Board struct {
	log      *logrus.Entry
	socket   string // of the console; "" for none
	server   *console.Server
	unit     *unit
	exchange exchange

	daemons   []*Daemon
	reloading sync.Mutex // held while the files are read again, so that what was read last counts
}

// NewBoard returns a board that is in no group yet. The log is what concerns no group alone; nil for a silent one.
func NewBoard(socket string, log *logrus.Entry) *Board {
	if log == nil {
		log = silent()
	}
	b := &Board{log: log, socket: socket, server: console.NewServer(socket), unit: newUnit()}
	b.server.Report = func(err error) { log.Warn(err) }
	return b
}

// Run runs the board until ctx ends or one of its daemons does, which ends all of them.
func (b *Board) Run(ctx context.Context) error {
	serving, endConsole := context.WithCancel(context.WithoutCancel(ctx))
	var console sync.WaitGroup
	if b.socket != "" {
		console.Go(func() { b.serveConsole(serving) })
	}
	if len(b.daemons) > 1 {
		logFailure(b.log, "keep this board drained", b.inheritDrain())
	}
	running, endAll := context.WithCancel(ctx)
	defer endAll()
	var all sync.WaitGroup
	ended := make([]error, len(b.daemons))
	for i, d := range b.daemons {
		all.Go(func() {
			defer endAll()
			ended[i] = d.Run(running)
		})
	}
	all.Wait()
	endConsole()
	console.Wait()
	return errors.Join(distinct(ended)...)
}

// distinct leaves out what an earlier error says too: the groups lose the same holder.
func distinct(all []error) (some []error) {
	for _, err := range all {
		if err != nil && !slices.ContainsFunc(some, func(e error) bool { return e.Error() == err.Error() }) {
			some = append(some, err)
		}
	}
	return some
}

// serveRetry is how long to wait before the sockets are made again.
const serveRetry = 5 * time.Second

// serveConsole answers people and programs. A socket that cannot be made is reported and tried again; the election does not
// depend on it.
func (b *Board) serveConsole(ctx context.Context) {
	for {
		err := b.server.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			first := b.daemons[0]
			first.tasks.tryPost(func() { first.reporter.set(console.ProblemControlSocket, err.Error()) })
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(serveRetry):
		}
	}
}

// Reload reads the configuration again from the file at path, and applies what can be applied while the board runs. A
// configuration with a mistake changes nothing.
func (b *Board) Reload(path string) {
	b.unit.reloading(b.log)
	b.reloading.Lock()
	defer b.reloading.Unlock()
	groups, err := config.LoadGroups(path)
	if err == nil {
		err = groups.ReadKeys()
	}
	if err != nil {
		b.log.Errorf("the new configuration was not applied:\n%v", err)
	} else {
		b.reconfigure(groups)
	}
	b.unit.reloaded(b.log)
}

// reconfigure gives each daemon the new configuration of its group. It takes a restart to be in another group, or in one no
// more.
func (b *Board) reconfigure(groups config.Groups) {
	if b.daemons[0].witness {
		groups = groups.WithVoters()
	}
	if len(groups) == 1 && len(b.daemons) == 1 {
		b.daemons[0].takeConfig(groups.First()) // which logs that the name has changed
		return
	}
	var names []string
	for _, d := range b.daemons {
		names = append(names, d.cfg.Group) // which nobody changes while the daemon runs
		if cfg := groups.Named(d.cfg.Group); cfg != nil {
			d.takeConfig(cfg)
		}
	}
	if now := groups.Names(); !slices.Equal(names, now) {
		b.log.Warnf("the groups were %s and are %s now, which needs a restart: systemctl restart topdog",
			strings.Join(names, ", "), strings.Join(now, ", "))
	}
}
