package bench

import (
	"bytes"
	"context"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/bench/report"
)

const (
	// frozenFor is how long a daemon stands still.
	frozenFor = 10 * time.Second
	// boardFrozenFor is how long all processes of a board stand still: longer than
	// any kernel keeps an address with a lifetime.
	boardFrozenFor = 5 * time.Second
	// wokenFor is how long a group is watched after a daemon has gone on.
	wokenFor = 2 * time.Second
	// busyFor is how long something may go on in a group whose interval is short,
	// after a return.
	busyFor = 500 * time.Millisecond
	// flaps and flapEvery are those of the cable: out for so long, in for so long.
	flaps     = 10
	flapEvery = 500 * time.Millisecond
)

// happening is one of the things that the tables tell about.
type happening struct{ key, title string }

// event is something that is done to a leader. It may tell about several
// happenings, the end of a fault being one of its own.
type event struct {
	key     string
	gives   []happening
	coarse  bool // the client asks as slowly as it asks a slow system
	variant variant
	unable  func(s system) string // why not with this system, or ""
	run     func(ctx context.Context, t *trial) error
}

func (e event) String() string { return e.key }

// tellsOf reports whether the event gives runs of a happening.
func (e event) tellsOf(key string) bool {
	return slices.ContainsFunc(e.gives, func(h happening) bool { return h.key == key })
}

// allEvents returns all events in the order in which tables show them.
func allEvents() []event {
	return []event{
		{key: report.CablePulled, run: pullCable, gives: []happening{
			{report.CablePulled, "the leader's cable is pulled"},
			{report.Returned, "the cable is put back, the old leader returns"},
		}},
		{key: report.FramesDropped, run: dropFrames, gives: []happening{
			{report.FramesDropped, "the switch drops the leader's frames, the carrier stays"},
			{report.PathHealed, "the frames pass again (two holders: from the first frame that does)"},
		}},
		{key: report.Killed, run: kill, gives: []happening{{report.Killed, "SIGKILL of the leader's daemon"}}},
		{key: report.Stopped, run: freeze, gives: []happening{
			{report.Stopped, "SIGSTOP of the leader's daemon for 10 s, then SIGCONT"},
			{"sigcont", "the frozen daemon goes on (SIGCONT)"},
		}},
		{key: report.BothFrozen, run: freezeBoard, unable: sameAsStopped, gives: []happening{
			{report.BothFrozen, "SIGSTOP of all processes of the leader's board for 5 s"},
			{"both-woken", "all processes of the frozen board go on (SIGCONT)"},
		}},
		{key: report.Terminated, run: terminate, gives: []happening{{report.Terminated, "SIGTERM (systemctl stop)"}}},
		{key: report.Resigned, run: resign, gives: []happening{{report.Resigned, "hand-over by command"}}},
		{key: report.CableFlaps, coarse: true, run: flap, gives: []happening{
			{report.CableFlaps, "the cable is out for 500 ms and in for 500 ms, ten times (outage: the sum of all over 8 ms)"},
		}},
		{key: report.Preempted, variant: variant{preempt: true}, run: comeBack, gives: []happening{
			{report.Preempted, "a board of higher rank returns and preempts"},
		}},
	}
}

// sameAsStopped: only topdog has a process that outlives the freezing of its daemon.
func sameAsStopped(s system) string {
	if s.info().Program == "topdog" {
		return ""
	}
	return "SIGSTOP of the daemon is of all its processes already"
}

func pullCable(ctx context.Context, t *trial) error {
	struck := time.Now()
	if err := t.leader.Pull(); err != nil {
		return err
	}
	if err := t.lost(ctx); err != nil {
		return err
	}
	if err := t.note(ctx, report.CablePulled, struck); err != nil {
		return err
	}
	back := time.Now()
	if err := t.leader.Plug(); err != nil {
		return err
	}
	if err := t.lookOn(ctx, wokenFor/2+t.aftermath()); err != nil {
		return err
	}
	return t.note(ctx, report.Returned, back)
}

// lost waits until another board has taken over for good.
func (t *trial) lost(ctx context.Context) error {
	if err := t.takenOver(ctx); err != nil {
		return err
	}
	if err := wait(ctx, t.aftermath()); err != nil {
		return err
	}
	if len(t.holders.Current()) > 1 {
		t.leave() // it won't be a matter of milliseconds any more
	}
	return t.oneHolder(ctx)
}

// lookOn waits, and lets others have the stage as soon as milliseconds are not to
// be expected any more.
func (t *trial) lookOn(ctx context.Context, d time.Duration) error {
	soon := min(d, max(busyFor, t.aftermath()))
	if err := wait(ctx, soon); err != nil {
		return err
	}
	t.leave()
	return wait(ctx, d-soon)
}

