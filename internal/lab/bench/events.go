package bench

import (
	"bytes"
	"context"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/netns"
)

const (
	// frozenFor is how long a daemon stands still.
	frozenFor = 10 * time.Second
	// boardFrozenFor is how long all processes of a board stand still: longer than
	// any kernel keeps an address with a lifetime.
	boardFrozenFor = 5 * time.Second
	// thawedFor is how long a group is watched after a daemon has gone on.
	thawedFor = 2 * time.Second
	// handoverFor is how long something may go on in a group whose interval is short,
	// after a return.
	handoverFor = 500 * time.Millisecond
	// flaps and flapEvery are those of the cable: out for so long, in for so long.
	flaps     = 10
	flapEvery = 500 * time.Millisecond
)

// event is something that is done to a leader. Its runs may go into several tables of the
// report, since the end of a fault has one of its own.
type event struct {
	tables  []report.Event // the first one is that of the event itself, and has its key
	coarse  bool           // the client asks as slowly as it asks a slow system
	probed  bool           // each board is asked by ARP as well, so that two that answer are seen
	served  bool           // it is about the boards' service, which the client asks
	teaches bool           // a group may be more patient afterwards, so the next run wants another
	seldom  bool           // it takes long, so it has fewer runs
	variant variant
	unable  func(s system) string // why not with this system, or ""
	run     func(ctx context.Context, t *trial) error
}

func (e event) String() string { return e.tables[0].Key }

// fills reports whether runs of the event go into a table.
func (e event) fills(key string) bool {
	return slices.ContainsFunc(e.tables, func(t report.Event) bool { return t.Key == key })
}

// allEvents returns all events in the order in which tables show them.
func allEvents() []event {
	preempted := event{
		variant: variant{preempt: true}, run: comeBack, tables: []report.Event{
			{Key: report.Preempted, Title: "a board of higher rank returns and preempts"},
		},
	}
	return slices.Concat(leaderEvents(), pageEvents(), lanEvents(), []event{preempted}, serviceEvents())
}

// leaderEvents are those in which the leader, its daemon or its cable ends.
func leaderEvents() []event {
	return []event{
		{run: pullCable, tables: []report.Event{
			{Key: report.CablePulled, Title: "the leader's cable is pulled"},
			{Key: report.Returned, Title: "the cable is put back, the old leader returns"},
		}},
		{run: dropFrames, teaches: true, tables: []report.Event{
			{Key: report.FramesDropped, Title: "the switch drops the leader's frames, the carrier stays"},
			{Key: report.PathHealed, Title: "the frames pass again (two holders: from the first frame that does)"},
		}},
		{run: kill, tables: []report.Event{{Key: report.Killed, Title: "SIGKILL of the leader's daemon"}}},
		{run: freeze, probed: true, teaches: true, tables: []report.Event{
			{Key: report.Stopped, Title: "SIGSTOP of the leader's daemon for 10 s, then SIGCONT"},
			{Key: "sigcont", Title: "the frozen daemon goes on (SIGCONT)"},
		}},
		{run: freezeBoard, probed: true, teaches: true, unable: sameAsStopped, tables: []report.Event{
			{Key: report.BothFrozen, Title: "SIGSTOP of all processes of the leader's board for 5 s"},
			{Key: "both-woken", Title: "all processes of the frozen board go on (SIGCONT)"},
		}},
		{run: terminate, tables: []report.Event{{Key: report.Terminated, Title: "SIGTERM (systemctl stop)"}}},
		{run: resign, tables: []report.Event{{Key: report.Resigned, Title: "hand-over by command"}}},
		{coarse: true, run: flap, tables: []report.Event{
			{Key: report.CableFlaps, Title: "the cable is out for 500 ms and in for 500 ms, ten times (outage: the sum of all over 8 ms)"},
		}},
	}
}

// sameAsStopped: only topdog has a process that outlives the freezing of its daemon.
func sameAsStopped(s system) string {
	if _, ok := s.(*topdog); ok {
		return ""
	}
	return "SIGSTOP of the daemon is of all its processes already"
}

