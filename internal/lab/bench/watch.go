package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"topdog/internal/lab/netns"
)

// others are the systems that look at no service.
func (s *session) others() []*system {
	return slices.DeleteFunc(slices.Clone(s.plan.systems), (*system).served)
}

// oneByOne does something to one after the other, until the user has had enough, and shows how far it is.
func oneByOne[T any](ctx context.Context, s *session, title string, all []T, do func(T) error) (errs error) {
	s.show.begin(title, len(all))
	for _, one := range all {
		if ctx.Err() == nil {
			errs = errors.Join(errs, do(one))
			s.show.done()
		}
	}
	return errs
}

// starts measures cold starts, one after the other, the systems in turn.
func (s *session) starts(ctx context.Context) error {
	var all []*system
	for range s.plan.starts {
		all = append(all, s.others()...)
	}
	return oneByOne(ctx, s, "cold starts", all, func(sys *system) error { return s.coldStart(ctx, sys) })
}

// coldStart starts three boards at once and measures the time from the start of the
// last daemon to the first answer of the address.
func (s *session) coldStart(ctx context.Context, sys *system) (err error) {
	g, err := newGroup(sys, variant{boards: 3})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.End()) }()
	asker, err := g.LAN.Ask(vip, askInterval)
	if err != nil {
		return err
	}
	if err := g.Up(); err != nil {
		return err
	}
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, stableTimeout)
	defer cancel()
	if _, err := asker.WaitAnswer(ctx, anybody); err != nil {
		return fmt.Errorf("%s: nobody answers: %w; the boards say\n%s", sys, err, g.logs())
	}
	took := asker.Report(started).First.At.Sub(started)
	s.add(sample{start, labels{"system": sys.key}, map[string]float64{"start-ms": millis(took)}})
	return nil
}

// calm measures what groups cost that do nothing but their duty.
func (s *session) calm(ctx context.Context) error {
	restore, err := roomForNeighbours()
	if err != nil {
		return err
	}
	defer restore()
	type group struct {
		sys    *system
		boards int
	}
	var all []group
	for _, boards := range s.plan.boards {
		for _, sys := range s.others() {
			all = append(all, group{sys, boards})
		}
	}
	watch := func(g group) error { return s.calmGroup(ctx, calm, g.sys, variant{boards: g.boards}, s.plan.rest) }
	if s.plan.together {
		s.show.say("steady state")
		return together(all, watch)
	}
	return oneByOne(ctx, s, "steady state", all, watch)
}

// checks measures what it costs to look at services that work, in one group at a time.
func (s *session) checks(ctx context.Context) error {
	systems := slices.DeleteFunc(slices.Clone(s.plan.systems), func(sys *system) bool {
		return !sys.served() || sys.Track == trackProcess // The kernel looks at processes.
	})
	return oneByOne(ctx, s, "what checks cost", systems, func(sys *system) error {
		return s.calmGroup(ctx, checks, sys, variant{boards: 3, Five: true}, 2*time.Second)
	})
}

// calmGroup watches one group for a while, after a rest.
func (s *session) calmGroup(ctx context.Context, bench string, sys *system, v variant, rest time.Duration) error {
	return s.with(ctx, sys, v, func(g *Group, err error) error {
		if err != nil {
			return err
		}
		leader, err := g.stableLeader(ctx)
		if err == nil {
			err = wait(ctx, rest)
		}
		if err != nil {
			return err
		}
		values, err := g.watchCalm(ctx, leader, s.plan.calm)
		if err == nil {
			s.add(sample{bench, labels{"system": sys.key, "boards": fmt.Sprint(v.boards)}, values})
		}
		return err
	})
}

// roomForNeighbours lets the kernel know more neighbours until the returned function is
// called. Its table of at most 1024 is for all namespaces together, and 50 boards
// that have met have 49 neighbours each.
func roomForNeighbours() (restore func(), err error) {
	const path, enough = "/proc/sys/net/ipv4/neigh/default/gc_thresh3", "16384"
	before, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(enough), 0)
	}
	if err != nil {
		return nil, fmt.Errorf("make room for the neighbours of many boards: %w", err)
	}
	return func() { _ = os.WriteFile(path, before, 0) }, nil
}

// watchCalm counts packets, and what the boards need for them. Followers are the mean of all.
func (g *Group) watchCalm(ctx context.Context, leader *board, d time.Duration) (map[string]float64, error) {
	count, err := g.countPackets()
	defer count.close()
	before, usageErr := g.usage()
	if err := errors.Join(err, usageErr); err != nil {
		return nil, err
	}
	packets, bytes := count.total()
	began := time.Now()
	if err := wait(ctx, d); err != nil {
		return nil, err
	}
	after, err := g.usage()
	if err != nil {
		return nil, err
	}
	watched := time.Since(began)
	allPackets, allBytes := count.total()
	v := map[string]float64{"watched-s": watched.Seconds(), "packets/s": float64(allPackets-packets) / watched.Seconds()}
	if allPackets > packets {
		v["bytes/packet"] = float64(allBytes-bytes) / float64(allPackets-packets)
	}
	for i, b := range g.boards {
		who, share := "follower-", 1/float64(max(1, len(g.boards)-1))
		if b == leader {
			who, share = "leader-", 1
		}
		v[who+"cpu-%"] += 100 * share * float64(after[i].busy-before[i].busy) / float64(watched)
		v[who+"rss-MB"] += share * float64(after[i].rss) / 1e6
		v[who+"pss-MB"] += share * float64(after[i].pss) / 1e6
	}
	return v, nil
}

