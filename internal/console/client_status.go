package console

import (
	"context"
	"time"
)

const (
	// statusEvery is how often WatchStatus calls though nothing happens: ages grow.
	statusEvery = time.Second
	// statusGap is the least time between two calls. A hundred a second are plenty for people.
	statusGap = 10 * time.Millisecond
)

// WatchStatus calls each with a status at once, when something has happened, and every second,
// until ctx ends, each fails, or the daemon goes away; it returns why. What happens in quick
// succession is one call.
func (c *Client) WatchStatus(ctx context.Context, each func(Status) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	happened := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Watch(ctx, WatchOptions{}, func(Transition) error {
			select {
			case happened <- struct{}{}:
			default: // it is known that something has
			}
			return nil
		})
	}()
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-happened:
		case <-tick.C:
		}
		status, err := c.Status(ctx)
		if err != nil {
			return err
		}
		if err := each(status); err != nil {
			return err
		}
		<-time.After(statusGap)
	}
}
