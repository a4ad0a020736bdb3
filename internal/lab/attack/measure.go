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

// Result is what became of an attack.
type Result struct {
	System  string             `json:"system"`
	Place   string             `json:"place"`
	Attack  string             `json:"attack"`
	Figures map[string]float64 `json:"figures,omitempty"` // by unit, see titles
	Runs    []float64          `json:"runs_ms,omitempty"` // how long each of them took, of what took-ms is the 95th percentile
	Missed  []string           `json:"missed,omitempty"`  // which bounds of the scene a figure is beyond
	Note    string             `json:"note,omitempty"`    // why there are no figures
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
	lasted := time.Since(s.began)
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
	s.figures["watched-s"] = lasted.Seconds()
	s.noteClient(lasted)
	for i, b := range s.Boards {
		// A board whose processes are new has used nothing before.
		share := 100 * float64(after[i]-min(before[i], after[i])) / float64(lasted)
		if b == s.leader {
			s.figures["leader-cpu-%"] = share
			continue
		}
		s.figures["follower-cpu-%"] += share / (numBoards - 1)
		s.figures["packets/s"] += float64(sent[i]-sentBefore[i]) / lasted.Seconds() / (numBoards - 1)
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
	s.figures["status-failed"] = 0
	leader, took := s.leader, []time.Duration(nil)
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
			s.figures["status-failed"]++
		}
		wait(ctx, time.Until(began.Add(statusEvery)))
	}
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	s.figures["status-median-ms"], s.figures["status-ms"] = millis(observe.Percentile(took, 50)), millis(slices.Max(took))
}

// millis is a time as figures have it.
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// noteHolders notes what happened to the address by the kernels of the boards.
func (s *stage) noteHolders() {
	held := s.Cluster.Holders.Since(s.began)
	s.figures["moves"], s.figures["two-ms"] = float64(held.Moves()), millis(held.Overlap())
}

// noteClient notes the same, and what the client has met.
func (s *stage) noteClient(lasted time.Duration) {
	s.noteHolders()
	client := s.Asker.Report(s.began)
	// The time in which the client did not ask is no outage, but late.
	var outage, late time.Duration
	gaps, _ := s.Asker.Gaps(0)
	for _, g := range gaps {
		if g.To.After(s.began) && g.Duration() > 2*askEvery {
			outage += max(0, min(g.Duration(), g.To.Sub(s.began))-g.Paused)
			late += g.Paused
		}
	}
	if _, silent := s.Asker.Last(); silent > 2*askEvery {
		outage += min(silent, time.Since(s.began))
	}
	s.figures["longest-ms"], s.figures["outage-ms"] = millis(client.Waited), millis(outage)
	s.figures["dark-%"] = 100 * float64(outage) / float64(lasted)
	s.figures["late-ms"], s.figures["late-%"] = millis(client.Pause), 100*float64(late)/float64(lasted)
}

// await notes how long something takes since the mark, or that it was not so as long as it was watched.
func (s *stage) await(what string, times []string) error {
	most, err := s.longest(times)
	if err != nil {
		return err
	}
	is := func() bool { return len(s.Holders()) == 1 }
	switch what {
	case "another":
		return s.awaitAnother(most)
	case "holder":
		is = func() bool { return len(s.Holders()) > 0 }
	case "back":
		is = s.oneLed
	}
	took := time.Duration(0)
	for s.ctx.Err() == nil && !is() {
		if time.Since(s.began) > most {
			s.figures["never"], took = 1, most
			break
		}
		s.Pass(2 * time.Millisecond)
	}
	if took == 0 {
		took = time.Since(s.began)
	}
	s.result.Runs = []float64{millis(took)}
	if s.noteHolders(); what == "back" {
		s.noteClient(took)
	}
	return s.ctx.Err()
}

// oneLed reports whether all boards follow one.
func (s *stage) oneLed() bool {
	var leaders []string
	for _, b := range s.Boards {
		state, err := s.State(b.Number)
		if err != nil || state.Leader == "" {
			return false
		}
		leaders = append(leaders, state.Leader)
	}
	return len(slices.Compact(leaders)) == 1 && len(s.Holders()) == 1
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
	s.result.Runs = append(s.result.Runs, millis(client.Waited))
	s.figures["late-ms"] = max(s.figures["late-ms"], millis(client.Pause))
	return nil
}
