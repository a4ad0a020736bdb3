package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// failures runs every event with every system. Each system has some groups of
// its own that take runs from one list: first one run of each event, then the
// second of each, and so on, so that whatever this machine is busy with meanwhile
// meets all alike.
func (s *session) failures(ctx context.Context) error {
	for _, sys := range s.plan.systems {
		s.promise(sys)
	}
	all := func(system, event) bool { return true }
	err := s.runEvents(ctx, "failures", all)
	return errors.Join(err, s.repeatDisturbed(ctx, func(ctx context.Context, wanted choice) error {
		return s.runEvents(ctx, "failures again that were disturbed", wanted)
	}))
}

// choice says which events are run with which systems.
type choice func(system, event) bool

// runEvents runs events with systems, as often as the plan says.
func (s *session) runEvents(ctx context.Context, title string, wanted choice) error {
	st := newStage()
	var lanes []func() error
	total := 0
	for _, sys := range s.plan.systems {
		events := slices.DeleteFunc(slices.Clone(s.plan.events), func(e event) bool { return !wanted(sys, e) })
		list := jobs(sys, events, s.plan.runs)
		if len(list) == 0 {
			continue
		}
		total += len(list)
		queue := &queue{jobs: list}
		for range s.plan.replicas(sys) {
			lanes = append(lanes, func() error { return s.lane(ctx, sys, queue, st) })
		}
	}
	s.show.begin(title, total)
	return together(lanes...)
}

// promise makes the rows of a system, so that they are in order, and says what
// it can't do.
func (s *session) promise(sys system) {
	s.add(func(r *report.Report) {
		for _, e := range s.plan.events {
			for _, h := range e.gives {
				r.Failures = append(r.Failures, report.Failure{System: sys.String(), Event: h.key, Unable: unable(e, sys)})
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

// jobs lists what is to be done with a system, in order. Groups that preempt are
// set up otherwise, and come last.
func jobs(sys system, events []event, runs int) (list []job) {
	for _, v := range []variant{{}, {preempt: true}} {
		for run := range runs {
			for _, e := range events {
				if e.variant == v && unable(e, sys) == "" {
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

// lane works off a queue with one group of boards. A run that could not be made is
// told, and tried again later with a new group. If that fails as well it is an error.
// Where nothing works any more the lane ends.
func (s *session) lane(ctx context.Context, sys system, q *queue, st stage) error {
	const mostInARow = 4
	var r *rig
	var errs []error
	failed := 0 // in a row
	defer func() {
		if r != nil {
			if err := r.close(); err != nil {
				s.show.note("%v", err)
			}
		}
	}()
	for ctx.Err() == nil {
		j, ok := q.next()
		if !ok {
			break
		}
		err := s.runJob(ctx, sys, &r, j, st)
		if err == nil || ctx.Err() != nil {
			s.show.done()
			failed = 0
			continue
		}
		err = fmt.Errorf("%s, %s, run %d: %w", sys, j.event, j.run, err)
		s.show.note("%v", err)
		if failed++; failed == mostInARow {
			errs = append(errs, fmt.Errorf("given up after %d failures in a row: %w", failed, err))
			break
		}
		if j.again {
			s.show.done()
			errs = append(errs, err)
		} else {
			j.again = true
			q.back(j)
		}
		if r == nil {
			continue
		}
		err = r.close()
		r = nil
		if err != nil {
			errs = append(errs, err)
			break
		}
	}
	return errors.Join(errs...)
}

// runJob does one run. *r is the group of the run before, or nil.
func (s *session) runJob(ctx context.Context, sys system, r **rig, j job, st stage) (err error) {
	if *r != nil && (*r).variant != j.event.variant {
		if err := (*r).close(); err != nil {
			return err
		}
		*r = nil
	}
	if *r == nil {
		if *r, err = newRig(sys, 3, j.event.variant, s.dir); err != nil {
			*r = nil
			return err
		}
		if err := (*r).startInTurn(ctx); err != nil {
			return err
		}
	}
	phase := (float64(j.run-1) + rand.Float64()) / float64(s.plan.runs)
	runs, err := (*r).try(ctx, j.event, st, phase)
	if err != nil {
		return err
	}
	s.add(func(rep *report.Report) {
		for i, f := range rep.Failures {
			if run, ok := runs[f.Event]; ok && f.System == sys.String() {
				rep.Failures[i].Runs = append(rep.Failures[i].Runs, run)
				delete(runs, f.Event)
			}
		}
	})
	return nil
}

// try does an event to the group, when it is settled, and returns the runs that it
// gave. The group may need to settle afterwards.
func (r *rig) try(ctx context.Context, e event, st stage, phase float64) (map[string]report.Run, error) {
	t, err := r.newTrial(ctx, st, e.coarse, phase)
	if err != nil {
		return nil, err
	}
	defer t.end()
	if err := e.run(ctx, t); err != nil {
		return nil, err
	}
	if lost := r.holders.Lost(); lost > 0 {
		return nil, errors.New("notifications of the kernel were lost, so nothing is known about two holders")
	}
	return t.runs, nil
}
