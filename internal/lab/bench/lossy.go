package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/netns"
)

// shortInterval is the interval below which a group is not watched beside others that
// keep this machine busy: it would take a late processor for a lost packet.
const shortInterval = 50 * time.Millisecond

// lossy watches groups that lose packets, each on a LAN of its own: all shares at once, first
// those with a longer interval and then the others. First nobody fails, and then the leader's
// cable is pulled a few times. Only the systems' own traffic is lost, by each receiver for
// itself. The client's questions are not, so that an outage is one of the address.
func (s *session) lossy(ctx context.Context) error {
	steps := len(s.plan.losses) * len(s.plan.servedSystems(false)) * (1 + s.plan.lossRuns)
	s.show.begin("loss", steps)
	if s.plan.together {
		return s.watchLossyGroups(ctx, s.plan.servedSystems(false), s.plan.losses, s.plan.lossFor)
	}
	var long, short []system
	for _, sys := range s.plan.servedSystems(false) {
		if sys.info().Interval < shortInterval {
			short = append(short, sys)
		} else {
			long = append(long, sys)
		}
	}
	return errors.Join(
		s.watchLossyGroups(ctx, long, s.plan.losses, s.plan.lossFor),
		s.watchLossyGroups(ctx, short, s.plan.losses, s.plan.lossFor),
	)
}

// idle watches the groups with a short interval, one beside the other, while nobody fails and
// nothing is lost: what is late here is this machine. The pulled cables come after that, so
// they are of a group that knows how late it can be.
func (s *session) idle(ctx context.Context) error {
	var short []system
	for _, sys := range s.plan.servedSystems(false) {
		if sys.info().Interval < shortInterval {
			short = append(short, sys)
		}
	}
	s.show.begin("nobody fails", len(short)*(1+s.plan.lossRuns))
	return s.watchLossyGroups(ctx, short, []float64{0}, s.plan.idleFor)
}

// watchLossyGroups watches groups of these systems with all shares at once.
func (s *session) watchLossyGroups(ctx context.Context, systems []system, shares []float64, d time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var jobs []func() error
	for _, share := range shares {
		for _, sys := range systems {
			jobs = append(jobs, func() error {
				l, err := s.lossyGroup(ctx, sys, share, d)
				if l.For > 0 {
					s.add(func(r *report.Report) { r.Lossy = append(r.Lossy, l) })
				}
				if err != nil {
					return fmt.Errorf("%s, loss of %g %%: %w", sys, 100*share, err)
				}
				return nil
			})
		}
	}
	return together(jobs...)
}

// lossyGroup watches one group under one loss.
func (s *session) lossyGroup(ctx context.Context, sys system, share float64, d time.Duration) (l report.Lossy, err error) {
	l = report.Lossy{System: sys.String(), Loss: share}
	r, err := newRig(sys, 3, variant{})
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.startInTurn(ctx); err != nil {
		return l, err
	}
	if _, err := r.stableLeader(ctx); err != nil {
		return l, err
	}
	if share > 0 {
		lost := netns.Filter{To: netns.Ports(hostsOf(r.boards)...), Traffic: sys.traffic(), Share: share}
		if err := r.LAN.Filter(lost); err != nil {
			return l, err
		}
	}
	if err := r.watchUntouched(ctx, &l, d); err != nil {
		return l, err
	}
	s.show.done()
	for range s.plan.lossRuns {
		run, err := r.pullUnderLoss(ctx)
		if err != nil {
			return l, err
		}
		l.Runs = append(l.Runs, run)
		s.show.done()
	}
	return l, nil
}

// watchUntouched watches a group in which nobody fails, and asks at the address as a client does.
func (r *rig) watchUntouched(ctx context.Context, l *report.Lossy, d time.Duration) error {
	asker, err := r.LAN.Ask(vip, slowAskInterval)
	if err != nil {
		return err
	}
	defer asker.Close()
	began := time.Now()
	err = wait(ctx, d)
	seen := r.Holders.Since(began)
	l.For, l.Moves, l.Two = seen.To.Sub(seen.From), seen.Moves(), seen.Overlap()
	if _, silent := asker.Last(); silent > 2*slowAskInterval {
		l.Unanswered = silent
	}
	gaps, _ := asker.Gaps(0)
	for _, g := range gaps {
		if g.Before != 0 { // it had been answered before
			l.Unanswered += max(0, g.Duration()-g.Paused)
		}
	}
	return err
}

// pullUnderLoss pulls the cable of whoever has the address, as soon as there is one
// board that has had it for a while. A group that is never stable under such loss is
// taken as it is.
func (r *rig) pullUnderLoss(ctx context.Context) (run report.Run, err error) {
	leader, err := r.stableOrAnyHolder(ctx)
	if err != nil {
		return run, err
	}
	t := &trial{rig: r, leader: leader, runs: make(map[string]*report.Run)}
	defer t.end()
	if t.asker, err = r.LAN.Ask(vip, slowAskInterval); err != nil {
		return run, err
	}
	if err := t.awaitAnswer(ctx); err != nil {
		return run, err
	}
	faultAt := time.Now()
	if err := leader.Pull(); err != nil {
		return run, err
	}
	if err := t.awaitTakeover(ctx); err != nil {
		return run, err
	}
	if err := t.note(ctx, report.CablePulled, faultAt); err != nil {
		return run, err
	}
	return *t.runs[report.CablePulled], leader.Plug()
}

// stableOrAnyHolder waits for a board that alone has had the address for the time for
// which its system must be stable. If the address keeps moving, its holder of the moment is
// as good as any.
func (r *rig) stableOrAnyHolder(ctx context.Context) (*board, error) {
	stable := r.sys.stableFor()
	deadline := time.Now().Add(stable + stableTimeout)
	began := time.Now()
	for {
		if n := soleHolder(r.Holders.Since(later(began, time.Now().Add(-stable))), stable); n > 0 {
			return r.boards[n-1], nil
		}
		if h := r.Holders.Current(); len(h) > 0 && time.Now().After(deadline) {
			return r.boards[h[len(h)-1]-1], nil
		}
		if err := wait(ctx, pollInterval); err != nil {
			return nil, err
		}
	}
}
