package daemon

import (
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// Daemon is a running board: the core that decides, and the owners of all that
// it takes to carry out what the core decides.
type Daemon struct {
	shared
	cfg      config.Config
	version  string
	witness  bool
	started  time.Duration
	refusals []console.Defence
	observe  func(election.Change)
	console  *console.Server

	core     *election.Core // nil until the board's own address is known
	clockAt  time.Duration  // when the rate of the clock was looked at last
	clockOff bool           // it was off then
	stopping bool           // the board is leaving the group
	lost     error          // the holder, without which the daemon can do nothing; nil while it is there
	finished bool           // it has left
	killed   chan struct{}
	kill     sync.Once

	majorityMissed condition // too few voters are heard
	portSilent     condition // nothing at all is heard
	portDead       bool      // and that for long

	timer       timer
	link        *link
	group       *group
	lan         *lan
	address     *address
	lease       *lease
	deadman     *deadman
	light       *light
	trace       *trace
	transitions *transitions
	checks      *checks
	trying      sync.Mutex // held while checks are tried that are not the daemon's
	reloading   sync.Mutex // held while the files are read again, so that what was read last counts
	drain       *drain
	pausedFor   wire.ID // who alone may lead, as it was logged last; Nobody if the group is not paused
	handover    handover
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
	// Refusals are lines of defence of this process, which whoever has started it has set up.
	Refusals []console.Defence
	// Observe is told, in the loop, of every change of role or leader.
	Observe func(election.Change)
}
