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
}

// measureAll does all that is planned. Whatever has been measured is returned, also
// when something failed or the user has had enough.
func measureAll(ctx context.Context, p plan, dir string, show *progress) (*record, error) {
	s := &session{plan: p, dir: dir, show: show}
	s.record.facts = map[string]string{"begun": time.Now().Format(time.RFC3339), "form": p.form, "machine": machine()}
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
		s.show.say("building topdog")
		own[0].Path = filepath.Join(s.dir, "topdog")
		if err := cluster.Build(ctx, own[0].Path); err != nil {
			return err
		}
	}
	version, err := versionOf(ctx, own[0].Path)
	for _, sys := range own {
		sys.Path, sys.version = own[0].Path, version
	}
	if err == nil && s.plan.binary {
		s.show.say("building topdog for arm64")
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
		return s.with(ctx, sys, variant{boards: 3}, func(g *Group, lack error) error {
			if lack == nil {
				_, lack = g.awaitStable(ctx)
			}
			if lack != nil && ctx.Err() == nil {
				s.miss(fmt.Sprintf("%s: three boards do not agree on a leader while nothing is wrong: %v", sys, lack))
				s.mu.Lock()
				defer s.mu.Unlock()
				s.plan.systems = without(s.plan.systems, func(one *system) bool { return one == sys })
			}
			return nil
		})
	})
	return errors.Join(err, ctx.Err())
}

// with does something to a new group that has been started, or told why it could not.
func (s *session) with(ctx context.Context, sys *system, v variant, do func(g *Group, lack error) error) error {
	g, err := newGroup(sys, v)
	if err != nil {
		return fmt.Errorf("%s: %w", sys, err)
	}
	err = do(g, g.startInTurn(ctx))
	if err = errors.Join(err, g.End()); err != nil {
		return fmt.Errorf("%s: %w", sys, err)
	}
	return nil
}

func (s *session) add(samples ...sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.samples = append(s.record.samples, samples...)
}

// without returns those of a list that are not to be left out.
func without[T any](all []T, out func(T) bool) []T { return slices.DeleteFunc(slices.Clone(all), out) }

// together does something to all beside each other and returns all errors. One that
// fails does not end the others.
func together[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, one := range all {
		wg.Go(func() { errs[i] = do(one) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// job is one run of an event with a system, yet to be done.
type job struct {
	event *event
	run   int
	again bool // it has failed once
}

// choice says which events are run with which systems.
type choice func(*system, *event) bool

// events runs every event of services, or every other one, with every system that suits it. Each system has some workers
// that take runs from one queue: first one run of each event, then the second of each, and so on, so that whatever this
// machine is busy with meanwhile affects all alike.
//
// Those of which a goal cannot be judged are run again, because this machine stood still for longer than by what the goal
// is missed. All runs of such an event with such a system are made anew, and take the place of the old ones when all of
// them have been made. What is still disturbed after the plan's number of repetitions stays so.
func (s *session) events(ctx context.Context, title string, served bool) error {
	all := func(sys *system, e *event) bool {
		return e.is("served") == served && e.suits(sys) && e.unable(sys) == ""
	}
	err := s.runEvents(ctx, title, all)
	return errors.Join(err, s.repeatDisturbed(ctx, func(wanted choice) error {
		return s.runEvents(ctx, title+" again that were disturbed", func(sys *system, e *event) bool {
			return all(sys, e) && wanted(sys, e)
		})
	}))
}

func (s *session) repeatDisturbed(ctx context.Context, run func(choice) error) (err error) {
	for range s.plan.repeats {
		s.mu.Lock()
		steps := s.record.disturbedSteps()
		s.mu.Unlock()
		if len(steps) == 0 || ctx.Err() != nil {
			break
		}
		for _, step := range steps {
			s.show.note("%s, %s: disturbed by other work on this machine; once more", step["system"], step["event"])
		}
		wanted := func(sys *system, e *event) bool {
			return slices.ContainsFunc(steps, func(step labels) bool {
				return step["system"] == sys.key && e.measured(step["event"])
			})
		}
		before := s.setAside(wanted)
		err = errors.Join(err, run(wanted))
		s.bringBack(before)
	}
	return err
}

// setAside takes the runs of some events out of the record.
func (s *session) setAside(wanted choice) (aside []sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chosen := func(one sample) bool {
		return one.bench == failover && slices.ContainsFunc(s.plan.systems, func(sys *system) bool {
			return sys.key == one.of["system"] && slices.ContainsFunc(s.plan.events, func(e *event) bool {
				return e.measured(one.of["event"]) && wanted(sys, e)
			})
		})
	}
	for _, one := range s.record.samples {
		if chosen(one) {
			aside = append(aside, one)
		}
	}
	s.record.samples = without(s.record.samples, chosen)
	return aside
}

// bringBack puts runs back of which there are fewer new ones.
func (s *session) bringBack(aside []sample) {
	old := &record{samples: aside}
	for _, before := range old.series(failover, labels{}) {
		s.mu.Lock()
		same := func(one sample) bool { return one.bench == failover && one.of.have(before.of) }
		if now := s.record.series(failover, before.of); len(now) == 0 || len(now[0].samples) < len(before.samples) {
			s.record.samples = append(without(s.record.samples, same), before.samples...)
		}
		s.mu.Unlock()
	}
}

// runEvents runs events with systems, as often as the plan says.
func (s *session) runEvents(ctx context.Context, title string, wanted choice) error {
	only := newSlot()
	var workers []*worker
	total := 0
	for _, sys := range s.plan.systems {
		events := without(s.plan.events, func(e *event) bool { return !wanted(sys, e) })
		queue := &queue{jobs: jobs(events, s.plan.runsOf)}
		total += len(queue.jobs)
		for range min(len(queue.jobs), s.plan.groups(sys)) {
			workers = append(workers, &worker{session: s, sys: sys, queue: queue, slot: only})
		}
	}
	s.show.begin(title, total)
	return together(workers, func(w *worker) error { return w.work(ctx) })
}

// jobs lists what is to be done with a system, in order. Groups that are set up otherwise
// come last.
func jobs(events []*event, runs func(*event) int) (list []job) {
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
					list = append(list, job{event: e, run: run + 1})
				}
			}
		}
	}
	return list
}

