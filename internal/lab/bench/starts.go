package bench

import (
	"context"
	"fmt"
	"time"

	"topdog/internal/lab/bench/report"
)

// starts measures cold starts, one after the other, the systems in turn.
func (s *session) starts(ctx context.Context) error {
	systems := s.plan.servedSystems(false)
	for _, sys := range systems {
		s.add(func(r *report.Report) { r.Starts = append(r.Starts, report.Start{System: sys.String()}) })
	}
	s.show.begin("cold starts", s.plan.starts*len(systems))
	for range s.plan.starts {
		for i, sys := range systems {
			took, err := s.coldStart(ctx, sys)
			if err != nil {
				return fmt.Errorf("%s: %w", sys, err)
			}
			s.add(func(r *report.Report) { r.Starts[i].Took = append(r.Starts[i].Took, took) })
			s.show.done()
		}
	}
	return nil
}

// coldStart starts three boards at once and returns the time from the start of the
// last daemon to the first answer of the address.
func (s *session) coldStart(ctx context.Context, sys system) (took time.Duration, err error) {
	r, err := newRig(sys, 3, variant{})
	if err != nil {
		return 0, err
	}
	defer func() {
		if closeErr := r.close(); err == nil {
			err = closeErr
		}
	}()
	asker, err := r.LAN.Ask(vip, askInterval)
	if err != nil {
		return 0, err
	}
	for _, b := range r.boards {
		if err := b.start(); err != nil {
			return 0, err
		}
	}
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, stableTimeout)
	defer cancel()
	if _, err := asker.WaitAnswer(ctx, func(int) bool { return true }); err != nil {
		return 0, fmt.Errorf("nobody answers: %w; the boards say\n%s", err, r.logs())
	}
	return asker.Report(started).First.At.Sub(started), nil
}
