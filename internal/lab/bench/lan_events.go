package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

// What the LAN does here is nobody's death: whoever moves the address moves it for nothing.

const (
	// disturbances is how often something short happens in one series, and from calmMin to
	// calmMax nothing does in between.
	disturbances = 40
	calmMin      = 200 * time.Millisecond
	calmMax      = 400 * time.Millisecond
	// A burst of silence lasts from burstMin to burstMax.
	burstMin = 20 * time.Millisecond
	burstMax = 60 * time.Millisecond
	// cutShort is less than the patience that topdog may learn, and cutLong is more.
	cutShort = 300 * time.Millisecond
	cutLong  = 3 * time.Second
	// multicastDeadFor is how long multicast does not pass.
	multicastDeadFor = time.Minute
	// splitFor is how long a LAN is in two parts.
	splitFor = 3 * time.Second
	// apart is how many boards are on the leader's side of a split, with it.
	apart = 2
	// readdressedFor is how long is waited for the first answer after the Ethernet address has changed.
	readdressedFor = 5 * time.Second
	// settleFor is how long a group is watched after something has healed.
	settleFor = 2 * time.Second
)

// lanEvents are those in which nobody is dead. Each has its boards asked by ARP, may teach the group
// patience, and takes long.
func lanEvents() []event {
	events := []event{
		{run: bursts, coarse: true, tables: []report.Event{
			{Key: report.Bursts, Title: "the switch passes nothing for 20 to 60 ms, forty times (outage: the sum of what the silence does not explain)"},
			{Key: report.BurstsAgain, Title: "the same forty times more (outage: the same sum)"},
			{Key: report.BurstsPulled, Title: "then the leader's cable is pulled"},
		}},
		{run: pauses, coarse: true, tables: []report.Event{
			{Key: report.Pauses, Title: "all processes of the leader's board stand still for 5 to 30 ms, forty times (outage: the sum of all over 8 ms)"},
		}},
		{run: deaf, tables: []report.Event{
			{Key: report.Deaf, Title: "the leader goes deaf: its frames pass, and none gets to it"},
		}},
		{run: mute, tables: []report.Event{
			{Key: report.Mute, Title: "the leader goes mute: it hears all, and none of its frames pass"},
		}},
		{run: cut(cutShort, report.CutShort), tables: []report.Event{
			{Key: report.CutShort, Title: "the leader is cut off for 300 ms, its carrier stays (two holders: from the first frame between boards after it)"},
		}},
		{run: cut(cutLong, report.CutLong), tables: []report.Event{
			{Key: report.CutLong, Title: "the leader is cut off for 3 s, its carrier stays (two holders: from the first frame between boards after it)"},
		}},
		{run: multicastDies, coarse: true, tables: []report.Event{
			{Key: report.MulticastDies, Title: "no multicast passes for a minute, broadcast and unicast do"},
		}},
		{run: multicastDead, coarse: true, tables: []report.Event{
			{Key: report.MulticastDead, Title: "no multicast passes from before the start of all (outage: until the first answer)"},
		}},
		{run: restartSwitch(5*time.Second, report.SwitchOff, report.SwitchBack), coarse: true, tables: []report.Event{
			{Key: report.SwitchOff, Title: "the switch restarts: all links are up, and it forwards nothing for 5 s (outage: that time)"},
			{Key: report.SwitchBack, Title: "the switch forwards again (outage: until one board alone has the address and answers)"},
		}},
		{run: restartSwitch(35*time.Second, report.SwitchOffLong, report.SwitchBackLong), coarse: true, tables: []report.Event{
			{Key: report.SwitchOffLong, Title: "the switch restarts, and it forwards nothing for 35 s (outage: that time)"},
			{Key: report.SwitchBackLong, Title: "the switch forwards again after 35 s (outage: until one board alone has the address and answers)"},
		}},
		{variant: variant{many: true}, run: split, tables: []report.Event{
			{Key: report.Split, Title: "five boards fall in two: the leader and another, and three with the client (two holders: one on each side)"},
			{Key: report.SplitHealed, Title: "the two parts meet again (two holders: from the first frame between them)"},
		}},
	}
	for i := range events {
		events[i].probed, events[i].teaches, events[i].seldom = true, true, true
	}
	// Who is asked by ARP is known by the Ethernet addresses.
	return append(events, event{run: readdress, tables: []report.Event{
		{Key: report.Readdressed, Title: "the leader's interface gets another Ethernet address, as a bond does that fails over"},
	}})
}

