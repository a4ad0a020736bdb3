package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/config"
	"topdog/internal/lab/bench"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

const (
	// numBoards is how many there are in a group.
	numBoards = 3
	// askEvery is how often the client asks.
	askEvery = time.Millisecond
	// steadyFor is for how long one board has led before anything is done to it.
	steadyFor = 700 * time.Millisecond
	// settleTimeout bounds how long a group may take for that.
	settleTimeout = 20 * time.Second
	// recorded is how many packets the laptop records before it begins.
	recorded = 20
)

// system is what a group runs.
type system struct {
	Key     string `json:"key"` // of the bench
	Name    string `json:"name"`
	Version string `json:"version"`
	program string // of topdog
}

// topdog reports whether the laptop's packets are of topdog's protocol.
func (s system) topdog() bool { return s.program != "" }

// scene is a group on its LAN, with a laptop and a client.
type scene struct {
	*bench.Group
	system system
	place  place
	laptop *Laptop
	asker  *observe.Asker
	slowed *quota // nil unless the leader has a part of a core
}

// grounds are where attacks on a system take place, one scene after another.
type grounds struct {
	system system
	place  place
	scene  *scene // nil between two of them
}

// settled returns a scene that has settled. One that does not settle is replaced.
func (g *grounds) settled(ctx context.Context) (s *scene, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if g.scene != nil {
		if _, err := g.scene.settle(ctx); err == nil {
			return g.scene, nil
		}
		if err := g.clear(); err != nil {
			return nil, err
		}
	}
	g.scene, err = newScene(ctx, g.system, g.place)
	return g.scene, err
}

// clear ends the scene, if there is one.
func (g *grounds) clear() error {
	s := g.scene
	if g.scene = nil; s == nil {
		return nil
	}
	return s.end()
}

// newScene starts a group, and waits until it stands.
func newScene(ctx context.Context, sys system, where place) (s *scene, err error) {
	if err := where.arrange(); err != nil {
		return nil, err
	}
	s = &scene{system: sys, place: where}
	s.Group, err = bench.NewGroup(ctx, bench.GroupOptions{System: sys.Key, Program: sys.program, Boards: numBoards, Strangers: 1})
	if err != nil {
		return nil, err
	}
	var hosts []*netns.Host
	for _, b := range s.Boards() {
		hosts = append(hosts, b.Host)
	}
	s.laptop = NewLaptop(s.Stranger(1), hosts...)
	if s.asker, err = s.LAN.Ask(cluster.Address, askEvery); err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// prepare lets the laptop learn what it can, and has the leader slowed if the place wants that.
func (s *scene) prepare(ctx context.Context) error {
	leader, err := s.settle(ctx)
	if err != nil {
		return err
	}
	if s.system.topdog() {
		keys, err := config.LoadKeys(filepath.Join(leader.Dir, "key"))
		if err != nil {
			return err
		}
		bounded, cancel := context.WithTimeout(ctx, settleTimeout)
		defer cancel()
		if err := errors.Join(s.laptop.Remember("topdog", keys.Secrets()...), s.laptop.Listen(bounded, recorded)); err != nil {
			return err
		}
	}
	if s.place.Share > 0 {
		return s.slow(leader)
	}
	return nil
}

// slow gives the processes of a board a part of a core.
func (s *scene) slow(d *cluster.Daemon) (err error) {
	if s.slowed, err = newQuota(s.place.Share); err != nil {
		return err
	}
	pids, err := d.Processes()
	if err != nil {
		return err
	}
	return s.slowed.add(pids)
}

// end takes all apart.
func (s *scene) end() error {
	if s.asker != nil {
		s.asker.Close()
	}
	err := s.End()
	if s.slowed != nil {
		err = errors.Join(err, s.slowed.remove())
	}
	return err
}

// settle waits until one board has led for a while, all follow it, and the client knows where the address is.
func (s *scene) settle(ctx context.Context) (leader *cluster.Daemon, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for since := time.Now(); ; {
		now, lack := s.Leader(ctx)
		if board, silent := s.asker.Last(); lack == nil && (board != now.Number || silent > steadyFor/10) {
			lack = errors.New("the client gets no answer")
		}
		if lack != nil || now != leader || len(s.Holders.Since(since).Spans) > 1 {
			leader, since = now, time.Now()
		}
		if lack == nil && time.Since(since) > steadyFor {
			return leader, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("attack: %s does not settle: %w", s.system.Name, errors.Join(lack, ctx.Err()))
		}
	}
}

// place says which processors the boards and the laptop have.
type place struct {
	Key   string  `json:"key"`
	Title string  `json:"title"`
	Share float64 `json:"share,omitempty"` // of a core, for the leader's board; 0 is no limit
	// apart gives the laptop a processor of its own, and all the rest to the boards, the client and this program.
	apart bool
}

func places() []place {
	return []place{
		{Key: "apart", Title: "the laptop has a processor of its own", apart: true},
		{Key: "shared", Title: "the laptop shares the boards' processors"},
		{Key: "tenth", Title: "the laptop has a processor of its own, the leader has a tenth of one", apart: true, Share: 0.1},
	}
}

// processors are those on which this process could run when it began.
var processors = func() (cores []int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	for core := range 8 * len(set) * strconv.IntSize / 8 {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores
}()

// split returns the processors of the boards and those of the laptop.
func (p place) split() (boards, laptop []int, err error) {
	if !p.apart {
		return processors, processors, nil
	}
	last := len(processors) - 1
	if last < 1 {
		return nil, nil, fmt.Errorf("attack: %s: this machine has one processor", p.Title)
	}
	return processors[:last], processors[last:], nil
}

// arrange moves this program to the processors of the boards, with the priority of their service. What it
// starts from now on inherits both.
func (p place) arrange() error {
	boards, _, err := p.split()
	if err != nil {
		return err
	}
	err = netns.EachThread(os.Getpid(), func(id int) error {
		return errors.Join(pin(id, boards), unix.Setpriority(unix.PRIO_PROCESS, id, cluster.ServiceNice))
	})
	if err != nil {
		return fmt.Errorf("attack: have the processors %v and the priority %d: %w", boards, cluster.ServiceNice, err)
	}
	return nil
}

// others are the boards that are not the leader.
func others(boards []*cluster.Daemon, leader *cluster.Daemon) []*cluster.Daemon {
	return slices.DeleteFunc(slices.Clone(boards), func(b *cluster.Daemon) bool { return b == leader })
}
