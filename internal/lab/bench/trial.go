package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

const (
	// askInterval is how often the client asks, and slowlyEvery how often it asks a
	// system whose outages are seconds: many of those run at once, and would
	// otherwise keep this machine busy with questions.
	askInterval     = time.Millisecond
	slowAskInterval = 4 * time.Millisecond

	// roundTrips is how often the way to the address is timed before a run.
	roundTrips = 21

	// twoHoldersTimeout is how long a run waits for the second holder to let go. If it has
	// not by then, it never will by itself, or it does not matter how much later.
	twoHoldersTimeout = 2 * time.Second
)

// slot is for one run at a time in which milliseconds count. Groups become stable beside
// each other.
type slot chan struct{}

func newSlot() slot { return make(slot, 1) }

// trial is one run of one event.
type trial struct {
	*rig
	leader *board
	asker  *observe.Asker
	prober *observe.Prober // nil unless the event wants it
	names  *nameLine       // nil unless the client asks the boards' service
	turn   turn
	runs   map[string]*report.Run // by the key of the table
	trip   time.Duration

	slot slot // nil for a slow system
	has  bool // whether this run has it
}

// turn is which one of the runs of an event a run is.
type turn struct {
	number int     // from 1
	phase  float64 // the part of the interval, 0 to 1, that passes between the leader's message and the event
}

// newTrial waits until the group is stable, for the slot, and for the part of the
// interval of this turn.
func (r *rig) newTrial(ctx context.Context, e event, only slot, now turn) (*trial, error) {
	t := &trial{rig: r, runs: make(map[string]*report.Run), slot: only, turn: now}
	every := askInterval
	if slow(r.sys) {
		t.slot = nil
	}
	if slow(r.sys) || e.coarse {
		every = slowAskInterval
	}
	if err := t.acquireStable(ctx); err != nil {
		t.end()
		return nil, err
	}
	if err := t.begin(ctx, every, e); err != nil {
		t.end()
		return nil, err
	}
	if h := t.Holders.Current(); len(h) != 1 || h[0] != t.leader.Number {
		t.end()
		return nil, fmt.Errorf("%s led, and right before the event the address is on %v: %w", t.leader.Name, h, errNotStable)
	}
	return t, nil
}

// acquireStable waits until the group is stable and the run has the slot. While it waited for that
// the address may have moved, if this machine stood still.
func (t *trial) acquireStable(ctx context.Context) (err error) {
	for {
		if t.leader, err = t.rig.stableLeader(ctx); err != nil {
			return err
		}
		if err := t.acquireSlot(ctx); err != nil {
			return err
		}
		wanted := t.sys.stableFor()
		if soleHolder(t.Holders.Since(time.Now().Add(-wanted)), wanted) == t.leader.Number {
			return nil
		}
		t.releaseSlot()
	}
}

// begin lets the client ask, times the way to the address, and waits for the phase.
func (t *trial) begin(ctx context.Context, every time.Duration, e event) (err error) {
	if err := t.ask(every, e.served); err != nil {
		return err
	}
	if err := t.awaitAnswerOf(ctx, t.leader); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%s alone has had the address for %v, and does not answer: %w\nThe client's kernel knows:\n%s",
			t.leader.Name, t.sys.stableFor(), err, t.neighbours())
	}
	if !e.served {
		if t.trip, err = roundTrip(t.LAN.Client()); err != nil {
			return err
		}
	}
	if e.probed {
		if t.prober, err = t.rig.probe(); err != nil {
			return err
		}
	}
	return t.toPhase(ctx, t.turn.phase)
}

// ask lets the client ask who answers, or the boards' service.
func (t *trial) ask(every time.Duration, served bool) (err error) {
	if !served {
		t.asker, err = t.LAN.Ask(vip, every)
		return err
	}
	t.asker, err = t.LAN.AskBy(func(conn *net.UDPConn) observe.Line {
		t.names = newNameLine(conn)
		return t.names
	}, every)
	return err
}

// toPhase waits for a message of the leader, and then for a part of the interval. A fault
// happens at a random moment. With the moments of the runs spread evenly over the interval,
// 20 runs say as much about the median as 400 that are not.
func (t *trial) toPhase(ctx context.Context, phase float64) error {
	interval := t.sys.info().Interval
	heard, err := t.rig.hearLeader(t.leader)
	if err != nil {
		return err
	}
	defer heard.close()
	at, err := heard.wait(ctx, 3*interval+time.Second)
	if err != nil {
		return err
	}
	return wait(ctx, time.Until(at.Add(time.Duration(phase*float64(interval)))))
}

