package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
)

// session is one run of the bench: what it is to measure, and what it has.
type session struct {
	plan plan
	dir  string
	show *progress

	mu     sync.Mutex
	record record
}

// The parts of which a session is made.
var parts = []struct {
	name string
	do   func(*session, context.Context) error
}{
	{"failures", func(s *session, ctx context.Context) error { return s.events(ctx, "failures", false) }},
	{"starts", (*session).starts},
	{"calm", (*session).calm},
	{"loss", (*session).loss},
	{"idle", (*session).idle},
	{"service", func(s *session, ctx context.Context) error { return s.events(ctx, "services", true) }},
	{"checks", (*session).checks},
	{partCurve, (*session).curves},
}

// measureAll does all that is planned. Whatever has been measured is returned, also
// when something failed or the user has had enough.
func measureAll(ctx context.Context, p plan, dir string, show *progress) (*record, error) {
	s := &session{plan: p, dir: dir, show: show}
	s.record.facts = map[string]string{"begun": time.Now().Format(time.RFC3339), "form": p.form, "machine": machine()}
	if slices.ContainsFunc(p.systems, func(sys *system) bool { return sys.IPv6 }) {
		s.record.facts["ipv6"] = "yes"
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	var errs []error
	for _, part := range parts {
		if !slices.Contains(p.parts, part.name) || ctx.Err() != nil {
			continue
		}
		if err := part.do(s, ctx); err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, fmt.Errorf("%s: %w", part.name, err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &s.record, errors.Join(errs...)
}

// machine describes where this runs.
func machine() string {
	var name unix.Utsname
	var info unix.Sysinfo_t
	_, _ = unix.Uname(&name), unix.Sysinfo(&info)
	processors := count(runtime.NumCPU(), "processor", "processors")
	memory := float64(info.Totalram) * float64(info.Unit) / 1e9
	return fmt.Sprintf("%s (%s), %.1f GB of memory, Linux %s, %s",
		processors, processorModel(), memory, unix.ByteSliceToString(name.Release[:]), runtime.Version())
}

// prepare builds topdog, and leaves out what this machine does not have, or what does not work at all.
func (s *session) prepare(ctx context.Context) error {
	if err := s.build(ctx); err != nil {
		return err
	}
	s.plan.systems = without(s.plan.systems, func(sys *system) bool {
		err := sys.prepare()
		if err != nil && !slices.Contains(s.record.missing, err.Error()) {
			s.miss(err.Error())
		}
		return err != nil
	})
	if s.plan.check {
		if err := s.check(ctx); err != nil {
			return err
		}
	}
	if len(s.plan.systems) == 0 {
		return fmt.Errorf("there is nothing to measure: %s", strings.Join(s.record.missing, "; "))
	}
	for _, sys := range s.plan.systems {
		s.record.facts["version "+sys.key] = sys.version
	}
	return nil
}

func (s *session) miss(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.missing = append(s.record.missing, what)
	s.show.note("left out: %s", what)
}

// build builds topdog once for all of its systems, as it is released, unless a test has done it.
func (s *session) build(ctx context.Context) (err error) {
	own := without(s.plan.systems, func(sys *system) bool { return sys.program != topdog || sys.other })
	if len(own) == 0 {
		return nil
	}
	if own[0].Path == "" {
		s.show.begin("building topdog", 0)
		own[0].Path = filepath.Join(s.dir, "topdog")
		if err := cluster.Build(ctx, own[0].Path); err != nil {
			return err
		}
	}
	version, err := versionOf(ctx, topdog, own[0].Path)
	for _, sys := range own {
		sys.Path, sys.version = own[0].Path, version
	}
	if err == nil && s.plan.binary {
		s.show.begin("building topdog for arm64", 0)
		path := filepath.Join(s.dir, "topdog-arm64")
		err = cluster.Build(ctx, path, "GOOS=linux", "GOARCH=arm64")
		if info, statErr := os.Stat(path); statErr == nil {
			s.add(sample{size, labels{"system": own[0].key}, map[string]float64{"MB": float64(info.Size()) / 1e6}})
		}
	}
	return err
}

// check finds out which systems work at all: a group that does not agree on a
// leader while nothing is wrong has no failures to measure.
func (s *session) check(ctx context.Context) error {
	s.show.begin("do they agree on a leader?", len(s.plan.systems))
	err := together(s.plan.systems, func(sys *system) error {
		defer s.show.done()
		g, err := startedGroup(ctx, sys, variant{boards: 3})
		if g == nil {
			return err
		}
		if err == nil {
			_, err = g.awaitStable(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.miss(fmt.Sprintf("%s: three boards do not agree on a leader while nothing is wrong: %v", sys, err))
			s.mu.Lock()
			defer s.mu.Unlock()
			s.plan.systems = without(s.plan.systems, func(one *system) bool { return one == sys })
		}
		return g.End()
	})
	return errors.Join(err, ctx.Err())
}

func (s *session) add(samples ...sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.samples = append(s.record.samples, samples...)
}

// choice says which events are run with which systems.
type choice func(*system, *event) bool

// events runs every event of services, or every other one, with every system that suits it.
//
// Those of which a goal cannot be judged are run again, because this machine stood still for longer than by what the goal
// is missed. All runs of such an event with such a system are made anew, and take the place of the old ones when all of
// them have been made. What is still disturbed after the plan's number of repetitions stays so.
func (s *session) events(ctx context.Context, title string, served bool) error {
	all := func(sys *system, e *event) bool {
		return e.is("served") == served && e.suits(sys) && e.unable(sys) == ""
	}
	err := s.runEvents(ctx, title, all)
	return errors.Join(err, s.repeatDisturbed(ctx, func(again *session, wanted choice) error {
		return again.runEvents(ctx, title+" again that were disturbed", func(sys *system, e *event) bool {
			return all(sys, e) && wanted(sys, e)
		})
	}))
}

// repeatDisturbed has a session with a record of its own make the runs again that were disturbed.
func (s *session) repeatDisturbed(ctx context.Context, run func(again *session, wanted choice) error) (err error) {
	for range s.plan.repeats {
		steps := s.record.disturbedSteps()
		if len(steps) == 0 || ctx.Err() != nil {
			break
		}
		for _, step := range steps {
			s.show.note("%s, %s: disturbed by other work on this machine; once more", step["system"], step["event"])
		}
		again := &session{plan: s.plan, dir: s.dir, show: s.show}
		err = errors.Join(err, run(again, func(sys *system, e *event) bool {
			return slices.ContainsFunc(steps, func(step labels) bool {
				return step["system"] == sys.key && e.measured(step["event"])
			})
		}))
		s.record.replace(again.record.samples)
	}
	return err
}

// runEvents runs events with systems, as often as the plan says. Each system has some groups that take runs from one queue:
// first one run of each event, then the second of each, and so on, so that whatever this machine is busy with meanwhile
// affects all alike.
func (s *session) runEvents(ctx context.Context, title string, wanted choice) error {
	var queues []*queue
	for _, sys := range s.plan.systems {
		events := without(s.plan.events, func(e *event) bool { return !wanted(sys, e) })
		queues = append(queues, newQueue(s.plan.groups(sys), jobs(sys, events, s.plan.runsOf)...))
	}
	return s.work(ctx, title, queues...)
}

// jobs lists what is to be done with a system, in order. Groups that are set up otherwise
// come last.
func jobs(sys *system, events []*event, runs func(*event) int) (list []job) {
	var variants []variant
	most := 0
	for _, e := range events {
		most = max(most, runs(e))
		if !slices.Contains(variants, e.variant) {
			variants = append(variants, e.variant)
		}
	}
	for _, v := range variants {
		for run := range most {
			for _, e := range events {
				if e.variant == v && run < runs(e) {
					phase := (float64(run) + rand.Float64()) / float64(runs(e))
					list = append(list, job{sys: sys, event: e, turn: turn{run + 1, phase}})
				}
			}
		}
	}
	return list
}

// without returns those of a list that are not to be left out.
func without[T any](all []T, out func(T) bool) []T { return slices.DeleteFunc(slices.Clone(all), out) }

// What follows are the parts about groups in which nobody fails, or that lose packets; parts.scene has what is done to them.

// others are the systems that look at no service.
func (s *session) others() []*system { return without(s.plan.systems, (*system).served) }

// watch plays each scene with each system, in groups of their own: all at once, or one after the other.
func (s *session) watch(ctx context.Context, title string, atOnce bool, systems []*system, scenes ...*event) error {
	var all []job
	for _, e := range scenes {
		for _, sys := range systems {
			all = append(all, job{sys: sys, event: e})
		}
	}
	if !atOnce {
		return s.work(ctx, title, newQueue(1, all...))
	}
	var queues []*queue
	for _, j := range all {
		queues = append(queues, newQueue(1, j))
	}
	return s.work(ctx, title, queues...)
}

// starts measures cold starts, the systems in turn.
func (s *session) starts(ctx context.Context) error {
	return s.watch(ctx, "cold starts", false, s.others(), slices.Repeat([]*event{partNamed("starts")}, s.plan.starts)...)
}

// calm measures what groups cost that do nothing but their duty.
func (s *session) calm(ctx context.Context) error {
	restore, err := roomForNeighbours()
	if err != nil {
		return err
	}
	defer restore()
	var scenes []*event
	for _, boards := range s.plan.boards {
		e := partNamed("calm", "REST", s.plan.rest.String(), "WATCH", s.plan.calm.String())
		e.variant.boards, e.of = boards, labels{"boards": strconv.Itoa(boards)}
		scenes = append(scenes, e)
	}
	return s.watch(ctx, "steady state", s.plan.together, s.others(), scenes...)
}

// checks measures what it costs to look at services that work. The kernel looks at processes.
func (s *session) checks(ctx context.Context) error {
	e := partNamed("checks", "WATCH", s.plan.calm.String())
	e.of = labels{"boards": strconv.Itoa(e.variant.boards)}
	looking := without(s.plan.systems, func(sys *system) bool { return !sys.served() || sys.Track == trackProcess })
	return s.watch(ctx, "what checks cost", false, looking, e)
}

// isShort reports whether a system has an interval with which a group is not watched beside others that
// keep this machine busy: it would take a late processor for a lost packet.
func isShort(s *system) bool { return s.H < 50*time.Millisecond }

func isLong(s *system) bool { return !isShort(s) }

// loss watches groups that lose packets, each on a LAN of its own: all shares at once, first
// those with a longer interval and then the others.
func (s *session) loss(ctx context.Context) error {
	if s.plan.together {
		return s.lossy(ctx, "loss", s.others(), s.plan.losses, s.plan.lossFor)
	}
	return errors.Join(
		s.lossy(ctx, "loss", without(s.others(), isShort), s.plan.losses, s.plan.lossFor),
		s.lossy(ctx, "loss", without(s.others(), isLong), s.plan.losses, s.plan.lossFor),
	)
}

// idle watches the groups with a short interval, one beside the other, while nobody fails and
// nothing is lost: what is late here is this machine. The pulled cables come after that, so
// they are of a group that knows how late it can be.
func (s *session) idle(ctx context.Context) error {
	return s.lossy(ctx, "nobody fails", without(s.others(), isLong), []float64{0}, s.plan.idleFor)
}

// lossy watches groups of these systems with all shares at once.
func (s *session) lossy(ctx context.Context, title string, systems []*system, shares []float64, watch time.Duration) error {
	var scenes []*event
	for _, share := range shares {
		percent := fmt.Sprintf("%g%%", 100*share)
		e := partNamed("loss", "SHARE", percent, "WATCH", watch.String(), "PULLS", strconv.Itoa(s.plan.lossRuns))
		e.of = labels{"loss": percent}
		scenes = append(scenes, e)
	}
	return s.watch(ctx, title, true, systems, scenes...)
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
