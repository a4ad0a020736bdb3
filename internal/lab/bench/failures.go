package bench

import (
	"context"
	"errors"
	"slices"
	"sync"

	"topdog/internal/lab/bench/report"
)

// job is one run of an event with a system, yet to be done.
type job struct {
	event event
	run   int
	again bool // it has failed once
}

// failures runs every event with every system. Each system has some workers that take runs
// from one queue: first one run of each event, then the second of each, and so on, so that
// whatever this machine is busy with meanwhile affects all alike.
func (s *session) failures(ctx context.Context) error { return s.measureEvents(ctx, "failures", false) }

// measureEvents runs the events of services, or all others.
func (s *session) measureEvents(ctx context.Context, title string, ofServices bool) error {
	for _, sys := range s.plan.servedSystems(ofServices) {
		s.addRows(sys)
	}
	all := func(sys system, e event) bool { return e.served == ofServices && served(sys) == ofServices }
	err := s.runEvents(ctx, title, all)
	return errors.Join(err, s.repeatDisturbed(ctx, func(ctx context.Context, wanted choice) error {
		return s.runEvents(ctx, title+" again that were disturbed", func(sys system, e event) bool { return all(sys, e) && wanted(sys, e) })
	}))
}

// choice says which events are run with which systems.
type choice func(system, event) bool

// runEvents runs events with systems, as often as the plan says.
func (s *session) runEvents(ctx context.Context, title string, wanted choice) error {
	only := newSlot()
	var workers []func() error
	total := 0
	for _, sys := range s.plan.systems {
		events := slices.DeleteFunc(slices.Clone(s.plan.events), func(e event) bool { return !wanted(sys, e) })
		list := jobs(sys, events, s.plan.runsOf)
		if len(list) == 0 {
			continue
		}
		total += len(list)
		queue := &queue{jobs: list}
		groups := s.plan.replicas(sys)
		if served(sys) {
			groups = min(groups, serviceGroups)
		}
		for range groups {
			w := &worker{session: s, sys: sys, queue: queue, slot: only}
			workers = append(workers, func() error { return w.work(ctx) })
		}
	}
	s.show.begin(title, total)
	return together(workers...)
}

// addRows makes the rows of a system, so that they are in order, and says what
// it can't do.
func (s *session) addRows(sys system) {
	s.add(func(r *report.Report) {
		for _, e := range s.plan.events {
			if e.served != served(sys) {
				continue
			}
			for _, t := range e.tables {
				r.Failures = append(r.Failures, report.Failure{System: sys.String(), Event: t.Key, Unable: unable(e, sys)})
			}
		}
	})
}

// unable says why a system has no such event, or "".
func unable(e event, sys system) string {
	if e.unable == nil {
		return ""
	}
	return e.unable(sys)
}

// jobs lists what is to be done with a system, in order. Groups that are set up otherwise
// come last.
func jobs(sys system, events []event, runs func(event) int) (list []job) {
	most := 0
	var variants []variant
	for _, e := range events {
		most = max(most, runs(e))
		if !slices.Contains(variants, e.variant) {
			variants = append(variants, e.variant)
		}
	}
	for _, v := range variants {
		for run := range most {
			for _, e := range events {
				if e.variant == v && run < runs(e) && unable(e, sys) == "" {
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