// acquireSlot waits until no other run has the slot.
func (t *trial) acquireSlot(ctx context.Context) error {
	if t.slot == nil || t.has {
		return nil
	}
	select {
	case t.slot <- struct{}{}:
		t.has = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// releaseSlot lets the next run begin.
func (t *trial) releaseSlot() {
	if t.has {
		t.has = false
		<-t.slot
	}
}

// end stops the asking.
func (t *trial) end() {
	t.releaseSlot()
	if t.asker != nil {
		t.asker.Close()
	}
	if t.prober != nil {
		t.prober.Close()
	}
}

// maxOutage is how long the client's outage may last.
func (t *trial) maxOutage() time.Duration {
	return max(8*time.Second, 12*t.sys.info().Interval)
}

// watchAfter is how long a run goes on to look when all seems well.
func (t *trial) watchAfter() time.Duration {
	return min(max(3*t.sys.info().Interval, 100*time.Millisecond), 1500*time.Millisecond)
}

// awaitAnswerOf waits for an answer of the board to the client.
func (t *trial) awaitAnswerOf(ctx context.Context, b *board) error {
	ctx, cancel := context.WithTimeout(ctx, t.maxOutage())
	defer cancel()
	_, err := t.asker.WaitAnswer(ctx, func(n int) bool { return n == b.Number })
	return err
}

// awaitOtherAnswer waits until somebody else than the leader answers the client. It is no
// error if nobody does for as long as the bench waits: the figures will say so.
func (t *trial) awaitOtherAnswer(ctx context.Context) error {
	return t.atMost(ctx, t.maxOutage(), func(ctx context.Context) error {
		_, err := t.asker.WaitAnswer(ctx, func(n int) bool { return n != t.leader.Number })
		return err
	})
}

// awaitOneHolder waits until one board alone has the address.
func (t *trial) awaitOneHolder(ctx context.Context) error {
	return t.atMost(ctx, twoHoldersTimeout, func(ctx context.Context) error {
		return t.Holders.WaitFor(ctx, func(h []int) bool { return len(h) == 1 })
	})
}

// awaitAnswer waits for an answer of whomever.
func (t *trial) awaitAnswer(ctx context.Context) error {
	return t.atMost(ctx, t.maxOutage(), func(ctx context.Context) error {
		_, err := t.asker.WaitAnswer(ctx, func(int) bool { return true })
		return err
	})
}

// atMost waits for something that may never come.
func (t *trial) atMost(ctx context.Context, most time.Duration, waitFor func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := waitFor(bounded)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// note records what has happened since a moment. There is
// always a gap since the last answer, so it waits for one more: then a gap that is
// still open is an outage for which the bench does not wait any longer.
func (t *trial) note(ctx context.Context, key string, since time.Time) error {
	if err := t.awaitAnswer(ctx); err != nil {
		return err
	}
	t.record(key, since)
	return nil
}

// record records what has happened since a moment as a run of the event.
func (t *trial) record(key string, since time.Time) {
	run := figures(t.asker.Report(since), t.Holders.Since(since))
	run.TwoLasts = len(t.Holders.Current()) > 1
	run.RoundTrip = t.trip
	if t.names != nil {
		lost := t.names.silences(since)
		run.Outage, run.Censored = lost.longest, lost.open
	}
	if t.prober != nil {
		run.Probed, run.TwoAnswer = true, t.prober.Since(since).Overlap()
	}
	t.runs[key] = &run
}

// figures turns what the client and the kernels saw into the figures of a run.
func figures(client observe.Report, held observe.Timeline) report.Run {
	return report.Run{
		Outage: client.Waited,
		// The gap is still open: there was no answer after it.
		Censored: client.Longest.After == 0,
		Two:      held.Overlap(),
		None:     held.Vacant(),
		Moves:    held.Moves(),
		Late:     client.Pause,
	}
}

// roundTrip returns the median time that the client waits for an answer from the
// address when nothing is wrong.
func roundTrip(client *netns.Host) (time.Duration, error) {
	var conn *net.UDPConn
	err := client.Do(func() (err error) {
		conn, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(vip, observe.Port)))
		return err
	})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var trips []time.Duration
	var buf [16]byte
	for range roundTrips {
		asked := time.Now()
		if _, err := conn.Write(buf[:8]); err != nil {
			return 0, err
		}
		if err := conn.SetReadDeadline(asked.Add(time.Second)); err != nil {
			return 0, err
		}
		if _, err := conn.Read(buf[:]); err != nil {
			return 0, fmt.Errorf("time the way to %s: %w", vip, err)
		}
		trips = append(trips, time.Since(asked))
	}
	slices.Sort(trips)
	return trips[len(trips)/2], nil
}

// neighbours returns what the client's kernel has learned by ARP.
func (r *rig) neighbours() string {
	var text []byte
	err := r.LAN.Client().Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/arp")
		return err
	})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// wait goes on for a while during which nothing is to be done.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
