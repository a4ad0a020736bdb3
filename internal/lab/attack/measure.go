package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

// Result is what became of an attack. Times are nanoseconds in JSON.
type Result struct {
	System string `json:"system"`
	Place  string `json:"place"`
	Attack string `json:"attack"`

	Rate float64       `json:"rate"` // a second: frames, or what a user did
	For  time.Duration `json:"for_ns"`

	Moves   int           `json:"moves"`
	Two     time.Duration `json:"two_holders_ns"`
	Longest time.Duration `json:"longest_outage_ns"` // without an answer to the client
	Outage  time.Duration `json:"outage_ns"`         // the sum, of what is longer than two questions
	Late    time.Duration `json:"late_ns"`           // for how long this program itself did not run, at worst

	LateInAll time.Duration `json:"late_in_all_ns"` // the sum, of what was within an outage

	Leader   float64 `json:"leader"`   // of a core
	Follower float64 `json:"follower"` // mean

	// Sends is how many packets a second a follower sends, mean: what it answers to strangers is among them.
	Sends float64 `json:"follower_sends"`

	Status       time.Duration `json:"status_ns,omitempty"` // median of root's `topdog status`
	StatusMost   time.Duration `json:"status_most_ns,omitempty"`
	StatusFailed int           `json:"status_failed,omitempty"`

	// Took is how long what the attack is about took, in each of its runs: until somebody led, or was back. Never says
	// that it did not come about as long as it was watched, which is Took then.
	Took  []time.Duration `json:"took_ns,omitempty"`
	Never bool            `json:"never,omitempty"`

	Note string `json:"note,omitempty"` // why there are no figures
}

// statusEvery is how often root asks.
const statusEvery = 250 * time.Millisecond

// effort is what somebody does meanwhile: it returns how many times a second.
type effort func(ctx context.Context) (rate float64, err error)

// watch measures what happens while somebody does something, for which strangers are the processes on boards.
func (s *scene) watch(ctx context.Context, do effort, strangers ...int) (r Result, err error) {
	leader, err := s.Leader(ctx)
	if err != nil {
		return r, err
	}
	before, err := s.Busy(strangers...)
	if err != nil {
		return r, err
	}
	followers := others(s.Boards(), leader)
	sentBefore, err := packetsOf(followers)
	if err != nil {
		return r, err
	}
	began := time.Now()
	asking := s.askStatus(ctx, leader)
	rate, err := do(ctx)
	since := time.Since(began)
	r.Status, r.StatusMost, r.StatusFailed = asking.end()
	if err != nil {
		return r, err
	}
	after, err := s.Busy(strangers...)
	if err != nil {
		return r, err
	}
	sent, err := packetsOf(followers)
	if err != nil {
		return r, err
	}
	r.Rate, r.For = rate, since
	r.Sends = float64(sent-sentBefore) / float64(len(followers)) / since.Seconds()
	s.note(&r, began)
	for i, b := range s.Boards() {
		// A board whose processes are new has used nothing before.
		share := float64(after[i]-min(before[i], after[i])) / float64(since)
		if b == leader {
			r.Leader = share
		} else {
			r.Follower += share / float64(numBoards-1)
		}
	}
	return r, nil
}

