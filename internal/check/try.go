package check

import (
	"context"
	"sync"

	"topdog/netio"
)

// Try runs the checks of an order once each, all at a time, in this process. It returns for each why it
// fails, or nil.
func Try(ctx context.Context, o Order) []error {
	t := &tools{floating: o.Floating, iface: o.Interface}
	t.asker, t.noAsker = netio.OpenGatewayAsker()
	defer t.close()
	failed := make([]error, len(o.Checks))
	var running sync.WaitGroup
	for i := range o.Checks {
		running.Go(func() {
			c := &o.Checks[i]
			p, err := t.prober(c)
			if err != nil {
				failed[i] = err
				return
			}
			defer p.close()
			failed[i] = probe(ctx, c, p)
		})
	}
	running.Wait()
	return failed
}