// readdress gives the leader's interface another Ethernet address, and then its own one back. The client forgets where the address
// was: after some programs it would not learn that for a minute, and the next run would have to wait.
func readdress(ctx context.Context, t *trial) error {
	own := t.leader.HardwareAddr
	faultAt := time.Now()
	if err := t.leader.SetHardwareAddr(net.HardwareAddr{2, 0, 0, 0, 0x99, byte(t.leader.Number)}); err != nil {
		return err
	}
	if err := wait(ctx, readdressedFor); err != nil {
		return err
	}
	t.record(report.Readdressed, faultAt)
	return errors.Join(t.leader.SetHardwareAddr(own), t.LAN.Client().ForgetNeighbours())
}

// random returns the source of a run: the same in every session and for every system.
func (t *trial) random() *rand.Rand { return rand.New(rand.NewPCG(10, uint64(t.turn.number))) }

// between draws a time.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

// bursts lets the switch pass nothing for moments, twice forty times. The second time a program
// may know better. Then the leader's cable is pulled: that is what the knowledge costs.
func bursts(ctx context.Context, t *trial) error {
	t.releaseSlot()
	random := t.random()
	for _, key := range []string{report.Bursts, report.BurstsAgain} {
		began := time.Now()
		_, seen := t.asker.Gaps(0)
		var silences []observe.Span
		for range disturbances {
			silence, err := t.halt(ctx, between(random, burstMin, burstMax))
			if err != nil {
				return err
			}
			silences = append(silences, silence)
			if err := wait(ctx, between(random, calmMin, calmMax)); err != nil {
				return err
			}
		}
		if err := t.note(ctx, key, began); err != nil {
			return err
		}
		gaps, _ := t.asker.Gaps(seen)
		t.runs[key].Outage = unexplained(gaps, silences)
	}
	if err := t.acquireSlot(ctx); err != nil {
		return err
	}
	return t.pullHolder(ctx, report.BurstsPulled)
}

// halt lets the switch pass nothing for a while.
func (t *trial) halt(ctx context.Context, d time.Duration) (silence observe.Span, err error) {
	silence.From = time.Now()
	err = t.rig.without(netns.Filter{}, func() error { return wait(ctx, d) })
	silence.To = time.Now()
	return silence, err
}

// unexplained is the sum of the gaps without the time in which the switch was silent or the client
// itself did not get to ask. What is left may be the client's interval before and after.
func unexplained(gaps []observe.Gap, silences []observe.Span) (sum time.Duration) {
	for _, g := range gaps {
		left := g.Duration() - g.Paused
		for _, s := range silences {
			if common := earlier(g.To, s.To).Sub(later(g.From, s.From)); common > 0 {
				left -= common
			}
		}
		if left > 3*slowAskInterval {
			sum += left
		}
	}
	return sum
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// pullHolder pulls the cable of whoever has the address by now, and notes what follows.
func (t *trial) pullHolder(ctx context.Context, key string) error {
	holder, err := t.rig.stableOrAnyHolder(ctx)
	if err != nil {
		return err
	}
	t.leader = holder
	if err := t.awaitAnswerOf(ctx, holder); err != nil {
		return err
	}
	faultAt := time.Now()
	if err := holder.Pull(); err != nil {
		return err
	}
	if err := t.noteTakeover(ctx, key, faultAt); err != nil {
		return err
	}
	return holder.Plug()
}

// multicastDies lets no multicast pass while the group is at work.
func multicastDies(ctx context.Context, t *trial) error {
	t.releaseSlot()
	began := time.Now()
	return t.withoutMulticast(func() error {
		if err := wait(ctx, multicastDeadFor); err != nil {
			return err
		}
		return t.note(ctx, report.MulticastDies, began)
	})
}

// multicastDead starts the group where multicast does not pass.
func multicastDead(ctx context.Context, t *trial) error {
	t.releaseSlot()
	err := t.withoutMulticast(func() error {
		for _, b := range t.boards {
			if err := b.cleanUp(); err != nil {
				return err
			}
		}
		began := time.Now()
		for _, b := range t.boards {
			if err := b.start(); err != nil {
				return err
			}
		}
		if err := t.awaitAnswer(ctx); err != nil {
			return err
		}
		first := t.asker.Report(began).First.At
		if err := wait(ctx, multicastDeadFor); err != nil {
			return err
		}
		if err := t.note(ctx, report.MulticastDead, began); err != nil {
			return err
		}
		run := t.runs[report.MulticastDead]
		run.Outage = max(0, first.Sub(began))
		run.Moves = t.Holders.Since(first).Moves() // that another board begins than led before is no move
		return nil
	})
	if err != nil {
		return err
	}
	return t.rig.restart(ctx)
}

// withoutMulticast does something while no multicast reaches any host.
func (t *trial) withoutMulticast(do func() error) error {
	return t.rig.without(netns.Filter{Multicast: true}, do)
}

// restartSwitch lets the switch pass nothing for a time in which everybody counts as dead for
// everybody else, with all links up. Nobody can know who is there until it forwards.
func restartSwitch(d time.Duration, during, afterwards string) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		t.releaseSlot()
		silence, err := t.halt(ctx, d)
		if err != nil {
			return err
		}
		// What happened until now is looked up: the client gets no answer for which to wait.
		t.record(during, silence.From)
		run := t.runs[during]
		run.Outage, run.Censored = d, false
		if err := t.awaitAnswer(ctx); err != nil {
			return err
		}
		if err := t.keepWatching(ctx, max(settleFor, 4*t.sys.info().Interval)); err != nil {
			return err
		}
		if err := t.awaitOneHolder(ctx); err != nil {
			return err
		}
		if err := t.note(ctx, afterwards, silence.To); err != nil {
			return err
		}
		run = t.runs[afterwards]
		answered := t.asker.Report(silence.To).First.At
		run.Outage = max(answered.Sub(silence.To), lastChange(t.Holders.Since(silence.To)), 0)
		return nil
	}
}