// dropFrames splits the group without anybody's knowledge. Each side then has a
// holder, which nobody could prevent, and they can't hear each other: two holders
// count from the end of the split.
func dropFrames(ctx context.Context, t *trial) error {
	leader := t.leader
	struck := time.Now()
	if err := leader.Mute(); err != nil {
		return err
	}
	if err := t.takenOver(ctx); err != nil {
		return err
	}
	if err := wait(ctx, t.aftermath()); err != nil {
		return err
	}
	if err := t.note(ctx, report.FramesDropped, struck); err != nil {
		return err
	}

	first, err := t.rig.firstFrame(leader)
	if err != nil {
		return err
	}
	defer first.close()
	healed := time.Now()
	if err := leader.Unmute(); err != nil {
		return err
	}
	passed, err := first.wait(ctx, t.patience())
	if err != nil {
		return err
	}
	if err := t.lookOn(ctx, max(wokenFor, 4*t.sys.info().Interval)); err != nil {
		return err
	}
	if err := t.oneHolder(ctx); err != nil {
		return err
	}
	if err := t.note(ctx, report.PathHealed, passed); err != nil {
		return err
	}
	run := t.runs[report.FramesDropped]
	run.Two, run.TwoLasts = t.holders.Since(healed).Overlap(), len(t.holders.Current()) > 1
	t.runs[report.FramesDropped] = run
	return nil
}

// kill is a crash: every process of the daemon dies at once.
func kill(ctx context.Context, t *trial) error {
	pids, err := t.pids(t.leader)
	if err != nil {
		return err
	}
	struck := time.Now()
	signalAll(pids, unix.SIGKILL)
	if err := t.lost(ctx); err != nil {
		return err
	}
	if err := t.note(ctx, report.Killed, struck); err != nil {
		return err
	}
	t.leave()
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
	struck := time.Now()
	signalAll(pids, unix.SIGSTOP)
	if err := t.lost(ctx); err != nil {
		return err
	}
	t.leave()
	select {
	case <-thaw:
	case <-ctx.Done():
		return ctx.Err()
	}
	// Without the stage, for which it might have to wait: the time is to be the same
	// for all, and who has the address is not seen with the client's eyes.
	woken := time.Now()
	signalAll(pids, unix.SIGCONT)
	if err := wait(ctx, wokenFor); err != nil {
		return err
	}
	if err := t.note(ctx, report.Stopped, struck); err != nil {
		return err
	}
	return t.note(ctx, "sigcont", woken)
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
	struck := time.Now()
	signalAll(pids, unix.SIGSTOP)
	if err := t.takenOver(ctx); err != nil {
		return err
	}
	if err := wait(ctx, t.aftermath()); err != nil {
		return err
	}
	t.leave()
	select {
	case <-thaw:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := t.note(ctx, report.BothFrozen, struck); err != nil {
		return err
	}
	run := t.runs[report.BothFrozen]
	run.Announced = len(slices.DeleteFunc(heard.all(), func(a announcement) bool {
		return bytes.Equal(a.mac, t.leader.HardwareAddr)
	}))
	t.runs[report.BothFrozen] = run
	woken := time.Now()
	signalAll(pids, unix.SIGCONT)
	if err := wait(ctx, wokenFor); err != nil {
		return err
	}
	return t.note(ctx, "both-woken", woken)
}

func terminate(ctx context.Context, t *trial) error {
	struck := time.Now()
	if err := t.leader.process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := t.lost(ctx); err != nil {
		return err
	}
	if err := t.note(ctx, report.Terminated, struck); err != nil {
		return err
	}
	t.leave()
	t.leader.ended(leaveWithin)
	return t.leader.repair()
}

func resign(ctx context.Context, t *trial) error {
	do, undo, _ := t.sys.resign(t.leader)
	struck := time.Now()
	if err := do(ctx); err != nil {
		return err
	}
	if err := t.lost(ctx); err != nil {
		return err
	}
	if err := t.note(ctx, report.Resigned, struck); err != nil {
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
	t.leave()
	tick := time.NewTicker(flapEvery)
	defer tick.Stop()
	struck := time.Now()
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
	if err := t.oneHolder(ctx); err != nil {
		return err
	}
	if err := wait(ctx, t.aftermath()); err != nil {
		return err
	}
	if err := t.note(ctx, report.CableFlaps, struck); err != nil {
		return err
	}
	run := t.runs[report.CableFlaps]
	run.Outage = t.asker.Report(struck).Unanswered
	t.runs[report.CableFlaps] = run
	return nil
}

// comeBack pulls the cable of the highest board and puts it back; the run is what
// follows then.
func comeBack(ctx context.Context, t *trial) error {
	if err := t.leader.Pull(); err != nil {
		return err
	}
	if err := t.lost(ctx); err != nil {
		return err
	}
	t.leave()
	if err := wait(ctx, max(time.Second, 3*t.sys.info().Interval)); err != nil {
		return err
	}
	if err := t.enter(ctx); err != nil {
		return err
	}
	back := time.Now()
	if err := t.leader.Plug(); err != nil {
		return err
	}
	if err := t.patiently(ctx, t.patience(), func(ctx context.Context) error {
		return t.answeredBy(ctx, t.leader)
	}); err != nil {
		return err
	}
	if err := wait(ctx, t.aftermath()); err != nil {
		return err
	}
	if err := t.oneHolder(ctx); err != nil {
		return err
	}
	return t.note(ctx, report.Preempted, back)
}