func pullCable(ctx context.Context, t *trial) error {
	faultAt := time.Now()
	if err := t.leader.Pull(); err != nil {
		return err
	}
	if err := t.noteTakeover(ctx, report.CablePulled, faultAt); err != nil {
		return err
	}
	back := time.Now()
	if err := t.leader.Plug(); err != nil {
		return err
	}
	if err := t.keepWatching(ctx, thawedFor/2+t.watchAfter()); err != nil {
		return err
	}
	return t.note(ctx, report.Returned, back)
}

// noteTakeover records a run that is over when another board has taken over for good.
func (t *trial) noteTakeover(ctx context.Context, key string, faultAt time.Time) error {
	if err := t.awaitTakeover(ctx); err != nil {
		return err
	}
	return t.note(ctx, key, faultAt)
}

// awaitTakeover waits until another board has taken over for good.
func (t *trial) awaitTakeover(ctx context.Context) error {
	if err := t.awaitOtherAnswer(ctx); err != nil {
		return err
	}
	if err := wait(ctx, t.watchAfter()); err != nil {
		return err
	}
	if len(t.Holders.Current()) > 1 {
		t.releaseSlot() // it won't be a matter of milliseconds any more
	}
	return t.awaitOneHolder(ctx)
}

// keepWatching waits, and lets the next run begin as soon as milliseconds do not count any
// more.
func (t *trial) keepWatching(ctx context.Context, d time.Duration) error {
	soon := min(d, max(handoverFor, t.watchAfter()))
	if err := wait(ctx, soon); err != nil {
		return err
	}
	t.releaseSlot()
	return wait(ctx, d-soon)
}

// dropFrames splits the group without anybody's knowledge. Each side then has a
// holder, which nobody could prevent, and they can't hear each other: two holders
// count from the end of the split.
func dropFrames(ctx context.Context, t *trial) error {
	leader := t.leader
	faultAt := time.Now()
	if err := t.LAN.Filter(netns.Cut(leader.Port())...); err != nil {
		return err
	}
	if err := t.awaitOtherAnswer(ctx); err != nil {
		return err
	}
	if err := wait(ctx, t.watchAfter()); err != nil {
		return err
	}
	if err := t.note(ctx, report.FramesDropped, faultAt); err != nil {
		return err
	}

	first, err := t.rig.firstFrame(leader)
	if err != nil {
		return err
	}
	defer first.close()
	healed := time.Now()
	if err := t.LAN.Filter(); err != nil {
		return err
	}
	passed, err := first.wait(ctx, t.maxOutage())
	if err != nil {
		return err
	}
	if err := t.keepWatching(ctx, max(thawedFor, 4*t.sys.info().Interval)); err != nil {
		return err
	}
	if err := t.awaitOneHolder(ctx); err != nil {
		return err
	}
	if err := t.note(ctx, report.PathHealed, passed); err != nil {
		return err
	}
	run := t.runs[report.FramesDropped]
	run.Two, run.TwoLasts = t.Holders.Since(healed).Overlap(), len(t.Holders.Current()) > 1
	return nil
}

// kill is a crash: every process of the daemon dies at once.
func kill(ctx context.Context, t *trial) error {
	pids, err := t.pids(t.leader)
	if err != nil {
		return err
	}
	faultAt := time.Now()
	signalAll(pids, unix.SIGKILL)
	if err := t.noteTakeover(ctx, report.Killed, faultAt); err != nil {
		return err
	}
	t.releaseSlot()
	return t.leader.repair()
}

// pids returns the processes of a board's daemon.
func (t *trial) pids(b *board) ([]int, error) {
	all, err := b.Processes()
	if err != nil {
		return nil, err
	}
	return t.sys.daemon(b, all), nil
}

func freeze(ctx context.Context, t *trial) error {
	pids, err := t.pids(t.leader)
	if err != nil {
		return err
	}
	defer signalAll(pids, unix.SIGCONT)
	thaw := time.After(frozenFor)
	faultAt := time.Now()
	signalAll(pids, unix.SIGSTOP)
	if err := t.awaitTakeover(ctx); err != nil {
		return err
	}
	t.releaseSlot()
	select {
	case <-thaw:
	case <-ctx.Done():
		return ctx.Err()
	}
	// Without the slot, for which it might have to wait: the time is to be the same for
	// all, and it is the kernels that say who has the address.
	thawed := time.Now()
	signalAll(pids, unix.SIGCONT)
	if err := wait(ctx, thawedFor); err != nil {
		return err
	}
	if err := t.note(ctx, report.Stopped, faultAt); err != nil {
		return err
	}
	return t.note(ctx, "sigcont", thawed)
}

