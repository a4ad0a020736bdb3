package attack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/wire"
)

// attack is one row of the table.
type attack struct {
	Key   string `json:"key"`
	Title string `json:"title"`
	Rate  int    `json:"rate,omitempty"` // a second, as it is meant; 0 is as many as it can
	// Defended says that the address must not move, and that one board alone has it.
	Defended bool `json:"defended"`
	// quick says that the short form has it.
	quick bool
	goals []goal // what else must not be
	// unable says why a system in a place has no such attack, or "".
	unable func(system, place) string
	run    func(ctx context.Context, s *scene, o options) (Result, error)
}

func (a attack) String() string { return a.Key }

// attacks returns all, in the order of the table.
func attacks() []attack {
	list := []attack{{Key: "none", Title: "nothing", Defended: true, quick: true, unable: anySystem, run: watchOnly}}
	for _, f := range Floods() {
		list = append(list, flood(f))
	}
	list = append(list, rivalFloods()...)
	return append(list,
		byUser("status", "a user asks for the status on 32 connections", "ask"),
		byUser("status-connect", "a user connects, asks and closes, eight at a time", "connect"),
		byUser("silent", "a user holds 60 silent connections", "silent"),
		attack{Key: "bind", Title: "a user takes the port while the daemon restarts: until it is back", unable: topdogOnly, run: bindDuringRestart},
		attack{Key: "bind-holder", Title: "a user takes the port while the daemon restarts, beside a holder that is a service: until it is back", quick: true, goals: []goal{soon}, unable: thisTopdog, run: bindBesideHolder},
		attack{Key: "cold-arp", Title: "somebody answers for the address at a cold start: until one leads", unable: topdogOnly, run: coldARP},
		attack{Key: "cold-arp-take", Title: "somebody answers for the address at a cold start, with take_in_use: until one leads", goals: []goal{soon}, unable: thisTopdog, run: coldARPTaken},
		attack{Key: "clones", Title: "three clones with one id start together: until one leads", quick: true, goals: []goal{within(mostCloned)}, unable: topdogOnly, run: clones},
		underFlood("kill-bad-tags", "SIGKILL of the leader under 20,000/s bad tags: until another answers", "bad-tags", killed, repaired),
		underFlood("pull-bad-tags", "the leader's cable is pulled under 20,000/s bad tags: until another answers", "bad-tags", pulled, plugged),
		underFlood("kill-lives", "SIGKILL of the leader under 20,000/s recordings: until another answers", "lives", killed, repaired),
		underFlood("pull-lives", "the leader's cable is pulled under 20,000/s recordings: until another answers", "lives", pulled, plugged),
	)
}

func anySystem(system, place) string { return "" }

func topdogOnly(s system, p place) string {
	switch {
	case !s.topdog():
		return "it has nothing of the kind"
	case p.Share > 0:
		return "the leader does not stay the same"
	}
	return ""
}

// thisTopdog says that an older build does not know the key.
func thisTopdog(s system, p place) string {
	if s.Name != "topdog" {
		return "it has no such key"
	}
	return topdogOnly(s, p)
}

// topdogFloods says that other programs do not listen to topdog's packets.
func topdogFloods(s system, _ place) string {
	if !s.topdog() {
		return "these are topdog's packets"
	}
	return ""
}

func watchOnly(ctx context.Context, s *scene, o options) (Result, error) {
	return s.watch(ctx, func(ctx context.Context) (float64, error) {
		select {
		case <-time.After(o.lasts):
		case <-ctx.Done():
		}
		return 0, nil
	})
}

// undefended are the floods of which nothing is promised.
var undefended = map[string]bool{"bad-tags-board": true, "garp-10": true, "garp-1000": true, "garp-35000": true}

// inQuick are the floods of the short form, and the failures under one.
var inQuick = map[string]bool{
	"bad-tags": true, "bad-tags-sources": true, "ttl": true, "long": true, "lives": true, "lives-routed": true, "fragments": true, "garp": true, "arp-35000": true,
	"kill-bad-tags": true, "pull-lives": true,
}

// forgedFor is for how long one forged announcement a second is sent, at least. A board may defend the address from the
// first of them and not from the next, and a part of the time says little about a shorter one.
const forgedFor = 6 * time.Second

