package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"topdog/internal/lab/bench/report"
)

// checksASecond is how many checks every board of a group runs whose cost is measured.
const checksASecond = 5

// services measures what becomes of the address when services fail.
func (s *session) services(ctx context.Context) error { return s.measureEvents(ctx, "services", true) }

// checks measures what it costs to look at services that work, in one group at a time.
func (s *session) checks(ctx context.Context) error {
	systems := slices.DeleteFunc(s.plan.servedSystems(true), func(sys system) bool {
		k, ok := sys.(*keepalived)
		return ok && k.track == trackProcess // The kernel looks at processes.
	})
	s.show.begin("what checks cost", len(systems))
	var errs []error
	for _, sys := range systems {
		if ctx.Err() != nil {
			break
		}
		c, err := s.calmGroup(ctx, sys, 3, variant{five: true}, settleFor)
		s.show.done()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", sys, err))
			continue
		}
		s.add(func(r *report.Report) { r.Checked = append(r.Checked, c) })
	}
	return errors.Join(errs...)
}

// withoutService are those of a board's processes that are not its service.
func (b *board) withoutService(all []int) []int {
	if b.service == nil || b.service.process == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(pid int) bool { return pid == b.service.process.PID })
}
