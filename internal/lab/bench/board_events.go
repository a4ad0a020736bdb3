package bench

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/netns"
)

// slotPatience is for how long a run in which nobody takes over keeps others waiting.
const slotPatience = 2 * time.Second

// A pause lasts from pauseMin to pauseMax: what a busy or virtual machine does to its processes.
const (
	pauseMin = 5 * time.Millisecond
	pauseMax = 30 * time.Millisecond
)

// pauses lets all processes of the leader's board stand still for moments, forty times. Whoever
// leads at the time is the one.
func pauses(ctx context.Context, t *trial) error {
	t.releaseSlot()
	random := t.random()
	began := time.Now()
	for range disturbances {
		if holders := t.Holders.Current(); len(holders) > 0 {
			t.leader = t.boards[holders[len(holders)-1]-1]
		}
		if err := t.pause(ctx, between(random, pauseMin, pauseMax)); err != nil {
			return err
		}
		if err := wait(ctx, between(random, calmMin, calmMax)); err != nil {
			return err
		}
	}
	if err := t.note(ctx, report.Pauses, began); err != nil {
		return err
	}
	t.runs[report.Pauses].Outage = t.asker.Report(began).Unanswered
	return nil
}

// pause lets all processes of the leader's board stand still.
func (t *trial) pause(ctx context.Context, d time.Duration) error {
	pids, err := t.leader.Processes()
	if err != nil {
		return err
	}
	signalAll(pids, unix.SIGSTOP)
	defer signalAll(pids, unix.SIGCONT)
	return wait(ctx, d)
}

// deaf lets nothing get to the leader, whose own frames get out.
func deaf(ctx context.Context, t *trial) error {
	return t.oneWay(ctx, netns.Filter{To: netns.Ports(t.leader.Host)}, report.Deaf)
}

// mute lets nothing of the leader get out, which hears all the others.
func mute(ctx context.Context, t *trial) error {
	return t.oneWay(ctx, netns.Filter{From: netns.Ports(t.leader.Host)}, report.Mute)
}

func (t *trial) oneWay(ctx context.Context, frames netns.Filter, key string) error {
	faultAt := time.Now()
	return t.rig.without(frames, func() error {
		other := func(ctx context.Context) error {
			_, err := t.asker.WaitAnswer(ctx, func(n int) bool { return n != t.leader.Number })
			return err
		}
		if err := t.atMost(ctx, slotPatience, other); err != nil {
			return err
		}
		if last, _ := t.asker.Last(); last == t.leader.Number {
			t.releaseSlot() // It is no matter of milliseconds any more.
		}
		return t.noteTakeover(ctx, key, faultAt)
	})
}

// without does something while the switch drops frames.
func (r *rig) without(frames netns.Filter, do func() error) error {
	if err := r.LAN.Filter(frames); err != nil {
		return err
	}
	return errors.Join(do(), r.LAN.Filter())
}
