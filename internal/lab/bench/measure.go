package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/bench/report"
)

// session is one run of the bench: what it is to measure, and what it has.
type session struct {
	plan plan
	dir  string
	show *progress

	mu     sync.Mutex
	report report.Report
}

// measure does all that is planned. Whatever has been measured is returned, also
// when something failed or the user has had enough.
func measure(ctx context.Context, p plan, dir string, show *progress) (*report.Report, error) {
	s := &session{plan: p, dir: dir, show: show}
	s.report.Made = time.Now().Format(time.RFC3339)
	s.report.Form = p.form
	s.report.Machine = machine()
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	parts := map[part]func(context.Context) error{
		partFailures: s.failures,
		partStarts:   s.starts,
		partCalm:     s.calm,
		partLoss:     s.lossy,
		partIdle:     s.idle,
		partService:  s.services,
		partChecks:   s.checks,
	}
	if p.check {
		if err := s.check(ctx); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, part := range p.parts {
		if ctx.Err() != nil {
			break
		}
		if err := parts[part](ctx); err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, fmt.Errorf("%s: %w", part, err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order()
	return &s.report, errors.Join(errs...)
}

// prepare builds topdog, and leaves out what this machine does not have.
func (s *session) prepare(ctx context.Context) error {
	if err := s.build(ctx); err != nil {
		return err
	}
	var present []system
	for _, sys := range s.plan.systems {
		if err := sys.missing(); err != nil {
			if text := err.Error(); !slices.Contains(s.report.Missing, text) {
				s.report.Missing = append(s.report.Missing, text)
				s.show.note("skipped: %s", text)
			}
			continue
		}
		present = append(present, sys)
		info := sys.info()
		info.Config, info.Service = exampleConfig(sys), served(sys)
		s.report.Systems = append(s.report.Systems, info)
	}
	if len(present) == 0 {
		return fmt.Errorf("there is nothing to measure: %s", strings.Join(s.report.Missing, "; "))
	}
	s.plan.systems = present
	for _, e := range s.plan.events {
		s.report.Events = append(s.report.Events, e.tables...)
	}
	return nil
}

// build builds topdog once for all of its systems, unless a test has done it.
func (s *session) build(ctx context.Context) (err error) {
	var first *topdog
	for _, sys := range s.plan.systems {
		t, ok := sys.(*topdog)
		switch {
		case !ok || t.other:
		case first != nil:
			t.path, t.version = first.path, first.version
		default:
			if first = t; t.path != "" {
				continue
			}
			s.show.say("building topdog")
			if t.path, t.version, err = buildTopdog(ctx, s.dir); err != nil {
				return err
			}
		}
	}
	if first != nil && s.plan.binary {
		s.show.say("building topdog for arm64")
		s.report.Binary, err = sizeOnArm64(ctx, s.dir)
	}
	return err
}

// check finds out which systems work at all: a group that does not agree on a
// leader while nothing is wrong has no failures to measure.
func (s *session) check(ctx context.Context) error {
	s.show.begin("do they agree on a leader?", len(s.plan.systems))
	lacks := make([]error, len(s.plan.systems))
	var jobs []func() error
	for i, sys := range s.plan.systems {
		jobs = append(jobs, func() error {
			defer s.show.done()
			r, err := newRig(sys, 3, variant{})
			if err != nil {
				return err
			}
			if lacks[i] = r.startInTurn(ctx); lacks[i] == nil {
				_, lacks[i] = r.awaitStable(ctx)
			}
			return r.close()
		})
	}
	if err := errors.Join(together(jobs...), ctx.Err()); err != nil {
		return err
	}
	working := s.plan.systems[:0:0]
	for i, sys := range s.plan.systems {
		if lacks[i] == nil {
			working = append(working, sys)
			continue
		}
		lack := fmt.Sprintf("%s: three boards do not agree on a leader while nothing is wrong: %v", sys, lacks[i])
		s.show.note("left out: %s", lack)
		s.report.Missing = append(s.report.Missing, lack)
		s.report.Systems = slices.DeleteFunc(s.report.Systems, func(r report.System) bool { return r.Key == sys.String() })
	}
	s.plan.systems = working
	return nil
}

// order brings what was measured side by side into the order of the systems.
func (s *session) order() {
	place := make(map[string]int)
	for i, sys := range s.report.Systems {
		place[sys.Key] = i
	}
	slices.SortStableFunc(s.report.Calm, func(a, b report.Calm) int {
		return cmp.Or(cmp.Compare(a.Boards, b.Boards), cmp.Compare(place[a.System], place[b.System]))
	})
	slices.SortStableFunc(s.report.Lossy, func(a, b report.Lossy) int {
		return cmp.Or(cmp.Compare(a.Loss, b.Loss), cmp.Compare(place[a.System], place[b.System]))
	})
}

// add changes the report.
func (s *session) add(change func(*report.Report)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.report)
}

// together runs jobs beside each other and returns all of their errors. One that
// fails does not end the others.
func together(jobs ...func() error) error {
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for i, job := range jobs {
		wg.Go(func() { errs[i] = job() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// machine describes where this runs.
func machine() report.Machine {
	m := report.Machine{Processors: runtime.NumCPU(), Model: processorModel(), Go: runtime.Version(), Kernel: "unknown"}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.Memory = uint64(info.Totalram) * uint64(info.Unit)
	}
	return m
}
