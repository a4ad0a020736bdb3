package daemon

import (
	"context"
	"time"

	"topdog/internal/console"
)

// socketMode lets every user of the board ask for the status; who may make it
// resign is decided by the caller's credentials.
const socketMode = 0o666

// serveRetry is how long to wait before the control socket is made again.
const serveRetry = 5 * time.Second

// serveConsole answers people and programs. A socket that cannot be made is
// reported and tried again; the election does not depend on it.
func (d *Daemon) serveConsole(ctx context.Context) error {
	for {
		err := d.console.Run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		d.tasks.tryPost(func() {
			if err != nil {
				d.reporter.warn(console.ProblemControlSocket, err.Error(), forever)
			}
		})
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(serveRetry):
		}
	}
}
