package daemon

import (
	"context"
	"sync"

	"topdog/gpio"
	"topdog/internal/console"
)

// light runs the board's light, and changes to another light when a new configuration names one.
type light struct {
	report func(error)

	mu      sync.Mutex
	blinker *gpio.Blinker
	pattern gpio.Pattern
	end     context.CancelFunc // ends the blinker that runs; nil before the first one
}

func newLight(open func() (gpio.LED, error), report func(error)) *light {
	return &light{report: report, blinker: gpio.NewBlinker(open, report)}
}

// show changes the pattern. It never blocks.
func (l *light) show(p gpio.Pattern) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pattern = p
	l.blinker.Show(p)
}

// status fills in what the light shows, or why it shows nothing, and reports whether it works.
func (l *light) status(s *console.Status) (works bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := l.blinker.State()
	switch {
	case state.Fail != nil:
		s.LEDText = state.Fail.Error()
	case state.LED == "" || state.LED == gpio.None.String():
		s.LEDText = state.LED
	default:
		s.LEDPattern = l.pattern.String()
		s.LEDText = state.LED + ", " + l.pattern.Looks()
	}
	return state.Fail == nil
}

// replace has another light show the pattern, once the present one is closed.
func (l *light) replace(open func() (gpio.LED, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blinker = gpio.NewBlinker(open, l.report)
	l.blinker.Show(l.pattern)
	if l.end != nil {
		l.end()
	}
}

// run runs one light after the other until ctx ends.
func (l *light) run(ctx context.Context) error {
	for {
		l.mu.Lock()
		blinking, end := context.WithCancel(ctx)
		blinker := l.blinker
		l.end = end
		l.mu.Unlock()
		err := blinker.Run(blinking)
		end()
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			l.report(err)
		}
	}
}
