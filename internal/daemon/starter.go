package daemon

import (
	"context"

	"topdog/internal/console"
)

// awaitStarter tells people when nothing can be started any more. The checker ends with the starter. The board goes on.
func (d *Daemon) awaitStarter(ctx context.Context) error {
	select {
	case <-d.platform.StarterEnded: // never, if it is nil
		d.tasks.post(func() {
			d.reporter.alert(console.ProblemStarter, "the process that starts checkers has ended: no checks run, and no score command, until systemctl restart topdog", forever)
		})
	case <-ctx.Done():
	}
	return nil
}
