package daemon

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// lease is the right of this board to answer for the address. It begins before the address is acquired, and ends when the
// core says so or when the address is released. A leader extends it with each heartbeat that it sends.
//
// The fence in the kernel enforces it, and so does the dead man's switch: when the lease ends, the holder releases the
// address, and sends the RESIGN that was signed for it.
type lease struct {
	shared
	group   *group
	fence   Fence  // nil where there is none
	problem string // why there is none at all
	begun   bool
	end     time.Duration // while it has begun; netio.NoEnd for none
	wake    time.Duration // when the dead man's switch wakes: at the end, or later
	until   atomic.Int64  // the end, for whoever asks outside of the loop; 0 while there is no lease

	uncovered int // how often in a row the present interfaces could not be covered

	// What the holder was given, and what it was made of.
	holder   Deadman      // nil if there is none
	resign   wire.Message // with its sequence
	revision int          // of the group
	past     bool         // the RESIGN is out of date, since the address was released: the holder will not send it
}

// open makes the fence. Without one, nothing ends a lease.
func (l *lease) open() {
	if l.platform.OpenFence == nil {
		l.problem = "not on this machine"
		return
	}
	fence, err := l.platform.OpenFence()
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

// close takes the fence away, and ends the use of the holder. If the address could not be released, the holder tries once more.
func (l *lease) close() {
	if l.holder != nil {
		l.reporter.failed("close the holder", l.holder.Close())
	}
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
	l.until.Store(int64(end))
	if l.fence != nil {
		l.fence.Begin(end)
	}
}

// extend moves the end. If somebody has ended the lease, fired says so, and is asked before anything else is done. A daemon
// that does not hear the majority may run on although its lease is over; the dead man's switch leaves it alone until
// overdue, or for good if that is 0. Both times are set at once, since a late acknowledgement may move the end into the
// past. Without a fence that closes, the switch must remove the address at the end of the lease.
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
	l.until.Store(int64(end))
	if l.fence != nil {
		l.fence.Extend(end, wake)
	}
}

// lapsed reports whether the lease has ended, and when.
func (l *lease) lapsed(now time.Duration) (end time.Duration, lapsed bool) {
	return l.end, l.begun && now >= l.end
}

// lasts reports whether this board may announce the address. It may be called outside of the loop.
func (l *lease) lasts() bool { return int64(l.now()) < l.until.Load() }

// endsAt reports whether the lease needs no change to end then.
func (l *lease) endsAt(end time.Duration) bool { return !l.begun || l.end == end }

// fired reports whether somebody else has ended the lease. Then this board must neither say that it
// leads nor touch the address.
func (l *lease) fired() bool { return l.begun && l.fence != nil && l.fence.Fired() }

// shut ends the lease before the address is released. It reports false if somebody else had ended it already.
func (l *lease) shut() (inTime bool) {
	l.past = true
	if !l.begun {
		return true
	}
	l.begun = false
	l.until.Store(0)
	return l.fence == nil || l.fence.Shut()
}

// released opens the fence when the address was certainly released.
func (l *lease) released() {
	if l.fence != nil && !l.begun {
		l.fence.Released()
	}
}

// closes reports whether the fence keeps everybody off an address that could not be released.
func (l *lease) closes() bool { return l.fence != nil && l.fence.Closes() }

const (
	coverRetries    = 5
	coverRetryEvery = time.Second
)

// cover puts the fence on the present interfaces. It is called outside of the loop, before the loop hears of them, since it
// waits for a lock of the kernel that other programs may hold for long.
func (l *lease) cover(s netio.Snapshot) {
	if l.fence == nil {
		return
	}
	err := l.fence.Cover(s.Interfaces)
	l.tasks.post(func() {
		l.uncovered = 0
		l.coverEnded(err)
	})
}