// quickRate is the most that the short form sends a second, so that any machine can.
const quickRate = 10_000

func flood(f Flood) attack {
	unable, goals, lasts := topdogFloods, []goal{steady}, time.Duration(0)
	switch {
	case f.Key == "garp":
		goals, lasts = []goal{bright}, forgedFor
	case undefended[f.Key]:
		goals = nil
	}
	switch f.Key {
	case "garp", "garp-10", "garp-1000", "garp-35000", "arp", "arp-35000":
		unable = anySystem
	}
	return attack{
		Key: f.Key, Title: f.Title, Rate: f.Rate, Defended: !undefended[f.Key], quick: inQuick[f.Key], goals: goals, unable: unable,
		run: func(ctx context.Context, s *scene, o options) (Result, error) {
			frames, err := f.frames(s.laptop)
			if err != nil {
				return Result{}, err
			}
			rate := f.Rate
			if o.quick && (rate == 0 || rate > quickRate) {
				rate = quickRate
			}
			if o.rate > 0 {
				rate = o.rate
			}
			return s.watch(ctx, s.sends(frames, rate, max(o.lasts, lasts)))
		},
	}
}

func byUser(key, title, does string) attack {
	return attack{
		Key: key, Title: title, Defended: true, quick: true, goals: []goal{served}, unable: topdogOnly,
		run: func(ctx context.Context, s *scene, o options) (Result, error) {
			return s.uses(ctx, user{Does: does, For: o.lasts})
		},
	}
}

// bindDuringRestart ends a follower and starts it again, while a user of its board waits for the port.
func bindDuringRestart(ctx context.Context, s *scene, o options) (r Result, err error) {
	leader, err := s.Leader(ctx)
	if err != nil {
		return r, err
	}
	follower := others(s.Boards(), leader)[0]
	return s.bind(ctx, o, follower, func() error { return s.Start(follower) })
}

// bindBesideHolder does the same to a follower whose holder goes on meanwhile, as the units of the package have it.
func bindBesideHolder(ctx context.Context, s *scene, o options) (r Result, err error) {
	leader, err := s.Leader(ctx)
	if err != nil {
		return r, err
	}
	follower := others(s.Boards(), leader)[0]
	holder, err := s.NewDaemon(follower.Number)
	if err != nil {
		return r, err
	}
	if err := s.Kill(follower); err != nil {
		return r, err
	}
	socket := filepath.Join(holder.Dir, "h")
	launch := func(d *cluster.Daemon, verb string, args ...string) error {
		argv, _, err := s.Topdog(follower, verb)
		if err != nil || !d.Ended(settleTimeout) {
			return cmp.Or(err, fmt.Errorf("%s has not ended", d.Name))
		}
		return d.Launch(argv[0], append(argv[1:], args...))
	}
	restart := func() error { return launch(follower, "run", "--holder", socket) }
	if err := errors.Join(launch(holder, "holder", "--socket", socket, "--user", "root"), restart()); err != nil {
		return r, err
	}
	if _, err := s.settle(ctx); err != nil {
		return r, err
	}
	o.lasts = max(o.lasts, restartFor)
	return s.bind(ctx, o, follower, restart)
}

// restartFor is for how long a restart is watched, at least.
const restartFor = 5 * time.Second

// bind kills the daemon of a follower, while a user of its board waits for the port, and restarts it.
func (s *scene) bind(ctx context.Context, o options, follower *cluster.Daemon, restart func() error) (r Result, err error) {
	p, err := startUser(ctx, follower.Host, user{Does: "bind", Port: wire.DefaultGroup.Port(), For: o.lasts})
	if err != nil {
		return r, err
	}
	began := time.Now()
	if err := s.Kill(follower); err != nil {
		return r, err
	}
	if !follower.Ended(settleTimeout) {
		return r, fmt.Errorf("%s has not ended", follower.Name)
	}
	<-time.After(userNotices)
	if err := restart(); err != nil {
		return r, err
	}
	s.until(ctx, &r, began, o.lasts, func() bool {
		_, lack := s.Leader(ctx)
		return lack == nil && follower.Running()
	})
	if _, err := p.rate(); err != nil {
		return r, err
	}
	r.For = time.Since(began)
	s.note(&r, began)
	return r, s.Repair(follower)
}

