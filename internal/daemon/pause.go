package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// Pause has the address stay where it is, on all boards of the group.
func (d *Daemon) Pause(ctx context.Context, asked console.PauseRequest) (console.Done, error) {
	return d.changePause(ctx, func(core *election.Core) ([]election.Effect, error) {
		return core.Pause(d.now(), time.Duration(asked.ForNs))
	})
}

// Unpause ends that.
func (d *Daemon) Unpause(ctx context.Context) (console.Done, error) {
	return d.changePause(ctx, func(core *election.Core) ([]election.Effect, error) { return core.Unpause(d.now()) })
}

// changePause asks the core to begin or end a pause, and says what has come of it.
func (d *Daemon) changePause(ctx context.Context, change func(*election.Core) ([]election.Effect, error)) (console.Done, error) {
	var done console.Done
	var refused error
	err := d.tasks.call(ctx, func() {
		if d.core == nil {
			refused = errNoNetworkYet
			return
		}
		var effects []election.Effect
		effects, refused = change(d.core)
		d.carryOut(effects)
		done.Text = d.describePause()
	})
	return done, errors.Join(err, refused)
}

// describePause says whether the group is paused.
func (d *Daemon) describePause() string {
	leader, left, paused := d.core.Paused(d.now())
	if !paused {
		return "the group is not paused any more"
	}
	return fmt.Sprintf("the group is paused for %v: only %s may lead, and topdog unpause ends that", left.Round(time.Second), d.called(leader))
}

// tellPause logs when a pause begins and ends, wherever somebody has asked for it.
func (d *Daemon) tellPause() {
	if d.core == nil {
		return
	}
	leader, _, paused := d.core.Paused(d.now())
	if !paused {
		leader = wire.Nobody
	}
	if leader != d.pausedFor {
		d.pausedFor = leader
		d.reporter.log.Info(d.describePause())
	}
}

// pauseStatus fills in what topdog status shows of it.
func (d *Daemon) pauseStatus(s *console.Status, now time.Duration) {
	leader, left, paused := d.core.Paused(now)
	if !paused {
		return
	}
	s.Paused, s.PauseLeader, s.PauseLeftNs = true, leader.String(), int64(max(0, left))
	s.Problems = append(s.Problems, console.Problem{Kind: console.ProblemPaused, Board: s.PauseLeader, Text: d.describePause()})
}