// lastChange is how long after its beginning a timeline's holders changed last.
func lastChange(tl observe.Timeline) (last time.Duration) {
	for _, s := range tl.Spans {
		last = max(last, s.From.Sub(tl.From))
		if s.To.Before(tl.To) {
			last = max(last, s.To.Sub(tl.From))
		}
	}
	return last
}

// cut separates the leader from all for a while, with its link up.
func cut(d time.Duration, key string) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		faultAt := time.Now()
		if err := t.LAN.Filter(netns.Cut(t.leader.Port())...); err != nil {
			return err
		}
		if err := wait(ctx, d); err != nil {
			return err
		}
		passed, err := t.heal(ctx, []*board{t.leader})
		if err != nil {
			return err
		}
		if err := t.note(ctx, key, faultAt); err != nil {
			return err
		}
		t.countTwoSince(key, passed)
		return nil
	}
}

// split lets the LAN fall in two, with the leader on the smaller side and the client on the other.
func split(ctx context.Context, t *trial) error {
	side := []*board{t.leader}
	for _, b := range t.boards {
		if b != t.leader && len(side) < apart {
			side = append(side, b)
		}
	}
	faultAt := time.Now()
	if err := t.LAN.Filter(netns.Apart(netns.Ports(hostsOf(side)...), netns.Ports(append(hostsOf(t.rig.others(side)), t.LAN.Client())...))...); err != nil {
		return err
	}
	if err := wait(ctx, max(splitFor, 5*t.sys.info().Interval)); err != nil {
		return err
	}
	if err := t.note(ctx, report.Split, faultAt); err != nil {
		return err
	}
	passed, err := t.heal(ctx, side)
	if err != nil {
		return err
	}
	if err := t.note(ctx, report.SplitHealed, passed); err != nil {
		return err
	}
	t.countTwoSince(report.SplitHealed, passed)
	return nil
}

// heal ends a separation of some boards from the others, watches what follows, and returns when the
// first frame of a board got to one of the other side. Before, nobody can know.
func (t *trial) heal(ctx context.Context, side []*board) (passed time.Time, err error) {
	first, err := t.rig.firstBetween(side, t.rig.others(side))
	if err != nil {
		return passed, err
	}
	defer first.close()
	if err := t.LAN.Filter(); err != nil {
		return passed, err
	}
	if passed, err = first.wait(ctx, t.maxOutage()); err != nil {
		return passed, err
	}
	if err := t.keepWatching(ctx, max(settleFor, 4*t.sys.info().Interval)); err != nil {
		return passed, err
	}
	return passed, t.awaitOneHolder(ctx)
}

// countTwoSince counts two holders from a moment on, and all else of the run as it was noted.
func (t *trial) countTwoSince(key string, from time.Time) {
	run := t.runs[key]
	run.Two = t.Holders.Since(from).Overlap()
	if t.prober != nil {
		run.TwoAnswer = t.prober.Since(from).Overlap()
	}
}

// others are the boards that are not in a list.
func (r *rig) others(list []*board) (rest []*board) {
	for _, b := range r.boards {
		in := false
		for _, other := range list {
			in = in || b == other
		}
		if !in {
			rest = append(rest, b)
		}
	}
	return rest
}

func hostsOf(boards []*board) (hosts []*netns.Host) {
	for _, b := range boards {
		hosts = append(hosts, b.Host)
	}
	return hosts
}