// packetsOf counts the packets that boards have sent.
func packetsOf(boards []*cluster.Daemon) (sum uint64, err error) {
	for _, b := range boards {
		err := b.Do(func() error {
			text, err := os.ReadFile("/proc/thread-self/net/dev")
			if err != nil {
				return err
			}
			n, err := packetsSent(string(text), b.Interface)
			sum += n
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("attack: count what %s sends: %w", b.Name, err)
		}
	}
	return sum, nil
}

// packetsSent reads the tenth number of an interface (proc_pid_net(5)).
func packetsSent(text, name string) (uint64, error) {
	for line := range strings.Lines(text) {
		of, numbers, _ := strings.Cut(line, ":")
		if fields := strings.Fields(numbers); strings.TrimSpace(of) == name && len(fields) > 9 {
			return strconv.ParseUint(fields[9], 10, 64)
		}
	}
	return 0, fmt.Errorf("there is no %s in %q", name, text)
}

// note notes what happened to the address.
func (s *scene) note(r *Result, began time.Time) {
	client, held := s.asker.Report(began), s.Holders.Since(began)
	r.Moves, r.Two = held.Moves(), held.Overlap()
	r.Longest, r.Late = client.Waited, client.Pause
	r.Outage, r.LateInAll = s.silence(began)
}

// silence adds up for how long nobody answered the client, without the time in which it did not ask, which is late.
func (s *scene) silence(began time.Time) (sum, late time.Duration) {
	gaps, _ := s.asker.Gaps(0)
	for _, g := range gaps {
		if g.To.After(began) && g.Duration() > 2*askEvery {
			sum += max(0, g.To.Sub(later(g.From, began))-g.Paused)
			late += g.Paused
		}
	}
	if _, silent := s.asker.Last(); silent > 2*askEvery {
		sum += min(silent, time.Since(began))
	}
	return sum, late
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// statusAsker is root, who asks a daemon for its status by topdog's command.
type statusAsker struct {
	stop   context.CancelFunc
	done   sync.WaitGroup
	took   []time.Duration
	failed int
}

// askStatus begins to ask a board.
func (s *scene) askStatus(ctx context.Context, d *cluster.Daemon) *statusAsker {
	ctx, stop := context.WithCancel(ctx)
	a := &statusAsker{stop: stop}
	argv, _, err := s.Topdog(d, "status")
	if err != nil {
		return a // keepalived and UCarp have none
	}
	a.done.Go(func() {
		tick := time.NewTicker(statusEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			began := time.Now()
			// Root's shell has no better priority than others.
			args := append([]string{"-n", fmt.Sprint(-cluster.ServiceNice)}, argv...)
			p, err := d.Start(ctx, "nice", args, netns.Env("NO_COLOR=1"))
			if err == nil {
				err = p.Wait()
			}
			switch took := time.Since(began); {
			case err == nil:
				a.took = append(a.took, took)
			case ctx.Err() == nil, took > statusEvery: // it has failed, or was still waiting at the end
				a.failed++
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return a
}

// end returns the median and the longest, and how many failed.
func (a *statusAsker) end() (median, most time.Duration, failed int) {
	a.stop()
	a.done.Wait()
	slices.Sort(a.took)
	return observe.Percentile(a.took, 50), observe.Percentile(a.took, 100), a.failed
}

// sends is the effort of the laptop.
func (s *scene) sends(frames [][]byte, rate int, lasts time.Duration) effort {
	return func(ctx context.Context) (float64, error) {
		_, cores, err := s.place.split()
		if err != nil {
			return 0, err
		}
		sent, err := s.laptop.Send(ctx, Stream{Frames: frames, Rate: rate, For: lasts, Cores: cores})
		return sent.Rate(), err
	}
}

// uses has a user of the leader's board do something meanwhile.
func (s *scene) uses(ctx context.Context, u user) (r Result, err error) {
	leader, err := s.Leader(ctx)
	if err != nil {
		return r, err
	}
	if _, u.Socket, err = s.Topdog(leader, "status"); err != nil {
		return r, err
	}
	p, err := startUser(ctx, leader.Host, u)
	if err != nil {
		return r, err
	}
	return s.watch(ctx, func(context.Context) (float64, error) { return p.rate() }, p.PID)
}

// failure measures how long another board takes to answer after one of the leader's failures, while the laptop sends.
func (s *scene) failure(ctx context.Context, frames [][]byte, rate, runs int, fail, repair func(*cluster.Daemon) error) (r Result, err error) {
	began := time.Now()
	for range runs {
		leader, err := s.settle(ctx)
		if err != nil {
			return r, err
		}
		client, sent, err := s.failOnce(ctx, leader, s.sends(frames, rate, cluster.Timeout), fail)
		if err != nil {
			return r, err
		}
		r.Took, r.Rate = append(r.Took, client.Waited), r.Rate+sent/float64(runs)
		r.Late = max(r.Late, client.Pause)
		if err := repair(leader); err != nil {
			return r, err
		}
	}
	r.For = time.Since(began)
	slices.Sort(r.Took)
	return r, nil
}

// A failure comes so long after the begin of the flood: long enough for the group to feel it.
const failAfter = 500 * time.Millisecond

// failureTimeout bounds how long a run waits for another board to answer.
const failureTimeout = 8 * time.Second

// failOnce is one run: it returns what the client met since the failure. A leader that has lost the lead before it fails makes an error of the run.
func (s *scene) failOnce(ctx context.Context, leader *cluster.Daemon, flood effort, fail func(*cluster.Daemon) error) (client observe.Report, rate float64, err error) {
	flooding, stop := context.WithCancel(ctx)
	var sending sync.WaitGroup
	var sendErr error
	sending.Go(func() { rate, sendErr = flood(flooding) })
	defer sending.Wait()
	defer stop()
	select {
	case <-time.After(failAfter + phase(s.Interval())):
	case <-ctx.Done():
		return client, 0, ctx.Err()
	}
	failedAt := time.Now()
	if err := fail(leader); err != nil {
		return client, 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, failureTimeout)
	defer cancel()
	_, err = s.asker.WaitAnswer(bounded, func(board int) bool { return board != leader.Number })
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return client, 0, err
	}
	client = s.asker.Report(failedAt)
	stop()
	sending.Wait()
	return client, rate, sendErr
}
