package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/cluster"
)

// worker works off the queue of a system, with one group of boards at a time.
type worker struct {
	*session
	sys   system
	queue *queue
	slot  slot
	rig   *rig // of the run before, or nil
	wiser bool // that run may have taught the group something
}

// mostInARow is after how many failed runs a worker gives up, since nothing works any more.
const mostInARow = 4

// work makes runs until there are no more. One that could not be made is noted, and tried
// again later with a new group. If that fails as well it is an error.
func (w *worker) work(ctx context.Context) error {
	defer func() {
		if err := w.closeRig(); err != nil {
			w.show.note("%v", err)
		}
	}()
	var errs []error
	failed := 0 // in a row
	for ctx.Err() == nil {
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
		if failed++; failed == mostInARow {
			errs = append(errs, fmt.Errorf("given up after %d failures in a row: %w", failed, err))
			break
		}
		if j.again {
			w.show.done()
			errs = append(errs, err)
		} else {
			j.again = true
			w.queue.back(j)
		}
		if err := w.closeRig(); err != nil {
			errs = append(errs, err)
			break
		}
	}
	return errors.Join(errs...)
}

// run makes one run, with the group of the run before if there is one and it is set up as
// this event wants it.
func (w *worker) run(ctx context.Context, j job) error {
	build := func() error { return w.build(ctx, j.event) }
	if j.event.served {
		build = func() error { return w.quietly(ctx, func() error { return w.build(ctx, j.event) }) }
	}
	if err := build(); err != nil {
		return err
	}
	phase := (float64(j.run-1) + rand.Float64()) / float64(w.plan.runsOf(j.event))
	runs, err := w.rig.try(ctx, j.event, w.slot, turn{j.run, phase})
	if failed := w.keepLogs(j); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	w.addRuns(w.sys, runs)
	return nil
}

// build makes a group, unless that of the run before will do.
func (w *worker) build(ctx context.Context, e event) error {
	// keepalived forgets what has become of a service.
	teaches := e.teaches && !(e.served && w.sys.info().Program == "keepalived")
	if w.rig != nil && (w.rig.variant != e.variant || w.wiser || teaches) {
		if err := w.closeRig(); err != nil {
			return err
		}
	}
	w.wiser = teaches
	if w.rig != nil {
		return w.rig.restoreServices()
	}
	r, err := newRig(w.sys, e.variant.boards(), e.variant)
	if err != nil {
		return err
	}
	w.rig = r
	return r.startInTurn(ctx)
}

// cleanedUpAfter is how long the kernel may go on taking apart what was closed.
const cleanedUpAfter = 200 * time.Millisecond

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
	for _, b := range w.rig.boards {
		for line := range strings.Lines(b.Log.String()) {
			at, said, _ := strings.Cut(line, " ms  ")
			lines = append(lines, fmt.Sprintf("%s ms  %s  %s", at, b.Name, said))
		}
	}
	slices.Sort(lines) // the times come first, and are equally wide
	name := fmt.Sprintf("%s-%s-%d.log", w.sys, j.event, j.run)
	return os.WriteFile(filepath.Join(w.plan.logs, name), []byte(strings.Join(lines, "")), 0o644)
}

// closeRig takes the group apart, if there is one.
func (w *worker) closeRig() error {
	r := w.rig
	if w.rig = nil; r == nil {
		return nil
	}
	return r.close()
}

// addRuns puts runs into the rows of a system, by the keys of their tables.
func (s *session) addRuns(sys system, runs map[string]*report.Run) {
	s.add(func(r *report.Report) {
		for i, f := range r.Failures {
			if run, ok := runs[f.Event]; ok && f.System == sys.String() {
				r.Failures[i].Runs = append(r.Failures[i].Runs, *run)
			}
		}
	})
}

// try does an event to the group, when it is stable, and returns the runs by the keys of
// their tables. The group may not be stable afterwards.
func (r *rig) try(ctx context.Context, e event, only slot, now turn) (map[string]*report.Run, error) {
	t, err := r.newTrial(ctx, e, only, now)
	if err != nil {
		return nil, err
	}
	defer t.end()
	if err := e.run(ctx, t); err != nil {
		return nil, err
	}
	if r.Holders.Lost() > 0 {
		return nil, cluster.ErrLost
	}
	return t.runs, nil
}
