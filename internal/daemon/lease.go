package daemon

import (
	"context"
	"strings"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// lease is the right of this board to answer for the address. It begins before the address is acquired, and ends when the
// core says so or when the address is released. The fence in the kernel and the dead man's switch enforce it.
type lease struct {
	shared
	fence   Fence  // nil where there is none
	problem string // why there is none at all
	begun   bool
	end     time.Duration // while it has begun; netio.NoEnd for none
	wake    time.Duration // when the dead man's switch wakes: at the end, or later

	uncovered int // how often in a row the present interfaces could not be covered
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
	if l.fence != nil {
		l.fence.Extend(end, wake)
	}
}

// lapsed reports whether the lease has ended, and when.
func (l *lease) lapsed(now time.Duration) (end time.Duration, lapsed bool) {
	return l.end, l.begun && now >= l.end
}

// over reports whether this board must neither answer for the address at the moment, nor announce it.
func (l *lease) over(now time.Duration) bool {
	_, lapsed := l.lapsed(now)
	return lapsed || l.fired()
}

// endsAt reports whether the lease needs no change to end then.
func (l *lease) endsAt(end time.Duration) bool { return !l.begun || l.end == end }

// fired reports whether somebody else has ended the lease. Then this board must neither say that it
// leads nor touch the address.
func (l *lease) fired() bool { return l.begun && l.fence != nil && l.fence.Fired() }

// shut ends the lease before the address is released. It reports false if somebody else had ended it already.
func (l *lease) shut() (inTime bool) {
	if !l.begun {
		return true
	}
	l.begun = false
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
	err := l.fence.Cover(s.Interfaces, s.Link.Index)
	l.tasks.tryPost(func() {
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
	l.tasks.start(func(ctx context.Context) error {
		select {
		case <-time.After(coverRetryEvery):
			err := l.fence.CoverAgain()
			l.tasks.post(func() { l.coverEnded(err) })
		case <-ctx.Done():
		}
		return nil
	})
}

// left is how long this board may answer for the address if the lease is not extended.
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

// fenceTexts say what each kind of fence does.
var fenceTexts = map[netio.FenceKind]string{
	netio.FenceTCX: "the kernel drops what is for the address and from it when the lease is over, whatever is frozen",
	netio.FenceXDP: "the kernel drops what is for the address when the lease is over, whatever is frozen; what it sends from the address still leaves",
}

// deadman is the dead man's switch. When the lease of this daemon ends, the holder releases the address, and sends the
// RESIGN that was signed for it. A leader extends its lease with each heartbeat that it sends.
type deadman struct {
	shared
	group  *group
	holder Deadman // nil if there is none

	// What the holder was given, and what it was made of.
	resign   wire.Message // with its sequence
	revision int          // of the group
	past     bool         // it is out of date, since the address was released: the holder will not send it
}

// start begins to use the holder. It calls lost, in the loop, if the holder is lost.
func (s *deadman) start(lost func()) {
	if s.platform.StartDeadman == nil {
		return
	}
	holder := s.platform.StartDeadman()
	s.holder = holder
	s.tasks.start(func(ctx context.Context) error {
		select {
		case <-holder.Lost():
			s.tasks.post(lost)
		case <-ctx.Done():
		}
		return nil
	})
}

// close ends the use of the holder. If the address could not be released, the holder goes on trying.
func (s *deadman) close(unreleased bool) {
	switch {
	case s.holder == nil:
	case unreleased:
		s.reporter.failed("leave the address to the holder", s.holder.Abandon())
	default:
		s.reporter.failed("close the holder", s.holder.Close())
	}
}

// update gives the holder a new RESIGN if the one that it has is out of date. If that fails, the leader goes on all the same.
func (s *deadman) update(resign wire.Message) {
	if s.holder == nil || !s.past && resign.Term == s.resign.Term && resign.Grade == s.resign.Grade && resign.Resign == s.resign.Resign &&
		!s.group.presignDue(s.resign.Sequence) && s.group.revision() == s.revision {
		return
	}
	resign.Sequence = s.group.presignSequence()
	var prepared netio.PreparedResign
	if resign.Resign.Successor != wire.Nobody {
		datagram, err := s.group.presign(resign)
		if err != nil {
			s.reporter.log.Errorf("sign the RESIGN in advance: %v", err)
			return
		}
		prepared = netio.PreparedResign{Datagram: datagram, To: s.group.destinations()}
	}
	if err := s.holder.Prepare(prepared); err != nil {
		s.reporter.warn(console.ProblemDeadmanOutdated, err.Error())
		return
	}
	s.resign, s.revision, s.past = resign, s.group.revision(), false
}

// named is the successor that the holder's RESIGN names; Nobody if it has none to send.
func (s *deadman) named() wire.ID { return s.resign.Resign.Successor }

// released is called when this daemon has released the address itself.
func (s *deadman) released() { s.past = true }

// acted is called when the lease was ended by the holder.
func (s *deadman) acted() {
	// The RESIGN was sent, or is about to be. Whatever this board says from now on must have a later sequence.
	s.group.skipTo(s.resign.Sequence)
	s.reporter.log.Warn("this daemon did not run when its next heartbeat was due: its dead man's switch has released the address")
}

// status fills in what topdog status shows of it.
func (s *deadman) status(status *console.Status) {
	d := console.Defence{Kind: console.DefenceSwitch, On: s.holder != nil, Text: "not on this machine"}
	if d.On {
		d.Text = "a process of its own releases the address, and says so, when this daemon is killed or frozen"
	}
	status.Defences = append(status.Defences, d)
}
