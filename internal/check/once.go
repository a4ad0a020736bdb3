package check

import (
	"context"
	"errors"
	"time"
)

// Runner runs the checks of its last order; Process is one.
type Runner interface {
	Send(Order) error
	Reports() <-chan Report
}

// silenceMax is how long nothing may be heard of a checker that has checks to try. It says every second
// that it runs, but a busy board may take seconds to start it.
const silenceMax = 10 * time.Second

// Once has a runner that has just begun run each check of an order once, those for the leader too. It returns
// for each why it fails; "" if it passes. Each takes as long as its timeout allows.
func Once(ctx context.Context, runner Runner, o Order) ([]string, error) {
	o.Leading, o.Once = true, true
	if err := runner.Send(o); err != nil {
		return nil, err
	}
	reasons, missing := make([]string, len(o.Checks)), map[string]int{}
	for i := range o.Checks {
		missing[o.Checks[i].ID()] = i
	}
	silence := time.NewTimer(silenceMax)
	defer silence.Stop()
	for len(missing) > 0 {
		select {
		case r, runs := <-runner.Reports():
			if !runs {
				return nil, errors.New("the process that tries the checks has ended: see journalctl -u topdog")
			}
			silence.Reset(silenceMax)
			if i, waits := missing[r.ID]; waits {
				delete(missing, r.ID)
				reasons[i] = r.reason()
			}
		case <-silence.C:
			return nil, errors.New("the process that tries the checks does not answer: see whether the board is overloaded")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return reasons, nil
}

// reason is why a check fails, and "" only if it passes.
func (r *Report) reason() string {
	switch {
	case r.Passing:
		return ""
	case r.Text == "":
		return "it fails, and does not say why"
	default:
		return r.Text
	}
}
