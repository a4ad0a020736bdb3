package attack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"

	"topdog/internal/lab/bench"
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

	// Missed says which bounds of the scene a figure is beyond.
	Missed []string `json:"missed,omitempty"`
	Note   string   `json:"note,omitempty"` // why there are no figures
}

// costs are what the boards have used and sent until now, by board.
func (s *stage) costs() (busy []time.Duration, sent []uint64, err error) {
	for _, b := range s.Boards {
		used, err := bench.Busy(b.Host, s.users...)
		if err != nil {
			return nil, nil, err
		}
		counts, err := netns.Within(b.Host, func() (procfs.NetDev, error) {
			own, err := procfs.NewFS("/proc/thread-self")
			if err != nil {
				return nil, err
			}
			return own.NetDev()
		})
		if err != nil {
			return nil, nil, fmt.Errorf("attack: count what %s sends: %w", b.Name, err)
		}
		busy, sent = append(busy, used), append(sent, counts[b.Interface].TxPackets)
	}
	return busy, sent, nil
}

// watch measures what happens while somebody does something.
func (s *stage) watch(do effort) error {
	before, sentBefore, err := s.costs()
	if err != nil {
		return err
	}
	s.began = time.Now()
	asking, stop := context.WithCancel(s.ctx)
	var root sync.WaitGroup
	root.Go(func() { s.askStatus(asking) })
	rate, err := do(s.ctx)
	r := &s.result
	r.For = time.Since(s.began)
	stop()
	root.Wait()
	if err != nil {
		return err
	}
	after, sent, err := s.costs()
	if err != nil {
		return err
	}
	s.rates = append(s.rates, rate)
	s.noteClient()
	for i, b := range s.Boards {
		// A board whose processes are new has used nothing before.
		share := float64(after[i]-min(before[i], after[i])) / float64(r.For)
		if b == s.leader {
			r.Leader = share
			continue
		}
		r.Follower += share / (numBoards - 1)
		r.Sends += float64(sent[i]-sentBefore[i]) / r.For.Seconds() / (numBoards - 1)
	}
	return nil
}

// statusEvery is how often root asks.
const statusEvery = 250 * time.Millisecond

// askStatus is root, who asks the leader for its status by topdog's command until the context ends. keepalived and UCarp
// have none.
func (s *stage) askStatus(ctx context.Context) {
	if !s.system.topdog() {
		return
	}
	leader, r, took := s.leader, &s.result, []time.Duration(nil)
	for ctx.Err() == nil {
		began := time.Now()
		p, err := leader.Start(ctx, leader.Program.Path, []string{"status", "--config", leader.ConfigFile()},
			netns.Env("NO_COLOR=1"), netns.Nice(userNice))
		if err == nil {
			err = p.Wait()
		}
		switch waited := time.Since(began); {
		case err == nil:
			took = append(took, waited)
		case ctx.Err() == nil, waited > statusEvery: // it has failed, or was still waiting at the end
			r.StatusFailed++
		}
		wait(ctx, time.Until(began.Add(statusEvery)))
	}
	slices.Sort(took)
	r.Status, r.StatusMost = observe.Percentile(took, 50), observe.Percentile(took, 100)
}

// noteHolders notes what happened to the address by the kernels of the boards.
func (s *stage) noteHolders() {
	held := s.Cluster.Holders.Since(s.began)
	s.result.Moves, s.result.Two = held.Moves(), held.Overlap()
}

// noteClient notes the same, and what the client has met.
func (s *stage) noteClient() {
	s.noteHolders()
	client := s.Asker.Report(s.began)
	r := &s.result
	r.Longest, r.Late = client.Waited, client.Pause
	// The time in which the client did not ask is no outage, but late.
	gaps, _ := s.Asker.Gaps(0)
	for _, g := range gaps {
		if g.To.After(s.began) && g.Duration() > 2*askEvery {
			r.Outage += max(0, min(g.Duration(), g.To.Sub(s.began))-g.Paused)
			r.LateInAll += g.Paused
		}
	}
	if _, silent := s.Asker.Last(); silent > 2*askEvery {
		r.Outage += min(silent, time.Since(s.began))
	}
}

// await notes how long something takes since the mark, or that it was not so as long as it was watched.
func (s *stage) await(what string, times []string) error {
	most, err := s.longest(times)
	if err != nil {
		return err
	}
	is, note := func() bool { return len(s.Holders()) == 1 }, s.noteHolders
	switch what {
	case "another":
		return s.awaitAnother(most)
	case "holder":
		is = func() bool { return len(s.Holders()) > 0 }
	case "back":
		is, note = func() bool { _, lack := s.leads(); return lack == nil }, s.noteClient
	}
	r, took := &s.result, time.Duration(0)
	for ; s.ctx.Err() == nil && !is(); s.Pass(2 * time.Millisecond) {
		if r.Never = time.Since(s.began) > most; r.Never {
			took = most
			break
		}
	}
	r.For = time.Since(s.began)
	if r.Took = []time.Duration{took}; !r.Never {
		r.Took[0] = r.For
	}
	note()
	return s.ctx.Err()
}

// awaitAnother notes how long the client waits for the answer of another board than the leader.
func (s *stage) awaitAnother(most time.Duration) error {
	bounded, cancel := context.WithTimeout(s.ctx, most)
	defer cancel()
	_, err := s.Asker.WaitAnswer(bounded, func(board int) bool { return board != s.leader.Number })
	if err != nil && (!errors.Is(err, context.DeadlineExceeded) || s.ctx.Err() != nil) {
		return err
	}
	client := s.Asker.Report(s.began)
	s.result.Took = append(s.result.Took, client.Waited)
	s.result.Late = max(s.result.Late, client.Pause)
	return nil
}