// coverEnded tries again if an interface is not covered, since the program of a daemon that was killed may still be there
// for a moment. It warns after some attempts.
func (l *lease) coverEnded(err error) {
	switch {
	case err == nil:
		l.reporter.solved(console.ProblemFence)
		return
	case l.uncovered == coverRetries:
		l.reporter.set(console.ProblemFence, err.Error())
		return
	}
	l.uncovered++
	l.tasks.start(func(ctx context.Context) {
		select {
		case <-time.After(coverRetryEvery):
			err := l.fence.CoverAgain()
			l.tasks.post(func() { l.coverEnded(err) })
		case <-ctx.Done():
		}
	})
}

// left is how long this board may answer for the address if the lease is not extended.
func (l *lease) left(now time.Duration) time.Duration {
	_, lapsed := l.lapsed(now)
	switch {
	case !l.begun || lapsed || l.fired():
		return 0
	case l.end == netio.NoEnd:
		return time.Duration(console.NoLeaseEnd)
	}
	return l.end - now
}

// status fills in what topdog status shows of the lease, the fence and the dead man's switch.
func (l *lease) status(s *console.Status, now time.Duration) {
	s.LeaseEndsInNs = int64(l.left(now))
	fence := console.Defence{Kind: console.DefenceFence, Text: l.problem}
	if l.fence != nil {
		var kind netio.FenceKind
		kind, fence.Text = l.fence.State()
		if fence.On = kind != netio.FenceNone; fence.On {
			fence.Method = kind.String()
			fence.Text = strings.TrimSuffix(fenceTexts[kind]+"; "+fence.Text, "; ")
		}
	}
	deadman := console.Defence{Kind: console.DefenceSwitch, On: l.holder != nil, Text: "not on this machine"}
	if deadman.On {
		deadman.Text = "a process of its own releases the address, and says so, when this daemon is killed or frozen"
	}
	s.Defences = append(s.Defences, fence, deadman)
}

// fenceTexts say what each kind of fence does.
var fenceTexts = map[netio.FenceKind]string{
	netio.FenceTCX: "the kernel drops what is for the address and from it when the lease is over, whatever is frozen",
	netio.FenceXDP: "the kernel drops what is for the address when the lease is over, whatever is frozen; what it sends from the address still leaves",
}

// watched begins to use the holder as the dead man's switch, and returns what is closed when the holder is lost.
func (l *lease) watched() <-chan struct{} {
	if l.platform.StartDeadman == nil {
		return nil
	}
	l.holder = l.platform.StartDeadman()
	return l.holder.Lost()
}

// prepare gives the holder a new RESIGN if the one that it has is out of date. If that fails, the leader goes on all the same.
func (l *lease) prepare(resign wire.Message) {
	if l.holder == nil || !l.past && resign.Term == l.resign.Term && resign.Grade == l.resign.Grade && resign.Resign == l.resign.Resign &&
		!l.group.presignDue(l.resign.Sequence, l.revision) {
		return
	}
	prepared, revision, err := l.group.presign(&resign)
	if err != nil {
		l.reporter.log.Errorf("sign the RESIGN in advance: %v", err)
		return
	}
	if resign.Resign.Successor == wire.Nobody {
		prepared = netio.PreparedResign{}
	}
	if err := l.holder.Prepare(prepared); err != nil {
		l.reporter.warn(console.ProblemDeadmanOutdated, err.Error())
		return
	}
	l.resign, l.revision, l.past = resign, revision, false
}

// named is the successor that the holder's RESIGN names; Nobody if it has none to send.
func (l *lease) named() wire.ID { return l.resign.Resign.Successor }

// firedFirst is called when the holder has ended the lease. Its RESIGN was sent, or is about to be, so whatever this board says
// from now on must have a later sequence.
func (l *lease) firedFirst() {
	l.group.skipTo(l.resign.Sequence)
	l.reporter.log.Warn("this daemon did not run when its next heartbeat was due: its dead man's switch has released the address")
}
