package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/frame"
)

// calm measures what groups cost that do nothing but their duty.
func (s *session) calm(ctx context.Context) error {
	restore, err := roomForNeighbours()
	if err != nil {
		return err
	}
	defer restore()
	s.show.begin("steady state", len(s.plan.servedSystems(false))*len(s.plan.boards))
	var jobs []func() error
	for _, boards := range s.plan.boards {
		for _, sys := range s.plan.servedSystems(false) {
			jobs = append(jobs, func() error {
				c, err := s.calmGroup(ctx, sys, boards, variant{}, s.plan.rest)
				s.show.done()
				if err != nil {
					return fmt.Errorf("%s, %d boards: %w", sys, boards, err)
				}
				s.add(func(r *report.Report) { r.Calm = append(r.Calm, c) })
				return nil
			})
		}
	}
	if s.plan.together {
		return together(jobs...)
	}
	var errs []error
	for _, job := range jobs {
		if ctx.Err() == nil {
			errs = append(errs, job())
		}
	}
	return errors.Join(errs...)
}

// calmGroup watches one group for a while, after a rest.
func (s *session) calmGroup(ctx context.Context, sys system, boards int, v variant, rest time.Duration) (c report.Calm, err error) {
	r, err := newRig(sys, boards, v)
	if err != nil {
		return c, err
	}
	defer func() {
		if closeErr := r.close(); err == nil {
			err = closeErr
		}
	}()
	if err := r.startInTurn(ctx); err != nil {
		return c, err
	}
	leader, err := r.stableLeader(ctx)
	if err != nil {
		return c, err
	}
	if err := wait(ctx, rest); err != nil {
		return c, err
	}
	return r.watchCalm(ctx, leader, s.plan.calm)
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

// watchCalm counts packets, and what the boards need for them.
func (r *rig) watchCalm(ctx context.Context, leader *board, d time.Duration) (c report.Calm, err error) {
	c = report.Calm{System: r.sys.String(), Boards: len(r.boards)}
	count, err := r.countPackets()
	if err != nil {
		return c, err
	}
	defer count.close()
	before, err := r.usage()
	if err != nil {
		return c, err
	}
	packets, bytes := count.total()
	began := time.Now()
	if err := wait(ctx, d); err != nil {
		return c, err
	}
	after, err := r.usage()
	if err != nil {
		return c, err
	}
	c.For = time.Since(began)
	c.Packets, c.Bytes = count.total()
	c.Packets -= packets
	c.Bytes -= bytes

	var followers []report.Cost
	for i, b := range r.boards {
		cost := report.Cost{
			Processor: float64(after[i].busy-before[i].busy) / float64(c.For),
			RSS:       after[i].rss,
			PSS:       after[i].pss,
			Processes: after[i].processes,
		}
		if b == leader {
			c.Leader = cost
		} else {
			followers = append(followers, cost)
		}
	}
	c.Follower = mean(followers)
	return c, nil
}

// usage looks at the processes of every board.
func (r *rig) usage() ([]usage, error) {
	list := make([]usage, len(r.boards))
	for i, b := range r.boards {
		pids, err := b.Processes()
		if err == nil {
			list[i], err = usageOf(b.withoutService(pids))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name, err)
		}
	}
	return list, nil
}

// mean returns the mean of costs.
func mean(list []report.Cost) (m report.Cost) {
	if len(list) == 0 {
		return m
	}
	n := uint64(len(list))
	var processes int
	for _, c := range list {
		m.Processor += c.Processor / float64(n)
		m.RSS += c.RSS / n
		m.PSS += c.PSS / n
		processes += c.Processes
	}
	m.Processes = processes / len(list)
	return m
}

// packetCount counts a system's packets, and ARP.
type packetCount struct {
	listener

	mu             sync.Mutex
	packets, bytes uint64
}

// countPackets begins to count. Every board's packets are counted where they
// leave it, so that each counts once, wherever it goes.
func (r *rig) countPackets() (*packetCount, error) {
	p := &packetCount{}
	traffic := r.sys.traffic()
	for _, b := range r.boards {
		err := p.add(b.Host, unix.ETH_P_ALL, func(f frame.Frame) (more bool) {
			if f.Outgoing && (carries(f, traffic) || f.EtherType() == unix.ETH_P_ARP) {
				p.mu.Lock()
				p.packets++
				p.bytes += uint64(f.Length)
				p.mu.Unlock()
			}
			return true
		})
		if err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func (p *packetCount) total() (packets, bytes uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.packets, p.bytes
}
