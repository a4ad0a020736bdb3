package gpio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// walkOrder begins with what people look for.
var walkOrder = []Pattern{Leader, Follower, Election, Fault, Off}

// Walk shows every pattern on the light, which it closes, for as long as each says, and
// names it on out.
func Walk(ctx context.Context, out io.Writer, led LED, each time.Duration) error {
	failed := make(chan error, 1)
	blinker := NewBlinker(
		func() (LED, error) { return led, nil },
		func(err error) {
			select {
			case failed <- err:
			default: // The first failure ends it; the others would say the same.
			}
		})
	blinking, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- blinker.Run(blinking) }()

	err := func() error {
		fmt.Fprintf(out, "%s, each pattern for %v:\n", led, each)
		timer := time.NewTimer(0)
		<-timer.C
		for _, p := range walkOrder {
			blinker.Show(p)
			fmt.Fprintf(out, "  %-9s %s\n", p, p.Looks())
			timer.Reset(each)
			select {
			case <-timer.C:
			case err := <-failed:
				return err
			case <-ctx.Done():
				return errors.New("interrupted; the light was put out")
			}
		}
		return nil
	}()
	end()
	if err = errors.Join(err, <-ended); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "done; the light is what it was before")
	return err
}
