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
	// askEvery is how often the client asks, and slowlyEvery how often it asks a
	// system whose outages are seconds: many of those run at once, and would
	// otherwise keep this machine busy with questions.
	askEvery    = time.Millisecond
	slowlyEvery = 4 * time.Millisecond

	// roundTrips is how often the way to the address is timed before a run.
	roundTrips = 21

	// twoWithin is how long a run waits for the second holder to let go. If it has
	// not by then, it never will by itself, or it does not matter how much later.
	twoWithin = 2 * time.Second
)

// stage makes sure that no two runs in which milliseconds count happen at once.
// Groups settle beside each other.
type stage chan struct{}

func newStage() stage { return make(stage, 1) }

// trial is one run of one event.
type trial struct {
	*rig
	leader *board
	asker  *observe.Asker
	runs   map[string]report.Run // by the key of the event
	trip   time.Duration

	stage stage // nil for a slow system
	on    bool  // it has the stage
}

// newTrial waits until the group is settled, for the stage, and for a part of the
// interval, 0 to 1, that begins with a message of the leader.
func (r *rig) newTrial(ctx context.Context, st stage, coarse bool, phase float64) (*trial, error) {
	t := &trial{rig: r, runs: make(map[string]report.Run), stage: st}
	every := askEvery
	if slow(r.sys) {
		t.stage, every = nil, slowlyEvery
	}
	if coarse {
		every = slowlyEvery
	}
	var err error
	if t.leader, err = r.settled(ctx); err != nil {
		return nil, err
	}
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	if t.asker, err = r.lan.Ask(vip, every); err == nil {
		if err = t.answeredBy(ctx, t.leader); err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%s alone has had the address for %v, and does not answer: %w\nThe client's kernel knows:\n%s",
				t.leader.Name, r.sys.calmFor(), err, r.neighbours())
		}
	}
	if err == nil {
		t.trip, err = roundTrip(r.lan.Client())
	}
	if err == nil {
		err = t.toPhase(ctx, phase)
	}
	if err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// toPhase waits for a message of the leader, and then for a part of the interval. What
// strikes a leader strikes it at a random moment; with the moments of the runs spread evenly
// over the interval, 20 runs tell as much about the median as 400 that are not.
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

// enter waits for the stage.
func (t *trial) enter(ctx context.Context) error {
	if t.stage == nil || t.on {
		return nil
	}
	select {
	case t.stage <- struct{}{}:
		t.on = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave lets others have the stage.
func (t *trial) leave() {
	if t.on {
		t.on = false
		<-t.stage
	}
}

// end stops the asking.
func (t *trial) end() {
	t.leave()
	if t.asker != nil {
		t.asker.Close()
	}
}

// patience is how long the client's outage may last.
func (t *trial) patience() time.Duration {
	return max(8*time.Second, 12*t.sys.info().Interval)
}

// aftermath is how long a run goes on to look when all seems well.
func (t *trial) aftermath() time.Duration {
	return min(max(3*t.sys.info().Interval, 100*time.Millisecond), 1500*time.Millisecond)
}

// answeredBy waits for an answer of the board to the client.
func (t *trial) answeredBy(ctx context.Context, b *board) error {
	ctx, cancel := context.WithTimeout(ctx, t.patience())
	defer cancel()
	_, err := t.asker.WaitAnswer(ctx, func(n int) bool { return n == b.number })
	return err
}

// takenOver waits until somebody else than the leader answers the client. It is no
// error if nobody does for as long as the bench waits: the figures will say so.
func (t *trial) takenOver(ctx context.Context) error {
	return t.patiently(ctx, t.patience(), func(ctx context.Context) error {
		_, err := t.asker.WaitAnswer(ctx, func(n int) bool { return n != t.leader.number })
		return err
	})
}

// oneHolder waits until one board alone has the address.
func (t *trial) oneHolder(ctx context.Context) error {
	return t.patiently(ctx, twoWithin, func(ctx context.Context) error {
		return t.holders.WaitFor(ctx, func(h []int) bool { return len(h) == 1 })
	})
}

// answered waits for an answer of whomever.
func (t *trial) answered(ctx context.Context) error {
	return t.patiently(ctx, t.patience(), func(ctx context.Context) error {
		_, err := t.asker.WaitAnswer(ctx, func(int) bool { return true })
		return err
	})
}

// patiently waits for something that may never come.
func (t *trial) patiently(ctx context.Context, most time.Duration, waitFor func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := waitFor(bounded)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// note records what has happened since a moment as a run of the event. There is
// always a gap since the last answer, so it waits for one more: then a gap that is
// still open is an outage that the bench has no patience with.
func (t *trial) note(ctx context.Context, key string, since time.Time) error {
	if err := t.answered(ctx); err != nil {
		return err
	}
	run := figures(t.asker.Report(since), t.holders.Since(since))
	run.TwoLasts = len(t.holders.Current()) > 1
	run.RoundTrip = t.trip
	t.runs[key] = run
	return nil
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
	err := r.lan.Client().Do(func() (err error) {
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