// queue hands jobs to several groups.
type queue struct {
	mu   sync.Mutex
	jobs []job
}

func (q *queue) next() (j job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == 0 {
		return job{}, false
	}
	j, q.jobs = q.jobs[0], q.jobs[1:]
	return j, true
}

// back puts a job at the end.
func (q *queue) back(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = append(q.jobs, j)
}

// worker works off the queue of a system, with one group of boards at a time.
type worker struct {
	*session
	sys   *system
	queue *queue
	slot  slot
	group *Group // of the run before, or nil
	wiser bool   // that run may have taught the group something
}

const (
	// mostInARow is after how many failed runs a worker gives up, since nothing works any more.
	mostInARow = 4
	// cleanedUpAfter is how long the kernel may go on taking apart what was closed.
	cleanedUpAfter = 200 * time.Millisecond
)

// work makes runs until there are no more. One that could not be made is noted, and tried
// again later with a new group. If that fails as well it is an error.
func (w *worker) work(ctx context.Context) (errs error) {
	defer func() { errs = errors.Join(errs, w.end()) }()
	for failed := 0; ctx.Err() == nil && failed < mostInARow; {
		j, ok := w.queue.next()
		if !ok {
			break
		}
		err := w.run(ctx, j)
		if err == nil || ctx.Err() != nil {
			w.show.done()
			failed = 0
			continue
		}
		err = fmt.Errorf("%s, %s, run %d: %w", w.sys, j.event, j.run, err)
		w.show.note("%v", err)
		failed++
		if j.again || failed == mostInARow {
			w.show.done()
			errs = errors.Join(errs, err)
		} else {
			j.again = true
			w.queue.back(j)
		}
		if err := w.end(); err != nil {
			return errors.Join(errs, err)
		}
	}
	return errs
}

// run makes one run, with the group of the run before if there is one and it is set up as
// this event wants it.
func (w *worker) run(ctx context.Context, j job) error {
	build := func() error { return w.build(ctx, j.event) }
	if j.event.is("served") {
		build = func() error { return w.quietly(ctx, func() error { return w.build(ctx, j.event) }) }
	}
	if err := build(); err != nil {
		return err
	}
	phase := (float64(j.run-1) + rand.Float64()) / float64(w.plan.runsOf(j.event))
	samples, err := w.group.try(ctx, j.event, w.slot, turn{j.run, phase})
	if err = errors.Join(err, w.keepLogs(j)); err == nil {
		w.add(samples...)
	}
	return err
}

// build makes a group, unless that of the run before will do.
func (w *worker) build(ctx context.Context, e *event) (err error) {
	// keepalived forgets what has become of a service.
	teaches := e.is("teaches") && !(e.is("served") && w.sys.program == keepalived)
	if w.group != nil && (w.group.variant != e.variant || w.wiser || teaches) {
		if err := w.end(); err != nil {
			return err
		}
	}
	w.wiser = teaches
	if w.group != nil {
		return w.group.restoreServices()
	}
	if w.group, err = newGroup(w.sys, e.variant); err != nil {
		return err
	}
	return w.group.startInTurn(ctx)
}

// quietly does something while no other run has the slot. The kernel makes and takes apart namespaces and interfaces
// under a lock that who takes an address needs too.
func (w *worker) quietly(ctx context.Context, do func() error) error {
	select {
	case w.slot <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.slot }()
	if err := do(); err != nil {
		return err
	}
	return wait(ctx, cleanedUpAfter)
}

// keepLogs writes down what the boards of a run have printed since they were started, if that is wanted.
func (w *worker) keepLogs(j job) error {
	if w.plan.logs == "" {
		return nil
	}
	var lines []string
	for _, b := range w.group.boards {
		for line := range strings.Lines(b.Log.String()) {
			at, said, _ := strings.Cut(line, " ms  ")
			lines = append(lines, fmt.Sprintf("%s ms  %s  %s", at, b.Name, said))
		}
	}
	slices.Sort(lines) // the times come first, and are equally wide
	name := fmt.Sprintf("%s-%s-%d.log", w.sys, j.event, j.run)
	return os.WriteFile(filepath.Join(w.plan.logs, name), []byte(strings.Join(lines, "")), 0o644)
}

// end takes the group apart, if there is one.
func (w *worker) end() error {
	g := w.group
	if w.group = nil; g == nil {
		return nil
	}
	return g.End()
}
