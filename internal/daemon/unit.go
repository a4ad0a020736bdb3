package daemon

import (
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/systemd"
)

// unit is what systemd is told of a board. The board is ready when all its groups are, and its watchdog is fed while all their
// loops turn.
type unit struct {
	notifier *systemd.Notifier

	mu       sync.Mutex // of what follows
	parts    []*unitPart
	stopping bool
}

// unitPart is the part of one group.
type unitPart struct {
	*unit
	group  string
	ready  bool
	status string
	fedAt  time.Duration // when its loop turned last
}

func newUnit() *unit { return &unit{notifier: systemd.New()} }

// add returns the part of another group.
func (u *unit) add(group string) *unitPart {
	p := &unitPart{unit: u, group: group}
	u.parts = append(u.parts, p)
	return p
}

// reloading tells systemd that the configuration is being read, and reloaded that this is over.
func (u *unit) reloading(log *logrus.Entry) { logFailure(log, "tell systemd", u.notifier.Reloading()) }
func (u *unit) reloaded(log *logrus.Entry)  { logFailure(log, "tell systemd", u.notifier.Ready()) }

// begins tells that the loop of a group runs.
func (p *unitPart) begins() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = true
	for _, other := range p.parts {
		if !other.ready {
			return nil
		}
	}
	return p.notifier.Ready()
}

// ends tells that a group ends, and so the board.
func (p *unitPart) ends() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return nil
	}
	p.stopping = true
	return p.notifier.Stopping()
}

// tell says how a group is.
func (p *unitPart) tell(status string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
	if len(p.parts) == 1 {
		return p.notifier.Status(status)
	}
	var all []string
	for _, part := range p.parts {
		if part.status != "" {
			all = append(all, part.group+": "+part.status)
		}
	}
	return p.notifier.Status(strings.Join(all, "; "))
}

// feed tells that the loop of a group turns. A loop that has not turned for as long as the others may wait is stuck, and then
// nobody feeds the watchdog.
func (p *unitPart) feed(now time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fedAt = now
	for _, other := range p.parts {
		if now-other.fedAt > p.notifier.WatchdogInterval() {
			return nil
		}
	}
	return p.notifier.Watchdog()
}