func freezeBoard(ctx context.Context, t *trial) error {
	pids, err := t.leader.Processes()
	if err != nil {
		return err
	}
	heard, err := t.rig.hearAnnouncements()
	if err != nil {
		return err
	}
	defer heard.close()
	defer signalAll(pids, unix.SIGCONT)
	thaw := time.After(boardFrozenFor)
	faultAt := time.Now()
	signalAll(pids, unix.SIGSTOP)
	if err := t.awaitOtherAnswer(ctx); err != nil {
		return err
	}
	if err := wait(ctx, t.watchAfter()); err != nil {
		return err
	}
	t.releaseSlot()
	select {
	case <-thaw:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := t.note(ctx, report.BothFrozen, faultAt); err != nil {
		return err
	}
	t.runs[report.BothFrozen].Announced = len(slices.DeleteFunc(heard.all(), func(a announcement) bool {
		return bytes.Equal(a.mac, t.leader.HardwareAddr)
	}))
	thawed := time.Now()
	signalAll(pids, unix.SIGCONT)
	if err := wait(ctx, thawedFor); err != nil {
		return err
	}
	return t.note(ctx, "both-woken", thawed)
}

func terminate(ctx context.Context, t *trial) error {
	faultAt := time.Now()
	if err := t.leader.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := t.noteTakeover(ctx, report.Terminated, faultAt); err != nil {
		return err
	}
	t.releaseSlot()
	t.leader.Ended(exitTimeout)
	return t.leader.repair()
}

func resign(ctx context.Context, t *trial) error {
	do, undo := t.sys.resign(t.leader)
	faultAt := time.Now()
	if err := do(ctx); err != nil {
		return err
	}
	if err := t.noteTakeover(ctx, report.Resigned, faultAt); err != nil {
		return err
	}
	if undo != nil {
		return undo(ctx)
	}
	return nil
}

// flap counts how often the address moves, and all of the time without answers. In
// ten seconds the client is late by some milliseconds quite often, which must not
// add up; so it asks every 4 ms here, and gaps of less than twice that don't count.
func flap(ctx context.Context, t *trial) error {
	// It takes ten seconds, in which a millisecond does not matter.
	t.releaseSlot()
	tick := time.NewTicker(flapEvery)
	defer tick.Stop()
	faultAt := time.Now()
	for n := range 2 * flaps {
		change := t.leader.Pull
		if n%2 == 1 {
			change = t.leader.Plug
		}
		if err := change(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := t.awaitOneHolder(ctx); err != nil {
		return err
	}
	if err := wait(ctx, t.watchAfter()); err != nil {
		return err
	}
	if err := t.note(ctx, report.CableFlaps, faultAt); err != nil {
		return err
	}
	t.runs[report.CableFlaps].Outage = t.asker.Report(faultAt).Unanswered
	return nil
}

// comeBack pulls the cable of the highest board and puts it back; the run is what
// follows then.
func comeBack(ctx context.Context, t *trial) error {
	if err := t.leader.Pull(); err != nil {
		return err
	}
	if err := t.awaitTakeover(ctx); err != nil {
		return err
	}
	t.releaseSlot()
	if err := wait(ctx, max(time.Second, 3*t.sys.info().Interval)); err != nil {
		return err
	}
	if err := t.acquireSlot(ctx); err != nil {
		return err
	}
	back := time.Now()
	if err := t.leader.Plug(); err != nil {
		return err
	}
	if err := t.atMost(ctx, t.maxOutage(), func(ctx context.Context) error {
		return t.awaitAnswerOf(ctx, t.leader)
	}); err != nil {
		return err
	}
	if err := wait(ctx, t.watchAfter()); err != nil {
		return err
	}
	if err := t.awaitOneHolder(ctx); err != nil {
		return err
	}
	return t.note(ctx, report.Preempted, back)
}