// userNotices is long enough for a user to see that the port is free.
const userNotices = 10 * comeAgain

// until notes how long after the begin something is so, or that it was not as long as it was watched.
func (s *scene) until(ctx context.Context, r *Result, began time.Time, most time.Duration, is func() bool) {
	for ; ctx.Err() == nil && !is(); <-time.After(2 * time.Millisecond) {
		if time.Since(began) > most {
			r.Took, r.Never = []time.Duration{most}, true
			return
		}
	}
	r.Took = []time.Duration{time.Since(began)}
}

// coldFor is for how long a cold start is watched, at least.
const coldFor = 20 * time.Second

// coldARP starts all boards while somebody on the LAN answers for the address whenever it is asked for.
func coldARP(ctx context.Context, s *scene, o options) (r Result, err error) {
	if err := s.Down(); err != nil {
		return r, err
	}
	answering, stop := context.WithCancel(ctx)
	defer stop()
	answered := make(chan error, 1)
	var answers int
	go func() {
		var err error
		answers, err = s.laptop.answerARP(answering, cluster.Address)
		answered <- err
	}()
	began := time.Now()
	if err := s.Up(); err != nil {
		return r, err
	}
	s.until(ctx, &r, began, max(o.lasts, coldFor), func() bool { return len(s.Holders.Current()) > 0 })
	stop()
	if err := <-answered; err != nil {
		return r, err
	}
	held := s.Holders.Since(began)
	r.For, r.Rate = time.Since(began), float64(answers)/time.Since(began).Seconds()
	r.Moves, r.Two = held.Moves(), held.Overlap()
	return r, nil
}

// coldARPTaken is the same for boards that may take an address that is in use.
func coldARPTaken(ctx context.Context, s *scene, o options) (r Result, err error) {
	if err := s.Configure(`take_in_use = true`); err != nil {
		return r, err
	}
	if r, err = coldARP(ctx, s, o); err != nil {
		return r, err
	}
	if err := s.Configure(); err != nil {
		return r, err
	}
	if err := s.Down(); err != nil {
		return r, err
	}
	return r, s.Up()
}

// clones starts three boards with one id at once.
func clones(ctx context.Context, s *scene, o options) (r Result, err error) {
	if err := s.Down(); err != nil {
		return r, err
	}
	if err := s.Configure(`id = 7`); err != nil {
		return r, err
	}
	began := time.Now()
	if err := s.Up(); err != nil {
		return r, err
	}
	s.until(ctx, &r, began, max(o.lasts, coldFor), func() bool { return len(s.Holders.Current()) == 1 })
	r.For = time.Since(began)
	held := s.Holders.Since(began)
	r.Moves, r.Two = held.Moves(), held.Overlap()
	if err := s.Down(); err != nil {
		return r, err
	}
	if err := s.Configure(); err != nil {
		return r, err
	}
	return r, s.Up()
}

func underFlood(key, title, floodKey string, fail, repair func(*scene) func(*cluster.Daemon) error) attack {
	return attack{
		Key: key, Title: title, Rate: 20_000, quick: inQuick[key], goals: []goal{within(mostReplaced)}, unable: topdogOnly,
		run: func(ctx context.Context, s *scene, o options) (Result, error) {
			frames, err := s.laptop.Frames(floodKey)
			if err != nil {
				return Result{}, err
			}
			return s.failure(ctx, frames, 20_000, o.runs, fail(s), repair(s))
		},
	}
}

func killed(s *scene) func(*cluster.Daemon) error   { return s.Kill }
func repaired(s *scene) func(*cluster.Daemon) error { return s.Repair }
func pulled(*scene) func(*cluster.Daemon) error {
	return func(d *cluster.Daemon) error { return d.Pull() }
}

func plugged(*scene) func(*cluster.Daemon) error {
	return func(d *cluster.Daemon) error { return d.Plug() }
}

// phase is a part of an interval, by chance: a failure comes at any time.
func phase(interval time.Duration) time.Duration {
	return time.Duration(rand.Float64() * float64(interval))
}
