package daemon

import (
	"context"
	"sync"

	"topdog/gpio"
)

// light runs the board's light, and changes to another light when a new
// configuration names one.
type light struct {
	report  func(error)
	changes chan func() (gpio.LED, error)

	mu      sync.Mutex
	blinker *gpio.Blinker
	pattern gpio.Pattern
}

func newLight(open func() (gpio.LED, error), report func(error)) *light {
	return &light{
		report:  report,
		changes: make(chan func() (gpio.LED, error), 1),
		blinker: gpio.NewBlinker(open, report),
	}
}

// show changes the pattern. It never blocks.
func (l *light) show(p gpio.Pattern) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pattern = p
	l.blinker.Show(p)
}

func (l *light) state() gpio.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.blinker.State()
}

// showing returns the pattern that is wanted at present.
func (l *light) showing() gpio.Pattern {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pattern
}

// replace has another light show the pattern from now on.
func (l *light) replace(open func() (gpio.LED, error)) {
	select {
	case <-l.changes: // nobody has seen that one
	default:
	}
	l.changes <- open
}

// run runs one light after the other until ctx ends.
func (l *light) run(ctx context.Context) error {
	for {
		l.mu.Lock()
		blinker := l.blinker
		l.mu.Unlock()
		blinking, end := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- blinker.Run(blinking) }()
		select {
		case open := <-l.changes:
			end()
			if err := <-ended; err != nil {
				l.report(err)
			}
			l.mu.Lock()
			l.blinker = gpio.NewBlinker(open, l.report)
			l.blinker.Show(l.pattern)
			l.mu.Unlock()
		case err := <-ended:
			end()
			return err
		}
	}
}
