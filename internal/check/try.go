package check

import (
	"context"
	"sync"

	"topdog/netio"
)

// Try runs the checks of an order once each, all at a time, in this process. It returns for each why it
// fails; "" if it passes.
func Try(ctx context.Context, o Order) []string {
	t := &tools{floating: o.Floating, iface: o.Interface}
	t.asker, t.noAsker = netio.OpenGatewayAsker()
	defer t.close()
	reasons := make([]string, len(o.Checks))
	var running sync.WaitGroup
	for i := range o.Checks {
		running.Go(func() {
			c := &o.Checks[i]
			p, err := t.prober(c)
			if err == nil {
				defer p.close()
				err = probe(ctx, c, p)
			}
			r := outcome(c, err)
			reasons[i] = r.reason()
		})
	}
	running.Wait()
	return reasons
}
