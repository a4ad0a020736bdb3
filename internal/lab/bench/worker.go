package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// mostInARow is after how many failed runs a worker gives up, since nothing works any more.
	mostInARow = 4
	// cleanedUpAfter is how long the kernel may go on taking apart what was closed.
	cleanedUpAfter = 200 * time.Millisecond
)

// job is one run of an event with a system, yet to be done.
type job struct {
	sys   *system
	event *event
	turn
	again bool // it has failed once
}

// queue hands jobs to several groups.
type queue struct {
	jobs   chan job
	groups int
}

func newQueue(groups int, all ...job) *queue {
	q := &queue{jobs: make(chan job, 2*len(all)), groups: min(groups, len(all))} // each can come back once
	for _, j := range all {
		q.jobs <- j
	}
	return q
}

// work works off some queues beside each other.
func (s *session) work(ctx context.Context, title string, queues ...*queue) error {
	only := newSlot()
	var workers []*worker
	total := 0
	for _, q := range queues {
		total += len(q.jobs)
		for range q.groups {
			workers = append(workers, &worker{session: s, jobs: q.jobs, slot: only})
		}
	}
	s.show.begin(title, total)
	return together(workers, func(w *worker) error { return w.work(ctx) })
}

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

// worker works off a queue, with one group of boards at a time.
type worker struct {
	*session
	jobs  chan job
	slot  slot
	group *Group // of the run before, or nil
	wiser bool   // that run may have taught the group something
}

// work makes runs until there are no more. One that could not be made is noted, and tried
// again later with a new group. If that fails as well it is an error.
func (w *worker) work(ctx context.Context) (errs error) {
	defer func() { errs = errors.Join(errs, w.end()) }()
	for failed := 0; ctx.Err() == nil && failed < mostInARow; {
		var j job
		select {
		case j = <-w.jobs:
		default:
			return errs
		}
		err := w.run(ctx, j)
		if err == nil || ctx.Err() != nil {
			w.show.done()
			failed = 0
			continue
		}
		err = fmt.Errorf("%s, %s, run %d: %w", j.sys, j.event, j.number, err)
		w.show.note("%v", err)
		failed++
		if j.again || failed == mostInARow {
			w.show.done()
			errs = errors.Join(errs, err)
		} else {
			j.again = true
			w.jobs <- j
		}
		if err := w.end(); err != nil {
			return errors.Join(errs, err)
		}
	}
	return errs
}

// run makes one run, with the group of the run before if there is one and it is set up as
// this event wants it.
func (w *worker) run(ctx context.Context, j job) (err error) {
	if j.event.is("served") {
		err = w.quietly(ctx, func() error { return w.build(ctx, j) })
	} else {
		err = w.build(ctx, j)
	}
	if err != nil {
		return err
	}
	samples, err := w.group.try(ctx, j.event, w.slot, j.turn)
	// What a part has measured before it was interrupted is whole; of an event, some of it may come at the end.
	if err = errors.Join(err, w.keepLogs(j)); err == nil || ctx.Err() != nil && j.event.of != nil {
		w.add(samples...)
	}
	return err
}

// build makes a group, unless that of the run before will do.
func (w *worker) build(ctx context.Context, j job) (err error) {
	e := j.event
	// keepalived forgets what has become of a service.
	teaches := e.is("teaches") && !(e.is("served") && j.sys.program == keepalived)
	if w.group != nil && (w.group.sys != j.sys || w.group.variant != e.variant || w.wiser || teaches) {
		if err := w.end(); err != nil {
			return err
		}
	}
	w.wiser = teaches
	if w.group != nil {
		return w.group.restoreServices()
	}
	if e.is("cold") {
		w.group, err = newGroup(j.sys, e.variant)
		return err
	}
	w.group, err = startedGroup(ctx, j.sys, e.variant)
	return err
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
	name := fmt.Sprintf("%s-%s-%d.log", j.sys, j.event, j.number)
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
