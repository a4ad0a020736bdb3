package bench

import (
	"context"
	"errors"
	"slices"

	"topdog/internal/lab/bench/report"
)

// repeatDisturbed runs those events again of which a goal cannot be judged, because this
// machine stood still for longer than by what the goal is missed. All runs of such an event
// with such a system are made anew, and take the place of the old ones when all of them have
// been made. What is still disturbed after the plan's number of repetitions stays so.
func (s *session) repeatDisturbed(ctx context.Context, run func(context.Context, choice) error) error {
	var errs []error
	for range s.plan.repeats {
		steps := s.disturbed()
		if len(steps) == 0 || ctx.Err() != nil {
			break
		}
		wanted := func(sys system, e event) bool {
			return slices.ContainsFunc(steps, func(step report.Step) bool { return step.System == sys.String() && e.fills(step.Event) })
		}
		before := s.setAside(wanted)
		errs = append(errs, run(ctx, wanted))
		s.bringBack(before)
	}
	return errors.Join(errs...)
}

// disturbed returns the steps to repeat, and says so to the user.
func (s *session) disturbed() (steps []report.Step) {
	s.add(func(r *report.Report) { steps = report.DisturbedSteps(r) })
	for _, step := range steps {
		s.show.note("%s, %s: disturbed by other work on this machine; once more", step.System, step.Event)
	}
	return steps
}

// setAside takes the runs of some events out of the report.
func (s *session) setAside(wanted choice) (aside []report.Failure) {
	s.add(func(r *report.Report) {
		for i, f := range r.Failures {
			chosen := slices.ContainsFunc(s.plan.systems, func(sys system) bool {
				return sys.String() == f.System && slices.ContainsFunc(s.plan.events, func(e event) bool { return e.fills(f.Event) && wanted(sys, e) })
			})
			if chosen && len(f.Runs) > 0 {
				aside = append(aside, f)
				r.Failures[i].Runs = nil
			}
		}
	})
	return aside
}

// bringBack puts runs back of which there are fewer new ones.
func (s *session) bringBack(aside []report.Failure) {
	s.add(func(r *report.Report) {
		for _, old := range aside {
			for i, f := range r.Failures {
				if f.System == old.System && f.Event == old.Event && len(f.Runs) < len(old.Runs) {
					r.Failures[i].Runs = old.Runs
				}
			}
		}
	})
}
