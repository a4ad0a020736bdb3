package hooks

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// fakeDaemon is the control socket of one, with a board that is as the test says.
type fakeDaemon struct {
	console.Backend // what hooks do not ask for
	t               *testing.T
	path            string
	server          *console.Server
	group           *console.Group
	stop            func()

	mu    sync.Mutex
	role  string
	holds bool
	term  uint32 // which counts the changes
}

func newDaemon(t *testing.T) *fakeDaemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "topdog") // short, since the path of a socket has a limit
	assert.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &fakeDaemon{t: t, path: filepath.Join(dir, "s"), role: console.RoleFollower}
	d.start()
	return d
}

func (d *fakeDaemon) start() {
	d.t.Helper()
	d.server = console.NewServer(d.path)
	d.group = d.server.Add("a group", d)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.server.Run(ctx) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		assert.ErrorIs(d.t, <-ended, nil, "the control socket")
	})
	d.t.Cleanup(d.stop)
	waitFor(d.t, "the socket is there", func() bool { _, err := d.client().Status(d.t.Context()); return err == nil })
}

func (d *fakeDaemon) client() *console.Client { return console.Dial(d.path) }

// becomes changes the role of the board, and says so.
func (d *fakeDaemon) becomes(role string) {
	d.mu.Lock()
	d.role, d.holds, d.term = role, role == console.RoleLeader, d.term+1
	d.mu.Unlock()
	d.group.Publish(console.Transition{Event: console.EventRoleChanged, Role: role, Holding: d.holds, Term: d.term})
}

func (d *fakeDaemon) Status(context.Context) (console.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return console.Status{Transition: d.group.Published(), Group: "a group", Role: d.role, Holding: d.holds}, nil
}

func (d *fakeDaemon) Scene(context.Context) (console.Scene, error) { return console.Scene{}, nil }

func (d *fakeDaemon) Alive(ctx context.Context) error { return nil }
