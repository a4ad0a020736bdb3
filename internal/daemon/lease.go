package daemon

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
)

// Fence is the lease of the leader, and what in the kernel enforces it; netio.Fence is the
// real one.
type Fence interface {
	// Begin, Extend, Shut, Released and Fired are about the lease. The kernel and the holder
	// share it.
	Begin(end time.Duration)
	Extend(end, wake time.Duration) bool
	Shut() (inTime bool)
	Released()
	Fired() bool
	// Cover puts the fence on interfaces. It may be called beside the loop.
	Cover(interfaces []int, first int) error
	CoverAgain() error
	// Closes reports whether nobody reaches this board by the addresses once the lease was ended.
	Closes() bool
	State() (kind netio.FenceKind, problem string)
	Close() error
}

// lease is the right of this board to answer for the address: it begins before the address
// is acquired, ends when the core says so, and is over when the address was released. What
// enforces it is the fence in the kernel, and the dead man's switch.
type lease struct {
	shared
	fence   Fence  // nil where there is none
	problem string // why there is none at all
	begun   bool
	end     time.Duration // while it has begun; netio.NoEnd for none
	wake    time.Duration // when the dead man's switch looks: at the end, or later

	covered int // how often covering the interfaces was tried in vain since they changed
}

// open makes the fence. Without one, nothing ends a lease.
func (l *lease) open(floating []config.Address) {
	if l.platform.OpenFence == nil {
		l.problem = "not on this machine"
		return
	}
	fence, err := l.platform.OpenFence(ipsOf(floating))
	if err != nil {
		l.problem = err.Error()
		l.reporter.log.Warnf("%v; if this daemon is frozen, its address stays for up to two seconds", err)
		return
	}
	l.fence = fence
	kind, problem := fence.State()
	if kind == netio.FenceNone {
		l.reporter.log.Infof("no fence in the kernel: %s", problem)
		return
	}
	l.reporter.log.Infof("a fence in the kernel (%v) ends what a frozen leader answers", kind)
}

// close takes the fence away.
func (l *lease) close() {
	if l.fence != nil {
		l.reporter.failed("close the fence", l.fence.Close())
	}
}

// begin begins the lease, unless it has begun.
func (l *lease) begin(end time.Duration) {
	if l.begun {
		return
	}
	l.begun, l.end, l.wake = true, end, end
	if l.fence != nil {
		l.fence.Begin(end)
	}
}

// extend moves its end. Whether it could is asked before the next thing is done. Until overdue, which is 0 for
// never, the dead man's switch leaves a daemon alone that runs although its lease is over: the majority was not heard.
// Both are set at once, since an acknowledgement that comes late may move the end to a moment that is over.
// Where the kernel does not keep everybody off, the switch must remove the address at the end of the lease.
func (l *lease) extend(end, overdue time.Duration) {
	if !l.begun {
		return
	}
	wake := end
	if overdue > end && l.closes() {
		wake = overdue
	}
	if l.end == end && l.wake == wake {
		return
	}
	l.end, l.wake = end, wake
	if l.fence != nil {
		l.fence.Extend(end, wake)
	}
}

// lapsed reports whether the lease has ended, and when.
func (l *lease) lapsed(now time.Duration) (end time.Duration, lapsed bool) {
	return l.end, l.begun && now >= l.end
}

// over reports whether this board must not answer for the address at the moment, nor say that it does.
func (l *lease) over(now time.Duration) bool {
	_, lapsed := l.lapsed(now)
	return lapsed || l.fired()
}

// endsAt reports whether there is nothing to do to have the lease end then.
func (l *lease) endsAt(end time.Duration) bool { return !l.begun || l.end == end }

// fired reports whether somebody has ended the lease: then this board must neither say that it
// leads nor touch the address.
func (l *lease) fired() bool { return l.begun && l.fence != nil && l.fence.Fired() }

// shut ends the lease before the address is released. It reports false if somebody has ended it.
func (l *lease) shut() (inTime bool) {
	if !l.begun {
		return true
	}
	l.begun = false
	return l.fence == nil || l.fence.Shut()
}

// released is called when the address was released for certain: then nothing has to be kept off.
func (l *lease) released() {
	if l.fence != nil && !l.begun {
		l.fence.Released()
	}
}

// closes reports whether the fence keeps everybody from an address that is not released.
func (l *lease) closes() bool { return l.fence != nil && l.fence.Closes() }

const (
	coverRetries    = 5
	coverRetryEvery = time.Second
)

// cover puts the fence on the interfaces that there are now. It is called beside the loop, before
// the loop hears of them: it waits for a lock of the kernel that others may have for long.
func (l *lease) cover(s netio.Snapshot) {
	if l.fence == nil {
		return
	}
	err := l.fence.Cover(s.Interfaces, s.Link.Index)
	l.tasks.tryPost(func() {
		l.covered = 0
		l.coverEnded(err)
	})
}

// coverEnded tells if an interface is not covered, and tries again some times: a daemon that
// was killed may leave its program there for a moment.
func (l *lease) coverEnded(err error) {
	if err == nil {
		l.reporter.solved(console.ProblemFence)
		return
	}
	if l.covered++; l.covered <= coverRetries {
		l.tasks.start(l.coverAgain)
		return
	}
	l.reporter.warn(console.ProblemFence, err.Error(), forever)
}

// coverAgain tries it once more after a while, beside the loop as well.
func (l *lease) coverAgain(ctx context.Context) error {
	select {
	case <-time.After(coverRetryEvery):
		err := l.fence.CoverAgain()
		l.tasks.post(func() { l.coverEnded(err) })
	case <-ctx.Done():
	}
	return nil
}

// left is how long this board may answer for the address if nothing more is done.
func (l *lease) left(now time.Duration) time.Duration {
	switch {
	case !l.begun || l.over(now):
		return 0
	case l.end == netio.NoEnd:
		return time.Duration(console.NoLeaseEnd)
	}
	return l.end - now
}

// status fills in what topdog status shows of the lease and the fence.
func (l *lease) status(s *console.Status, now time.Duration) {
	s.LeaseEndsInNs = int64(l.left(now))
	d := console.Defence{Kind: console.DefenceFence, Text: l.problem}
	if l.fence != nil {
		var kind netio.FenceKind
		kind, d.Text = l.fence.State()
		if d.On = kind != netio.FenceNone; d.On {
			d.Method = kind.String()
			d.Text = strings.TrimSuffix(fenceTexts[kind]+"; "+d.Text, "; ")
		}
	}
	s.Defences = append(s.Defences, d)
}

// fenceTexts say what a fence does.
var fenceTexts = map[netio.FenceKind]string{
	netio.FenceTCX: "the kernel drops what is for the address and from it when the lease is over, whatever is frozen",
	netio.FenceXDP: "the kernel drops what is for the address when the lease is over, whatever is frozen; what it sends from the address still leaves",
}

// ipsOf are the floating addresses without their prefix lengths.
func ipsOf(floating []config.Address) (all []netip.Addr) {
	for _, f := range floating {
		all = append(all, f.IP)
	}
	return all
}
