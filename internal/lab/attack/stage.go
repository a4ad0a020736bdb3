package attack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/bench"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/wire"
)

const (
	// numBoards is how many there are in a group.
	numBoards = 3
	// askEvery is how often the client asks.
	askEvery = time.Millisecond
	// steadyFor is for how long one board has led before anything is done to it.
	steadyFor = 700 * time.Millisecond
	// exitTimeout is how long the daemons get to end after SIGTERM.
	exitTimeout = 4 * time.Second
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

func (s system) String() string { return s.Name }

// topdog reports whether the laptop's packets are of topdog's protocol.
func (s system) topdog() bool { return s.program != "" }

// stage is where attacks on a system take place, one after another: a group on its LAN, with a laptop and a client. There is
// no group before the first attack, nor after one that has spoilt it.
type stage struct {
	cluster.Stage
	ctx     context.Context
	system  system
	place   place
	options options
	laptop  *Laptop
	slowed  *quota // nil unless the leader has a part of a core
	leader  *cluster.Topdog

	// Of the attack that is played:
	began   time.Time
	rates   []float64
	users   []int // the processes of users
	result  Result
	figures map[string]float64 // of the result
	stop    context.CancelFunc // what goes on beside the scene
	beside  sync.WaitGroup
	failed  error // of that
}

// ready waits until the group has settled. One that does not, or that is not there, is replaced.
func (s *stage) ready() error {
	if s.Cluster != nil && s.settle() == nil {
		return nil
	}
	if err := errors.Join(s.ctx.Err(), s.end(), s.place.arrange()); err != nil {
		return err
	}
	if err := s.startGroup(); err != nil {
		return err
	}
	var hosts []*netns.Host
	for _, b := range s.Boards {
		hosts = append(hosts, b.Host)
	}
	s.laptop = NewLaptop(s.LAN.Board(numBoards+1), hosts...)
	var err error
	if s.Asker, err = s.LAN.Ask(cluster.Address, askEvery); err != nil {
		return err
	}
	return s.prepare()
}

// startGroup starts the boards, a rival's as the bench has them.
func (s *stage) startGroup() (err error) {
	if !s.system.topdog() {
		group, err := bench.NewGroup(s.ctx, s.system.Key, numBoards, 1)
		if err != nil {
			return err
		}
		s.Cluster, s.Strangers = group.Cluster, 1
		for _, d := range group.Boards() {
			s.Boards = append(s.Boards, &cluster.Topdog{Daemon: d})
		}
		return nil
	}
	s.Stage, err = cluster.NewStage(cluster.New, cluster.Program{Path: s.system.program}, numBoards, 1, nil)
	if err != nil {
		return err
	}
	for _, b := range slices.Backward(s.Boards) {
		err = errors.Join(err, os.Chmod(b.Dir, 0o755), b.Run()) // users of the board may ask the daemon
	}
	return err
}

// prepare lets the laptop learn what it can, and has the leader slowed if the place wants that.
func (s *stage) prepare() error {
	if err := s.settle(); err != nil {
		return err
	}
	if s.system.topdog() {
		keys, err := config.LoadKeys(s.leader.KeyFile())
		if err != nil {
			return err
		}
		bounded, cancel := context.WithTimeout(s.ctx, cluster.Timeout)
		defer cancel()
		if err := errors.Join(s.laptop.Remember("topdog", keys.Secrets()...), s.laptop.Listen(bounded, recorded)); err != nil {
			return err
		}
	}
	if s.place.Share == 0 {
		return nil
	}
	pids, err := s.leader.Processes()
	if err == nil {
		s.slowed, err = newQuota(s.place.Share)
	}
	if err != nil {
		return err
	}
	return s.slowed.add(pids)
}

// end takes the group apart, if there is one. Lost notifications matter to attacks, which look for themselves.
func (s *stage) end() (err error) {
	if s.Asker != nil {
		s.Asker.Close()
	}
	if s.Cluster != nil {
		s.Stop(exitTimeout)
		if err = s.Close(); errors.Is(err, cluster.ErrLost) {
			err = nil
		}
	}
	if s.slowed != nil {
		err = errors.Join(err, s.slowed.remove())
	}
	s.Stage, s.slowed, s.leader = cluster.Stage{}, nil, nil
	return err
}

// settle waits until one board has led for a while, all follow it, and the client knows where the address is.
func (s *stage) settle() error {
	since := time.Now()
	err := cluster.Until("the group has settled", func() string {
		now, lack := s.leads()
		if board, silent := s.Asker.Last(); lack == nil && (board != now.Number || silent > steadyFor/10) {
			lack = errors.New("the client gets no answer")
		}
		if lack != nil || now != s.leader || len(s.Cluster.Holders.Since(since).Spans) > 1 {
			s.leader, since = now, time.Now()
		}
		switch {
		case s.ctx.Err() != nil:
			return ""
		case lack != nil:
			return lack.Error()
		case time.Since(since) <= steadyFor:
			return fmt.Sprintf("%s has just begun to lead", now.Name)
		}
		return ""
	})
	return errors.Join(err, s.ctx.Err())
}

// leads returns the board that alone has the address, if the group is as it is meant to be.
func (s *stage) leads() (*cluster.Topdog, error) {
	if s.system.topdog() {
		return s.Agreed(s.Boards)
	}
	holders := s.Holders()
	if len(holders) != 1 {
		return nil, fmt.Errorf("the address is on %v", holders)
	}
	return s.Boards[holders[0]-1], nil
}

// others are the boards that are not the leader.
func (s *stage) others() []*cluster.Topdog {
	return slices.DeleteFunc(slices.Clone(s.Boards), func(b *cluster.Topdog) bool { return b == s.leader })
}

// play makes an attack on a group that has settled.
func (s *stage) play(a attack) (Result, error) {
	s.began, s.rates, s.users, s.figures = time.Now(), nil, nil, map[string]float64{}
	s.result = Result{System: s.system.Name, Place: s.place.Key, Attack: a.Key, Figures: s.figures}
	scene, err := a.scene(s.options.runs)
	if err == nil {
		err = errors.Join(scene.Play(s, rand.Uint64()), s.over())
	}
	if err == nil && s.Cluster.Holders.Lost() > 0 {
		err = cluster.ErrLost
	}
	s.summarize()
	return s.result, err
}

// summarize makes figures of what there may be several of.
func (s *stage) summarize() {
	s.figures["times/s"] = 0
	for _, rate := range s.rates {
		s.figures["times/s"] += rate / float64(len(s.rates))
	}
	runs := slices.Sorted(slices.Values(s.result.Runs))
	if n := len(runs); n > 0 {
		s.figures["runs"] = float64(n)
		s.figures["took-median-ms"], s.figures["took-ms"], s.figures["took-most-ms"] = runs[(n-1)/2], runs[(95*n+99)/100-1], runs[n-1]
	}
}

// What follows is scene.Stage, as far as attacks are no scenes of a cluster like all others.

// Named are the boards of a name.
func (s *stage) Named(name string) (boards []int, known bool) {
	chosen, known := map[string][]*cluster.Topdog{"leader": {s.leader}, "all": s.Boards, "another": s.others()[:1]}[name]
	for _, b := range chosen {
		boards = append(boards, b.Number)
	}
	return boards, known
}

// Mark has the figures count from now on.
func (s *stage) Mark() { s.began = time.Now() }

// Seen says nothing of two holders: they are a figure.
func (s *stage) Seen() (moves int, two bool) { return 0, false }

// Pass waits.
func (s *stage) Pass(d time.Duration) { wait(s.ctx, d) }

// Line does what only scenes of attacks have; see attacks.scene.
func (s *stage) Line(words, _ []string) (known bool, err error) {
	if err := s.ctx.Err(); err != nil {
		return true, err
	}
	switch words[0] {
	case "beside":
		do, err := s.effort(words[1:], true)
		if do != nil && err == nil {
			s.goOn(do)
		}
		return do != nil, err
	case "over":
		return true, s.over()
	case "settled":
		return true, s.settle()
	case "await":
		return true, s.await(words[1], words[2:])
	case "must":
		s.summarize()
		s.result.Missed, err = s.result.beyond(words[1:])
		return true, err
	}
	if named, known := s.Named(words[0]); known && len(words) == 2 {
		switch b := s.Boards[named[0]-1]; words[1] {
		case "serve-holder":
			return true, s.serveHolder(b)
		case "own-holder":
			b.Program.Args = nil
			return true, nil
		}
	}
	do, err := s.effort(words, false)
	if do == nil || err != nil {
		return err != nil, err
	}
	return true, s.watch(do)
}

// serveHolder starts a holder that is a service beside the daemon of a board, which uses it from its next start on.
func (s *stage) serveHolder(b *cluster.Topdog) error {
	holder, err := s.NewDaemon(b.Number)
	if err != nil {
		return err
	}
	socket := filepath.Join(holder.Dir, "h")
	b.Program.Args = []string{"--holder", socket}
	return holder.Launch(b.Program.Path, []string{"holder", "--config", b.ConfigFile(), "--socket", socket, "--user", "root"})
}

// effort is what somebody does meanwhile, until the context ends at the latest: it returns how many times a second.
type effort func(context.Context) (rate float64, err error)

// effort begins what a line of a scene says, beside it or not, which is over after the time of an attack, or that of the line
// if it is longer. It is nil if the line says nothing of the kind.
func (s *stage) effort(words []string, beside bool) (effort, error) {
	switch {
	case words[0] == "watch":
		return func(ctx context.Context) (float64, error) { wait(ctx, s.options.lasts); return 0, nil }, nil
	case words[0] == "answer":
		return s.laptop.answer, nil
	case len(words) < 3:
		return nil, nil
	}
	lasts, err := s.longest(words[3:])
	if words[0] == "flood" && err == nil {
		return s.flood(words[1], words[2], lasts, beside)
	}
	named, known := s.Named(words[0])
	if !known || words[1] != "user" || err != nil {
		return nil, err
	}
	return s.user(s.Boards[named[0]-1], words[2], lasts)
}

// flood is the effort of the laptop.
func (s *stage) flood(kind, often string, lasts time.Duration, beside bool) (effort, error) {
	frames, framesErr := s.laptop.Frames(kind)
	_, cores, coresErr := s.place.split()
	rate, rateErr := 0, error(nil)
	if often != "most" {
		rate, rateErr = strconv.Atoi(often)
	}
	if !beside {
		rate = s.options.adapted(rate)
	}
	return func(ctx context.Context) (float64, error) {
		sent, err := s.laptop.Send(ctx, Stream{Frames: frames, Rate: rate, For: lasts, Cores: cores})
		return sent.Rate(), err
	}, errors.Join(framesErr, coresErr, rateErr)
}

// user has an ordinary user of a board begin. It ends by itself.
func (s *stage) user(b *cluster.Topdog, does string, lasts time.Duration) (effort, error) {
	u := user{Does: does, Socket: filepath.Join(b.Dir, "s"), Port: wire.DefaultGroup.Port(), For: lasts}
	p, err := startUser(s.ctx, b.Host, u)
	if err != nil {
		return nil, err
	}
	s.users = append(s.users, p.PID)
	return func(context.Context) (float64, error) { return p.rate() }, nil
}

// longest is the time of an attack, or one of these if it is longer.
func (s *stage) longest(times []string) (most time.Duration, err error) {
	most = s.options.lasts
	for _, text := range times {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, err
		}
		most = max(most, d)
	}
	return most, nil
}

// goOn has an effort go on beside the scene.
func (s *stage) goOn(do effort) {
	var ctx context.Context
	ctx, s.stop = context.WithCancel(s.ctx)
	s.beside.Go(func() {
		rate, err := do(ctx)
		s.rates, s.failed = append(s.rates, rate), errors.Join(s.failed, err)
	})
}

// over ends what goes on beside the scene.
func (s *stage) over() error {
	if s.stop != nil {
		s.stop()
	}
	s.beside.Wait()
	err := s.failed
	s.failed = nil
	return err
}

// wait lets time pass, until the context ends at the latest.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