// shortInterval is the interval below which a group is not watched beside others that
// keep this machine busy: it would take a late processor for a lost packet.
const shortInterval = 50 * time.Millisecond

// loss watches groups that lose packets, each on a LAN of its own: all shares at once, first
// those with a longer interval and then the others. First nobody fails, and then the leader's
// cable is pulled a few times. Only the systems' own traffic is lost, by each receiver for
// itself. The client's questions are not, so that an outage is one of the address.
func (s *session) loss(ctx context.Context) error {
	s.show.begin("loss", len(s.plan.losses)*len(s.others())*(1+s.plan.lossRuns))
	if s.plan.together {
		return s.watchLossy(ctx, s.others(), s.plan.losses, s.plan.lossFor)
	}
	long, short := s.byInterval()
	return errors.Join(
		s.watchLossy(ctx, long, s.plan.losses, s.plan.lossFor),
		s.watchLossy(ctx, short, s.plan.losses, s.plan.lossFor),
	)
}

// idle watches the groups with a short interval, one beside the other, while nobody fails and
// nothing is lost: what is late here is this machine. The pulled cables come after that, so
// they are of a group that knows how late it can be.
func (s *session) idle(ctx context.Context) error {
	_, short := s.byInterval()
	s.show.begin("nobody fails", len(short)*(1+s.plan.lossRuns))
	return s.watchLossy(ctx, short, []float64{0}, s.plan.idleFor)
}

func (s *session) byInterval() (long, short []*system) {
	for _, sys := range s.others() {
		if sys.H < shortInterval {
			short = append(short, sys)
		} else {
			long = append(long, sys)
		}
	}
	return long, short
}

// watchLossy watches groups of these systems with all shares at once.
func (s *session) watchLossy(ctx context.Context, systems []*system, shares []float64, d time.Duration) error {
	return together(shares, func(share float64) error {
		return together(systems, func(sys *system) error {
			return s.with(ctx, sys, variant{boards: 3}, func(g *Group, err error) error {
				if err == nil {
					_, err = g.stableLeader(ctx)
				}
				if err != nil || ctx.Err() != nil {
					return errors.Join(err, ctx.Err())
				}
				return s.lossyGroup(ctx, g, share, d)
			})
		})
	})
}

// lossyGroup watches one group under one loss.
func (s *session) lossyGroup(ctx context.Context, g *Group, share float64, d time.Duration) error {
	of := labels{"system": g.sys.key, "loss": fmt.Sprintf("%g%%", 100*share)}
	if share > 0 {
		lost := netns.Filter{Traffic: g.sys.traffic, Share: share}
		if err := g.LAN.Filter(lost); err != nil {
			return err
		}
	}
	values, err := g.watchUntouched(ctx, d)
	s.add(sample{loss0, of, values})
	s.show.done()
	for n := 0; n < s.plan.lossRuns && err == nil; n++ {
		var run sample
		if run, err = g.pullUnderLoss(ctx); err == nil {
			s.add(sample{lossPulled, of, run.values})
		}
		s.show.done()
	}
	return err
}

// watchUntouched watches a group in which nobody fails, and asks at the address as a client does.
func (g *Group) watchUntouched(ctx context.Context, d time.Duration) (map[string]float64, error) {
	asker, err := g.LAN.Ask(vip, slowAskInterval)
	if err != nil {
		return nil, err
	}
	defer asker.Close()
	began := time.Now()
	err = wait(ctx, d)
	seen := g.Holders.Since(began)
	var unanswered time.Duration
	if _, silent := asker.Last(); silent > 2*slowAskInterval {
		unanswered = silent
	}
	gaps, _ := asker.Gaps(0)
	for _, gap := range gaps {
		if gap.Before != 0 { // it had been answered before
			unanswered += max(0, gap.Duration()-gap.Paused)
		}
	}
	return map[string]float64{
		"watched-s": seen.To.Sub(seen.From).Seconds(), "moves": float64(seen.Moves()), "two-ms": millis(seen.Overlap()),
		"unanswered-ms": millis(unanswered),
	}, err
}

// pullUnderLoss pulls the cable of whoever has the address, as soon as there is one
// board that has had it for a while. A group that is never stable under such loss is
// taken as it is.
func (g *Group) pullUnderLoss(ctx context.Context) (run sample, err error) {
	s := &stage{Group: g, observation: newObservation(g), ctx: ctx, event: pulledUnderLoss}
	defer s.close()
	if s.leader, err = g.stableOrAnyHolder(ctx); err != nil {
		return run, err
	}
	if s.asker, err = g.LAN.Ask(vip, slowAskInterval); err != nil {
		return run, err
	}
	if s.heard, err = g.hearAnnouncements(); err != nil {
		return run, err
	}
	if err := s.await("answer"); err != nil {
		return run, err
	}
	s.began = time.Now()
	if err := errors.Join(s.event.scene.Play(s, 0), s.finish()); err != nil {
		return run, err
	}
	return s.samples[0], nil
}

// pulledUnderLoss is a pulled cable, and nothing else.
var pulledUnderLoss = func() *event {
	e, err := readEvent("\nmeasure cable-pulled \"\"\nleader pull\nawait takeover\n")
	if err != nil {
		panic(err) // It is a mistake in this file.
	}
	return e
}()
